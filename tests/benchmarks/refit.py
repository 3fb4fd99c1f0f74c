"""The weights of `facts/importance.py`, fitted anew on some sessions to be tried on others.

A logistic model in plain Python: what can be counted of an identifier before the cut, against
whether a later call used it before anything showed it again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from praison_compressor.facts import Facts, importance
from praison_compressor.facts.importance import (
    FITTED,
    SHARPNESS,
    Shared,
    Topic,
    Weights,
    is_only_shown,
)
from praison_compressor.facts.model import Identifier

KINDS = tuple(sorted(FITTED.kinds))
SCALARS = (
    "named",
    "named_again",
    "only_shown",
    "said",
    "crowd",
    "spread",
    "foundation",
    "length",
    "current",
    "asked",
)
SIZE = 1 + len(KINDS) + len(SCALARS)
PLAIN = Weights(
    base=-2.0,
    kinds=dict.fromkeys(KINDS, 0.0),
    named=1.0,
    named_again=1.0,
    only_shown=-0.5,
    said=0.0,
    crowd=0.0,
    spread=0.0,
    foundation=0.0,
    length=0.0,
    current=0.5,
    asked=0.5,
)
"""Weights that nobody fitted to anything: a call's names, the user's words, what is at hand."""
PENALTY = 5.0
THINNED = 4
"""Of the many that were not needed one in so many is looked at, and counts for all of them."""
ROUNDS = 8

Row = tuple[tuple[tuple[int, float], ...], bool]
"""The signs of an identifier that are not zero, by place, and whether it was needed."""


def rows_of(facts: Facts, needed: set[str], before: int) -> Counter[Row]:
    """The identifiers last seen before that message, as rows of the model; equal ones counted."""
    old = [item for item in facts.identifiers if item.last < before]
    yes = [item for item in old if item.text in needed]
    no = [item for item in old if item.text not in needed][::THINNED]
    topic = Topic(facts)
    rows = Counter((_signs(item, facts.messages, topic.shared(item)), True) for item in yes)
    for item in no:
        rows[_signs(item, facts.messages, topic.shared(item)), False] += THINNED
    return rows


def _signs(item: Identifier, messages: int, shared: Shared) -> tuple[tuple[int, float], ...]:
    scalars = (
        float(bool(item.named)),
        math.log1p(item.named) if item.named else 0.0,
        float(is_only_shown(item)),
        float(bool(item.assistant)),
        round(math.log(max(1, item.crowd)) * 2) / 2,
        round(math.log1p(item.spread), 1),
        round((messages - item.first) / max(1, messages), 1),
        round(math.log(max(1, len(item.text))) * 4) / 4,
        round(shared.calls, 1),
        round(shared.user, 1),
    )
    places = [(0, 1.0)]
    if item.kind in KINDS:
        places.append((1 + KINDS.index(item.kind), 1.0))
    places += [(1 + len(KINDS) + n, value) for n, value in enumerate(scalars) if value]
    return tuple(places)


def fitted(rows: Mapping[Row, int]) -> Weights:
    """The weights that explain the rows best, kept small."""
    values = [0.0] * SIZE
    for _ in range(ROUNDS):
        slope, bend = _derivatives(rows, values)
        values = [v + s for v, s in zip(values, _solved(bend, slope), strict=True)]
    shrunk = [value / SHARPNESS for value in values]
    kinds = dict(zip(KINDS, shrunk[1 : 1 + len(KINDS)], strict=True))
    rest = dict(zip(SCALARS, shrunk[1 + len(KINDS) :], strict=True))
    return Weights(base=shrunk[0], kinds=kinds, **rest)


def _derivatives(
    rows: Mapping[Row, int], values: Sequence[float]
) -> tuple[list[float], list[list[float]]]:
    slope = [0.0] + [-PENALTY * value for value in values[1:]]
    bend = [[0.0] * SIZE for _ in range(SIZE)]
    for place in range(SIZE):
        bend[place][place] = PENALTY if place else 1e-6
    for (signs, label), times in rows.items():
        score = sum(values[place] * value for place, value in signs)
        odds = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))
        error, spread = times * (label - odds), times * odds * (1.0 - odds)
        for place, value in signs:
            slope[place] += error * value
            line = bend[place]
            for other, more in signs:
                line[other] += spread * value * more
    return slope, bend


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss with the largest pivot."""
    lines = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for column in range(SIZE):
        pivot = max(range(column, SIZE), key=lambda line: abs(lines[line][column]))
        lines[column], lines[pivot] = lines[pivot], lines[column]
        for line in range(SIZE):
            if line != column and lines[line][column]:
                share = lines[line][column] / lines[column][column]
                lines[line] = [
                    a - share * b for a, b in zip(lines[line], lines[column], strict=True)
                ]
    return [lines[place][SIZE] / lines[place][place] for place in range(SIZE)]


def without(rows: Mapping[Any, Counter[Row]], left_out: Iterable[Any]) -> Counter[Row]:
    """All rows but those of some sessions."""
    gone, total = set(left_out), Counter[Row]()
    for name, found in rows.items():
        if name not in gone:
            total.update(found)
    return total


@contextmanager
def weighing(weights: Weights) -> Iterator[None]:
    """With these weights in place of the shipped ones."""
    shipped = importance.FITTED
    importance.FITTED = weights
    try:
        yield
    finally:
        importance.FITTED = shipped
