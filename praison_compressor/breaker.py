"""Leaves a model alone for a while after it failed, longer each time, unless much has changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from .forks import renewed

__all__ = ["Breaker"]

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST = {"quota": 1, "auth": 2}
"""Kinds that no short wait mends start further on: 300 s for a quota, 900 s for a key."""

GROWTH = 1.5
"""A conversation that has grown so much since the failure is worth another try."""

REMEMBERED = 1_024
"""Failures held; the oldest are forgotten, so that a long-lived process does not grow."""


@dataclass(frozen=True)
class _Failure:
    until: float
    tokens: int
    step: int


class Breaker:
    """Remembers failures per model and session; thread-safe. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renewed(threading.Lock())
        self._failures: OrderedDict[tuple[str, str | None], _Failure] = OrderedDict()

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Whether the model may be asked for a segment of that many tokens."""
        with self._lock:
            failure = self._failures.get((session_id, model))
        if failure is None or self._clock() >= failure.until:
            return True
        return tokens >= GROWTH * failure.tokens

    def failed(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Note a failure; returns the seconds for which the model is left alone."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            before = self._failures.pop(key, None)
            step = 0 if before is None else before.step + 1
            step = min(max(step, FIRST.get(kind, 0)), len(COOLDOWNS) - 1)
            self._failures[key] = _Failure(now + COOLDOWNS[step], tokens, step)
            while len(self._failures) > REMEMBERED:
                self._failures.popitem(last=False)
            return COOLDOWNS[step]

    def succeeded(self, session_id: str, model: str | None) -> None:
        """The model answers again."""
        with self._lock:
            self._failures.pop((session_id, model), None)
