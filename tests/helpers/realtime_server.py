"""A strict local Realtime server: the protocol's events and its refusals.

It refuses what OpenAI's refuses (unknown items, outputs without their call, a wrong content type,
ids taken twice or too long, truncating beyond the audio) and, more strictly, any moment at which
a response would see half of a call and its output. "Speech" is text in PCM clothing, see `speech`.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from openai.types import realtime as wire
from pydantic import ValidationError

MS_PER_WORD = 100
BYTES_PER_MS = 48

Event = dict[str, Any]
Reply = list[tuple[str, ...]]
"""What the model does next: ("say", text), ("call", name, arguments), or ("ramble", text), which
goes on until it is cancelled."""

_CLIENT_EVENTS: dict[str, tuple[str, Any]] = {
    "session.update": ("update", None),
    "conversation.item.create": ("create", wire.ConversationItemCreateEvent),
    "conversation.item.delete": ("delete", wire.ConversationItemDeleteEvent),
    "conversation.item.truncate": ("truncate", wire.ConversationItemTruncateEvent),
    "input_audio_buffer.append": ("append", wire.InputAudioBufferAppendEvent),
    "input_audio_buffer.commit": ("commit", wire.InputAudioBufferCommitEvent),
    "response.create": ("respond", None),
    "response.cancel": ("cancel", wire.ResponseCancelEvent),
}
"""What carries a client event out, and its shape."""

_PARTS = {
    "user": {"input_text", "input_audio"},
    "system": {"input_text"},
    "assistant": {"output_text"},
}


def speech(text: str) -> bytes:
    """Return audio that this server transcribes as `text`."""
    raw = text.encode()
    return raw.ljust(len(text.split()) * MS_PER_WORD * BYTES_PER_MS, b"\0")


@dataclass
class Kept:
    """An item of the conversation."""

    item: Event
    audio_ms: int = 0
    spoken: str = ""
    """What the audio says; its transcript may come later, or never."""

    @property
    def id(self) -> str:
        return str(self.item["id"])

    @property
    def words(self) -> str:
        """Words that a model reads or hears."""
        parts = [part.get("text", "") for part in self.item.get("content", ())]
        called = [str(self.item.get(key, "")) for key in ("name", "arguments", "output")]
        return " ".join(text for text in [*parts, self.spoken, *called] if text)


class Refusal(Exception):
    """An event that gets an `error` for an answer."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class RealtimeServer:
    """One server on a free loopback port; `async with` starts and stops it."""

    def __init__(self, model: Callable[[list[Kept]], Reply], *, transcribes: bool = True) -> None:
        self.model = model
        self.transcribes = transcribes
        self.refusals: list[str] = []
        self.received: list[Event] = []
        self.headers: list[dict[str, str]] = []
        self.refuse_next: dict[str, int] = {}
        """Events of that type to be refused, whatever they say."""
        self.mute: set[str] = set()
        """Client events that are carried out and never answered."""
        self.hook: Callable[[Connection, Event], Awaitable[None]] | None = None
        """Called before a client event is carried out: another client's chance."""
        self.connections: list[Connection] = []
        self.numbers = itertools.count(secrets.randbelow(10**6) * 10**5)  # as unique as real ones
        self.url = ""

    async def __aenter__(self) -> RealtimeServer:
        app = web.Application()
        app.router.add_get("/v1/realtime", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"ws://127.0.0.1:{port}/v1/realtime"
        return self

    async def __aexit__(self, *failure: object) -> None:
        for connection in self.connections:
            connection.end()
        await self._runner.cleanup()

    @property
    def now(self) -> Connection:
        """The newest connection."""
        return self.connections[-1]

    @property
    def ids(self) -> list[str]:
        """The conversation's item ids, in order."""
        return [kept.id for kept in self.now.items]

    async def drop(self) -> None:
        """End the connection without a word."""
        self.now.end()
        transport = self.now.socket._req.transport if self.now.socket._req else None
        if transport is not None:
            transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        self.headers.append(dict(request.headers))
        connection = Connection(self, socket)
        self.connections.append(connection)
        await connection.greet()
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await connection.take(json.loads(message.data))
        connection.end()
        return socket


@dataclass(eq=False)
class Connection:
    """One client's session and its conversation, which ends with it."""

    server: RealtimeServer
    socket: web.WebSocketResponse
    items: list[Kept] = field(default_factory=list)
    session: Event = field(default_factory=dict)
    buffer: bytearray = field(default_factory=bytearray)
    answered: set[str] = field(default_factory=set)
    """Calls that have had an output."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    response: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ talking

    async def send(self, kind: str, **fields: Any) -> None:
        number = next(self.server.numbers)
        event = {"type": kind, "event_id": f"event_{number}", **fields}
        if not self.socket.closed:
            try:
                await self.socket.send_str(json.dumps(event))
            except ConnectionError:
                self.end()

    async def greet(self) -> None:
        shape = {"type": "realtime", "output_modalities": ["audio"]}
        self.session = {"id": f"sess_{next(self.server.numbers)}", **shape}
        await self.send("session.created", session=self.session)

    async def take(self, event: Event) -> None:
        """Carry out one client event, or refuse it."""
        self.server.received.append(event)
        if self.server.hook is not None:
            await self.server.hook(self, event)
        kind = str(event.get("type"))
        try:
            self._check(kind, event)
            await getattr(self, f"_{_CLIENT_EVENTS[kind][0]}")(event)
        except Refusal as refusal:
            self.server.refusals.append(f"{kind}: {refusal.code}: {refusal}")
            error: Event = {"type": "invalid_request_error", "code": refusal.code}
            error |= {"message": str(refusal), "event_id": event.get("event_id")}
            await self.send("error", error=error)

    def end(self) -> None:
        for task in self.tasks:
            task.cancel()

    def spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def _check(self, kind: str, event: Event) -> None:
        if kind not in _CLIENT_EVENTS:
            raise Refusal("invalid_value", f"unknown event {kind!r}")
        if self.server.refuse_next.get(kind, 0) > 0:
            self.server.refuse_next[kind] -= 1
            raise Refusal("server_error", "refused as asked")
        _, shape = _CLIENT_EVENTS[kind]
        if shape is not None:
            try:
                shape.model_validate(event)
            except ValidationError as error:
                raise Refusal("invalid_value", str(error)) from error

    async def _update(self, event: Event) -> None:
        given = event.get("session", {})
        if given.get("type") != "realtime":
            raise Refusal("missing_required_parameter", "session.type")
        self.session.update(given)
        await self.send("session.updated", session=self.session)

    # ------------------------------------------------------------ items

    def find(self, item_id: str) -> Kept:
        for kept in self.items:
            if kept.id == item_id:
                return kept
        raise Refusal("item_invalid_item_id", f"the item {item_id!r} does not exist")

    async def _create(self, event: Event) -> None:
        item = dict(event["item"])
        item.setdefault("id", f"item_{next(self.server.numbers)}")
        self._check_item(item)
        place = self._place(event.get("previous_item_id"))
        if item["type"] == "function_call_output":
            self.answered.add(item["call_id"])
        kept = Kept({**item, "status": "completed"})
        await self.insert(kept, place, muted="conversation.item.create" in self.server.mute)

    def _check_item(self, item: Event) -> None:
        if len(item["id"]) > 32:
            raise Refusal("string_above_max_length", f"id {item['id']!r}")
        if item["id"] in [kept.id for kept in self.items]:
            raise Refusal("item_create_duplicate_id", f"id {item['id']!r} is taken")
        if item["type"] == "message":
            kinds = {part.get("type") for part in item["content"]}
            if not kinds or not kinds <= _PARTS[item["role"]]:
                raise Refusal("invalid_value", f"{item['role']} content {kinds}")
        elif item["type"] == "function_call_output":
            calls = [k.item.get("call_id") for k in self.items if k.item["type"] == "function_call"]
            if item["call_id"] not in calls:
                raise Refusal("invalid_tool_call_id", f"no call {item['call_id']!r}")

    def _place(self, previous: str | None) -> int:
        if previous is None:
            return len(self.items)
        return 0 if previous == "root" else self.items.index(self.find(previous)) + 1

    async def insert(self, kept: Kept, place: int, *, muted: bool = False) -> None:
        self.items.insert(place, kept)
        if muted:
            return
        previous = self.items[place - 1].id if place else None
        shown = kept.item
        await self.send("conversation.item.added", previous_item_id=previous, item=shown)
        if shown["status"] != "in_progress":
            await self.send("conversation.item.done", previous_item_id=previous, item=shown)

    async def _delete(self, event: Event) -> None:
        await self.delete(event["item_id"])

    async def delete(self, item_id: str) -> None:
        """Delete an item, as any client may."""
        kept = self.find(item_id)
        call_id = kept.item.get("call_id")
        partners = [k for k in self.items if k is not kept and k.item.get("call_id") == call_id]
        if kept.item["type"] == "function_call" and partners:
            raise Refusal("split_pair", f"the output of {item_id!r} is still there")
        self.items.remove(kept)
        if "conversation.item.delete" not in self.server.mute:
            await self.send("conversation.item.deleted", item_id=item_id)

    async def _truncate(self, event: Event) -> None:
        kept = self.find(event["item_id"])
        if kept.item.get("role") != "assistant" or not kept.audio_ms:
            raise Refusal("invalid_value", "only an assistant's audio can be truncated")
        if event["audio_end_ms"] > kept.audio_ms:
            raise Refusal("invalid_value", f"there are only {kept.audio_ms} ms")
        words = kept.spoken.split()
        kept.audio_ms = event["audio_end_ms"]
        kept.spoken = " ".join(words[: event["audio_end_ms"] // MS_PER_WORD])
        kept.item["content"] = [{"type": "output_audio", "transcript": None}]
        shown = {"item_id": kept.id, "content_index": 0, "audio_end_ms": event["audio_end_ms"]}
        await self.send("conversation.item.truncated", **shown)

    # ------------------------------------------------------------ the user's speech

    async def _append(self, event: Event) -> None:
        self.buffer += base64.b64decode(event["audio"])

    async def _commit(self, event: Event) -> None:
        if not self.buffer:
            raise Refusal("input_audio_buffer_commit_empty", "the buffer is empty")
        text = bytes(self.buffer).rstrip(b"\0").decode()
        audio_ms = len(self.buffer) // BYTES_PER_MS
        self.buffer.clear()
        item: Event = {"id": f"item_{next(self.server.numbers)}", "type": "message", "role": "user"}
        item["content"] = [{"type": "input_audio", "transcript": None}]
        item["status"] = "completed"
        previous = self.items[-1].id if self.items else None
        committed = {"item_id": item["id"], "previous_item_id": previous}
        await self.send("input_audio_buffer.committed", **committed)
        await self.insert(Kept(item, audio_ms, text), len(self.items))
        asked = self.session.get("audio", {}).get("input", {}).get("transcription")
        if self.server.transcribes and asked:
            self.spawn(self._transcribe(item["id"], text))

    async def _transcribe(self, item_id: str, text: str) -> None:
        """Send the transcript later, as real servers do."""
        await asyncio.sleep(0.002)
        usage = {"type": "duration", "seconds": 1.0}
        kind = "conversation.item.input_audio_transcription.completed"
        await self.send(kind, item_id=item_id, content_index=0, transcript=text, usage=usage)

    # ------------------------------------------------------------ responses

    async def _respond(self, event: Event) -> None:
        if self.response is not None and not self.response.done():
            raise Refusal("conversation_already_has_active_response", "one is in progress")
        outputs = {k.item["call_id"] for k in self.items if k.item["type"].endswith("_output")}
        calls = {k.item["call_id"] for k in self.items if k.item["type"] == "function_call"}
        if outputs - calls or (calls & self.answered) - outputs:
            raise Refusal("split_pair", "a call without its output, or the other way round")
        self.response = self.spawn(self._answer(self.server.model(list(self.items))))

    async def _cancel(self, event: Event) -> None:
        if self.response is None or self.response.done():
            raise Refusal("response_cancel_not_active", "there is none")
        self.response.cancel()

    async def _answer(self, reply: Reply) -> None:
        response_id = f"resp_{next(self.server.numbers)}"
        response: Event = {"id": response_id, "object": "realtime.response", "output": []}
        await self.send("response.created", response={**response, "status": "in_progress"})
        made: list[Kept] = []
        status = "completed"
        try:
            for index, output in enumerate(reply):
                await self._output(output, response_id, index, made)
        except asyncio.CancelledError:
            status = "cancelled"
        for kept in made:
            if kept.item["status"] == "in_progress":
                kept.item["status"] = "incomplete"
        done = {**response, "status": status, "output": [kept.item for kept in made]}
        await self.send("response.done", response=done)

    async def _output(
        self, output: tuple[str, ...], response_id: str, index: int, made: list[Kept]
    ) -> None:
        item_id = f"item_{next(self.server.numbers)}"
        item: Event = {"id": item_id, "status": "in_progress"}
        if output[0] == "call":
            call_id = f"call_{next(self.server.numbers)}"
            item |= {"type": "function_call", "name": output[1], "call_id": call_id}
            item["arguments"] = ""
        else:
            item |= {"type": "message", "role": "assistant", "content": []}
        kept = Kept(item)
        made.append(kept)
        where = {"response_id": response_id, "output_index": index}
        await self.send("response.output_item.added", item=item, **where)
        await self.insert(kept, len(self.items))
        where |= {"item_id": item_id}
        if output[0] == "call":
            item["arguments"] = output[2]
            kind = "response.function_call_arguments.done"
            await self.send(kind, call_id=item["call_id"], arguments=output[2], **where)
        else:
            await self._speak(kept, output[1], {**where, "content_index": 0}, output[0] == "ramble")
        item["status"] = "completed"
        await self.send("response.output_item.done", item=item, response_id=response_id)
        place = self.items.index(kept) if kept in self.items else 0
        previous = self.items[place - 1].id if place else None
        await self.send("conversation.item.done", previous_item_id=previous, item=item)

    async def _speak(self, kept: Kept, text: str, where: Event, rambling: bool) -> None:
        """Send four words at a time, transcript and audio."""
        words = text.split()
        try:
            for start in range(0, len(words), 4):
                group = words[start : start + 4]
                sound = bytes(len(group) * MS_PER_WORD * BYTES_PER_MS)
                delta = base64.b64encode(sound).decode()
                said = (" " if start else "") + " ".join(group)
                kept.spoken += said
                kept.audio_ms += len(group) * MS_PER_WORD
                kind = "response.output_audio_transcript.delta"
                await self.send(kind, delta=said, **where)
                await self.send("response.output_audio.delta", delta=delta, **where)
                await asyncio.sleep(0)
            if rambling:
                await asyncio.Event().wait()
        finally:
            kept.item["content"] = [{"type": "output_audio", "transcript": kept.spoken}]
        await self.send("response.output_audio.done", **where)
        kind = "response.output_audio_transcript.done"
        await self.send(kind, transcript=kept.spoken, **where)
