"""Narrow and widen the passages of found messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..concurrency import computed_once
from ..ledger.words import Hit, distinct_words
from ..messages import Message, tool_calls_of
from ..messages.display import message_as_text, truncate_line
from .archive import FOLLOWING_LINES
from .layout import (
    best_rows,
    block_around,
    chars_of,
    count_fitting,
    json_paths,
    may_be_table,
    table_of,
    table_rows,
    unnumbered,
)
from .passages import (
    LINES_BEFORE,
    Passage,
    Term,
    defining_line,
    find_passages,
    line_scores,
    terms_in,
    weight_of,
)
from .references import Reference

OVERRUN_FACTOR = 2
"""A block of at most OVERRUN_FACTOR times its limit is not cut."""
ROW_CHARS = 50


class FoundMessage(NamedTuple):
    """An archived message that matches a query."""

    segment: int
    """Counted from 1."""
    hit: Hit

    @property
    def place(self) -> tuple[int, int]:
        """Segment and ordinal."""
        return self.segment, self.hit.ordinal


def snippet(text: str, wanted: Sequence[Term], chars: int = ROW_CHARS) -> str:
    """Return the words around the heaviest term's first match."""
    folded = text.casefold()
    places = [folded.find(term.text) for term in sorted(wanted, key=lambda term: -term.weight)]
    at = next((place for place in places if place >= 0), 0)
    start = max(text.rfind("\n", 0, at) + 1, at - chars // 3)
    if start and text[start - 1] != "\n":
        start = text.find(" ", start, at) + 1 or at
    return ("…" if start else "") + truncate_line(text[start : start + 4 * chars], chars)


@dataclass(frozen=True)
class Source:
    """A message as lines, with its parsed JSON."""

    message: Message
    lines: Sequence[str]
    end: int
    """Number of lines before an ending that other messages share."""

    @computed_once
    def text(self) -> str:
        """The message as text."""
        return message_as_text(self.message)

    @computed_once
    def paths(self) -> list[str]:
        """Each line's path in JSON; "" for lines of other texts."""
        # A message with calls gets no paths: the arguments may be a program.
        return json_paths("" if tool_calls_of(self.message) else self.text, self.lines)

    @computed_once
    def table(self) -> str:
        """The message's JSON as a table, or ""."""
        # Try `table_of` first: on a text that is no JSON it is fast, and `paths` is slow.
        table = table_of(self.text)
        return table if table and any(self.paths) else ""


@dataclass(frozen=True)
class Match:
    """A passage of an archived message."""

    segment: int
    ordinal: int
    passage: Passage
    lines: Sequence[str]
    source: Source
    wanted: Sequence[Term]
    """The query's terms; rare terms have more weight."""
    is_table: bool = False
    """Whether the lines are a table of the message's JSON."""

    @property
    def place(self) -> tuple[int, int]:
        """Segment and ordinal."""
        return self.segment, self.ordinal

    @property
    def where(self) -> Reference:
        """Reference of the passage, or of the whole message."""
        whole = Reference(self.segment, self.ordinal + 1)
        first, last = self.passage.first, self.passage.last
        return whole.lines(first, last) if last - first + 1 < len(self.lines) else whole

    @property
    def text(self) -> str:
        """The passage without a listing's numbers."""
        return "\n".join(self._unnumbered[0])

    @property
    def quoted(self) -> Sequence[str]:
        """The passage's lines in the message."""
        return self.lines[self.passage.first - 1 : self.passage.last]

    @property
    def numbers(self) -> str:
        """The passage's line numbers in a listing, or ""."""
        return self._unnumbered[1]

    @computed_once
    def _unnumbered(self) -> tuple[Sequence[str], str]:
        return unnumbered(self.quoted)

    @computed_once
    def words(self) -> frozenset[str]:
        """The passage's different words."""
        return frozenset(distinct_words(self.text))

    @property
    def path(self) -> str:
        """The path of a JSON passage, or ""."""
        path = self.source.paths[self.passage.first - 1]
        return f", in {path}" if path else ""

    @property
    def definition(self) -> str:
        """A line that defines a name in the passage, or ""."""
        quoted = range(self.passage.first, self.passage.last + 1)
        at = None if self.is_table else defining_line(self.lines, quoted, self.wanted)
        return f"\n[{self.where.lines(at, at)}] {self.lines[at - 1].strip()}" if at else ""

    @computed_once
    def terms(self) -> frozenset[str]:
        """The terms in the passage."""
        # Search the whole text: a table is not built only to find its terms.
        whole = self.source.text
        return terms_in(whole if may_be_table(whole) else self.text, self.wanted)

    def has(self, other: Match) -> bool:
        """Return whether the passage has the other's best line."""
        first, last = self.passage.first, self.passage.last
        is_inside = self.is_table or first <= other.passage.best <= last
        return self.place == other.place and is_inside

    @property
    def after(self) -> str:
        """Reference of the lines after the passage, or ""."""
        last = min(self.source.end, self.passage.last + FOLLOWING_LINES)
        is_end = self.is_table or last <= self.passage.last
        return "" if is_end else str(self.where.lines(self.passage.last + 1, last))

    def narrow(self, most: int) -> Match:
        """Return the passage cut to its best lines, at most `most` characters."""
        if len(self.text) <= most:
            return self
        best, cuts = self.passage.best, list[Passage]()
        for first in range(self.passage.first, self.passage.last + 1):
            lines = self.lines[first - 1 : self.passage.last]
            last = first + max(1, count_fitting(lines, most, len)) - 1
            cuts.append(
                replace(self.passage, first=first, last=last, best=max(first, min(best, last)))
            )
        return max(
            (replace(self, passage=cut) for cut in cuts),
            key=lambda match: (
                weight_of(terms_in(match.text, self.wanted), self.wanted),
                -abs(best - LINES_BEFORE - match.passage.first),
            ),
        )

    def widen(self, most: int, table_chars: int) -> Match:
        """Widen the match to its message, its table or its block.

        Args:
            most: characters of a message or of a table's rows; a whole block may have
                OVERRUN_FACTOR times this number.
            table_chars: characters of a whole table.
        """
        best, passage = self.passage.best - 1, self.passage
        end = max(passage.last, self.source.end)
        if chars_of(self.lines[:end]) <= most:
            return replace(self, passage=replace(passage, first=1, last=end))
        if table := self.source.table:
            # A line without a path matches the whole table.
            if len(table) > (most if self.source.paths[best] else table_chars):
                rows = table_rows(self.source.text)
                scores = line_scores([row.line for row in rows], self.wanted)
                table = best_rows(rows, scores, most)
            shown = table.split("\n")
            whole = Passage(1, len(shown), passage.score, 1)
            return replace(self, lines=shown, passage=whole, is_table=True)
        lines = self.lines[:end]
        first, last = block_around(
            passage.first - 1, best, passage.last - 1, lines, most, OVERRUN_FACTOR * most
        )
        return replace(self, passage=replace(passage, first=first + 1, last=last + 1))

    @property
    def row(self) -> str:
        """The reference and a few words of the passage."""
        words = snippet(self.text, self.wanted, 2 * ROW_CHARS)
        return f"[{self.where}] {self.source.message.get('role')}: {words}"


def best_match(
    place: tuple[int, int], message: Message, lines: Sequence[str], wanted: Sequence[Term]
) -> Match:
    """Return a message's best passage, else its first line."""
    passage = (*find_passages(lines, wanted, 1), Passage(1, 1, 0.0, 1))[0]
    return Match(*place, passage, lines, Source(message, lines, len(lines)), wanted)
