"""`install()` changes the host for those who asked, and `uninstall()` leaves no trace of it."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

import pytest
from praisonaiagents import Agent, ExecutionConfig
from praisonaiagents.context.manager import ContextManager
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy
from praisonaiagents.context.optimizer import get_optimizer

from praison_compressor.cli import doctor as checks
from praison_compressor.config import CompressorConfig
from praison_compressor.praisonai import HostMoved, install, installed, uninstall
from praison_compressor.praisonai import probe as reads
from praison_compressor.praisonai.host_compaction import CompressorOptimizer, PassThroughManager
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    ANTHROPIC,
    MODES,
    PATHS,
    RESPONSES,
    agent,
    at_home,
    look_up,
    numbered,
    of_agent,
    turn,
)
from tests.helpers.provider import strict_provider

SEAMS = {
    "agent.chat_mixin.ChatMixin": (
        "chat",
        "achat",
        "_start_stream",
        "_apply_context_management",
        "_get_compaction_policy",
        "_apply_context_compaction",
        "_apply_context_compaction_async",
    ),
    "agent.execution_mixin.ExecutionMixin": ("_start_with_planning",),
    "agent.agent.Agent": ("context_manager", "clone_for_channel"),
    "agents.agents.AgentTeam": ("__init__",),
    "workflows.yaml_parser.YAMLWorkflowParser": ("_parse_workflow_data",),
    "llm.openai_client.OpenAIClient": ("sync_client", "async_client"),
    "llm.llm.LLM": (
        "_completion_with_retry",
        "_acompletion_with_retry",
        "_call_responses_api",
        "_call_responses_api_async",
        "_stream_responses_api",
        "_stream_responses_api_async",
        "_manage_context_in_loop",
    ),
    "context.optimizer": ("OPTIMIZER_REGISTRY",),
}
EVERY_SEAM = [(owner, name) for owner, names in SEAMS.items() for name in names]


def owner_of(path: str) -> Any:
    """A class or a module of the host."""
    module, _, last = path.rpartition(".")
    if not last[0].isupper():
        return importlib.import_module(f"praisonaiagents.{path}")
    return getattr(importlib.import_module(f"praisonaiagents.{module}"), last)


def everything() -> dict[str, Any]:
    """What the patched owners hold in their own dictionaries."""
    return {f"{path}.{k}": v for path in SEAMS for k, v in vars(owner_of(path)).items()}


@pytest.fixture
def clean() -> Iterator[None]:
    """No installation before and none after."""
    uninstall()
    yield
    uninstall()


@pytest.fixture
def host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, provider: LocalProvider
) -> Iterator[LocalProvider]:
    """The strict provider as the host's, and our installation."""
    with at_home(monkeypatch, tmp_path, provider) as running:
        yield running


@pytest.mark.parametrize(("owner", "name"), EVERY_SEAM)
def test_a_moved_seam_is_named(
    clean: None, monkeypatch: pytest.MonkeyPatch, owner: str, name: str
) -> None:
    """A host without one of the places we build on is refused by its name, and left as it was."""
    monkeypatch.delattr(owner_of(owner), name)
    before = everything()
    with pytest.raises(HostMoved, match=rf"{name}\b"):
        install()
    assert everything() == before
    assert installed() is None


@pytest.mark.parametrize(("owner", "name"), EVERY_SEAM)
def test_each_seam_is_replaced_and_restored(clean: None, owner: str, name: str) -> None:
    """What `uninstall` puts back is the very object that was there."""
    before = vars(owner_of(owner))[name]
    install()
    assert vars(owner_of(owner))[name] is not before
    uninstall()
    assert vars(owner_of(owner))[name] is before


EVERY_READ = [(read.owner, name, read.needed) for read in reads.READS for name in read.names]


