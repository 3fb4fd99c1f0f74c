"""A scripted person on the line: speaks, runs the tools, interrupts, is cut off and calls again."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from typing import Any

from praison_compressor.messages import text_of
from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.helpers.realtime_server import Event, Kept, Reply, speech

FACT = re.compile(r"(?:fact|order)-\d+ is [a-z]+-\d{4}")
OPENERS = (
    "Remember that {} please",
    "My notes say {} since Monday",
    "You should know: {} in our house",
    "By the way, {} and that matters",
)
LONG = "and so on with many words that nobody really needs to hear at all " * 3


def value_of(name: str) -> str:
    """What the caller says, or the tool answers, that `name` is."""
    colours = ("amber", "green", "white", "black")
    return f"{colours[zlib.crc32(name.encode()) % 4]}-{zlib.crc32(name.encode()) % 9000 + 1000}"


def model(conversation: list[Kept]) -> Reply:
    """A model that knows what it reads in its context, and nothing else."""
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
    """A summarizer that tells every fact it is to tell, and nothing else."""
    shown = text_of(messages[-1])
    if "do not repeat them" in shown:
        shown = shown.partition("</earlier-summaries>")[2]
    return "## Known\n" + "\n".join(dict.fromkeys(FACT.findall(shown)))


def line(turn: int) -> str:
    """What the caller says in that turn of the script."""
    if turn < 20:
        return OPENERS[turn % 4].format(f"fact-{turn} is {value_of(f'fact-{turn}')}")
    if turn % 5 == 0:
        return f"Please look up order-{turn}"
    if turn % 7 == 0:
        return "Tell me a story"
    return f"We are at number {turn} and the weather is fine"


class CutOff(Exception):
    """The connection ended while the caller waited."""


class Caller:
    """Talks to one agent; every wait ends with an answer, a `CutOff` or a timeout."""

    def __init__(self, agent: RealtimeAgent) -> None:
        self.agent = agent
        self.errors: list[Exception] = []
        self.answers: list[str] = []
        self.seen: set[str] = set()
        """Every item id that was ever in the conversation."""
        self.transcribed = True
        """Whether a turn has a transcript to wait for."""
        self._untold: set[str] = set()
        """What was said on this line and has no transcript yet."""
        self._all_told = asyncio.Event()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._loop: asyncio.Task[None] | None = None
        agent.on_event(self._hear)
        agent.on_error(self.errors.append)

    def _hear(self, event: Event) -> None:
        self._events.put_nowait(event)
        if event["type"] in ("conversation.item.added", "conversation.item.created"):
            self.seen.add(event["item"]["id"])
        elif event["type"] == "input_audio_buffer.committed":
            self._untold.add(event["item_id"])
            self._all_told.clear()
        elif event["type"] == "conversation.item.input_audio_transcription.completed":
            self._untold.discard(event["item_id"])
            if not self._untold:
                self._all_told.set()

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
        self._all_told.set()
        self._loop = asyncio.create_task(self.agent.receive_loop())

    async def hang_up(self) -> None:
        """Disconnect and stop listening."""
        await self.agent.adisconnect()
        await self.cut_off()

    async def cut_off(self) -> None:
        """Wait for the end of a connection."""
        if self._loop is not None:
            await asyncio.wait_for(self._loop, 10)

    async def pause(self) -> None:
        """Stop listening for a moment, and begin again on the same connection."""
        assert self._loop is not None
        self._loop.cancel()
        await asyncio.wait([self._loop])
        self._loop = asyncio.create_task(self.agent.receive_loop())

    async def wait(self, *kinds: str) -> Event:
        """The next event of one of these kinds."""
        assert self._loop is not None
        while True:
            getting = asyncio.create_task(self._events.get())
            await asyncio.wait({getting, self._loop}, return_when="FIRST_COMPLETED", timeout=10)
            if not getting.done():
                getting.cancel()
                raise CutOff(f"while waiting for {kinds}")
            event = getting.result()
            if event["type"] in kinds:
                return event

    # ------------------------------------------------------------ talking

    async def speak(self, text: str) -> None:
        """Say it, without waiting for more than the item."""
        await self.agent.asend_audio(speech(text))
        await self.agent.asend_event({"type": "input_audio_buffer.commit"})
        await self.wait("input_audio_buffer.committed")

    async def turn(self, text: str) -> str:
        """Say it and hear the answer out, running the tools it asks for; with its transcript."""
        await self.speak(text)
        said = await self.answer()
        if self.transcribed:
            await self._told()
        return said

    async def _told(self) -> None:
        """All that was said on this line has its transcript."""
        assert self._loop is not None
        telling = asyncio.create_task(self._all_told.wait())
        await asyncio.wait({telling, self._loop}, return_when="FIRST_COMPLETED", timeout=10)
        if not telling.done():
            telling.cancel()
            raise CutOff("while waiting for a transcript")

    async def type(self, text: str) -> str:
        """The same in writing."""
        await self.agent.asend_text(text)
        return await self._rest()

    async def answer(self) -> str:
        """Ask for a response and hear it out."""
        await self.agent.asend_event({"type": "response.create"})
        return await self._rest()

    async def _rest(self) -> str:
        done = await self.wait("response.done")
        output = done["response"]["output"]
        calls = [item for item in output if item["type"] == "function_call"]
        for call in calls:
            await self._run(call)
        if calls:
            return await self.answer()
        said = " ".join(part["transcript"] for item in output for part in item["content"])
        self.answers.append(said)
        return said

    async def _run(self, call: Event) -> None:
        name = json.loads(call["arguments"])["name"]
        result = {"call_id": call["call_id"], "output": f"{name} is {value_of(name)}"}
        item: dict[str, Any] = {"type": "function_call_output", **result}
        await self.agent.asend_event({"type": "conversation.item.create", "item": item})

    async def interrupt(self, text: str, after_ms: int = 600) -> str:
        """Say it and break into the answer once `after_ms` of it could be heard; the item's id."""
        await self.speak(text)
        await self.agent.asend_event({"type": "response.create"})
        for _ in range(2):
            delta = await self.wait("response.output_audio.delta", "response.audio.delta")
        await self.agent.asend_event({"type": "response.cancel"})
        await self.wait("response.done")
        await self.agent.truncate_item(delta["item_id"], after_ms)
        await self.wait("conversation.item.truncated")
        return str(delta["item_id"])

    async def script(self, turns: range) -> None:
        """The scripted conversation: facts, then tools, stories broken off and small talk."""
        for turn in turns:
            said = line(turn)
            if "story" in said:
                await self.interrupt(said)
            else:
                await self.turn(said)
