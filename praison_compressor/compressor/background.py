"""`Background`: write summaries in a thread, off the request path."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import contextlib
import contextvars
import functools
import logging
import threading
import traceback
import weakref
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future
from typing import Any

from ..concurrency import renew_after_fork

logger = logging.getLogger(__name__)


JOIN_SECONDS = 2.0
"""Longest wait for a cancelled summary at `close` and at exit."""


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
        """Begin `work` unless its key is busy; return whether it began."""
        with self._lock:
            if self._closed or key in self._running:
                return False
            # The work gets a new context: a listener must not ascribe the summary to the request
            # that began it.
            future = contextvars.Context().run(
                asyncio.run_coroutine_threadsafe, self._run_logged(work), self._start_loop()
            )
            self._running[key] = future
        future.add_done_callback(lambda _: self._forget(key, future))
        return True

    def is_busy(self, key: Hashable) -> bool:
        """Return whether work runs under this key."""
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
        """Await the work; log a repeated failure once."""
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
            # The newest function runs first, so `_close_all` runs before the executors' function.
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
    if not thread.is_alive():  # in a forked child the thread is never alive
        return
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(JOIN_SECONDS)
