"""Hold a Realtime server's conversation: items with their words; no I/O."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...messages import Message

ServerEvent = dict[str, Any]

UNTRANSCRIBED = "(speech that was not transcribed)"
EMPTY_SPEECH = "(speech without words)"
_AUDIO_PARTS = frozenset({"input_audio", "audio", "output_audio"})

# Some servers send "created" instead of "added".
ADDED = frozenset({"conversation.item.added", "conversation.item.created"})
_DONE = "conversation.item.done"
DELETED = "conversation.item.deleted"
TRUNCATED = "conversation.item.truncated"
AUDIO_DELTA = "response.output_audio.delta"
TEXT_DELTA = "response.output_text.delta"
_DELTAS = frozenset({TEXT_DELTA, "response.output_audio_transcript.delta"})
_FINAL_WORDS = frozenset(
    {
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.input_audio_transcription.failed",  # without words
        "response.output_text.done",
        "response.output_audio_transcript.done",
    }
)

G711_BYTES_PER_MS, PCM_BYTES_PER_MS = 8, 48


@dataclass(eq=False)
class Item:
    """A message, a function call, its output, or an unknown kind."""

    id: str
    type: str
    role: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    """Content index -> text, or transcript of audio."""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str = ""
    is_done: bool = False
    has_speech: bool = False
    awaiting: set[int] = field(default_factory=set)
    """Content indices of user audio without a transcript."""
    audio_ms: float = 0.0
    """Length of the assistant's audio."""
    heard_ms: float = math.inf
    """Milliseconds of audio before the user interrupted; later words are forgotten."""
    sequence: int = 0
    """Number of earlier items."""
    is_on_server: bool = True
    is_memory: bool = False
    """Our memory item, which is no part of the conversation."""
    is_withdrawn: bool = False
    """The deletion was requested."""
    is_folded: bool = False
    """The memory has replaced the item."""

    @property
    def is_final(self) -> bool:
        """Whether the words are final."""
        return self.is_done and not self.awaiting

    @property
    def text(self) -> str:
        """The item's words."""
        texts = [self.texts[index] for index in sorted(self.texts) if self.texts[index]]
        if texts or self.type != "message":
            return "\n".join(texts)
        return UNTRANSCRIBED if self.awaiting else EMPTY_SPEECH if self.has_speech else ""

    @property
    def all_words(self) -> str:
        """All words of an item of any type."""
        return " ".join(filter(None, (self.name, self.arguments, self.output, self.text)))

    def fill(self, data: Mapping[str, Any]) -> None:
        """Take the item's words from the server's data."""
        for name in ("role", "call_id", "name", "arguments", "output"):
            setattr(self, name, _string(data.get(name)) or getattr(self, name))
        parts = data.get("content")
        if isinstance(parts, list):
            for index, part in enumerate(parts):
                if isinstance(part, Mapping):
                    self._fill_part(index, part)
        status = data.get("status")
        if status != "in_progress" and (status or self.text or self.type != "message"):
            self.is_done = True

    def _fill_part(self, index: int, part: Mapping[str, Any]) -> None:
        words = part.get("text")
        if str(part.get("type")) in _AUDIO_PARTS:
            self.has_speech = True
            words = part.get("transcript")
            if words is None and self.role == "user" and index not in self.texts:
                self.awaiting.add(index)
        if part.get("type") == "input_image":
            words = "(a picture)"
        if isinstance(words, str) and (words or index not in self.texts):
            self.set_words(index, words)

    def set_words(self, index: int, text: str) -> None:
        """Set a part's words; after an interruption, only the heard words."""
        if self.heard_ms < math.inf:
            text = heard_words(text, self.heard_ms, self.audio_ms)
        self.awaiting.discard(index)
        self.texts[index] = text

    def leave_server(self) -> None:
        """Keep the words; drop the audio, which a new connection lacks."""
        words = self.text
        self.is_on_server = False
        self.is_done = True
        self.awaiting.clear()
        self.texts = {0: words} if words else {}
        self.has_speech = False
        self.audio_ms = 0.0
        self.heard_ms = math.inf

    def interrupt(self, at_ms: float) -> None:
        """Forget the words after `at_ms`."""
        if at_ms < self.heard_ms:
            length = min(self.heard_ms, self.audio_ms)
            self.heard_ms = at_ms
            self.texts = {i: heard_words(text, at_ms, length) for i, text in self.texts.items()}


