"""Pause models that fail, longer after each failure in a row."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..concurrency import renew_after_fork
from ..errors import FailureKind

COOLDOWN_SECONDS = (60.0, 300.0, 900.0)
"""Cooldown after the first, the second and every later failure in a row."""

FIRST_COOLDOWN: Mapping[FailureKind, int] = {"quota": 1, "auth": 2}
"""Kind of failure → index of its first cooldown; other kinds: 0."""

LASTING_KINDS: frozenset[FailureKind] = frozenset({"auth", "refused"})
"""A longer segment does not end the cooldown after such a failure."""

RETRY_GROWTH_FACTOR = 1.5
"""A segment that has grown by this factor ends the cooldown."""

MOST_FAILURES = 1_024
"""Only this many newest failures are remembered."""


class _Cooldown(NamedTuple):
    until: float
    """Second of the clock at which the cooldown ends."""
    retry_tokens: float
    """Size of a segment that ends the cooldown earlier."""
    step: int


class CircuitBreaker:
    """Pause a model that fails in a session; thread-safe."""

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

    def record_failure(
        self, session_id: str, model: str | None, tokens: int, kind: FailureKind
    ) -> float:
        """Record a failure; return the seconds of the cooldown."""
        key, now = (session_id, model), self._clock()
        with self._lock:
            previous = self._cooldowns.pop(key, None)
            step = max(0 if previous is None else previous.step + 1, FIRST_COOLDOWN.get(kind, 0))
            step = min(step, len(COOLDOWN_SECONDS) - 1)
            retry_tokens = math.inf if kind in LASTING_KINDS else RETRY_GROWTH_FACTOR * tokens
            self._cooldowns[key] = _Cooldown(now + COOLDOWN_SECONDS[step], retry_tokens, step)
            while len(self._cooldowns) > MOST_FAILURES:
                del self._cooldowns[next(iter(self._cooldowns))]
            return COOLDOWN_SECONDS[step]

    def end_cooldowns(self, session_id: str) -> None:
        """End the session's cooldowns; keep the count of failures."""
        with self._lock:
            for key, cooldown in self._cooldowns.items():
                if key[0] == session_id:
                    self._cooldowns[key] = cooldown._replace(until=-math.inf)

    def record_success(self, session_id: str, model: str | None) -> None:
        """Forget the model's failures."""
        with self._lock:
            self._cooldowns.pop((session_id, model), None)
