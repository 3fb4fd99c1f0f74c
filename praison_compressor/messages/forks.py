"""Locks, lazy values and connections that work in a forked process.

A parent's threads are not in its child: a lock that a thread held is never released there. A
library's own locks cannot be renewed, so a fork waits until no thread is inside SQLite, and closes
connections.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


PATIENCE_SECONDS = 5.0
"""How long a fork waits; after that the child may hang, rather than the parent."""


_known: dict[int, weakref.ref[Any]] = {}


def renewed(made: T) -> T:
    """Register an object: forked children call its `_at_fork_reinit()`.

    Python's own locks have that method. Before the fork the parent calls `_at_fork_close()`, where
    the object has it.
    """
    key = id(made)
    _known[key] = weakref.ref(made, lambda _: _known.pop(key, None))
    return made


class _Undivided:
    """Work that no fork divides: forks and threads wait for each other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forks = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # A thread that is inside goes on: the fork waits for it.
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
        """Wait until no other thread is inside, and let none in."""
        me = threading.get_ident()
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, PATIENCE_SECONDS)

    def after_fork(self) -> None:
        """Let threads in again."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def _at_fork_reinit(self) -> None:
        me = threading.get_ident()
        self._changed, self._forks = threading.Condition(), 0
        self._inside = {me: self._inside[me]} if me in self._inside else {}


undivided = renewed(_Undivided())


def _call(method: str) -> None:
    # A list first: other threads make objects meanwhile.
    for made in [reference() for reference in list(_known.values())]:
        getattr(made, method, lambda: None)()


def _before() -> None:
    undivided.before_fork()
    _call("_at_fork_close")


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before,
        after_in_parent=undivided.after_fork,
        after_in_child=lambda: _call("_at_fork_reinit"),
    )


class lazy(Generic[T]):
    """`functools.cached_property` without the lock that all instances share (until 3.12)."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        """Compute the value once; an instance attribute replaces this later."""
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self._name] = self._work(instance)
        return value