def heard_words(text: str, at_ms: float, length_ms: float) -> str:
    """Return the whole words spoken up to `at_ms` of `length_ms`.

    Servers send no times of words: the end of a word is the later of two estimates, one by letters
    and one by words.
    """
    if length_ms <= 0:
        return ""
    if at_ms >= length_ms:
        return text
    share = max(0.0, at_ms) / length_ms
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    if len(ends) < 2:
        return text[: int(len(text) * share)]  # one word, or a language without spaces
    whole = [end for end in ends[: int(len(ends) * share)] if end <= len(text) * share]
    return text[: whole[-1]] if whole else ""


class Items:
    """The ordered list of items, updated by the server's events."""

    def __init__(self, audio_format: str = "pcm16") -> None:
        """`audio_format`: the server's format, such as "pcm16"."""
        self._items: list[Item] = []
        self._bytes_per_ms = G711_BYTES_PER_MS if "g711" in audio_format else PCM_BYTES_PER_MS
        self.sequence = 0
        """Number of all items so far."""

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def get(self, item_id: Any) -> Item | None:
        """Return the item with this id."""
        return next((item for item in self._items if item.id == item_id), None)

    def live(self) -> list[Item]:
        """Return the live items: neither memory nor withdrawn nor folded."""
        return [i for i in self._items if not (i.is_memory or i.is_withdrawn or i.is_folded)]

    @property
    def memory(self) -> Item | None:
        """The memory item that was last sent."""
        return next((i for i in self._items if i.is_memory and not i.is_withdrawn), None)

    def obsolete(self) -> list[Item]:
        """Return the items on the server that the memory has replaced."""
        replaced = (i for i in self._items if i.is_folded or (i.is_memory and i.is_withdrawn))
        return [item for item in replaced if item.is_on_server]

    # ------------------------------------------------------------ events of the server

    def apply(self, event: Mapping[str, Any]) -> None:
        """Apply one event of the server; never raise."""
        kind = str(event.get("type"))
        if kind in ADDED or kind == _DONE:
            self._on_added(mapping(event.get("item")), event.get("previous_item_id"))
        elif kind == DELETED:
            self.remove(event.get("item_id"))
        elif kind == "response.done":
            output = mapping(event.get("response")).get("output")
            if isinstance(output, list):
                for data in output:
                    self._on_finished(mapping(data))
        elif (item := self.get(event.get("item_id"))) is not None:
            self._on_words(item, kind, event)

    def _on_added(self, data: Mapping[str, Any], previous: Any) -> None:
        item_id = _string(data.get("id"))
        if item_id:
            item = self.get(item_id) or self._insert(item_id, data, previous)
            item.is_on_server = True
            item.fill(data)

    def _on_finished(self, data: Mapping[str, Any]) -> None:
        item = self.get(data.get("id"))
        if item is not None:
            item.fill(data)
            item.is_done = True

    def _on_words(self, item: Item, kind: str, event: Mapping[str, Any]) -> None:
        part, delta = event.get("content_index"), event.get("delta")
        index = part if isinstance(part, int) else 0
        if kind == TRUNCATED:
            at = event.get("audio_end_ms")
            if isinstance(at, (int, float)):
                item.interrupt(float(at))
        elif kind == AUDIO_DELTA and isinstance(delta, str):
            item.has_speech = True
            item.audio_ms += len(delta) * 3 / 4 / self._bytes_per_ms
        elif kind in _DELTAS and isinstance(delta, str):
            # Keep deltas: a dropped connection sends no final words.
            if not item.is_done and item.heard_ms == math.inf:
                item.texts[index] = item.texts.get(index, "") + delta
        elif kind in _FINAL_WORDS:
            words = event.get("transcript", event.get("text", ""))
            if isinstance(words, str):
                item.set_words(index, words)

    def remove(self, item_id: Any) -> None:
        """Remove an item that the server deleted."""
        self._items = [item for item in self._items if item.id != item_id]

    def add_sent(
        self, data: Mapping[str, Any], previous: Any = None, *, is_memory: bool = False
    ) -> Item | None:
        """Record a sent item before the server's echo; return None if known."""
        item_id = _string(data.get("id"))
        if not item_id or self.get(item_id) is not None:
            return None
        item = self._insert(item_id, data, previous)
        item.is_on_server = False
        item.is_memory = is_memory
        item.fill(data)
        return item

    def keep_live(self) -> None:
        """Keep only the live items, for the next connection."""
        self._items = self.live()
        for item in self._items:
            item.leave_server()

    def _insert(self, item_id: str, data: Mapping[str, Any], previous: Any) -> Item:
        """Insert an item after `previous`; first for "root"; last if unknown."""
        item = Item(item_id, _string(data.get("type")) or "message", sequence=self.sequence)
        self.sequence += 1
        after = self.get(previous)
        end = 0 if previous == "root" else len(self._items)
        self._items.insert(end if after is None else self._items.index(after) + 1, item)
        return item


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else {}."""
    return value if isinstance(value, Mapping) else {}


# ---------------------------------------------------------------- as chat messages


def messages_of(items: Sequence[Item]) -> list[Message]:
    """Return the items as chat messages; each output follows its call."""
    outputs = {item.call_id: item for item in items if item.type == "function_call_output"}
    calls = {item.call_id for item in items if item.type == "function_call"}
    messages: list[Message] = []
    for item in items:
        answer = outputs.get(item.call_id)
        if item.type == "function_call":
            messages += map(_chat_message, [item] if answer is None else [item, answer])
        elif item.call_id not in calls or item is not answer:
            messages.append(_chat_message(item))
    return messages


def _chat_message(item: Item) -> Message:
    if item.type == "function_call":
        function = {"name": item.name, "arguments": item.arguments or "{}"}
        calls = [{"id": item.call_id or item.id, "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls, "id": item.id}
    if item.type == "function_call_output":
        answer = {"tool_call_id": item.call_id, "content": item.output}
        return {"role": "tool", **answer, "id": item.id}
    if item.type == "message":
        role = item.role if item.role in ("user", "assistant", "system") else "user"
        return {"role": role, "content": item.text, "id": item.id}
    content = f"[{item.type}] {item.all_words}".strip()
    return {"role": "assistant", "content": content, "id": item.id}


# ---------------------------------------------------------------- as events to send


def new_id(prefix: str) -> str:
    """Return a new id of at most 32 characters, as servers require."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def delete_event(item_id: str, event_id: str) -> ServerEvent:
    """Return the event that deletes an item."""
    return {"type": "conversation.item.delete", "item_id": item_id, "event_id": event_id}


def create_event(item: ServerEvent, event_id: str, *, in_front: bool = False) -> ServerEvent:
    """Return the event that creates an item, first or last."""
    event = {"type": "conversation.item.create", "item": item, "event_id": event_id}
    return {**event, "previous_item_id": "root"} if in_front else event


def memory_item(text: str) -> ServerEvent:
    """Return the memory as a new user item."""
    content = [{"type": "input_text", "text": text}]
    return {"id": new_id("mem"), "type": "message", "role": "user", "content": content}


def item_of(item: Item) -> ServerEvent:
    """Return an item for a new connection: its words, without audio."""
    data = {"id": item.id, "type": item.type}
    if item.type == "function_call":
        arguments = item.arguments or "{}"
        return {**data, "call_id": item.call_id, "name": item.name, "arguments": arguments}
    if item.type == "function_call_output":
        return {**data, "call_id": item.call_id, "output": item.output}
    role = item.role or "assistant"
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": item.all_words}]
    return {**data, "type": "message", "role": role, "content": content}