def rename(patch: pytest.MonkeyPatch, path: str, name: str) -> None:
    """Make the host what a release that renames this would be, down to its constructors' code."""
    owner = owner_of(path)
    if isinstance(owner, ModuleType):
        if name in vars(owner):
            patch.delattr(owner, name)
        patch.setattr(owner, "__getattr__", _refusing, raising=False)  # some load names lazily
        return
    if issubclass(owner, Enum):
        rest = {member.name: member.value for member in owner if member.name != name}
        patch.setattr(f"praisonaiagents.{path}", Enum(owner.__name__, rest))
        return
    patch.delitem(getattr(owner, "__dataclass_fields__", {}), name, raising=False)
    for kind in owner.__mro__:
        if name in vars(kind):
            patch.delattr(kind, name)
        init = vars(kind).get("__init__")
        # Not typing's own, which every protocol shares and knows by its identity.
        if isinstance(init, FunctionType) and name in inspect.unwrap(init).__code__.co_names:
            patch.setattr(kind, "__init__", _renamed(inspect.unwrap(init), name))


def _refusing(name: str) -> Any:
    raise AttributeError(name)


def _renamed(function: Any, name: str) -> FunctionType:
    code = function.__code__
    names = tuple(f"{each}_moved" if each == name else each for each in code.co_names)
    changed = code.replace(co_names=names)
    return FunctionType(
        changed, function.__globals__, "__init__", function.__defaults__, function.__closure__
    )


@pytest.mark.parametrize(("owner", "name", "needed"), EVERY_READ)
def test_a_moved_name_that_is_only_read_is_named(
    clean: None, monkeypatch: pytest.MonkeyPatch, owner: str, name: str, needed: bool
) -> None:
    """Where requests would pass us by, `install` refuses; the rest is said with what is lost."""
    assert list(reads.missing()) == []
    rename(monkeypatch, owner, name)
    gone = [each.seam for each in reads.missing()]
    assert f"praisonaiagents.{owner}.{name}" in gone
    if_refused = pytest.raises(HostMoved, match=rf"{name}\b") if needed else nullcontext()
    with if_refused:
        reads.check()


