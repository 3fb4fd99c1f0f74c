"""Locks, lazy values and connections that survive a fork: a child hangs on nothing of its parent.

The threads of a parent are not in its child: a lock that one of them held is never released there.
A library's own locks cannot be renewed, so a fork waits until nobody is in SQLite, and finds no
connection open.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


PATIENCE_SECONDS = 5.0
"""How long a fork waits; then the child may hang, which is better than a parent that does."""


_known: dict[int, weakref.ref[Any]] = {}


def renewed(made: T) -> T:
    """Have `_at_fork_reinit()` of this object called in every forked child, as long as it lives.

    Python's own locks have that method. Where there is an `_at_fork_close()`, the parent calls it
    just before.
    """
    key = id(made)
    _known[key] = weakref.ref(made, lambda _: _known.pop(key, None))
    return made


class _Undivided:
    """Work that no fork divides: a fork waits for those inside, and others wait for the fork."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forks = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # Whoever is inside goes on: the fork waits for that thread.
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
        me = threading.get_ident()
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, PATIENCE_SECONDS)

    def after_fork(self) -> None:
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
    """`functools.cached_property` without its lock (until Python 3.12), which all instances share
    and hold while they compute."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self._name] = self._work(instance)
        return value
