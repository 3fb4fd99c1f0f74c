"""The context's size over a stored session's life: its transcript, and what stood for it when."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ledger import Entry
from ..messages import Message, content_digest, read
from ..tokens import TokenCounter

__all__ = ["Curve", "Kept", "Point", "curve", "request_ends"]

MOST_POINTS = 600
"""A screen has no more columns, and a transcript lived again costs a call for each."""


@dataclass(frozen=True)
class Point:
    """The context at one time, in tokens."""

    messages: int
    whole: int
    """Of everything said so far."""
    view: int
    """Of what was sent."""
    compressed: bool = False


@dataclass(frozen=True)
class Kept:
    """An entry of the ledger with what it stands for, read once."""

    number: int
    entry: Entry
    originals: Sequence[Message]
    run: frozenset[str]


@dataclass(frozen=True)
class Curve:
    """The points, and at which of them each epoch began."""

    points: tuple[Point, ...] = ()
    begun: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = False
    """Whether the points are requests: the store has the transcript, not only what was compressed
    of it."""


def request_ends(messages: Sequence[Message]) -> tuple[list[int], int]:
    """Where a request would have been sent, after each step of the transcript (not of a stub), or
    after every so many: how many."""
    transcript = read(messages)
    ends = []
    for step in transcript.steps:
        origins = [o for o in (transcript.origins[index] for index in step) if o is not None]
        if origins:
            ends.append(max(origins) + 1)
    stride = max(1, -(-len(ends) // MOST_POINTS))
    return sorted({*ends[::stride], len(messages)}), stride


def curve(messages: Sequence[Message], kept: Sequence[Kept], tokens: TokenCounter) -> Curve:
    """The transcript as it grew, and what was sent of it after each compression."""
    if not kept:
        return Curve()
    told = max(one.entry.segment.transcript_length for one in kept)
    is_whole = 0 < told <= len(messages)
    opens = tokens.messages([])
    whole = [*itertools.accumulate(map(tokens.message, messages), initial=opens)]
    waiting = list(_cuts(messages, kept, is_whole=is_whole))
    standing: dict[frozenset[str], int] = {}
    points = []
    begun: dict[str, int] = {}
    for number, end in enumerate(request_ends(messages)[0], 1):
        now = [one for cut, one in waiting if cut <= end]
        del waiting[: len(now)]
        for one in now:
            saved = sum(map(tokens.message, one.originals)) - one.entry.segment.tokens
            standing = {run: size for run, size in standing.items() if not run <= one.run}
            standing[one.run] = saved
            begun.setdefault(one.entry.epoch, number)
        points.append(Point(end, whole[end], whole[end] - sum(standing.values()), bool(now)))
    return Curve(tuple(points), begun, is_whole)


def _cuts(
    messages: Sequence[Message], kept: Sequence[Kept], *, is_whole: bool
) -> Iterator[tuple[int, Kept]]:
    """In the chain's order, each entry whose messages are all there still, and how many messages
    there were when it was written; at least those that it stands for."""
    first: dict[str, int] = {}
    for index, message in enumerate(messages):
        first.setdefault(content_digest(message), index)
    before = 0
    for one in kept:
        places = [first.get(content_digest(message)) for message in one.originals]
        found = [place for place in places if place is not None]
        if not found or len(found) < len(places):
            continue  # edited away since
        told = one.entry.segment.transcript_length if is_whole else 0
        before = max(before, told, max(found) + 1)
        yield before, one
