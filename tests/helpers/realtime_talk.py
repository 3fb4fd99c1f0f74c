"""A conversation with a Realtime agent of ours, and what tests ask of it afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading

from praison_compressor import CompressorConfig, MemoryStore
from praison_compressor.messages import text_of
from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.helpers.realtime_caller import Caller, model, oracle, value_of
from tests.helpers.realtime_server import RealtimeServer

LOW, HIGH = 12, 30
TURN = 5  # the most items that one turn of the script adds
ITEMS = {"max_history_items": LOW, "trigger_items": HIGH}
SMALL = {"max_history_items": 4, "trigger_items": 8}


TIGHT = CompressorConfig(context_window=8_000)
"""A memory of 400 tokens, so that a few turns make a summary."""


def agent_for(server, **options) -> RealtimeAgent:
    options = {**SMALL, "summarizer": oracle, "verbose": False, **options}
    return RealtimeAgent(url=server.url, **options)


@contextlib.asynccontextmanager
async def conversation(*, answers=model, server_options=None, **options):
    """A server, an agent and someone who talks to it; nothing may be refused unannounced."""
    async with (
        RealtimeServer(answers, **(server_options or {})) as server,
        Caller(agent_for(server, **options)) as caller,
    ):
        yield server, caller.agent, caller


async def small_talk(caller: Caller, turns: int, start: int = 21) -> None:
    for number in range(start, start + turns):
        await caller.turn(f"This is sentence number {number}")
    await caller.agent.settled()


def memories(server) -> list[str]:
    """The words of every memory item that the server has now."""
    return [k.words for k in server.now.items if k.words.startswith("<conversation-summary>")]


def memory_ids(server) -> list[str]:
    created = [event["item"] for event in sent(server, "conversation.item.create")]
    return [item["id"] for item in created if item["id"].startswith("mem_")]


def sent(server, kind: str) -> list[dict]:
    return [event for event in server.received if event["type"] == kind]


def deletions(server) -> list[str]:
    return [event["item_id"] for event in sent(server, "conversation.item.delete")]


def entries(agent):
    return agent.store.open("default", agent.session_id).entries


def all_messages(agent):
    """Everything that left the window, as the store has it."""
    return agent.store.transcript(agent.store.open("default", agent.session_id))


def archived(agent) -> list[str]:
    """The ids of all items whose words the store has, once for each time."""
    return [message["id"] for message in all_messages(agent)]


async def facts_until(caller: Caller, holds, more: str = "") -> int:
    """Tell the caller's agent facts, until something holds; how many."""
    for number in range(60):
        if holds():
            return number
        fact = f"fact-{number} is {value_of(f'fact-{number}')}"
        await caller.turn(f"Remember that {fact} please {more}")
        await asyncio.sleep(0.01)
    raise AssertionError(f"never: {inspect.getsource(holds)}")


async def until(holds) -> None:
    """Wait for the server or the agent to come to something."""
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"never: {inspect.getsource(holds)}")


class Slow:
    """A summarizer that answers when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.calls = self.running = self.most = self.cancelled = 0
        self.shown: list[str] = []

    async def __call__(self, messages):
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.shown.append(text_of(messages[-1]))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return await oracle(messages)


class GatedStore(MemoryStore):
    """A store whose disk is slow: a commit is written when the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.writing = False

    def commit(self, session, segments, outline=None):
        self.writing = True
        self.gate.wait(10)
        return super().commit(session, segments, outline)
