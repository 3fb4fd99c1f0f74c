"""Finds a ledger's segments along a transcript, by digest and position; edits neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .ledger import Segment

__all__ = ["Tile", "lay", "lay_masks"]


@dataclass(frozen=True)
class Tile:
    """A stretch of a transcript (`start` to `end`, exclusive) and the segment found for it."""

    start: int
    end: int
    segment: Segment | None = None


def lay(digests: Sequence[str], segments: Sequence[Segment], allowed: Sequence[bool]) -> list[Tile]:
    """Lay summaries along a transcript by position, longest first; gaps are tiles without one.

    A fold is longer than what it replaced; of equally long ones the newest is taken. Shortest or
    newest first would let the summary of a doubled message take the place of one that covers more.
    `allowed[i]` says whether message i may be represented at all. Each segment is used once.
    """
    starting: dict[str, list[Segment]] = {}
    for segment in reversed(segments):
        if segment.kind == "summary" and segment.run:
            starting.setdefault(segment.run[0], []).append(segment)
    for candidates in starting.values():
        candidates.sort(key=lambda segment: -len(segment.run))
    tiles: list[Tile] = []
    gap = position = 0
    while position < len(digests):
        found = _match(digests, position, starting.get(digests[position], []), allowed)
        if found is None:
            position += 1
            continue
        if gap < position:
            tiles.append(Tile(gap, position))
        tiles.append(Tile(position, position + len(found.run), found))
        gap = position = position + len(found.run)
        starting[found.run[0]].remove(found)
    if gap < len(digests):
        tiles.append(Tile(gap, len(digests)))
    return tiles


def _match(
    digests: Sequence[str], at: int, candidates: Sequence[Segment], allowed: Sequence[bool]
) -> Segment | None:
    for segment in candidates:
        end = at + len(segment.run)
        if end <= len(digests) and tuple(digests[at:end]) == segment.run and all(allowed[at:end]):
            return segment
    return None


def lay_masks(
    digests: Sequence[str], segments: Sequence[Segment], allowed: Sequence[bool]
) -> dict[int, Segment]:
    """Lay recorded masks along a transcript by position; each is used once.

    A later result of the same words and id (ids come again) is another one: the agent asked for
    it anew and must see it.
    """
    waiting: dict[str, list[Segment]] = {}
    for segment in segments:
        if segment.kind == "mask":
            waiting.setdefault(segment.run[0], []).append(segment)
    if not waiting:
        return {}
    return {
        index: waiting[found].pop(0)
        for index, found in enumerate(digests)
        if allowed[index] and waiting.get(found)
    }
