"""Pack a transcript into requests that fit a summarizer's window; every message into one.

Each piece of text carries how many messages end in it, so that the parts prove their coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..messages import Message, steps
from .prompts import rendering

__all__ = [
    "Piece",
    "by_step",
    "packed",
    "shown_in",
]


Piece = tuple[str, int]
"""A text, and how many messages end in it."""


Sized = tuple[Piece, int]
"""A piece and its tokens in a request."""


Count = Callable[[Sequence[str]], "list[int]"]
"""Tokens of each of many texts."""


JOINED = 2
"""Tokens of what stands between two pieces."""


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
    for group in _sized(groups, count):
        pieces = [part for piece in group for part in _split(piece, space, count)]
        if used and used + sum(size for _, size in pieces) > space:
            parts.append([])
            used = 0
        for piece, size in pieces:
            if used and used + size > space:
                parts.append([])
                used = 0
            parts[-1].append(piece)
            used += size
    return parts


def _sized(groups: Sequence[list[Piece]], count: Count) -> Iterator[list[Sized]]:
    sizes = iter(count([text for group in groups for text, _ in group]))
    for group in groups:
        yield [(piece, next(sizes) + JOINED) for piece in group]


def _split(sized: Sized, space: int, count: Count) -> list[Sized]:
    """A message larger than a window, in consecutive pieces."""
    (text, weight), size = sized
    if size <= space + JOINED:
        return [sized]
    early, middle = len(text) // 4, len(text) // 2
    cut = text.rfind("\n", early, middle) + 1 or text.rfind(" ", early, middle) + 1 or middle
    halves = [(text[:cut], 0), (text[cut:], weight)]
    return [part for half in next(_sized([halves], count)) for part in _split(half, space, count)]
