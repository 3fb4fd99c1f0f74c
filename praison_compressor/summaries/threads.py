"""Run blocking calls in threads, and coroutines from anywhere."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

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


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in this thread or, inside a running loop, in another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return apart(lambda: asyncio.run(work))
