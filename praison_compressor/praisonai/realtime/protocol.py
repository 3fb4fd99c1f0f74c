"""The Realtime protocol: client events we send, server events that say something, and who waits for
which answer.

GA names and beta names (`response.output_audio.delta` and `response.audio.delta`) mean the same.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import CompressorError
from .items import Item, Items

__all__ = [
    "AUDIO_DELTAS",
    "TEXT_DELTAS",
    "Acks",
    "Event",
    "Follower",
    "ServerRefused",
    "clear_event",
    "create_event",
    "delete_event",
    "item_of",
    "memory_item",
    "new_id",
    "truncate_event",
]


# -------------------------------------------------------------- acks


class ServerRefused(CompressorError):
    """The Realtime server refused an event of ours, or did not answer it.

    `code` is the server's own; "timeout" where no answer came.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"the server refused ({code}): {message}")

    @property
    def unknown_item(self) -> bool:
        """Whether it says that there is no such item: what was to be deleted is gone."""
        words = str(self).lower()
        return any(sign in words for sign in ("does not exist", "not found", "invalid_item_id"))


class Acks:
    """One waiter per event of ours, woken by what the server says of the item or the event."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._events: dict[str, tuple[str, str]] = {}

    def expect(self, kind: str, item_id: str, event_id: str) -> asyncio.Future[None]:
        """Wait for an item to be "added" or "deleted"; an error names the event instead."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[kind, item_id] = future
        self._events[event_id] = (kind, item_id)
        future.add_done_callback(lambda _: self._forget(kind, item_id, event_id))
        return future

    def expects(self, kind: str, item_id: str) -> bool:
        """Whether it was we who asked."""
        return (kind, item_id) in self._waiting

    def settle(self, kind: str, item_id: str) -> None:
        """The server did it."""
        future = self._waiting.get((kind, item_id))
        if future is not None and not future.done():
            future.set_result(None)

    def refuse(self, error: Mapping[str, Any]) -> bool:
        """Whether the error was an answer to us."""
        key = self._events.get(str(error.get("event_id")))
        future = self._waiting.get(key) if key is not None else None
        if future is None or future.done():
            return False
        code = str(error.get("code") or error.get("type") or "error")
        future.set_exception(ServerRefused(code, str(error.get("message") or "")))
        return True

    def cancel(self) -> None:
        """No answers will come any more."""
        for future in list(self._waiting.values()):
            future.cancel()

    def _forget(self, kind: str, item_id: str, event_id: str) -> None:
        self._waiting.pop((kind, item_id), None)
        self._events.pop(event_id, None)


# -------------------------------------------------------------- protocol


Event = dict[str, Any]


TEXT_DELTAS = frozenset({"response.output_text.delta", "response.text.delta"})


AUDIO_DELTAS = frozenset({"response.output_audio.delta", "response.audio.delta"})


PCM_BYTES_PER_MS = 48


G711_BYTES_PER_MS = 8


def new_id(prefix: str) -> str:
    """An id of ours: at most 32 characters, as servers demand."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


# ---------------------------------------------------------------- what we send
def create_event(
    item: Mapping[str, Any], *, event_id: str | None = None, previous: str | None = None
) -> Event:
    """Ask for a new item, after the item `previous` ("root": in front; None: at the end)."""
    event: Event = {"type": "conversation.item.create", "item": dict(item)}
    if previous is not None:
        event["previous_item_id"] = previous
    if event_id is not None:
        event["event_id"] = event_id
    return event


def delete_event(item_id: str, *, event_id: str) -> Event:
    """Ask for an item to be deleted."""
    return {"type": "conversation.item.delete", "item_id": item_id, "event_id": event_id}


def truncate_event(item_id: str, content_index: int, audio_end_ms: int) -> Event:
    """Ask for the audio after that time to be dropped."""
    return {
        "type": "conversation.item.truncate",
        "item_id": item_id,
        "content_index": content_index,
        "audio_end_ms": audio_end_ms,
    }


def clear_event() -> Event:
    """Ask for the audio that was sent and not committed to be dropped."""
    return {"type": "input_audio_buffer.clear"}


def memory_item(item_id: str, text: str) -> Event:
    """The memory as an item: words of no more authority than a user's."""
    content = [{"type": "input_text", "text": text}]
    return {"id": item_id, "type": "message", "role": "user", "content": content}


def item_of(item: Item, *, beta: bool) -> Event:
    """An item as it is told to a new connection: its words, for its audio is gone."""
    if item.type == "function_call":
        arguments = item.arguments or "{}"
        call = {"call_id": item.call_id, "name": item.name, "arguments": arguments}
        return {"id": item.id, "type": item.type, **call}
    if item.type == "function_call_output":
        answer = {"call_id": item.call_id, "output": item.output}
        return {"id": item.id, "type": item.type, **answer}
    said = " ".join(part for part in (item.name, item.arguments, item.output, item.text) if part)
    role = item.role or "assistant"
    kind = ("text" if beta else "output_text") if role == "assistant" else "input_text"
    content = [{"type": kind, "text": said}]
    return {"id": item.id, "type": "message", "role": role, "content": content}


