"""`hold_session`: let one worker at a time compress a session."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator

from ..concurrency import renew_after_fork, start_thread
from ..errors import LedgerError
from ..ledger.segments import Session
from ..ledger.stores import Store
from .session_states import SessionStates

logger = logging.getLogger(__name__)

LEASE_SECONDS = 6.0
"""Seconds until a crashed holder's lease ends; a live holder renews its lease four times in this
period."""

LEASE_PATIENCE_SECONDS = 600.0
"""Longest wait for a lease. Then the compression starts without the lease, because a hung holder
may renew it forever."""

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.1, 1.0
"""First and longest pause between two claims. The pause grows so that many waiting processes do not
overload the store."""


@contextlib.asynccontextmanager
async def hold_session(
    sessions: SessionStates, store: Store, session: Session
) -> AsyncIterator[None]:
    """Let one caller at a time compress a session, in all processes."""
    while (worker := sessions.enter(session.key)) is not None:
        await asyncio.wrap_future(worker)
    try:
        async with hold_lease(store, session):
            yield
    finally:
        sessions.leave(session.key)


class _Lease:
    """One holder's claim to compress a session, renewed until its release."""

    def __init__(self, store: Store, session: Session, seconds: float) -> None:
        self._store = store
        self._session = session
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._over = threading.Event()
        # Under this lock no late renewal can follow the release.
        self._lock = renew_after_fork(threading.Lock())

    def claim(self) -> bool:
        with self._lock:
            is_over = self._over.is_set()
            return not is_over and self._store.claim(self._session, self._holder, self._seconds)

    def renew(self) -> None:
        while not self._over.wait(self._seconds / 4):
            with contextlib.suppress(LedgerError):  # the commit decides the race
                self.claim()

    def release(self) -> None:
        with self._lock:
            self._over.set()
            try:
                self._store.release(self._session, self._holder)
            except LedgerError as error:  # the work under the lease is done
                logger.info("a lease could not be released, it ends by itself: %s", error)


@contextlib.asynccontextmanager
async def hold_lease(
    store: Store,
    session: Session,
    *,
    seconds: float = LEASE_SECONDS,
    patience_seconds: float = LEASE_PATIENCE_SECONDS,
) -> AsyncIterator[None]:
    """Hold the session's lease, which all processes respect."""
    lease = _Lease(store, session, seconds)
    try:
        if await _wait_for(lease, patience_seconds):
            # A thread renews the lease: a busy loop or a full executor would lose the lease.
            with contextlib.suppress(RuntimeError):  # the interpreter exits
                start_thread(lease.renew)
        else:
            logger.warning("session %s: its lease was never released", session.id)
        yield
    finally:
        try:
            # A thread releases the lease: a second cancellation would remove the release from an
            # executor.
            released = start_thread(lease.release)
        except RuntimeError:  # the interpreter exits
            lease.release()
        else:
            await asyncio.wrap_future(released)


async def _wait_for(lease: _Lease, patience_seconds: float) -> bool:
    """Claim the lease; return False after `patience_seconds`."""
    end = time.monotonic() + patience_seconds
    pause = POLL_SECONDS
    while not await asyncio.to_thread(lease.claim):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, LONGEST_POLL_SECONDS)
    return True
