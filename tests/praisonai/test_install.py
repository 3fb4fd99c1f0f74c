"""`install()` changes the host for those who asked, and `uninstall()` leaves no trace of it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from praisonaiagents import Agent, ExecutionConfig
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy

from praison_compressor import install, uninstall
from praison_compressor.praisonai import HostMoved, installed
from praison_compressor.praisonai.install import NEEDED, REPLACED, missing
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    ANTHROPIC,
    MODES,
    PATHS,
    RESPONSES,
    agent,
    look_up,
    numbered,
    turn,
)
from tests.helpers.provider import strict_provider

EVERY_SEAM = [(row.owner, row.name) for row in REPLACED if row.kind in ("method", "property")]


def owner_of(path: str) -> Any:
    """A class of the host."""
    module, _, last = path.rpartition(".")
    return getattr(importlib.import_module(f"praisonaiagents.{module}"), last)


def everything() -> dict[str, Any]:
    """What the patched owners hold in their own dictionaries."""
    return {f"{path}.{k}": v for path, _ in EVERY_SEAM for k, v in vars(owner_of(path)).items()}


@pytest.fixture
def clean() -> Iterator[None]:
    """No installation before and none after."""
    uninstall()
    yield
    uninstall()


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


def test_a_moved_name_that_is_only_read_is_named(
    clean: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests would pass us by: such a host is refused by the name too."""
    assert missing() == []
    monkeypatch.setitem(NEEDED, "agent.agent.Agent", "_context_param _no_such_name")
    with pytest.raises(HostMoved, match=r"_no_such_name\b"):
        install()


def test_uninstall_puts_every_object_back(clean: None) -> None:
    """No name is left behind, none is missing, and each is the very object that it was, also where
    `install` was called twice."""
    before = everything()
    first = install()
    during = everything()
    replaced = {f"{row.owner}.{row.name}" for row in REPLACED} & before.keys()
    assert {key for key in before if during[key] is not before[key]} == replaced
    assert install() is first
    again = everything()
    assert [key for key in during if again[key] is not during[key]] == []
    uninstall()
    after = everything()
    assert after.keys() == before.keys()
    assert [key for key in before if after[key] is not before[key]] == []


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
    """One system compresses: the host's compaction is off while ours is on, and back afterwards."""
    options = ExecutionConfig(context_compaction=True, max_iter=7)
    made = Agent(instructions="x", context="summarize", execution=options, output="silent")
    install()
    assert made.context_compressor is not None
    assert (made.execution.context_compaction, made.execution.max_iter) == (False, 7)
    uninstall()
    assert made.execution is options
    assert options.context_compaction is True


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
