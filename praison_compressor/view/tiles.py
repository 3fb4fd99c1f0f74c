"""`Tile`: lay a ledger's segments along a transcript, by digest and position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..ledger.segments import Segment
from ..messages import Message
from ..messages.shapes import to_plain

Run = tuple[int, int]
"""Start and end (exclusive) of messages in a row."""


class Tile(NamedTuple):
    """A run of a transcript, and the segment that replaces it."""

    start: int
    end: int
    segment: Segment


class SentRun(NamedTuple):
    """A run of a transcript, and the message sent in its place."""

    start: int
    end: int
    message: Message


class AddedMessage(NamedTuple):
    """A message that a view adds and no ledger holds."""

    message: Message
    tokens: int


def lay_summaries(
    digests: Sequence[str], segments: Sequence[Segment], replaceable: Sequence[bool]
) -> list[Tile]:
    """Lay summaries along a transcript by position, longest first.

    A fold is longer than the summaries it replaced. Of equally long segments the newest is used.
    `replaceable[i]`: whether a segment may replace message i. Each segment is used once.
    """
    newest_first = list(reversed(segments))
    by_first: dict[str, list[Segment]] = {}
    for segment in sorted(newest_first, key=lambda segment: -len(segment.run)):
        if segment.kind == "summary" and segment.run:
            by_first.setdefault(segment.run[0], []).append(segment)
    tiles: list[Tile] = []
    start = 0
    while by_first and start < len(digests):
        candidates = by_first.get(digests[start], [])
        ends = ((segment, start + len(segment.run)) for segment in candidates)
        fitting = (
            Tile(start, end, segment)
            for segment, end in ends
            if tuple(digests[start:end]) == segment.run and all(replaceable[start:end])
        )
        tile = next(fitting, None)
        if tile is not None:
            tiles.append(tile)
            candidates.remove(tile.segment)
        start = start + 1 if tile is None else tile.end
    return tiles


def lay_results(
    digests: Sequence[str], segments: Sequence[Segment], replaceable: Sequence[bool]
) -> dict[int, Segment]:
    """Lay recorded masks and excerpts along a transcript, each once.

    A later result with equal words and id (ids recur) is a new one: the agent asked again and must
    see it. An excerpt stays in the newest step too, until its result is masked.
    """
    waiting: dict[tuple[str, str], list[Segment]] = {}
    for segment in segments:
        if segment.kind in ("mask", "excerpt"):
            waiting.setdefault((segment.kind, segment.run[0]), []).append(segment)
    laid: dict[int, Segment] = {}
    for index, digest in enumerate(digests if waiting else ()):
        for kind in ("excerpt", "mask"):
            if waiting.get((kind, digest)) and (replaceable[index] or kind == "excerpt"):
                laid[index] = waiting[kind, digest].pop(0)
    return laid


def replace_runs(messages: Sequence[Message], sent: Iterable[SentRun]) -> list[Message]:
    """Return the messages with copies of others in place of runs."""
    view: list[Message] = []
    at = 0
    for start, end, message in sent:
        view += [*messages[at:start], to_plain(message)]
        at = end
    return [*view, *messages[at:]]
