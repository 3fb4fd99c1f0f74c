"""List the faults of older hosts, each with the tests that meet it.

A listed test must fail on those hosts (strict), so that the list cannot outlive its faults; one
that may wait for ever is not run there. `.ci/run hosts` runs every test of the host there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import pytest
from packaging.version import Version


@dataclass(frozen=True)
class Fault:
    """What a host does wrong, until which release, and which tests show it."""

    reason: str
    until: str
    """The newest tested release that has it."""
    tests: tuple[str, ...]
    """Ids below `tests/`, without parameters for all of a test's."""
    hangs: bool = False
    """Whether a test that meets it may wait for ever, now and then."""


FAULTS = (
    Fault(
        "sync chat inside a running loop loses its context variables on the OpenAI path",
        "1.7.10",
        tuple(
            f"praisonai/{test}[openai client-chat in a loop]"
            for test in (
                "test_agents.py::test_every_mode",
                "test_agents.py::test_a_tool_loop_with_parallel_calls",
                "test_notices.py::test_the_hosts_hooks_fire_once_for_each_compression",
            )
        ),
    ),
    Fault(
        # Seen without us: four plain agents in four threads, 20 turns each, on a busy machine.
        "sync chats in threads share a client of many event loops on the OpenAI path, and hang",
        "1.7.10",
        ("praisonai/test_turns.py::test_threads_do_not_meet[openai client]",),
        hangs=True,
    ),
    Fault(
        "a stream that called tools through litellm ends without the answer's text",
        "1.7.10",
        tuple(
            f"praisonai/test_agents.py::test_a_tool_loop_with_parallel_calls[{path}-{mode}]"
            for path in ("litellm", "litellm responses")
            for mode in ("stream", "iter_stream")
        ),
    ),
    Fault(
        "answers no chat(stream=True) on the OpenAI path",
        "1.7.10",
        (
            "praisonai/test_usage.py::test_a_streamed_answers_usage_is_learned_where_it_is_reported"
            "[chat_streamed-openai client]",
        ),
    ),
    Fault(
        "has no EncryptedSessionStore",
        "1.7.4",
        (
            "praisonai/test_sessions.py::test_an_encrypted_session_has_an_encrypted_ledger",
            "praisonai/test_sessions.py::test_a_plain_url_is_not_used_beside_an_encrypted_session",
        ),
    ),
    Fault(
        "enables every installed plugin when one is named",
        "1.7.4",
        ("praisonai/test_plugin.py::test_the_plugin_is_off_unless_it_is_named[another]",),
    ),
    Fault(
        "gives a plugin no options from .praisonai/config.yaml",
        "1.7.4",
        (
            "praisonai/test_plugin.py::test_an_agent_with_another_strategy_is_left_alone",
            "praisonai/test_plugin.py::test_a_misspelled_name_is_reported[names and an option]",
            "praisonai/test_plugin.py::test_doctor_proves_that_a_plain_agent_is_compressed",
            "project/test_examples.py::test_the_yaml_example_needs_no_python",
        ),
    ),
)


def is_old(until: str = "1.7.10") -> bool:
    """Whether the installed host is that release or one before it."""
    return Version(version("praisonaiagents")) <= Version(until)


def expect(items: Sequence[pytest.Item]) -> None:
    """Mark the collected tests that must fail on the installed host."""
    for fault in FAULTS:
        why = f"praisonaiagents <= {fault.until}: {fault.reason}"
        mark = pytest.mark.xfail(reason=why, strict=True, run=not fault.hangs)
        for item in items if is_old(fault.until) else ():
            name = item.nodeid.removeprefix("tests/")
            if name in fault.tests or name.partition("[")[0] in fault.tests:
                item.add_marker(mark)
