"""In the host's terminal, gateway and bots only our system compresses."""

import asyncio
import itertools
import json
import os
import time
from typing import Any

import pytest
from praisonaiagents.session import get_default_session_store

from praison_compressor import install
from praison_compressor.praisonai import patches
from tests.helpers.hosting import OPENAI, agent, chat, context, turn
from tests.helpers.processes import ROOT, python

TERMINAL = """
import json, os, sys
from praisonai_code.cli.interactive.async_tui import AsyncTUI, AsyncTUIConfig
from tests.helpers.hosting import turn

terminal = AsyncTUI(AsyncTUIConfig(model="gpt-4", workspace=os.getcwd()))
for number in range(24):
    terminal._maybe_auto_compact(pending_prompt=turn(number))
    answer = terminal._execute_prompt(turn(number))
typed = {}
for command in ("/status", "/context", "/compact the ledgers", "/undo", "/undo"):
    before = len(terminal.messages)
    terminal._handle_command(command)
    said = [message.content for message in terminal.messages[before:]]
    typed.setdefault(command, []).append(said)
history = terminal._agent.chat_history
print(json.dumps([answer, typed, history]))
"""


@pytest.fixture
def terminal(host, tmp_path):
    """Return the last answer, the answers to commands and the history, with the plugin on."""
    # The host's own compaction would overwrite the history before each turn, from 8k tokens on.
    pytest.importorskip("praisonai_code")
    (tmp_path / ".praisonai").mkdir()
    plugin = {"plugins": {"praison-compressor": {"context_window": 6_000}}}
    (tmp_path / ".praisonai" / "config.yaml").write_text(json.dumps(plugin))
    more = {"PYTHONPATH": str(ROOT), "PRAISONAI_PLUGINS": "praison-compressor"}
    done = python("-c", TERMINAL, folder=tmp_path, environment={**os.environ, **more})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_the_terminals_compaction_is_ours(host, terminal):
    """With the plugin on, requests for the terminal's whole history fit."""
    answer, _, history = terminal
    assert "Noted." in answer
    assert [m["content"] for m in history if m["role"] == "user"] == [*map(turn, range(24))]
    assert host.refused == []


def test_the_terminals_commands_are_ours(terminal):
    """With the plugin on typed commands are answered, before the terminal's own answer."""
    _, typed, _ = terminal
    status, runtime = typed["/status"][0]
    assert "summary" in status
    assert runtime == "Runtime not initialized."
    assert "tool schemas" in typed["/context"][0][0]
    assert "/undo undoes it" in typed["/compact the ledgers"][0][0]
    (taken,), (hosts,) = typed["/undo"]
    assert taken.startswith("Undone:")
    assert hosts == "Nothing to undo."


# ---------------------------------------------------------------- gateway and bots


def idle_session(gateway: Any) -> None:
    """Store a session past the gateway's budget, and let one sweep look at it."""
    store = get_default_session_store()
    for number in range(30):
        store.add_user_message("books", turn(number))
        store.add_assistant_message("books", "Noted. " * 12)
    gateway._session_store = store
    small = {"min_tokens": 1_000, "idle_after_seconds": -1.0, "sweep_interval_seconds": 0.01}
    gateway._idle_compaction_cfg = {**small, "cooldown_seconds": 3_600, "max_per_sweep": 9}
    gateway._is_running = True
    sweeps, candidates = itertools.count(1), gateway._idle_compaction_candidates

    async def sweep() -> None:
        second = asyncio.Event()
        loop = asyncio.get_running_loop()

        def counted(*given: Any) -> Any:
            if next(sweeps) == 2:  # the first is over
                loop.call_soon_threadsafe(second.set)
            return candidates(*given)

        gateway._idle_compaction_candidates = counted
        task = asyncio.create_task(gateway._run_idle_compaction_loop())
        await asyncio.wait_for(second.wait(), 60)
        task.cancel()

    asyncio.run(sweep())


@pytest.mark.parametrize("is_ours", [True, False])
def test_the_gateway_leaves_idle_sessions_of_ours(host, is_ours):
    """The gateway makes no checkpoint of an idle session of ours, and one of another's."""
    server = pytest.importorskip("praisonai_bot.gateway.server")
    gateway = server.WebSocketGateway()
    made = agent(host, OPENAI, context(host) if is_ours else False)
    made.context_compressor  # noqa: B018  # as a turn does: modules imported since are reached
    gateway.register_agent(made, "ada")
    idle_session(gateway)
    working = get_default_session_store().get_working_history("books")
    assert (len(working) == 60) is is_ours


def test_the_gateways_sweep_prepares_the_next_summary(host, monkeypatch):
    """A conversation that rests is compressed in its idle loop: the next turn waits for nothing."""
    server = pytest.importorskip("praisonai_bot.gateway.server")
    gateway, real, rested = server.WebSocketGateway(), time.time, [0]
    monkeypatch.setattr(time, "time", lambda: real() + rested[-1])
    made = agent(host, OPENAI, context(host, cache_ttl_seconds=600))
    chat(made, [turn(n) for n in range(7)])
    assert host.for_model("aux") == []
    gateway.register_agent(made, "ada")
    rested.append(601)
    idle_session(gateway)
    ours = made.context_compressor
    assert ours.for_model().wait_for_summaries(60)
    assert len(host.for_model("aux")) == 1
    assert ours.idle() == 0
    made.chat(turn(8))
    assert ours.context_status == "summarized"
    assert len(host.for_model("aux")) == 1


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_bots_saved_history_is_not_compacted(host, is_ours):
    """`session.compaction` of the bot's configuration does nothing for an agent of ours."""
    sessions = pytest.importorskip("praisonai_bot.bots._session")
    manager = sessions.BotSessionManager(
        compaction={"enabled": True, "max_tokens": 1_000, "keep_recent": 4}
    )
    made = agent(host, OPENAI, context(host) if is_ours else False)

    async def talk() -> None:
        for number in range(12):
            await manager.chat(made, "user", turn(number))

    asyncio.run(talk())
    (saved,) = manager._histories.values()
    assert (len(saved) == 24) is is_ours


def test_a_moved_place_is_left_out_and_logged(host, monkeypatch, caplog):
    """Only the moved name is left out, with a log line."""
    server = pytest.importorskip("praisonai_bot.gateway.server")
    from praison_compressor import uninstall

    uninstall()
    monkeypatch.delattr(server.WebSocketGateway, "_idle_compaction_candidates")
    done = install()
    assert done.lacking == {patches.IDLE: done.lacking[patches.IDLE]}
    assert "_idle_compaction_candidates" in done.lacking[patches.IDLE]
    assert patches.IDLE in caplog.text
