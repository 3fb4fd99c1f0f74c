"""Work in threads: coroutines run from anywhere, and a blocking call that can be given up.

A provider that sees the connection go stops writing, and charging for, what nobody will read.
litellm's sync calls offer no way to do that. Its async ones do, but they keep clients for one event
loop and one worker for its logging: on a loop of ours they would take that worker from the
application's. A client handed to litellm has to be of the provider's own kind, with its address and
key found as litellm would find them. So the call goes as it would without us, and only when it is
given up, the connection is looked for: in the frames of the thread that waits on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

__all__ = ["AbandonableCall", "apart", "begin", "off_loop", "run"]

T = TypeVar("T")


def begin(work: Callable[[], T], *, context: contextvars.Context | None = None) -> Future[T]:
    """Begin work that may block, in a thread that nobody has to wait for.

    With a copy of this context unless one is given. Not from an executor: the interpreter joins
    those at its exit, however long they take.
    """
    here = contextvars.copy_context() if context is None else context
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def target() -> None:
        try:
            result = here.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=target, name="praison-compressor-call", daemon=True).start()
    return future


def apart(work: Callable[[], T]) -> T:
    """Do it in a thread with this context, and wait."""
    return begin(work).result()


def off_loop(work: Callable[[], T]) -> T:
    """Do it here, or in a thread with this context where this one has a loop running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return apart(work)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in this thread or, inside a running loop, in another one."""
    return off_loop(lambda: asyncio.run(work))


AGAIN_SECONDS = 0.05
"""It may still look up a name, shake hands or try once more: until it ends, it is hung up again."""


class AbandonableCall(Generic[T]):
    """Work that has begun in a thread of its own, in an empty context."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._thread = 0
        # Empty: whoever wraps litellm for an agent finds no agent there and lets it pass.
        self.future = begin(self._run, context=contextvars.Context())

    def give_up(self) -> None:
        """Hang up, unless it has ended; returns at once."""
        if not self.future.done():
            # No thread can be had while the interpreter exits, which closes everything anyway.
            with contextlib.suppress(RuntimeError):
                begin(self._hang_up_until_it_ends, context=contextvars.Context())

    def _run(self) -> T:
        self._thread = threading.get_ident()
        return self._work()

    def _hang_up_until_it_ends(self) -> None:
        while not self.future.done():
            connection = self._connection()
            if connection is not None:
                # Not `close`, which wakes nobody; and not an SSL socket's own `shutdown`, which
                # takes its session away from the thread that is reading in it.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
            time.sleep(AGAIN_SECONDS)

    def _connection(self) -> socket.socket | None:
        """The socket of httpcore's stream that the thread is in; None where it is in none."""
        found: socket.socket | None = None
        frame = sys._current_frames().get(self._thread)  # the innermost
        while frame is not None:
            local = frame.f_locals.get("self")
            if local is self:
                return found  # a thread of ours: identifiers of ended threads are given again
            if found is None and frame.f_globals.get("__name__", "").startswith("httpcore."):
                found = _socket_of(local)
            frame = frame.f_back
        return None


def _socket_of(stream: Any) -> socket.socket | None:
    ask = getattr(stream, "get_extra_info", None)
    found = ask("socket") if callable(ask) else None
    return found if isinstance(found, socket.socket) else None
