"""Pack a transcript into requests that fit a summarizer's window; every message into one.

Each piece of text carries how many messages end in it, so that the parts prove their coverage.
A message that is too long is shown by its head, its tail and the lines between that tell most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ..errors import SummarizerUnavailable
from ..facts.identifiers import Classifier
from ..facts.outcomes import errors_in
from ..messages import Message, steps
from .prompts import rendering

__all__ = [
    "Piece",
    "abridged",
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

LEAST_SHOWN = 40
"""Tokens of each message below which a summary would be written from scraps."""

FILLED = 0.9
"""Share that a transcript fills of the parts it is cut for: they end between messages."""

SPARE = 0.95
"""Of the characters that a text of even density could keep: lines with names are denser, and a
second cut reads it all again."""

EDGE = 3 / 8
"""Share of an abridged text for its head, and as much for its tail."""

LEAST_BETWEEN = 100  # characters: with less no line between is worth its place

LINE_CHARS = 200


def by_step(messages: Sequence[Message]) -> list[list[Piece]]:
    """The messages as text for a summarizer, those of one step in one group."""
    texts = rendering(messages)
    return [[(texts[index], 1) for index in step] for step in steps(messages)]


def shown_in(part: Sequence[Piece]) -> int:
    """How many messages a part shows to their end."""
    return sum(weight for _, weight in part)


def packed(
    groups: Sequence[list[Piece]],
    space: int | None,
    count: Count,
    *,
    longest: int | None = None,
    most: int | None = None,
) -> list[list[Piece]]:
    """Pieces of text packed into requests of at most `space` tokens (None: into one), in order.

    What stands in one group stays together where that does not make more parts. No piece is shown
    at more than `longest` tokens, and at fewer where there would be more parts than `most`.

    Raises:
        SummarizerUnavailable: in so few parts next to nothing of each piece could be shown.
    """
    sized = [list(group) for group in _sized(groups, count)]
    shown = _shortened(sized, longest, count)
    if space is None:
        return [[piece for group in shown for piece, _ in group]]
    parts = _parts(shown, space, count)
    room = FILLED * space * (most or 0)
    while most is not None and len(parts) > most:
        sizes = [size for group in shown for _, size in group]
        longest = _level(sizes, int(room))
        if longest < LEAST_SHOWN:
            raise SummarizerUnavailable(
                f"it can be shown {most * space} tokens in {most} requests, and {sum(sizes)} are "
                "to be summarized; name an auxiliary model that reads more at once",
                kind="context",
            )
        shown = _shortened(sized, longest, count)
        parts = _parts(shown, space, count)
        room *= FILLED
    return parts


def _sized(groups: Sequence[list[Piece]], count: Count) -> Iterator[list[Sized]]:
    sizes = iter(count([text for group in groups for text, _ in group]))
    for group in groups:
        yield [(piece, next(sizes) + JOINED) for piece in group]


def _parts(groups: Sequence[list[Sized]], space: int, count: Count) -> list[list[Piece]]:
    """Groups whole where that makes hardly more parts than there must be, else filled up."""
    least = math.ceil(sum(size for group in groups for _, size in group) / space)
    parts = _in_turn(groups, space, count, whole=True)
    return parts if len(parts) <= least + 1 else _in_turn(groups, space, count, whole=False)


def _in_turn(
    groups: Sequence[list[Sized]], space: int, count: Count, *, whole: bool
) -> list[list[Piece]]:
    parts: list[list[Piece]] = [[]]
    used = 0

    def begin() -> None:
        nonlocal used
        used = 0
        parts.append([])

    for group in groups:
        if whole and used and used + sum(size for _, size in group) > space:
            begin()
        for sized in group:
            rest = sized
            while used + rest[1] > space + JOINED:
                # A message is split where it is larger than a window; to fill one, not for a scrap.
                if used and (whole or space - used < LEAST_SHOWN):
                    begin()
                    continue
                head, rest = _split(rest, space - used, count)
                parts[-1].append(head)
                begin()
            parts[-1].append(rest[0])
            used += rest[1]
    return parts


def _split(sized: Sized, room: int, count: Count) -> tuple[Piece, Sized]:
    """As much of a text as `room` tokens take, to the end of a line or word, and the rest."""
    (text, weight), size = sized
    at = len(text)
    while size > room and at > 1:
        at = max(1, min(at - 1, at * room // size))
        near = at - at // 8
        at = text.rfind("\n", near, at) + 1 or text.rfind(" ", near, at) + 1 or at
        size = count([text[:at]])[0] + JOINED
    rest = text[at:]
    return (text[:at], 0), ((rest, weight), count([rest])[0] + JOINED)


# ---------------------------------------------------------------- messages that are too long
def _level(sizes: Sequence[int], room: int) -> int:
    """The largest size to which all are cut that fit the room together."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return room // left
        room, left = room - size, left - 1
    return max(sizes, default=0)


def _shortened(groups: list[list[Sized]], longest: int | None, count: Count) -> list[list[Sized]]:
    if longest is None:
        return groups
    return [[_cut(sized, longest, count) for sized in group] for group in groups]


def _cut(sized: Sized, longest: int, count: Count) -> Sized:
    (text, weight), size = sized
    shown, chars = text, len(text)
    while size > longest and chars > 1:
        chars = int(SPARE * chars * longest / size)
        shown = abridged(text, chars)
        size = count([shown])[0] + JOINED
    return (shown, weight), size


def abridged(text: str, chars: int) -> str:
    """The text in about so many characters: head, tail and what tells most of what is between."""
    if len(text) <= chars:
        return text
    edge = int(chars * EDGE)
    middle = text[edge : len(text) - edge]
    lines = _telling(middle, chars - 2 * edge)
    left_out = f"{len(middle) - sum(map(len, lines))} characters left out"
    between = [f"[… {left_out}; lines from them with errors and names: …]", *lines, "[…]"]
    note = "\n".join(between) if lines else f"[… {left_out} …]"
    return f"{text[:edge]}\n{note}\n{text[len(text) - edge :]}"


def _telling(text: str, chars: int) -> list[str]:
    """Lines with errors, then those with the most names that none before has; in their order."""
    if chars < LEAST_BETWEEN:
        return []
    lines = list(dict.fromkeys(line.strip()[:LINE_CHARS] for line in text.split("\n")))
    errors = {line.strip()[:LINE_CHARS] for line in errors_in(text)}
    classifier, seen = Classifier(), set[str]()
    worth: dict[str, tuple[bool, int]] = {}
    for line in lines:
        names = classifier.names(line).keys() - seen
        seen |= names
        if line and (names or line in errors):
            worth[line] = line in errors, len(names)
    chosen = set()
    for line in sorted(worth, key=worth.__getitem__, reverse=True):
        if len(line) <= chars:
            chosen.add(line)
            chars -= len(line) + 1
    return [line for line in lines if line in chosen]
