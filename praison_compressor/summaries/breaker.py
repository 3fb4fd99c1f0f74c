"""Pause models that fail, longer after each failure in a row."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ..concurrency import renew_after_fork
from .litellm_client import REFUSED

COOLDOWNS = (60.0, 300.0, 900.0)
"""Seconds after the first, second and every further failure in a row."""

FIRST_COOLDOWN = {"quota": 1, "auth": 2}
"""Kind of failure → its first index in COOLDOWNS; other kinds begin at 0."""

LASTING_KINDS = {"auth", REFUSED}
"""Kinds that end only with time; a longer segment does not retry the model earlier."""

RETRY_GROWTH = 1.5  # a segment longer by this factor is worth a try after other kinds

MOST_FAILURES = 1_024
"""Failures held; the oldest are forgotten, so that a long-lived process does not grow."""


class _Cooldown(NamedTuple):
    until: float
    """The clock's seconds at which the model may be asked again."""
    retry_tokens: float
    """A segment of this size is tried before that time."""
    step: int
    """Index in COOLDOWNS."""


class CircuitBreaker:
    """Pause a model that fails in a session; thread-safe. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = renew_after_fork(threading.Lock())
        self._cooldowns: dict[tuple[str, str | None], _Cooldown] = {}

    def allows(self, session_id: str, model: str | None, tokens: int) -> bool:
        """Return whether the model may be asked for a segment of `tokens`."""
        cooldown = self._cooldowns.get((session_id, model))
        if cooldown is None:
            return True
        return self._clock() >= cooldown.until or tokens >= cooldown.retry_tokens

    def record_failure(self, session_id: str, model: str | None, tokens: int, kind: str) -> float:
        """Record a failure; return the seconds for which the model rests."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            previous = self._cooldowns.pop(key, None)
            step = max(0 if previous is None else previous.step + 1, FIRST_COOLDOWN.get(kind, 0))
            step = min(step, len(COOLDOWNS) - 1)
            retry_tokens = math.inf if kind in LASTING_KINDS else RETRY_GROWTH * tokens
            self._cooldowns[key] = _Cooldown(now + COOLDOWNS[step], retry_tokens, step)
            while len(self._cooldowns) > MOST_FAILURES:
                del self._cooldowns[next(iter(self._cooldowns))]
            return COOLDOWNS[step]

    def end_cooldowns(self, session_id: str) -> None:
        """Let the session's models be asked again; keep the count of failures."""
        with self._lock:
            for key, cooldown in self._cooldowns.items():
                if key[0] == session_id:
                    self._cooldowns[key] = cooldown._replace(until=-math.inf)

    def record_success(self, session_id: str, model: str | None) -> None:
        """Forget the failures of a model that answers again."""
        with self._lock:
            self._cooldowns.pop((session_id, model), None)
