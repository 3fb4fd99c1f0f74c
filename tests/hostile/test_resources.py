"""Bounded time and memory: the operating system ends a process that takes more."""

import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from praison_compressor import InvalidMessages
from praison_compressor.messages import Message
from praison_compressor.messages.secrets import Redactor
from praison_compressor.messages.shapes import MOST_DEPTH
from praison_compressor.summaries.prompts import escape_labels
from praison_compressor.view.frame import escape
from tests.helpers.compressing import compressor
from tests.helpers.transcripts import call, coding_turns, find_repairs, step

CPU_SECONDS = 30
"""All loads together take 3 seconds on one core; a quadratic step in five megabytes takes hours."""

MEMORY_BYTES = 4 << 30


def among(*messages: Message) -> list[Message]:
    """Return a session with these messages in its middle."""
    around = coding_turns(9)
    return [*around[:12], *messages, *around[12:]]


def huge(text: str) -> list[Message]:
    """Return a session with five megabytes of a text in one output."""
    return among(*step("call_huge", text * (5_000_000 // len(text)), "bash", command="cat"))


def calls(count: int) -> list[Message]:
    """Return a message with this many parallel calls, results reversed."""
    asked = [call(f"call_{n}", "f") for n in range(count)]
    answers = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in asked[::-1]]
    return among({"role": "assistant", "content": None, "tool_calls": asked}, *answers)


def arguments(depth: int) -> list[Message]:
    """Return a session with deeply nested arguments."""
    messages = coding_turns(9)
    messages[14]["tool_calls"][0]["function"]["arguments"] = '{"a":' * depth + "1" + "}" * depth
    return messages


LOADS: dict[str, Callable[[], list[Message]]] = {
    "5 MB without a space": lambda: huge("a"),
    "5 MB of errors": lambda: huge("Traceback: ValueError: no such file /tmp/x_1.py\n"),
    "arguments 50,000 levels deep": lambda: arguments(50_000),
    "5,000 parallel calls": lambda: calls(5_000),
}


def carry(name: str) -> None:
    """Compress a load to a valid view that fits; print its name."""
    ours = compressor(context_window=16_000, protect_last_n_tokens=2_000)
    result = ours.compress_sync(LOADS[name]())
    assert find_repairs(result.messages) == []
    assert result.tokens_after < 12_000
    print(name)


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def test_heavy_loads_are_carried_within_their_bounds():
    """Heavy loads give valid views within limited time and memory."""
    script = "from tests.hostile.test_resources import LOADS, carry\nfor name in LOADS: carry(name)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limited, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    assert done.stdout.splitlines() == [*LOADS]


def test_hostile_text_is_escaped_and_redacted_in_one_pass():
    """Repeated openings are escaped and redacted in linear time."""
    units = ("<", "< ", "<trans", "&lt;", "&", "[user", "[", "\n[", "<\u200b", "-----BEGIN ")
    for unit in (*units, "://a:", "token="):
        text = unit * (120_000 // len(unit))
        assert len(escape_labels(escape(text))) >= len(text)
        assert len(Redactor().redact([text])[0][0]) >= len(text) // 2


@pytest.fixture(params=[MOST_DEPTH * 2, 100_000])
def nested(request):
    """Return a session whose message 5 is nested too deep."""
    value: Any = "core"
    for _ in range(request.param):
        value = [value]
    messages = coding_turns(3)
    messages[5] = {**messages[5], "extra": value}
    return messages


def test_too_deep_nesting_is_an_error_with_its_index(nested):
    """The error for a message that is nested too deep has the message's index."""
    with pytest.raises(InvalidMessages, match=r"messages\[5\]: nested deeper"):
        compressor().compress_sync(nested)


def test_the_best_view_of_too_deep_nesting_is_the_transcript(nested):
    """`fallback_view` returns messages that are nested too deep unchanged."""
    view = compressor().fallback_view(nested).messages
    assert all(a is b for a, b in zip(view, nested, strict=True))
