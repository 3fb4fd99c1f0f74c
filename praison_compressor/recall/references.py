"""Parse and write references to archived text.

`s2` is segment 2 of a session, `s2.14` its message 14, `s2.14:900-940` lines 900 to 940 of this
message. Segments, messages and lines count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

REFERENCE_HELP = (
    'expected one like "s2" (a segment), "s2.14" (a message), "s2.14-20" (messages), '
    '"s2.14:900-940" (lines of a message) or "s2.14:922" (the lines around one); a range ascends '
    "and stays within one segment"
)

_REFERENCE = re.compile(
    r"s(\d{1,9})(?:\.(\d{1,9})(?:-(?:s(\d{1,9})\.)?(\d{1,9}))?(?::(\d{1,9})(?:(-)(\d{1,9})?)?)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reference:
    """A place in a session's archive."""

    segment: int
    message: int | None = None
    """None: the whole segment."""
    last_message: int | None = None
    """None: only `message`."""
    line: int | None = None
    """First line; None: all lines."""
    last_line: int | None = None
    """None: all lines that fit."""
    around: bool = False
    """Whether the lines around `line` are wanted."""

    def __str__(self) -> str:
        """Return the reference as `parse_reference` reads it."""
        text = f"s{self.segment}"
        if self.message is None:
            return text
        text += f".{self.message}"
        if self.last_message is not None:
            text += f"-{self.last_message}"
        if self.line is None:
            return text
        text += f":{self.line}"
        if self.around:
            return text
        return f"{text}-" if self.last_line is None else f"{text}-{self.last_line}"

    @property
    def messages(self) -> slice:
        """Indices of the messages in the segment."""
        first = self.message or 0
        return slice(max(0, first - 1), max(first, self.last_message or 0) or None)

    def names(self, segment: int, ordinal: int) -> bool:
        """Return whether the message belongs to the reference."""
        first, last = self.messages.start, self.messages.stop
        return segment == self.segment and self.message is not None and first <= ordinal < last

    def of_message(self, message: int) -> Reference:
        """Return the reference of a message of this segment."""
        return Reference(self.segment, message)

    def lines(self, first: int, last: int) -> Reference:
        """Return the reference of lines of this message."""
        return replace(self, line=first, last_line=last, around=False, last_message=None)

    def split(self, count: int) -> tuple[Reference, Reference | None]:
        """Split off the first `count` lines; the rest may be None."""
        assert self.line is not None
        assert self.last_line is not None
        middle = self.line + count
        rest = self.lines(middle, self.last_line) if middle <= self.last_line else None
        return self.lines(self.line, middle - 1), rest


def in_runs(messages: Iterable[tuple[int, int]]) -> list[str]:
    """Return references of (segment, message) pairs; neighbours form a range.

    >>> in_runs([(2, 5), (1, 7), (2, 4), (2, 9)])
    ['s2.9', 's2.4-5', 's1.7']
    """
    runs: list[list[int]] = []
    for segment, number in sorted(set(messages)):
        if runs and runs[-1][0] == segment and runs[-1][2] == number - 1:
            runs[-1][2] = number
        else:
            runs.append([segment, number, number])
    return [str(Reference(s, a, b if b > a else None)) for s, a, b in reversed(runs)]


def parse_reference(text: str) -> Reference | None:
    """Return the reference in a text, or None."""
    chunks = [each for chunk in text.split() if (each := chunk.strip("[]()\"'` .,"))]
    if len(chunks) > 1:  # as "s1 outline"
        chunks = [chunk for chunk in chunks if not chunk.isalpha()]
    match = _REFERENCE.fullmatch(chunks[0]) if len(chunks) == 1 else None
    if match is None:
        return None
    segment, message, other, until, line, dash, last = match.groups()
    if message is None:
        return Reference(int(segment))
    if int(other or segment) != int(segment) or _descends(message, until) or _descends(line, last):
        return None
    return Reference(
        int(segment),
        int(message),
        int(until) if until else None,
        int(line) if line else None,
        int(last) if last else None,
        around=bool(line) and not dash,
    )


def _descends(first: str | None, last: str | None) -> bool:
    return first is not None and last is not None and int(last) < int(first)
