"""Run one compression per session across processes, or in the background."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import contextlib
import contextvars
import functools
import logging
import threading
import time
import traceback
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from concurrent.futures import Future
from typing import Any

from ..concurrency import begin, renew_after_fork
from ..errors import LedgerError
from ..ledger.segments import Session
from ..ledger.stores import Store

logger = logging.getLogger(__name__)


# -------------------------------------------------------------- lease


LEASE_SECONDS = 6.0
"""A crashed holder keeps others waiting for this long; a live holder renews four times as often."""

LEASE_PATIENCE_SECONDS = 600.0
"""After this wait a compression starts without the lease, which a holder that hangs may renew
forever. The commit decides the race."""

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.1, 1.0
"""Waiting processes ask less and less often: hundreds of them would keep a small store busy."""


class _Lease:
    """One holder's claim to write a session's summary, renewed until its release."""

    def __init__(self, store: Store, session: Session) -> None:
        self._store = store
        self._session = session
        self._holder = uuid.uuid4().hex
        self._over = threading.Event()
        # A renewal still on its way must not outlive the release.
        self._lock = renew_after_fork(threading.Lock())

    def claim(self) -> bool:
        with self._lock:
            is_over = self._over.is_set()
            return not is_over and self._store.claim(self._session, self._holder, LEASE_SECONDS)

    def renew(self) -> None:
        while not self._over.wait(LEASE_SECONDS / 4):
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
async def hold_lease(store: Store, session: Session) -> AsyncIterator[None]:
    """Hold the session's lease across processes; `SessionStates.enter` serves one process."""
    lease, start, pause = _Lease(store, session), time.monotonic(), POLL_SECONDS
    try:
        while not await asyncio.to_thread(lease.claim):
            if time.monotonic() > start + LEASE_PATIENCE_SECONDS:
                logger.warning("session %s: its lease was never released", session.id)
                break
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_POLL_SECONDS)
        else:
            # In a separate thread: a busy loop or a full executor must not lose the lease.
            with contextlib.suppress(RuntimeError):  # the interpreter exits
                begin(lease.renew)
        yield
    finally:
        try:
            # Not in the executor: a second cancellation would take a release out of its queue.
            released = begin(lease.release)
        except RuntimeError:  # the interpreter exits: no thread can be started
            lease.release()
        else:
            await asyncio.wrap_future(released)


# -------------------------------------------------------------- background


JOIN_SECONDS = 2.0
"""A close, or the interpreter's exit, waits this long for a summary that is being cancelled."""


class Background:
    """Run coroutines in one thread until `close`, deletion or exit."""

    def __init__(self) -> None:
        self._lock = renew_after_fork(threading.Lock())
        self._running: dict[Hashable, Future[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: Callable[[], Any] = lambda: None
        self._closed = False
        self._failure = ""
        """The newest failure's text; "" after a success."""
        renew_after_fork(self)

    def start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
        """Begin `work` unless something runs under its key; return whether begun."""
        with self._lock:
            if self._closed or key in self._running:
                return False
            # Not in the caller's context: a listener must not take this summary for a part of the
            # request in which it began.
            future = contextvars.Context().run(
                asyncio.run_coroutine_threadsafe, self._run_logged(work), self._start_loop()
            )
            self._running[key] = future
        future.add_done_callback(lambda _: self._forget(key, future))
        return True

    def is_busy(self, key: Hashable) -> bool:
        """Return whether something runs under this key."""
        return key in self._running

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing runs; return False if that takes longer than `seconds`."""
        with self._lock:
            running = list(self._running.values())
        return not concurrent.futures.wait(running, seconds).not_done

    def close(self) -> None:
        """Cancel the work and end the thread; `start` then begins nothing."""
        with self._lock:
            self._closed = True
        self._end()

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            name = "praison-compressor-background"
            thread = threading.Thread(target=_serve, args=(self._loop,), name=name, daemon=True)
            thread.start()
            _alive.add(self)
            _close_before_executors()
            # Runs once: at `close`, at the end of this object, or at exit.
            self._end = weakref.finalize(self, _stop, self._loop, thread)
        return self._loop

    def _at_fork_reinit(self) -> None:
        # A forked child inherits the loop but not its thread.
        self._running, self._loop, self._end = {}, None, lambda: None

    async def _run_logged(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Await the work; log a failure once while it repeats."""
        before, self._failure = self._failure, ""
        try:
            await work()
        except Exception as error:
            self._failure = "".join(traceback.format_exception_only(error)).strip()
            level = logging.DEBUG if self._failure == before else logging.WARNING
            logger.log(level, "a summary in the background failed: %s", self._failure)

    def _forget(self, key: Hashable, future: Future[Any]) -> None:
        with self._lock:
            if self._running.get(key) is future:
                del self._running[key]


_alive: weakref.WeakSet[Background] = weakref.WeakSet()


@functools.cache
def _close_before_executors() -> None:
    """Cancel the work before the executors end at exit."""
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        with contextlib.suppress(RuntimeError):  # the interpreter exits already
            # Runs before the executors' own function, which was registered earlier.
            register(_close_all)


def _close_all() -> None:
    for background in list(_alive):
        background.close()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop; at its end let cancelled tasks release their leases."""
    loop.run_forever()
    try:
        tasks = [task for task in asyncio.all_tasks(loop) if task.cancel()]
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=JOIN_SECONDS))
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if not thread.is_alive():  # in a forked child it never is
        return
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(JOIN_SECONDS)
