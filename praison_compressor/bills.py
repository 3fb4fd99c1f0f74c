"""What summaries in the background cost, until the session's next result bears it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from .forks import renewed
from .ledger import Usage

__all__ = ["Bills"]

REMEMBERED_SESSIONS = 1_024
"""Sessions that nobody came back to are forgotten, the oldest first: their ledgers have it too."""


class Bills:
    """By session; thread-safe."""

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._owed: OrderedDict[Hashable, Usage] = OrderedDict()

    def owe(self, key: Hashable, usage: Usage) -> None:
        """Have it on the bill of the session's next result."""
        with self._lock:
            self._owed[key] = self._owed.pop(key, Usage()) + usage
            while len(self._owed) > REMEMBERED_SESSIONS:
                self._owed.popitem(last=False)

    def take(self, key: Hashable) -> Usage | None:
        """What is owed, once; None where nothing is."""
        if key not in self._owed:
            return None
        with self._lock:
            return self._owed.pop(key, None)