def test_doctor_shows_what_is_only_read(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It works on, and the person who asks learns what does not."""
    rename(monkeypatch, "agent.agent.Agent", "_hook_runner")
    (host,) = (found for found in checks.all_checks(CompressorConfig()) if found.name == "host")
    assert host.state == checks.NOTE
    assert "Agent._hook_runner is gone, and with it the host's hooks" in host.found


def test_uninstall_restores_everything(clean: None) -> None:
    """No attribute is left behind, none is missing, none is another object."""
    before = everything()
    install()
    uninstall()
    after = everything()
    assert after.keys() == before.keys()
    assert [key for key in before if after[key] is not before[key]] == []


def test_installing_twice_is_installing_once(clean: None) -> None:
    """The second call wraps nothing again, and one `uninstall` undoes both."""
    before = everything()
    first = install()
    count = len(first.patches)
    assert install() is first
    assert len(first.patches) == count
    uninstall()
    assert everything() == before


def test_threads_install_once(clean: None) -> None:
    """Sixteen threads at once end up with one installation."""
    made: list[Any] = []
    gate = threading.Barrier(16)

    def run() -> None:
        gate.wait()
        made.append(install())

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(each) for each in made}) == 1
    assert len(made) == 16


def test_a_patch_of_somebody_else_survives(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wrapped our wrapper keeps theirs after `uninstall`, and ours inside it does nothing."""
    mixin = owner_of("agent.chat_mixin.ChatMixin")
    monkeypatch.setattr(mixin, "chat", mixin.chat)  # put back by monkeypatch at the end
    install()
    ours = mixin.chat

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(self, *args, **kwargs)

    mixin.chat = theirs
    uninstall()
    assert mixin.chat is theirs
    made = Agent(instructions="x", context="summarize", output="silent")
    assert getattr(made, "context_compressor", "gone") == "gone"


def test_an_agent_goes_back_to_the_host(clean: None) -> None:
    """After `uninstall` an agent that compressed has the host's own manager again."""
    made = Agent(
        instructions="x",
        context=ContextConfig(strategy=OptimizerStrategy.SUMMARIZE),
        output="silent",
    )
    install()
    assert type(made.context_manager) is PassThroughManager
    uninstall()
    assert type(made.context_manager) is ContextManager


def test_the_optimizer_is_registered(clean: None) -> None:
    """Callers of `get_optimizer` get ours, with all of the host's keywords or none."""
    before = type(get_optimizer(OptimizerStrategy.SUMMARIZE))
    install()
    keywords = {
        "preserve_recent": 5,
        "protected_tools": ["read"],
        "llm_summarize_fn": None,
        "smart_tool_summarize": True,
        "tool_summarize_limits": {},
    }
    assert type(get_optimizer(OptimizerStrategy.SUMMARIZE)) is CompressorOptimizer
    assert type(get_optimizer(OptimizerStrategy.SUMMARIZE, **keywords)) is CompressorOptimizer
    uninstall()
    assert type(get_optimizer(OptimizerStrategy.SUMMARIZE)) is before


@pytest.mark.parametrize("target", [1_500, 0])
def test_the_optimizer_reports_real_numbers(clean: None, target: int) -> None:
    """The host reads the gain from them; a target of 0, as it has for gpt-4, is no target."""
    install()
    messages = [{"role": "system", "content": "You keep the books."}]
    for n in range(1_200):
        messages += [
            {"role": "user", "content": turn(n)},
            {"role": "assistant", "content": turn(n)},
        ]
    view, result = get_optimizer(OptimizerStrategy.SUMMARIZE).optimize(messages, target)
    assert view[0] == messages[0]
    assert view[-1] == messages[-1]
    assert 0 < result.optimized_tokens < result.original_tokens
    assert result.tokens_saved == result.original_tokens - result.optimized_tokens
    assert result.strategy_used is OptimizerStrategy.SUMMARIZE
    assert result.summary_added


# ---------------------------------------------------------------- agents that did not ask

OTHERS: dict[str, Any] = {
    "unset": None,
    "off": False,
    "on": True,
    "sliding window": "sliding_window",
    "smart": ContextConfig(strategy=OptimizerStrategy.SMART),
    "truncate in a dictionary": {"strategy": OptimizerStrategy.TRUNCATE},
}


SOME_MODES = ("chat", "achat", "iter_stream")


def bodies(path: str, mode: str, asked: Any) -> list[Any]:
    """The bodies of all requests of an agent with tools over three turns."""
    with strict_provider(Worker(2, arguments=numbered), window=200_000) as provider:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", provider.base_url)
            patch.setenv("OPENAI_API_BASE", provider.base_url)
            made = agent(
                provider,
                path,
                asked,
                tools=[look_up],
                execution=ExecutionConfig(max_iter=20, max_tool_calls_per_turn=50),
            )
            MODES[mode](made, [turn(n) for n in range(3)])
        return [record.body for record in provider.requests]


NOT_ASKING = [
    *((path, mode, asked) for path in PATHS for mode in SOME_MODES for asked in OTHERS),
    *((path, mode, "on") for path in (RESPONSES, ANTHROPIC) for mode in SOME_MODES),
]


@pytest.mark.parametrize(("path", "mode", "asked"), NOT_ASKING)
def test_agents_that_did_not_ask_send_the_same_bytes(
    host: LocalProvider, path: str, mode: str, asked: str
) -> None:
    """Every request body is the same with and without our installation."""
    ours = bodies(path, mode, OTHERS[asked])
    uninstall()
    assert ours == bodies(path, mode, OTHERS[asked])
    assert len(ours) >= 3


def test_an_agent_that_did_not_ask_has_no_compressor(host: LocalProvider) -> None:
    """The attribute is there, and says None."""
    assert agent(host, PATHS[0]).context_compressor is None
    assert agent(host, PATHS[0], "sliding_window").context_compressor is None


def test_two_agents_on_one_shared_client_do_not_meet(host: LocalProvider) -> None:
    """The host shares one OpenAI client among agents: only who asked is rewritten."""
    host.set_window(200_000)
    one = agent(host, PATHS[0], {"strategy": "summarize", "context_window": 3_000})
    other = agent(host, PATHS[0], name="Bob", instructions="You are Bob.")
    assert one._openai_client is other._openai_client

    async def both() -> None:
        for n in range(20):
            await asyncio.gather(one.achat(turn(n)), other.achat(turn(n)))

    asyncio.run(both())
    longest = {True: 0, False: 0}
    for record in of_agent(host):
        bobs = "You are Bob." in record.messages[0]["content"]
        longest[bobs] = max(longest[bobs], record.prompt_tokens)
    assert one.context_compressor.context_status == "summarized"
    assert longest[True] > 3_000 > longest[False] > 0
