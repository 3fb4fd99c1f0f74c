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
from .items import Item, Items, text_or_empty

__all__ = [
    "ADDED",
    "AUDIO_DELTAS",
    "HANDLERS",
    "TEXT_DELTAS",
    "Acks",
    "Event",
    "Follower",
    "ServerRefused",
    "create_event",
    "delete_event",
    "item_of",
    "memory_item",
    "new_id",
]


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
    """What we asked the server for and it has not answered, by the id of our event."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, Item, asyncio.Future[None]]] = {}

    def expect(self, kind: str, item: Item, event_id: str) -> asyncio.Future[None]:
        """Wait for an item to be "added" or "deleted"; an error names the event instead."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[event_id] = kind, item, future
        future.add_done_callback(lambda _: self._waiting.pop(event_id))
        return future

    def settle(self, kind: str, item: Item) -> None:
        """The server did it."""
        for asked, about, future in self._waiting.values():
            if asked == kind and about is item and not future.done():
                future.set_result(None)

    def refuse(self, error: Mapping[str, Any]) -> bool:
        """Whether the error was an answer to us."""
        *_, future = self._waiting.get(str(error.get("event_id")), (None,))
        if future is None or future.done():
            return False
        code = str(error.get("code") or error.get("type") or "error")
        future.set_exception(ServerRefused(code, str(error.get("message") or "")))
        return True

    def cancel(self) -> None:
        """No answers will come any more."""
        for *_, future in list(self._waiting.values()):
            future.cancel()


# -------------------------------------------------------------- what we send

Event = dict[str, Any]


TEXT_DELTAS = frozenset({"response.output_text.delta", "response.text.delta"})
AUDIO_DELTAS = frozenset({"response.output_audio.delta", "response.audio.delta"})
TRANSCRIPT_DELTAS = frozenset(
    {"response.output_audio_transcript.delta", "response.audio_transcript.delta"}
)
ADDED = frozenset({"conversation.item.added", "conversation.item.created"})

PCM_BYTES_PER_MS = 48
G711_BYTES_PER_MS = 8


def new_id(prefix: str) -> str:
    """An id of ours: at most 32 characters, as servers demand."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def create_event(item: Event, *, event_id: str, in_front: bool = False) -> Event:
    """Ask for a new item in front of all others, or at the end."""
    event = {"type": "conversation.item.create", "item": item, "event_id": event_id}
    return {**event, "previous_item_id": "root"} if in_front else event


def delete_event(item_id: str) -> Event:
    """Ask for an item to be deleted."""
    return {"type": "conversation.item.delete", "item_id": item_id, "event_id": new_id("evt")}


def memory_item(text: str) -> Event:
    """The memory as a new item: words of no more authority than a user's."""
    content = [{"type": "input_text", "text": text}]
    return {"id": new_id("mem"), "type": "message", "role": "user", "content": content}


def item_of(item: Item, *, beta: bool) -> Event:
    """An item as it is told to a new connection: its words, for its audio is gone."""
    given = {"id": item.id, "type": item.type}
    if item.type == "function_call":
        arguments = item.arguments or "{}"
        return {**given, "call_id": item.call_id, "name": item.name, "arguments": arguments}
    if item.type == "function_call_output":
        return {**given, "call_id": item.call_id, "output": item.output}
    role = item.role or "assistant"
    kind = ("text" if beta else "output_text") if role == "assistant" else "input_text"
    content = [{"type": kind, "text": item.all_words}]
    return {**given, "type": "message", "role": role, "content": content}


