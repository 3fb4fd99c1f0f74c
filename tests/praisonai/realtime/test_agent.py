"""A voice conversation with a memory, against a strict local Realtime server."""

from __future__ import annotations

import inspect
import logging

import pytest
from praisonaiagents.agent.realtime_agent import RealtimeAgent as HostRealtimeAgent

from praison_compressor import ConfigError
from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.helpers.realtime_caller import (
    HIGH,
    ITEMS,
    LOW,
    TURN,
    archived,
    conversation,
    deletions,
    entries,
    memories,
    memory_ids,
    sent,
    small_talk,
    value_of,
)


async def test_two_hundred_turns_stay_flat_and_lose_nothing():
    """In 200 turns the window stays between its marks, and no item or fact is lost."""
    sizes = []
    async with conversation(**ITEMS) as (server, agent, caller):
        for turn in range(200):
            await caller.script(range(turn, turn + 1))
            await agent.settled()
            sizes.append(len(server.ids) - len(memories(server)))
            assert len(memories(server)) == (1 if agent.memory else 0)
        first = next(turn for turn, size in enumerate(sizes) if turn and size < sizes[turn - 1])
        assert max(sizes) < HIGH + TURN
        assert min(sizes[first:]) >= LOW
        assert memories(server) == [agent.memory]
        assert server.ids[1:] == list(agent.items)
        assert all(f"fact-{n} is {value_of(f'fact-{n}')}" in agent.memory for n in range(20))
        for number in range(20):
            answer = await caller.turn(f"What is fact-{number}")
            assert answer == f"fact-{number} is {value_of(f'fact-{number}')}"
        assert "order-100 is" in await caller.turn("What is order-100")
        await agent.settled()
        assert {*archived(agent), *agent.items} == caller.seen - {*memory_ids(server)}
        assert "THE-END" not in "".join(map(str, entries(agent)))
        assert len(sent(server, "response.create")) > 200
        assert server.refusals == []
        assert caller.errors == []


async def test_off_is_the_hosts_own_behaviour():
    """Without marks nothing is created, deleted, transcribed or replayed."""
    none = {"max_history_items": None, "trigger_items": None}
    async with conversation(**none) as (server, _agent, caller):
        caller.transcribed = False
        await caller.script(range(21, 41))
        await server.drop()
        await caller.cut_off()
        await caller.call()
        await caller.turn("Still there")
        assert len(server.ids) == 2
        assert {e["item"]["type"] for e in sent(server, "conversation.item.create")} <= {
            "function_call_output"
        }
        updates = sent(server, "session.update")
        host = HostRealtimeAgent(verbose=False)._realtime_config.to_session()
        assert [event["session"] for event in updates] == [host, host]


async def test_speech_without_a_transcript_is_kept_and_reported(caplog):
    """Speech is not folded while its transcript may still come."""
    options = {"server_options": {"transcribes": False}, "transcription_model": None}
    with caplog.at_level(logging.WARNING):
        async with conversation(**options) as (server, _agent, caller):
            caller.transcribed = False
            await small_talk(caller, 6)
            spoken = [k.id for k in server.now.items if k.item["role"] == "user" and k.audio_ms]
            assert len(spoken) == 6
            assert set(spoken) & set(deletions(server)) == set()
            assert "set transcription_model" in caplog.text


async def test_a_key_of_the_environment_goes_to_its_own_provider_only(monkeypatch):
    """The environment's key is sent to OpenAI alone."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with conversation() as (server, _, __):
        assert "Authorization" not in server.headers[-1]
    async with conversation(api_key="mine", headers={"X-Tenant": "7"}) as (server, _, __):
        assert server.headers[-1]["Authorization"] == "Bearer mine"
        assert server.headers[-1]["X-Tenant"] == "7"
    assert RealtimeAgent(verbose=False)._headers["Authorization"] == "Bearer sk-secret"


async def test_the_address_names_the_model_and_must_be_a_websocket():
    """The URL gets a missing model, and must be ws or wss."""
    assert RealtimeAgent(verbose=False).url == "wss://api.openai.com/v1/realtime?model=gpt-realtime"
    local = RealtimeAgent(verbose=False, model="a b", url="ws://localhost:1/x?key=1")
    assert local.url == "ws://localhost:1/x?key=1&model=a%20b"
    with pytest.raises(ConfigError):
        RealtimeAgent(url="https://localhost/v1/realtime")
    with pytest.raises(ConfigError):
        RealtimeAgent(max_history_items=5)


def test_the_host_is_what_we_build_on():
    """The host's class has the names that ours replaces and uses."""
    for name in ("aconnect", "adisconnect", "receive_loop", "_send_event", "_log"):
        assert callable(getattr(HostRealtimeAgent, name))
    host = vars(HostRealtimeAgent(verbose=False))
    for name in ("_ws", "_connected", "_realtime_config", "_on_audio_callbacks"):
        assert name in host
    public = {name for name in dir(HostRealtimeAgent) if not name.startswith("_")}
    assert public <= set(dir(RealtimeAgent))
    given = inspect.signature(HostRealtimeAgent.__init__).parameters
    ours = list(inspect.signature(RealtimeAgent.__init__).parameters)
    assert list(given) == [*ours[:7], "kwargs"]
