"""A scripted caller of an agent: speaks, runs tools, interrupts, reconnects."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from praison_compressor.messages import text_of
from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.helpers.realtime_server import Event, Kept, RealtimeServer, Reply, speech

SMALL = {"max_history_items": 4, "trigger_items": 8}
FACT = re.compile(r"(?:fact|order)-\d+ is [a-z]+-\d{4}")
LONG = "and so on with many words that nobody really needs to hear at all " * 3


# ------------------------------------------------------------ what is said


def value_of(name: str) -> str:
    """Return the value of a name, as caller and tool say it."""
    colours = ("amber", "green", "white", "black")
    return f"{colours[zlib.crc32(name.encode()) % 4]}-{zlib.crc32(name.encode()) % 9000 + 1000}"


def model(conversation: list[Kept]) -> Reply:
    """Answer from the words in the context alone."""
    last = conversation[-1]
    if last.item["type"] == "function_call_output":
        return [("say", f"I looked: {last.item['output']}.")]
    asked = last.words
    if wanted := re.search(r"look up (order-\d+)", asked):
        arguments = json.dumps({"name": wanted[1]})
        return [("say", "One moment."), ("call", "lookup", arguments)]
    if wanted := re.search(r"What is ((?:fact|order)-\d+)", asked):
        known = {f for kept in conversation for f in FACT.findall(kept.words)}
        found = [f for f in sorted(known) if f.startswith(f"{wanted[1]} ")]
        return [("say", found[0] if found else "I do not know.")]
    if "story" in asked:
        return [("ramble", f"Once upon a time {LONG} THE-END")]
    return [("say", "All right, go on.")]


async def oracle(messages: list[Event]) -> str:
    """Summarize by repeating every fact."""
    shown = text_of(messages[-1])
    if "do not repeat them" in shown:
        shown = shown.partition("</earlier-summaries>")[2]
    return "## Known\n" + "\n".join(dict.fromkeys(FACT.findall(shown)))


def line(turn: int) -> str:
    """Return the caller's words in a turn of the script."""
    if turn < 20:
        return f"My notes say fact-{turn} is {value_of(f'fact-{turn}')} since Monday"
    if turn % 5 == 0:
        return f"Please look up order-{turn}"
    if turn % 7 == 0:
        return "Tell me a story"
    return f"We are at number {turn} and the weather is fine"


# ------------------------------------------------------------ the caller


class CutOff(Exception):
    """The connection ended while the caller waited."""


