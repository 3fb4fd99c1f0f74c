"""Run work in threads and coroutines; keep locks usable after forks.

A forked child has no thread of its parent, so a lock held by another thread stays locked. Our own
locks are renewed in the child. Other locks, such as SQLite's, cannot be renewed: a fork waits until
no thread is inside guarded work.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# -------------------------------------------------------------- threads and loops


def start_thread(work: Callable[[], T], *, context: contextvars.Context | None = None) -> Future[T]:
    """Begin work that may block, in a daemon thread.

    The thread runs in `context`, or in a copy of the caller's context.
    """
    own = contextvars.copy_context() if context is None else context
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def target() -> None:
        try:
            result = own.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    # No executor: at its exit the interpreter waits for an executor's threads without a limit.
    threading.Thread(target=target, name="praison-compressor-call", daemon=True).start()
    return future


def run_off_loop(work: Callable[[], Any]) -> None:
    """Do the work; inside an event loop, do it in another thread."""
    if _is_in_loop():
        start_thread(work)
    else:
        work()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also from inside an event loop."""
    if _is_in_loop():
        return start_thread(lambda: _run_in_new_loop(work)).result()
    return _run_in_new_loop(work)


def _is_in_loop() -> bool:
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


CLEANUP_SECONDS = 2.0
"""Seconds for cancelled work to end."""


def _run_in_new_loop(work: Coroutine[Any, Any, T]) -> T:
    # Not `asyncio.run`: it waits without a limit for tasks that swallow their cancellation.
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    finally:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.wait(pending, timeout=CLEANUP_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


async def run_for(work: Coroutine[Any, Any, T], seconds: float) -> asyncio.Task[T] | None:
    """Return the ended task, or None after `seconds`.

    Unfinished work is cancelled and abandoned, also if this call is cancelled.
    """
    task = asyncio.ensure_future(work)
    # An exception that nobody reads would be logged by the loop.
    task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
    try:
        # Not `asyncio.wait_for`: it waits without a limit until cancelled work ends.
        await asyncio.wait({task}, timeout=seconds)
    finally:
        abandoned = task.cancel()
        if abandoned:
            await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
        if not task.done():
            # The work swallowed its cancellation. It is closed, because open work would delay the
            # loop's end.
            with suppress(RuntimeError, ValueError):
                work.close()
            task.cancel()
    return None if abandoned else task


# -------------------------------------------------------------- forks

FORK_PATIENCE_SECONDS = 5.0
"""Longest wait of a fork, in seconds. After it the fork goes on; the child may hang."""

_registered: dict[int, weakref.ref[Any]] = {}


def renew_after_fork(item: T) -> T:
    """Register an object; forked children call its `_at_fork_reinit()`.

    Python's locks have that method. Before a fork the parent calls `_at_fork_close()`, if defined.
    """
    key = id(item)
    _registered[key] = weakref.ref(item, lambda _: _registered.pop(key, None))
    return item


class _ForkGuard:
    """Exclude forks from guarded work, and guarded work from forks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forks = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # A thread inside may enter again: the fork waits for that thread.
            self._changed.wait_for(lambda: not self._forks or me in self._inside)
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread is inside; let no thread in."""
        me = threading.get_ident()
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, FORK_PATIENCE_SECONDS)

    def after_fork(self) -> None:
        """Let threads in again."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def _at_fork_reinit(self) -> None:
        me = threading.get_ident()
        self._changed, self._forks = threading.Condition(), 0
        self._inside = {me: self._inside[me]} if me in self._inside else {}


fork_guard = renew_after_fork(_ForkGuard())


def _call_all(method: str) -> None:
    # A copy: other threads register objects meanwhile.
    for item in [reference() for reference in list(_registered.values())]:
        getattr(item, method, lambda: None)()


def _before_fork() -> None:
    fork_guard.before_fork()
    _call_all("_at_fork_close")


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=fork_guard.after_fork,
        after_in_child=lambda: _call_all("_at_fork_reinit"),
    )


class computed_once(Generic[T]):
    """Compute an attribute once.

    Before Python 3.12 `functools.cached_property` has one lock for all instances.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        """Return the value; an instance attribute then replaces this descriptor."""
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self._name] = self._work(instance)
        return value
