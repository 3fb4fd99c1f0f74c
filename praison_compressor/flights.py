"""Single flight: one compression at a time for a session, in threads, event loops and processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Hashable
from concurrent.futures import Future

from .anywhere import begin
from .errors import LedgerError
from .forks import renewed
from .ledger import Session, Store

__all__ = ["Flights", "leased"]

logger = logging.getLogger(__name__)

LEASE_SECONDS = 6.0
"""How long a holder that crashed keeps others waiting; a live one renews it four times as often."""

PATIENCE_SECONDS = 600.0
"""After so long without the lease we go on all the same: a holder that hangs and still renews must
not stop a session for good. The commit decides who was first."""

POLL_SECONDS = 0.1
LONGEST_POLL_SECONDS = 1.0
"""Those who wait ask less and less often: hundreds of them would keep a small store busy."""


class Flights:
    """Who is at work on what. A second caller gets the first one's future to wait for."""

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._flying: dict[Hashable, Future[None]] = {}
        renewed(self)

    def enter(self, key: Hashable) -> Future[None] | None:
        """None: it is yours, and you `leave` it whatever happens. Else: wait, then look again."""
        with self._lock:
            flying = self._flying.get(key)
            if flying is None:
                ours: Future[None] = Future()
                # Running: one waiter's cancellation must not cancel what all the others wait for.
                ours.set_running_or_notify_cancel()
                self._flying[key] = ours
            return flying

    def leave(self, key: Hashable) -> None:
        """Let those go on who wait."""
        with self._lock:
            done = self._flying.pop(key, None)
        if done is not None:  # else this is a child, forked in mid-flight
            done.set_result(None)

    def _at_fork_reinit(self) -> None:
        self._flying = {}  # those at work are not in the child


@contextlib.asynccontextmanager
async def leased(store: Store, session: Session) -> AsyncIterator[None]:
    """Hold the session's lease: across processes as `Flights` is within one."""
    lease = _Lease(store, session)
    try:
        given_up, pause = time.monotonic() + PATIENCE_SECONDS, POLL_SECONDS
        while not await asyncio.to_thread(lease.take):
            if time.monotonic() > given_up:
                logger.warning("session %s: its lease was never given back", session.id)
                break
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_POLL_SECONDS)
        yield
    finally:
        try:
            await asyncio.to_thread(lease.release)
        except RuntimeError:  # the interpreter exits: no thread can be had any more
            lease.release()


class _Lease:
    """One holder's claim. A renewal that is still on its way never outlives the release."""

    def __init__(self, store: Store, session: Session) -> None:
        self._store = store
        self._session = session
        self._holder = uuid.uuid4().hex
        self._lock = renewed(threading.Lock())
        self._over = threading.Event()

    def take(self) -> bool:
        """Claim it; renewed from then on, in a thread of its own: a loop that is busy, or an
        executor that is full, loses no lease."""
        taken = self.claim()
        if taken:
            with contextlib.suppress(RuntimeError):  # the interpreter exits: nobody is left to wait
                begin(self._renew)
        return taken

    def claim(self) -> bool:
        with self._lock:
            if self._over.is_set():
                return False
            return self._store.claim(self._session, self._holder, LEASE_SECONDS)

    def release(self) -> None:
        with self._lock:
            if not self._over.is_set():
                self._over.set()
                try:
                    self._store.release(self._session, self._holder)
                except LedgerError as error:  # what was done under it is done all the same
                    logger.info("a lease is not given back, it ends by itself: %s", error)

    def _renew(self) -> None:
        level = logging.WARNING
        while not self._over.wait(LEASE_SECONDS / 4):
            try:
                self.claim()
            except LedgerError as error:
                # Without it another may begin too; the commit decides who was first.
                logger.log(level, "a lease could not be renewed: %s", error)
                level = logging.DEBUG