class Caller:
    """Talks to one agent; each wait ends with an event, a `CutOff` or a timeout."""

    def __init__(self, agent: RealtimeAgent) -> None:
        self.agent = agent
        self.errors: list[Exception] = []
        self.seen: set[str] = set()
        """Every item id that was ever in the conversation."""
        self.transcribed = True
        """Whether a turn has a transcript to wait for."""
        self._untold: set[str] = set()
        """What was said on this line and has no transcript yet."""
        self._all_transcribed = asyncio.Event()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._loop: asyncio.Task[None] | None = None
        agent.on_event(self._hear)
        agent.on_error(self.errors.append)

    def _hear(self, event: Event) -> None:
        self._events.put_nowait(event)
        if event["type"] == "conversation.item.added":
            self.seen.add(event["item"]["id"])
        elif event["type"] == "input_audio_buffer.committed":
            self._untold.add(event["item_id"])
            self._all_transcribed.clear()
        elif event["type"] == "conversation.item.input_audio_transcription.completed":
            self._untold.discard(event["item_id"])
            if not self._untold:
                self._all_transcribed.set()

    async def __aenter__(self) -> Caller:
        await self.call()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.hang_up()

    async def call(self) -> None:
        """Connect and listen."""
        assert await self.agent.aconnect()
        self._events = asyncio.Queue()
        self._untold.clear()
        self._all_transcribed.set()
        self._loop = asyncio.create_task(self.agent.receive_loop())

    async def hang_up(self) -> None:
        """Disconnect and stop listening."""
        await self.agent.adisconnect()
        await self.cut_off()

    async def cut_off(self) -> None:
        """Wait for the end of a connection."""
        if self._loop is not None:
            await asyncio.wait_for(self._loop, 10)

    async def wait(self, *kinds: str) -> Event:
        """Return the next event of these kinds."""
        while True:
            event: Event = await self._unless_cut_off(self._events.get(), f"waiting for {kinds}")
            if event["type"] in kinds:
                return event

    async def _unless_cut_off(self, coming: Any, what: str) -> Any:
        waiting = asyncio.create_task(coming)
        assert self._loop is not None, "call first"
        await asyncio.wait({waiting, self._loop}, return_when="FIRST_COMPLETED", timeout=10)
        if not waiting.done():
            waiting.cancel()
            raise CutOff(what)
        return waiting.result()

    async def speak(self, text: str) -> None:
        """Say a text; wait only for its item."""
        await self.agent.asend_audio(speech(text))
        await self.agent.asend_event({"type": "input_audio_buffer.commit"})
        await self.wait("input_audio_buffer.committed")

    async def turn(self, text: str) -> str:
        """Say a text, run the tools, return the answer; wait for the transcript."""
        await self.speak(text)
        said = await self._answer()
        if self.transcribed:
            await self._unless_cut_off(self._all_transcribed.wait(), "waiting for a transcript")
        return said

    async def _answer(self) -> str:
        await self.agent.asend_event({"type": "response.create"})
        output = (await self.wait("response.done"))["response"]["output"]
        calls = [item for item in output if item["type"] == "function_call"]
        for call in calls:
            name = json.loads(call["arguments"])["name"]
            result = {"call_id": call["call_id"], "output": f"{name} is {value_of(name)}"}
            item: dict[str, Any] = {"type": "function_call_output", **result}
            await self.agent.asend_event({"type": "conversation.item.create", "item": item})
        if calls:
            return await self._answer()
        return " ".join(part["transcript"] for item in output for part in item["content"])

    async def interrupt(self, text: str, after_ms: int = 600) -> str:
        """Say a text and interrupt the answer; return the answer's id."""
        await self.speak(text)
        await self.agent.asend_event({"type": "response.create"})
        for _ in range(2):
            delta = await self.wait("response.output_audio.delta")
        await self.agent.asend_event({"type": "response.cancel"})
        await self.wait("response.done")
        await self.agent.truncate_item(delta["item_id"], after_ms)
        await self.wait("conversation.item.truncated")
        return str(delta["item_id"])

    async def script(self, turns: range) -> None:
        """Say the lines of these turns."""
        for turn in turns:
            said = line(turn)
            await (self.interrupt(said) if "story" in said else self.turn(said))


# ------------------------------------------------------------ a conversation


def agent_for(server: RealtimeServer, **options: Any) -> RealtimeAgent:
    options = {**SMALL, "summarizer": oracle, "verbose": False, **options}
    return RealtimeAgent(url=server.url, **options)


@contextlib.asynccontextmanager
async def conversation(
    *, answers: Any = model, server_options: Any = None, **options: Any
) -> AsyncIterator[tuple[RealtimeServer, RealtimeAgent, Caller]]:
    """Run a server, an agent and a caller."""
    async with (
        RealtimeServer(answers, **(server_options or {})) as server,
        Caller(agent_for(server, **options)) as caller,
    ):
        yield server, caller.agent, caller


async def small_talk(caller: Caller, turns: int, start: int = 21) -> None:
    for number in range(start, start + turns):
        await caller.turn(f"This is sentence number {number}")
    await caller.agent.settled()


async def until(holds: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"never: {inspect.getsource(holds)}")


def memories(server: RealtimeServer) -> list[str]:
    """Return the words of the server's memory items."""
    return [k.words for k in server.now.items if k.words.startswith("<conversation-summary>")]


def memory_ids(server: RealtimeServer) -> list[str]:
    created = [event["item"] for event in sent(server, "conversation.item.create")]
    return [item["id"] for item in created if item["id"].startswith("mem_")]


def sent(server: RealtimeServer, kind: str) -> list[Event]:
    return [event for event in server.received if event["type"] == kind]


def deletions(server: RealtimeServer) -> list[str]:
    return [event["item_id"] for event in sent(server, "conversation.item.delete")]


def entries(agent: RealtimeAgent) -> Any:
    return agent.store.open("default", agent.session_id).entries


def all_messages(agent: RealtimeAgent) -> Any:
    """Return all folded messages of the store."""
    return agent.store.transcript(agent.store.open("default", agent.session_id))


def archived(agent: RealtimeAgent) -> list[str]:
    """Return the ids of all archived items, with repetitions."""
    return [message["id"] for message in all_messages(agent)]
