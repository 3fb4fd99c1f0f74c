"""Summaries off the request path: one thread with an event loop, single flight per session."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future
from typing import Any

__all__ = ["Background"]

logger = logging.getLogger(__name__)

JOIN_SECONDS = 2.0
"""How long the interpreter's exit waits for a summary that is being cancelled."""


class Background:
    """Runs coroutines in a thread of its own; started at the first one, cancelled at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Hashable, Future[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._closed = False

    def start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
        """Begin `work` unless the same key is at work already; whether it was begun."""
        with self._lock:
            if self._closed or (key in self._running and self._pid == os.getpid()):
                return False
            future = asyncio.run_coroutine_threadsafe(self._logged(work), self._its_loop())
            self._running[key] = future
        future.add_done_callback(lambda _: self._done(key, future))
        return True

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is running; False when that took longer than `seconds`."""
        with self._lock:
            running = list(self._running.values())
        for future in running:
            try:
                future.exception(seconds)
            except TimeoutError:
                return False
            except BaseException:  # cancelled: it is not running any more
                continue
        return True

    def close(self) -> None:
        """Cancel what is running and end the thread."""
        with self._lock:
            self._closed = True
            running, loop, thread = list(self._running.values()), self._loop, self._thread
        for future in running:
            future.cancel()
        if loop is None or thread is None or self._pid != os.getpid():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(JOIN_SECONDS)

    def _its_loop(self) -> asyncio.AbstractEventLoop:
        # A forked child inherits the loop but not its thread.
        if self._loop is None or self._pid != os.getpid():
            self._running.clear()
            self._pid = os.getpid()
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="praison-compressor-background", daemon=True
            )
            self._thread.start()
            atexit.register(self.close)
        return self._loop

    async def _logged(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logger.warning("a summary in the background failed: %s", error)

    def _done(self, key: Hashable, future: Future[Any]) -> None:
        with self._lock, contextlib.suppress(KeyError):
            if self._running[key] is future:
                del self._running[key]
