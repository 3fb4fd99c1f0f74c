"""The facts of a few stretches, looked for once: a text without a model and one by a model need
the same, and reading a long stretch takes most of the time of either."""

from __future__ import annotations

import threading
from collections import deque

from .facts import Domain, Facts, extract
from .forks import renewed
from .messages import Message

__all__ = ["FactFinder"]

REMEMBERED = 4
"""Stretches: those of the plans that are carried out at about the same time."""


class FactFinder:
    """Extracts facts, and remembers the newest; thread-safe."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._lock = renewed(threading.Lock())
        self._found: deque[tuple[tuple[Message, ...], Facts]] = deque(maxlen=REMEMBERED)

    def of(self, messages: tuple[Message, ...]) -> Facts:
        """What must survive of the messages."""
        with self._lock:
            found = list(self._found)
        for known, facts in found:
            if known == messages:
                return facts
        facts = extract(messages, domain=self._domain)
        with self._lock:
            self._found.append((messages, facts))
        return facts
