"""What a session is busy with: the words of which the names in its newest calls are made.

An agent that calls `read checkpoint_store.go` next needs `SaveCheckpoint`, which it saw once among
five hundred names, rather than the names beside it. A word that few names have says more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from .model import Facts, Identifier

NEWEST_NAMES = 15
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SAYS_NOTHING = frozenset(
    "the and for with this that from have not you use can are was will let get set new test file "
    "files code make should would add".split()
)


class Shared(NamedTuple):
    """Shares, 0 to 1, of a name's words, each counted by how rare it is among the names."""

    calls: float = 0.0
    """Of words that the names in the newest calls have too."""
    user: float = 0.0
    """Of words that the user wrote too."""


class Topic:
    """The words that matter now, by what the newest calls name and by what the user wrote."""

    def __init__(self, facts: Facts) -> None:
        self._words = {item.text: words_of(item.text) for item in facts.identifiers}
        uses = Counter(word for found in self._words.values() for word in found)
        names = len(self._words)
        self._rarity = {word: math.log1p(names / times) for word, times in uses.items()}
        self._calls = self._words_in(_newest(facts.identifiers))
        typed = (words_of(said.text) for said in facts.user if not said.pasted)
        self._user = frozenset(word for found in typed for word in found) - _SAYS_NOTHING

    def shared(self, item: Identifier) -> Shared:
        """How much of the name's words belong to what the session is busy with."""
        found = self._words[item.text]
        whole = self._weight(found)
        if not whole:
            return Shared()
        calls, user = self._weight(found & self._calls), self._weight(found & self._user)
        return Shared(calls / whole, user / whole)

    def _words_in(self, items: Iterable[Identifier]) -> frozenset[str]:
        return frozenset(word for item in items for word in self._words[item.text])

    def _weight(self, words: frozenset[str]) -> float:
        return sum(map(self._rarity.__getitem__, words))


def _newest(items: Iterable[Identifier]) -> list[Identifier]:
    """The identifiers that calls named last."""
    named = sorted((item for item in items if item.named), key=lambda item: -item.last)
    return named[:NEWEST_NAMES]


def words_of(name: str) -> frozenset[str]:
    """The words of three letters and more that a name or a sentence is made of.

    >>> sorted(words_of("saveCheckpointTo_db2"))
    ['checkpoint', 'save']
    """
    return frozenset(part.lower() for part in _PART.findall(name) if len(part) > 2)