# ---------------------------------------------------------------- what we are told
class Follower:
    """Keeps the list of items up with what a server says; whatever it says, it never raises."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self.beta = False
        self.usage: dict[str, Any] = {}
        """As the newest response reported it."""
        self.instructions = ""
        self.tools: list[Mapping[str, Any]] = []
        self.transcribes: bool | None = None
        """Whether the session writes down what the user says; None: it has not said."""
        self._bytes_per_ms = PCM_BYTES_PER_MS

    def take(self, event: Mapping[str, Any]) -> None:
        """Take over one event of the server."""
        handler = _HANDLERS.get(str(event.get("type")))
        if handler is not None:
            handler(self, event)

    # ------------------------------------------------------------ the session

    def session(self, event: Mapping[str, Any]) -> None:
        session = _mapping(event.get("session"))
        audio = _mapping(session.get("audio"))
        self.beta = "modalities" in session and session.get("type") != "realtime"
        self.instructions = _string(session.get("instructions"))
        tools = session.get("tools")
        self.tools = [t for t in tools if isinstance(t, Mapping)] if isinstance(tools, list) else []
        given, output = _mapping(audio.get("input")), _mapping(audio.get("output"))
        if "transcription" in given or "input_audio_transcription" in session:
            asked = given.get("transcription") or session.get("input_audio_transcription")
            self.transcribes = bool(asked)
        form = output.get("format") or session.get("output_audio_format") or "pcm16"
        name = str(form.get("type") if isinstance(form, Mapping) else form)
        is_g711 = "pcmu" in name or "pcma" in name or "g711" in name
        self._bytes_per_ms = G711_BYTES_PER_MS if is_g711 else PCM_BYTES_PER_MS

    # ------------------------------------------------------------ items

    def added(self, event: Mapping[str, Any]) -> None:
        named = "previous_item_id" in event
        previous = event.get("previous_item_id")
        self.items.added(_mapping(event.get("item")), _string(previous) or None, named=named)

    def output(self, event: Mapping[str, Any]) -> None:
        """An output item is complete: the beta protocol has no other word for it."""
        item = _mapping(event.get("item"))
        if self.items.get(_string(item.get("id"))) is not None:
            self.items.added(item, None, named=False)

    def response(self, event: Mapping[str, Any]) -> None:
        response = _mapping(event.get("response"))
        output = response.get("output")
        for item in output if isinstance(output, list) else ():
            known = self.items.get(_string(_mapping(item).get("id")))
            if known is not None:
                self.items.added(_mapping(item), None, named=False)
                known.done = True
        usage = response.get("usage")
        if isinstance(usage, Mapping):
            self.usage = dict(usage)

    def deleted(self, event: Mapping[str, Any]) -> None:
        self.items.deleted(_string(event.get("item_id")))

    def truncated(self, event: Mapping[str, Any]) -> None:
        item, at = self._item(event), event.get("audio_end_ms")
        if item is not None and isinstance(at, (int, float)):
            item.interrupt(float(at))

    # ------------------------------------------------------------ words

    def said(self, event: Mapping[str, Any]) -> None:
        item = self._item(event)
        words = event.get("transcript", event.get("text"))
        if item is not None and isinstance(words, str):
            item.say(_index(event), words)

    def saying(self, event: Mapping[str, Any]) -> None:
        """A few more words: kept so that a dropped connection loses none that were heard."""
        item, words = self._item(event), event.get("delta")
        if item is None or not isinstance(words, str):
            return
        if not item.done and item.heard_ms is None:
            index = _index(event)
            item.texts[index] = item.texts.get(index, "") + words
            item.revision += 1

    def unheard(self, event: Mapping[str, Any]) -> None:
        """The user's speech could not be transcribed."""
        item = self._item(event)
        if item is not None:
            item.say(_index(event), "")

    def arguments(self, event: Mapping[str, Any]) -> None:
        item, arguments = self._item(event), event.get("arguments")
        if item is not None and isinstance(arguments, str) and item.arguments != arguments:
            item.arguments = arguments
            item.revision += 1

    def sound(self, event: Mapping[str, Any]) -> None:
        """Audio came: its length is noted."""
        item, delta = self._item(event), event.get("delta")
        if item is not None and isinstance(delta, str):
            item.spoken = True
            item.audio_ms += len(delta) * 3 / 4 / self._bytes_per_ms

    def _item(self, event: Mapping[str, Any]) -> Item | None:
        return self.items.get(_string(event.get("item_id")))


_HANDLERS: dict[str, Callable[[Follower, Mapping[str, Any]], None]] = {
    "session.created": Follower.session,
    "session.updated": Follower.session,
    "conversation.item.added": Follower.added,
    "conversation.item.created": Follower.added,
    "conversation.item.done": Follower.added,
    "conversation.item.deleted": Follower.deleted,
    "conversation.item.truncated": Follower.truncated,
    "conversation.item.input_audio_transcription.completed": Follower.said,
    "conversation.item.input_audio_transcription.failed": Follower.unheard,
    "response.output_item.done": Follower.output,
    "response.done": Follower.response,
    "response.output_audio_transcript.delta": Follower.saying,
    "response.audio_transcript.delta": Follower.saying,
    "response.output_text.delta": Follower.saying,
    "response.text.delta": Follower.saying,
    "response.output_audio_transcript.done": Follower.said,
    "response.audio_transcript.done": Follower.said,
    "response.output_text.done": Follower.said,
    "response.text.done": Follower.said,
    "response.function_call_arguments.done": Follower.arguments,
    "response.output_audio.delta": Follower.sound,
    "response.audio.delta": Follower.sound,
}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("content_index")
    return index if isinstance(index, int) else 0
