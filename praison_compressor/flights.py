"""Single flight: one compression at a time for a session, in threads, event loops and processes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import AsyncIterator, Hashable
from concurrent.futures import Future

from .ledger import Session, Store

__all__ = ["Flights", "leased"]

LEASE_SECONDS = 20.0
"""How long a holder that crashed keeps others waiting; a live one renews it."""

POLL_SECONDS = 0.1


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


@contextlib.asynccontextmanager
async def leased(store: Store, session: Session) -> AsyncIterator[None]:
    """Hold the session's lease: across processes as `Flights` is within one."""
    holder = uuid.uuid4().hex
    while not await asyncio.to_thread(store.claim, session, holder, LEASE_SECONDS):
        await asyncio.sleep(POLL_SECONDS)
    renewing = asyncio.create_task(_renew(store, session, holder))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.to_thread(store.release, session, holder)


async def _renew(store: Store, session: Session, holder: str) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / 3)
        await asyncio.to_thread(store.claim, session, holder, LEASE_SECONDS)
