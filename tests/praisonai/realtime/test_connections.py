"""A voice conversation goes on over a new connection and in a new process."""

from __future__ import annotations

import asyncio
import random

from praison_compressor import CompressorConfig
from praison_compressor.messages import text_of
from praison_compressor.view.frame import unframe
from tests.helpers.realtime_caller import (
    FACT,
    SMALL,
    Caller,
    agent_for,
    all_messages,
    archived,
    conversation,
    line,
    memories,
    model,
    small_talk,
    until,
    value_of,
)
from tests.helpers.realtime_server import RealtimeServer


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
    """After 100 random disconnects no item or fact is lost, and one memory is left."""
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
