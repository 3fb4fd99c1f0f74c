"""Single flight: one compression at a time for a session, in threads and event loops alike."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from concurrent.futures import Future

__all__ = ["Flights"]


class Flights:
    """Who is at work on what. A second caller gets the first one's future to wait for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: dict[Hashable, Future[None]] = {}

    def enter(self, key: Hashable) -> Future[None] | None:
        """None: it is yours, and you `leave` it whatever happens. Else: wait, then look again."""
        with self._lock:
            flying = self._flying.get(key)
            if flying is None:
                self._flying[key] = Future()
            return flying

    def leave(self, key: Hashable) -> None:
        """Let those go on who wait."""
        with self._lock:
            done = self._flying.pop(key)
        done.set_result(None)
