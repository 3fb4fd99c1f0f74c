"""Acknowledgements: who waits for which answer of the server, and how errors find their way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ...errors import CompressorError

__all__ = ["Acks", "ServerRefused"]


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
