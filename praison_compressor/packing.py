"""Packs a transcript into requests that fit a summarizer's window; every message into one.

Each piece of text carries how many messages end in it, so that the parts prove their coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .messages import Message, steps
from .prompts import rendering

__all__ = ["Piece", "by_step", "packed", "shown_in"]

Piece = tuple[str, int]
"""A text, and how many messages end in it."""

Count = Callable[[str], int]
"""Tokens of a text."""


def by_step(messages: Sequence[Message]) -> list[list[Piece]]:
    """The messages as text for a summarizer, those of one step in one group."""
    texts = rendering(messages)
    return [[(texts[index], 1) for index in step] for step in steps(messages)]


def shown_in(part: Sequence[Piece]) -> int:
    """How many messages a part shows to their end."""
    return sum(weight for _, weight in part)


def packed(groups: Sequence[list[Piece]], space: int | None, count: Count) -> list[list[Piece]]:
    """Pieces of text packed into requests of at most `space` tokens (None: into one), in order.

    What stands in one group stays together where it fits: a step is split only where it must be.
    """
    if space is None:
        return [[piece for group in groups for piece in group]]
    parts: list[list[Piece]] = [[]]
    used = 0
    for group in groups:
        pieces = [part for piece in group for part in _split(piece, space, count)]
        sizes = [count(text) + 2 for text, _ in pieces]
        if used and used + sum(sizes) > space:
            parts.append([])
            used = 0
        for piece, size in zip(pieces, sizes, strict=True):
            if used and used + size > space:
                parts.append([])
                used = 0
            parts[-1].append(piece)
            used += size
    return parts


def _split(piece: Piece, space: int, count: Count) -> list[Piece]:
    """A message larger than a window, in consecutive pieces."""
    text, weight = piece
    size = count(text)
    if size <= space:
        return [piece]
    early, middle = len(text) // 4, len(text) // 2
    cut = text.rfind("\n", early, middle) + 1 or text.rfind(" ", early, middle) + 1 or middle
    return [*_split((text[:cut], 0), space, count), *_split((text[cut:], weight), space, count)]
