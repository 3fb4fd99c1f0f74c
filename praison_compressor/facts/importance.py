"""How likely an identifier is to be needed again, and what the session is busy with.

An agent that calls `read checkpoint_store.go` next needs `SaveCheckpoint`, which it saw once among
five hundred names, rather than the names beside it. A word that few names have says more.

A logistic model on what can be counted without knowing the future. Its weights were fitted over
230 cuts of 60 recorded agent sessions (label: the agent later used the identifier in a call before
anything showed it again), strongly regularised and checked by leaving whole sessions out; rounded,
since the second digit was noise. Two choices are by hand: the user's own identifiers weigh nothing
here (the user's words are kept in their own section), and `SHARPNESS` undoes the shrinking of the
regularisation. `tests/benchmarks/refit.py` fits them anew without the sessions scored.

`current` and `asked` were added last, by trials of eleven settings on 102 cuts of 17 conversations
(every 5 % of a session, so that one identifier decides nothing) at a tenth of the tokens: what was
needed from the middle survived in .54 of cases without them and in .64 with them (`asked` at .5).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .model import Facts, Identifier

# -------------------------------------------------------------- topic


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


# -------------------------------------------------------------- importance


SHARPNESS = 2.0


class Weights(NamedTuple):
    """What each sign adds to the score of an identifier."""

    base: float
    kinds: Mapping[str, float]
    named: float
    """A call names it in a short argument."""
    named_again: float
    """Per logarithm of how many do."""
    only_shown: float
    """Nobody used it; it stood in outputs."""
    said: float
    """The assistant wrote it."""
    crowd: float
    """Per logarithm of how many others stand beside it."""
    spread: float
    """Per logarithm of the passages that have it."""
    foundation: float
    """It was there from the beginning: it is what the session is about."""
    length: float
    """Per logarithm of its characters."""
    current: float
    """Per share of its words that the names in the newest calls have too."""
    asked: float
    """Per share of its words that the user wrote too."""


FITTED = Weights(
    base=-2.2,
    kinds={
        "uuid": 1.5,
        "id": 0.9,
        "hash": 0.35,
        "symbol": 0.3,
        "path": 0.25,
        "date": 0.1,
        "number": -0.2,
        "folder": -0.2,
        "url": -0.25,
        "dotted": -0.35,
        "file": -0.7,
        "email": -0.5,
    },
    named=1.1,
    named_again=0.85,
    only_shown=-0.3,
    said=0.15,
    crowd=-0.12,
    spread=0.1,
    foundation=0.55,
    length=0.2,
    current=0.7,
    asked=0.3,
)


def importance(
    item: Identifier, messages: int, shared: Shared | None = None, weights: Weights | None = None
) -> float:
    """The odds, as a weight between 0 and 1, that the identifier is needed again."""
    given = weights or FITTED
    business = shared or Shared()
    score = given.base + given.kinds.get(item.kind, 0.0)
    if item.named:
        score += given.named + given.named_again * math.log1p(item.named)
    if item.assistant:
        score += given.said
    if is_only_shown(item):
        score += given.only_shown
    score += given.crowd * math.log(max(1, item.crowd))
    score += given.spread * math.log1p(item.spread)
    score += given.foundation * (messages - item.first) / max(1, messages)
    score += given.length * math.log(max(1, len(item.text)))
    score += given.current * business.calls + given.asked * business.user
    return 1.0 / (1.0 + math.exp(-SHARPNESS * score))


def is_only_shown(item: Identifier) -> bool:
    """Whether it stood in outputs and nobody used it."""
    return not (item.named or item.bodies or item.assistant or item.user)


def worth(facts: Facts) -> dict[str, float]:
    """The weight of each identifier; one of the domain's own is worth all there is."""
    topic = Topic(facts)
    return {
        item.text: 1.0
        if item.kind in facts.patterns
        else importance(item, facts.messages, topic.shared(item))
        for item in facts.identifiers
    }
