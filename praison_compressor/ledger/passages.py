"""The passages of a text that match a query: a few whole lines around each match. Pure.

Exact phrases and identifiers (paths, ids, numbers, snake_case and camelCase names) count more than
words: agents that search their past ask for these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .words import words

__all__ = ["Passage", "Term", "passages", "terms", "wanted_in"]

PHRASE_WEIGHT = 6.0
IDENTIFIER_WEIGHT = 4.0
OTHER_CASE = 0.8
"""Share of an identifier's weight for a match in another case."""
BEFORE, AFTER = 1, 3
"""Lines shown before and after a match; the next lines explain more."""
CONTEXT = 300
"""Characters above which a match is shown without more lines around it."""
WORTH = 0.6
"""Matches below this share of the best score are left out."""
LONGEST = 6
"""Lines above which a passage takes in no more matches."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IDENTIFIER = re.compile(r"\d|[^\W_][._/:#@\\-]+[^\W_]|[a-z][A-Z]|[^\W_]_|_[^\W_]|^[~./\\]")
_WORDS = re.compile(r"[^\W_]+")
_EMPTY = re.compile(r"\s*(?:\d+\s*[→|:])?\s*")
_EDGES = "\"'`()[]{}<>,;!?*"


@dataclass(frozen=True)
class Term:
    """A phrase, identifier or word of a query."""

    text: str
    """Without case."""
    weight: float
    parts: tuple[str, ...] = ()
    """An identifier's words, which count where they stand side by side in another spelling."""
    written: str = ""
    """In the query's case: `initSession` is another name than `InitSession`."""

    @property
    def joined(self) -> str:
        """The parts in order, between spaces."""
        return f" {' '.join(self.parts)} "


@dataclass(frozen=True)
class Passage:
    """Lines of a text, counted from 1."""

    first: int
    last: int
    score: float
    """Score of the best line."""


def terms(query: str) -> list[Term]:
    """Return a query's phrase, identifiers and words."""
    chunks = [chunk.strip(_EDGES).rstrip(".:") for chunk in query.split()]
    found: dict[str, Term] = {}
    for chunk in filter(None, chunks):
        if _IDENTIFIER.search(chunk):
            parts = tuple(_WORDS.findall(_CAMEL.sub(" ", chunk).casefold()))
            found[chunk.casefold()] = Term(chunk.casefold(), IDENTIFIER_WEIGHT, parts, chunk)
        else:
            for word in words(chunk):
                found.setdefault(word, Term(word, 1.0))
    phrase = " ".join(filter(None, chunks)).casefold()
    if len(chunks) > 1:
        found[phrase] = Term(phrase, PHRASE_WEIGHT)
    return list(found.values())


def wanted_in(text: str, wanted: Sequence[Term]) -> frozenset[str]:
    """Return the terms that stand whole in a text."""
    folded = text.casefold()
    return frozenset(term.text for term in wanted if _has(folded, term.text))


def passages(
    lines: Sequence[str],
    wanted: Sequence[Term],
    most: int,
    rarity: Mapping[str, float] | None = None,
    context: int = CONTEXT,
) -> list[Passage]:
    """Return the best passages, best first, at most `most`.

    `rarity` has a factor for a term's weight, by the term's text. Lines around a match are shown
    up to `context` characters.
    """
    rare = rarity or {}
    scored = [(_score(line, wanted, rare), number) for number, line in enumerate(lines)]
    least = WORTH * max((score for score, _ in scored), default=0)
    # Of equal ones the later first: a tool's output ends with its conclusion.
    ranked = sorted(
        (pair for pair in scored if pair[0] > 0 and pair[0] >= least),
        key=lambda pair: (-pair[0], -pair[1]),
    )
    taken: list[Passage] = []
    for score, number in ranked:
        first, last = _around(number, lines, context)
        beside = next((p for p in taken if first <= p.last + 1 and p.first <= last + 1), None)
        if beside is None and len(taken) < most:
            taken.append(Passage(first, last, score))
        elif beside is not None and beside.last - beside.first < LONGEST:
            wider = Passage(min(first, beside.first), max(last, beside.last), beside.score)
            if sum(map(len, lines[wider.first - 1 : wider.last])) <= 2 * context:
                taken[taken.index(beside)] = wider
    return taken


def _around(number: int, lines: Sequence[str], context: int) -> tuple[int, int]:
    """Return the first and last line to show for a match.

    Long lines have fewer lines beside them. No empty line stands at an end.
    """
    wide = context // CONTEXT
    after = range(number + 1, min(len(lines), number + 1 + wide * AFTER))
    before = range(number - 1, max(-1, number - 1 - wide * BEFORE), -1)
    room, shown = context - len(lines[number]), [number]
    for beside in (*after, *before):
        room -= len(lines[beside])
        if room < 0:
            break
        if not _EMPTY.fullmatch(lines[beside]):
            shown.append(beside)
    return min(shown) + 1, max(shown) + 1


# -------------------------------------------------------------- scoring


def _score(line: str, wanted: Iterable[Term], rarity: Mapping[str, float]) -> float:
    folded = line.casefold()
    total = 0.0
    for term in wanted:
        weight = term.weight * rarity.get(term.text, 1.0)
        if _has(folded, term.text):
            total += weight if term.written in line else weight * OTHER_CASE
        elif term.parts and all(part in folded for part in term.parts):
            total += weight / 2 if term.joined in _joined(line) else 0.0
    return total


def _joined(text: str) -> str:
    """Return the words of a text in order, those of camelCase apart."""
    return f" {' '.join(_WORDS.findall(_CAMEL.sub(' ', text).casefold()))} "


def _has(folded: str, text: str) -> bool:
    """Return whether a word begins with the text; numbers match only whole."""
    place = folded.find(text)
    while place >= 0:
        end = place + len(text)
        inside = place > 0 and folded[place - 1].isalnum() and text[:1].isalnum()
        runs_on = text[-1:].isdigit() and folded[end : end + 1].isdigit()
        if not inside and not runs_on:
            return True
        place = folded.find(text, place + 1)
    return False
