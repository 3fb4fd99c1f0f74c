"""A voice conversation with a memory, also over another connection and in another process."""

import asyncio
import inspect
import logging
import random
import sys

import pytest
from praisonaiagents.agent.realtime_agent import RealtimeAgent as HostRealtimeAgent

from praison_compressor import CompressorConfig, ConfigError
from praison_compressor.messages import text_of
from praison_compressor.praisonai.realtime import RealtimeAgent
from praison_compressor.view.frame import unframe
from tests.helpers.processes import ROOT
from tests.helpers.realtime_caller import (
    FACT,
    SMALL,
    Caller,
    agent_for,
    all_messages,
    archived,
    conversation,
    deletions,
    entries,
    line,
    memories,
    memory_ids,
    model,
    sent,
    small_talk,
    until,
    value_of,
)
from tests.helpers.realtime_server import RealtimeServer

LOW, HIGH = 12, 30
ITEMS = {"max_history_items": LOW, "trigger_items": HIGH}


async def test_two_hundred_turns_stay_flat():
    """For 200 turns the server holds one memory beside a bounded window."""
    sizes = []
    async with conversation(**ITEMS) as (server, agent, caller):
        for turn in range(200):
            await caller.script(range(turn, turn + 1))
            await agent.settled()
            sizes.append(len(server.ids) - len(memories(server)))
            assert len(memories(server)) == (1 if agent.memory else 0)
        first = next(turn for turn, size in enumerate(sizes) if turn and size < sizes[turn - 1])
        assert max(sizes) < HIGH + 5  # the most items that one turn of the script adds
        assert min(sizes[first:]) >= LOW
        assert memories(server) == [agent.memory]
        assert server.ids[1:] == list(agent.items)


async def test_two_hundred_turns_lose_nothing():
    """After 200 turns no fact and no item is lost."""
    async with conversation(**ITEMS) as (server, agent, caller):
        await caller.script(range(200))
        await agent.settled()
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


async def test_interrupted_words_are_in_no_summary():
    """No summary has the words that an interruption cut off."""
    async with conversation(**SMALL, config=CompressorConfig(context_window=8_000)) as (
        _,
        agent,
        caller,
    ):
        await caller.script(range(20, 50))
        await agent.settled()
        summaries = "".join(map(str, entries(agent)))
        assert "Once upon a time" in "".join(map(text_of, all_messages(agent)))
        assert summaries
        assert "THE-END" not in summaries


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


async def test_a_missing_key_is_a_configuration_error(monkeypatch):
    """Without a key for OpenAI the callback for errors receives a ConfigError."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agent, errors = RealtimeAgent(verbose=False), []
    agent.on_error(errors.append)
    assert not await agent.aconnect()
    assert list(map(type, errors)) == [ConfigError]


def test_the_address_names_the_model():
    """The URL gets a missing model."""
    assert RealtimeAgent(verbose=False).url == "wss://api.openai.com/v1/realtime?model=gpt-realtime"
    local = RealtimeAgent(verbose=False, model="a b", url="ws://localhost:1/x?key=1")
    assert local.url == "ws://localhost:1/x?key=1&model=a%20b"


@pytest.mark.parametrize(
    "wrong", [{"url": "https://localhost/v1/realtime"}, {"max_history_items": 5}]
)
def test_options_that_cannot_work_are_refused(wrong):
    """No agent is made with options that cannot work."""
    with pytest.raises(ConfigError):
        RealtimeAgent(**wrong)


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


async def test_another_process_goes_on_from_the_ledger(tmp_path):
    """A new agent of the session begins with the stored memory."""
    config = CompressorConfig(store_url=f"sqlite:///{tmp_path / 'ledger.db'}")
    async with conversation(config=config, session_id="call-7") as (server, agent, caller):
        await caller.script(range(8))
        await agent.settled()
        known = agent.memory
        agent.store.close()
        later = agent_for(server, config=config, session_id="call-7")
        async with Caller(later) as other:
            await until(lambda: memories(server) == [known])
            assert f"fact-0 is {value_of('fact-0')}" == await other.turn("What is fact-0")
            await small_talk(other, 4)
            assert unframe({"content": later.memory}).startswith(unframe({"content": known}))
        later.store.close()


async def test_a_hundred_disconnects_are_survived():
    """100 random disconnects neither lose nor double anything."""
    chance = random.Random(7)
    async with RealtimeServer(model) as server:
        caller = Caller(agent_for(server, **SMALL))
        await caller.call()
        for drop in range(100):
            if drop % 5 == 0:  # these are heard out, so that there is much to know
                await caller.turn(f"Remember that fact-{drop} is {value_of(f'fact-{drop}')} please")
            talking = asyncio.create_task(caller.turn(line(drop)))
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            if chance.random() < 0.5:
                await asyncio.wait({talking}, timeout=chance.random() * 0.05)
            await server.drop()
            await caller.cut_off()
            await asyncio.gather(talking, return_exceptions=True)
            await caller.call()
        await caller.turn("Are you still there")
        await caller.agent.settled()
        agent = caller.agent
        lost = caller.seen - set(archived(agent)) - set(agent.items)
        assert {i for i in lost if not i.startswith("mem_")} == set()
        assert memories(server) == [agent.memory]
        assert server.ids[1:] == list(agent.items)
        kept = set(FACT.findall(agent.memory)) | {
            fact for k in server.now.items for fact in FACT.findall(k.words)
        }
        said = {f for m in all_messages(agent) for f in FACT.findall(text_of(m))}
        assert said <= kept
        assert len(said) > 10
        assert server.refusals == []
        assert len(server.connections) == 101
        await caller.hang_up()


async def test_a_text_sent_before_the_line_went_dead_is_not_lost():
    """An unacknowledged text is sent to the next connection."""
    async with conversation() as (server, agent, caller):
        server.mute.add("conversation.item.create")
        await agent.asend_text("Are you there")
        server.mute.clear()
        await server.drop()
        await caller.cut_off()
        await caller.call()
        await until(lambda: [k.words for k in server.now.items] == ["Are you there"])


async def run(server: RealtimeServer, lines: list[str]) -> tuple[str, str]:
    """Return the example's output and errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "examples/voice_agent.py", "--url", server.url),
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    out, err = await asyncio.wait_for(process.communicate("\n".join(lines).encode()), 60)
    return out.decode(), err.decode()


async def test_the_voice_example_remembers_across_a_dead_line():
    """The example answers from its memory after a disconnect."""
    async with RealtimeServer(model) as server:
        dropped = []

        async def cut_once(connection, event):
            if len(sent(server, "response.create")) == 8 and not dropped:
                dropped.append(connection)
                await server.drop()

        server.hook = cut_once
        out, err = await run(server, [*map(line, range(9)), "What is fact-0"])
        assert set(err.splitlines()) <= {"error: no close frame received or sent"}
        assert f"agent: fact-0 is {value_of('fact-0')}" in out
        assert out.count("agent: ") == 10
        assert "<conversation-summary> Reference material" in out
        assert len(server.connections) == 2
        assert server.refusals == []
