"""A whole transcript in few words: what no segment holds, and the numbers of the segments.

With it the ledger alone gives back a session: head and tail as they came, and in the place of
every segment its archived originals. It names no summary, so that none is ever baked in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .layout import Layout
from .ledger import Outline, Segment
from .messages import Message

__all__ = ["outline_of"]

Run = tuple[int, int]
"""How many messages of the caller's list, and the number of the segment that holds them."""


def outline_of(raw: Sequence[Message], layout: Layout) -> Outline:
    """The outline of `raw`, as `layout` (read from it) lays its ledger's segments along it."""
    runs = _runs(layout)
    found: list[Message | int] = []
    place = 0
    while place < len(raw):
        length, number = runs.get(place, (1, None))
        found.append(raw[place] if number is None else number)
        place += length
    return tuple(found)


def _runs(layout: Layout) -> dict[int, Run]:
    """By the index of its first message, each stretch of the caller's list that a segment holds."""
    numbers = {id(segment): number for number, segment in enumerate(layout.segments)}
    runs: dict[int, Run] = {}
    for start, end, segment in _standing(layout):
        origins = sorted(o for o in layout.transcript.origins[start:end] if o is not None)
        # Where repair moved a result out of its place, the messages stand as they came.
        if origins and origins[-1] - origins[0] + 1 == len(origins):
            runs[origins[0]] = (len(origins), numbers[id(segment)])
    return runs


def _standing(layout: Layout) -> Iterator[tuple[int, int, Segment]]:
    for tile in layout.tiles:
        if tile.segment is not None:
            yield tile.start, tile.end, tile.segment
            continue
        for index in range(tile.start, tile.end):
            found = layout.replaced.get(index)
            if found is not None:
                yield index, index + 1, found
