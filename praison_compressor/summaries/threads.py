"""Run blocking calls in threads, coroutines from anywhere, and work that may not end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

CLEANING_UP = 2.0
"""Seconds in which cancelled work must end and return its connection."""


def begin(work: Callable[[], T], *, context: contextvars.Context | None = None) -> Future[T]:
    """Begin work that may block, in a daemon thread.

    The thread has a copy of this context, or the context given.

    No executor: the interpreter joins an executor's threads at its exit, however long they take.
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
    """Do the work in a thread with this context; wait."""
    return begin(work).result()


def off_loop(work: Callable[[], Any]) -> None:
    """Do the work here; where a loop runs in this thread, begin it in another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
    else:
        begin(work)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, from anywhere.

    If a loop runs in this thread, the coroutine runs in another thread.

    Not by `asyncio.run`, which waits for tasks that swallow their cancellation, however long.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    return apart(lambda: _run(work))


def _run(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=CLEANING_UP))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


async def in_time(work: Coroutine[Any, Any, T], seconds: float) -> asyncio.Task[T] | None:
    """Return the ended task, or None after `seconds`.

    Work that has not ended then, or when this is cancelled, is cancelled and abandoned.

    Not `asyncio.wait_for`: it waits until cancelled work ends, however long.
    """
    task = asyncio.ensure_future(work)
    # The outcome of abandoned work is read, so that the loop does not log it.
    task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        abandoned = task.cancel()
        if abandoned:
            await asyncio.wait({task}, timeout=CLEANING_UP)
        if not task.done():
            # It swallowed its cancellation. Closed, it cannot hold up the loop's own end.
            with suppress(RuntimeError, ValueError):
                work.close()
            task.cancel()
    return None if abandoned else task
