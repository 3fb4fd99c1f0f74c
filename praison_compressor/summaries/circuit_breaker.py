"""Let a failing model rest, longer after each failure in a row."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from ..concurrency import renew_after_fork
from .litellm_client import REFUSED

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST_COOLDOWN = {"quota": 1, "auth": 2}
"""Kind of failure → its first index in COOLDOWNS; other kinds begin at 0."""

LASTING_KINDS = {"auth", REFUSED}
"""Kinds that end only with time; a longer segment does not retry the model earlier."""

RETRY_GROWTH = 1.5  # a segment longer by this factor is worth a try after other kinds

MAX_FAILURES = 1_024
"""Failures held; the oldest are forgotten, so that a long-lived process does not grow."""


class CircuitBreaker:
    """A circuit breaker per model and session; thread-safe. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renew_after_fork(threading.Lock())
        # (clock when the cooldown ends, segment tokens that end it earlier, index in COOLDOWNS)
        self._failures: dict[tuple[str, str | None], tuple[float, float, int]] = {}

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Return whether the model may be asked for a segment of `tokens`."""
        until, grown, _ = self._failures.get((session_id, model), (0.0, 0, 0))
        return self._clock() >= until or tokens >= grown

    def record_failure(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Record a failure; return the seconds for which the model rests."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            *_, before = self._failures.pop(key, (-1,))
            step = min(max(before + 1, FIRST_COOLDOWN.get(kind, 0)), len(COOLDOWNS) - 1)
            grown = math.inf if kind in LASTING_KINDS else RETRY_GROWTH * tokens
            self._failures[key] = (now + COOLDOWNS[step], grown, step)
            while len(self._failures) > MAX_FAILURES:
                del self._failures[next(iter(self._failures))]
            return COOLDOWNS[step]

    def record_success(self, session_id: str, model: str | None) -> None:
        """Forget the failures of a model that answers again."""
        with self._lock:
            self._failures.pop((session_id, model), None)
