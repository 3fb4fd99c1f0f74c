"""The Realtime protocol: the client events we send, and who waits for which answer."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

from ...errors import CompressorError
from .items import Item

Event = dict[str, Any]


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
        self._waiting: dict[str, asyncio.Future[None]] = {}

    def expect(self, event_id: str) -> asyncio.Future[None]:
        """Wait until that event is carried out or refused."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[event_id] = future
        return future

    def settle(self, event_id: str) -> None:
        """The server did it."""
        future = self._waiting.pop(event_id, None)
        if future is not None and not future.done():
            future.set_result(None)

    def refuse(self, error: Mapping[str, Any]) -> bool:
        """Whether the error was an answer to us."""
        future = self._waiting.pop(str(error.get("event_id")), None)
        if future is None or future.done():
            return False
        code = str(error.get("code") or error.get("type") or "error")
        future.set_exception(ServerRefused(code, str(error.get("message") or "")))
        return True

    def cancel(self) -> None:
        """No answers will come any more."""
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()


def new_id(prefix: str) -> str:
    """An id of ours: at most 32 characters, as servers demand."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def create_event(item: Event, event_id: str, *, in_front: bool = False) -> Event:
    """Ask for a new item in front of all others, or at the end."""
    event = {"type": "conversation.item.create", "item": item, "event_id": event_id}
    return {**event, "previous_item_id": "root"} if in_front else event


def delete_event(item_id: str, event_id: str) -> Event:
    """Ask for an item to be deleted."""
    return {"type": "conversation.item.delete", "item_id": item_id, "event_id": event_id}


def memory_item(text: str) -> Event:
    """The memory as a new item: words of no more authority than a user's."""
    content = [{"type": "input_text", "text": text}]
    return {"id": new_id("mem"), "type": "message", "role": "user", "content": content}


def item_of(item: Item) -> Event:
    """An item as it is told to a new connection: its words, for its audio is gone."""
    given = {"id": item.id, "type": item.type}
    if item.type == "function_call":
        arguments = item.arguments or "{}"
        return {**given, "call_id": item.call_id, "name": item.name, "arguments": arguments}
    if item.type == "function_call_output":
        return {**given, "call_id": item.call_id, "output": item.output}
    role = item.role or "assistant"
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": item.all_words}]
    return {**given, "type": "message", "role": role, "content": content}