# ---------------------------------------------------------------- what we are told
class Follower:
    """Keeps the list of items up with what a server says; whatever it says, it never raises."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self.beta = False
        self.usage: dict[str, Any] = {}
        """As the newest response reported it."""
        self.transcribes: bool | None = None
        """Whether the session writes down what the user says; None: it has not said."""
        self._bytes_per_ms = PCM_BYTES_PER_MS

    def take(self, event: Mapping[str, Any]) -> None:
        """Take over one event of the server."""
        handler = HANDLERS.get(str(event.get("type")))
        if handler is not None:
            handler(self, event)

    # ------------------------------------------------------------ the session

    def session(self, event: Mapping[str, Any]) -> None:
        session = _mapping(event.get("session"))
        audio = _mapping(session.get("audio"))
        if event["type"] == "session.created":  # afterwards a session has what we set ourselves
            self.beta = "modalities" in session
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
        previous = text_or_empty(event.get("previous_item_id")) or None
        self.items.added(_mapping(event.get("item")), previous, named=named)

    def output(self, event: Mapping[str, Any]) -> None:
        """An output item is complete: the beta protocol has no other word for it."""
        self._known(event.get("item"))

    def response(self, event: Mapping[str, Any]) -> None:
        response = _mapping(event.get("response"))
        output = response.get("output")
        for given in output if isinstance(output, list) else ():
            item = self._known(given)
            if item is not None:
                item.done = True
        usage = response.get("usage")
        if isinstance(usage, Mapping):
            self.usage = dict(usage)

    def _known(self, given: Any) -> Item | None:
        """The item after what is given of it was taken over; None where it is gone already."""
        item = self.items.get(_mapping(given).get("id"))
        if item is not None:
            self.items.added(given, None, named=False)
        return item

    def deleted(self, event: Mapping[str, Any]) -> None:
        self.items.deleted(text_or_empty(event.get("item_id")))

    # ------------------------------------------------------------ words

    def about(self, event: Mapping[str, Any]) -> None:
        """What an event says of the one item that it names, where that is there still."""
        item = self.items.get(event.get("item_id"))
        index = event.get("content_index")
        if item is not None:
            _ABOUT[event["type"]](self, item, index if isinstance(index, int) else 0, event)

    def truncated(self, item: Item, index: int, event: Mapping[str, Any]) -> None:
        at = event.get("audio_end_ms")
        if isinstance(at, (int, float)):
            item.interrupt(float(at))

    def said(self, item: Item, index: int, event: Mapping[str, Any]) -> None:
        words = event.get("transcript", event.get("text", ""))  # none where it failed
        if isinstance(words, str):
            item.say(index, words)

    def saying(self, item: Item, index: int, event: Mapping[str, Any]) -> None:
        """A few more words: kept so that a dropped connection loses none that were heard."""
        words = event.get("delta")
        if isinstance(words, str) and not item.done and item.heard_ms is None:
            item.texts[index] = item.texts.get(index, "") + words
            item.revision += 1

    def sound(self, item: Item, index: int, event: Mapping[str, Any]) -> None:
        """Audio came: its length is noted."""
        delta = event.get("delta")
        if isinstance(delta, str):
            item.spoken = True
            item.audio_ms += len(delta) * 3 / 4 / self._bytes_per_ms


_ABOUT: dict[str, Callable[[Follower, Item, int, Mapping[str, Any]], None]] = {
    "conversation.item.truncated": Follower.truncated,
    "conversation.item.input_audio_transcription.completed": Follower.said,
    "conversation.item.input_audio_transcription.failed": Follower.said,
    **dict.fromkeys(AUDIO_DELTAS, Follower.sound),
    **dict.fromkeys(TEXT_DELTAS | TRANSCRIPT_DELTAS, Follower.saying),
    **{kind.replace(".delta", ".done"): Follower.said for kind in TEXT_DELTAS | TRANSCRIPT_DELTAS},
}


HANDLERS: dict[str, Callable[[Follower, Mapping[str, Any]], None]] = {
    "session.created": Follower.session,
    "session.updated": Follower.session,
    **dict.fromkeys(ADDED, Follower.added),
    "conversation.item.done": Follower.added,
    "conversation.item.deleted": Follower.deleted,
    "response.output_item.done": Follower.output,
    "response.done": Follower.response,
    **dict.fromkeys(_ABOUT, Follower.about),
}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
