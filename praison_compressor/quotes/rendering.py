"""Print sections within a budget: a share each, unused room to the others, omissions counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .passages import MACHINE_LINE

Count = Callable[[str], int]

HEADING = "## "
TITLES = {
    "user": "The user said",
    "instructions": "Instructions read (contents of files)",
    "plan": "Plan (as last given)",
    "files": "Files: newest changing call of each -> its result",
    "commands": "Commands and calls: newest run of each -> its output",
    "reports": "Reports of the assistant",
    "outline": "Outline",
    "counts": "Counts",
}


@dataclass(frozen=True)
class Line:
    """One entry of a section."""

    at: int
    """The position of its message; -1 where it has none."""
    rank: tuple[int, ...]
    """Entries of lower rank are printed first where not all fit."""
    body: str
    lead: str = ""
    """Words before the body that are never cut."""


@dataclass(frozen=True)
class Section:
    """A heading and its entries, in the order of the transcript."""

    title: str
    lines: Sequence[Line]
    share: float
    """Part of the budget that the section has at least, where it needs as much."""
    least: int = 24
    """Tokens to which an entry may be cut so that others fit."""
    noun: str = "entries"
    unlisted: int = 0
    """Entries of the segment that are not among the lines."""


class _Filled(NamedTuple):
    text: str
    tokens: int
    is_complete: bool


_LINE_BREAK = 1
NOTE_TOKENS = 20
"""Tokens of the line that counts what is left out."""


@dataclass
class Renderer:
    """Prints sections for one reader."""

    count: Count
    references: Sequence[str] = ()
    _costs: dict[str, int] = field(default_factory=dict)

    def render(self, sections: Sequence[Section], budget: int) -> str:
        """Return the sections' text of at most `budget` tokens."""
        wanted = [section for section in sections if section.lines]
        needs = [self._need(section, budget) for section in wanted]
        rooms = shares(needs, [section.share for section in wanted], budget)
        filled = [self._fill(s, room) for s, room in zip(wanted, rooms, strict=True)]
        spare = budget - sum(one.tokens for one in filled)
        for n, section in enumerate(wanted):
            if not filled[n].is_complete and spare > 0:
                again = self._fill(section, filled[n].tokens + spare)
                spare += filled[n].tokens - again.tokens
                filled[n] = again
        return self._within([one.text for one in filled if one.text], budget)

    def _within(self, texts: list[str], budget: int) -> str:
        """Return the joined texts, without the last lines where they exceed the budget after all.

        The sum of the lines' tokens is not exactly that of the text.
        """
        lines = "\n".join(texts).split("\n") if texts else []
        while lines and (lines[-1].startswith(HEADING) or self.count("\n".join(lines)) > budget):
            del lines[-1]
        return "\n".join(lines)

    # ---------------------------------------------------------- one section

    def _need(self, section: Section, budget: int) -> int:
        """Return the tokens of the whole section, estimated where it is far above the budget."""
        chars = sum(len(line.body) + len(line.lead) + 12 for line in section.lines)
        if chars > 6 * budget:
            return max(budget, chars // 4)
        return self._cost(HEADING + section.title) + sum(map(self._whole, section.lines))

    def _fill(self, section: Section, room: int) -> _Filled:
        """Return the section within `room` tokens: the best ranks, long entries cut alike."""
        nothing = _Filled("", 0, False)
        room -= self._cost(HEADING + section.title) + _LINE_BREAK
        ranked = sorted(section.lines, key=lambda line: line.rank)
        chosen = ranked[: max(0, room // 4)]
        costs = [self._whole(line) for line in chosen]
        complete = len(chosen) == len(ranked) and sum(costs) <= room and not section.unlisted
        if not complete:
            room -= NOTE_TOKENS
            fitting = _fitting(costs, room, section.least)
            chosen, costs = chosen[:fitting], costs[:fitting]
        if not chosen:
            return nothing
        level = _level(costs, room)
        printed = {
            id(x): self._printed(x, cost, level) for x, cost in zip(chosen, costs, strict=True)
        }
        left = [line for line in section.lines if id(line) not in printed]
        texts = [printed[id(line)] for line in section.lines if id(line) in printed]
        text = "\n".join([HEADING + section.title, *texts, *self._left_out(section, left)])
        return _Filled(text, self._cost(text) + _LINE_BREAK, complete)

    def _left_out(self, section: Section, left: Sequence[Line]) -> list[str]:
        """Return the line that counts the entries left out, with their references."""
        number = len(left) + section.unlisted
        ends_of = [self._reference(line.at) for line in (*left[:1], *left[-1:])]
        where = " to ".join(dict.fromkeys(filter(None, ends_of)))
        told = f"({number:,} more {section.noun} not shown{f': {where}' if where else ''})"
        return [told] if number else []

    def _whole(self, line: Line) -> int:
        return self._cost(self._entry(line, line.body)) + _LINE_BREAK

    def _printed(self, line: Line, cost: int, level: int) -> str:
        """Return an entry of at most `level` tokens where its lead allows that."""
        text, chars = self._entry(line, line.body), len(line.body) * level // max(1, cost)
        while cost > level and chars > LEAST_CHARS:
            text = self._entry(line, ends(line.body, chars))
            cost, chars = self._cost(text) + _LINE_BREAK, int(chars * 0.88)
        return text

    def _entry(self, line: Line, body: str) -> str:
        """Return an entry as it is printed; its further lines are indented."""
        reference = self._reference(line.at)
        mark = f"[{reference}] " if reference else ""
        return f"- {mark}{line.lead}" + "\n  ".join(_defused(body).split("\n"))

    def _reference(self, at: int) -> str:
        return self.references[at] if 0 <= at < len(self.references) else ""

    def _cost(self, text: str) -> int:
        if text not in self._costs:
            # A text far beyond any room need not be counted exactly.
            self._costs[text] = len(text) // 3 if len(text) > LONG_CHARS else self.count(text)
        return self._costs[text]


LEAST_CHARS = 30
LONG_CHARS = 60_000


def shares(needs: Sequence[int], weights: Sequence[float], budget: int) -> list[int]:
    """Return the room of each section: its need at most, its share of what others leave at least.

    >>> shares([10, 500, 500], [.5, .25, .25], 400)
    [10, 195, 195]
    """
    rooms, waiting = [0] * len(needs), list(range(len(needs)))
    while waiting:
        left = budget - sum(rooms)
        total = sum(weights[n] for n in waiting)
        given = {n: int(left * weights[n] / total) for n in waiting}
        small = [n for n in waiting if needs[n] <= given[n]]
        for n in small or waiting:
            rooms[n] = min(needs[n], given[n])
        waiting = [n for n in waiting if n not in small] if small else []
    return rooms


def _fitting(costs: Sequence[int], room: int, least: int) -> int:
    """Return how many of the first entries fit where each may be cut to `least` tokens."""
    used = 0
    for n, cost in enumerate(costs):
        used += min(cost, least)
        if used > room:
            return n
    return len(costs)


def _level(costs: Sequence[int], room: int) -> int:
    """Return the tokens to which longer entries are cut so that all fit."""
    left = room
    for n, cost in enumerate(sorted(costs)):
        if cost * (len(costs) - n) >= left:
            return max(1, left // (len(costs) - n))
        left -= cost
    return max(costs, default=0)


# -------------------------------------------------------------- long texts


_STOPS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", ", ", " ")
BLOCK_LINES = 8
"""Lines from which on a pasted block gives its middle before the words around it are cut."""


def ends(text: str, most: int) -> str:
    """Return a text's beginning and end within `most` characters, and how much is left out.

    Blocks of code, logs and files are thinned first. Both ends break at a line or a sentence.
    """
    if len(text) <= most:
        return text
    thin = thinned(text)
    if len(thin) <= most:
        return thin
    first = most * 3 // 5
    head, tail = thin[:first], thin[-(most - first) :]
    head = head[: next((a + len(s) for s in _STOPS if (a := head.rfind(s)) >= first // 2), first)]
    near = len(tail) // 2
    tail = tail[next((a + len(s) for s in _STOPS if 0 <= (a := tail.find(s)) < near), 0) :]
    left = len(text) - len(head) - len(tail)
    return f"{head.rstrip()} [… {left:,} of {len(text):,} characters …] {tail.lstrip()}"


def thinned(text: str) -> str:
    """Return a text whose pasted blocks keep their first and last two lines.

    >>> thinned("Why?\\n" + "{'a': 1}\\n" * 20).splitlines()[3]
    '[… 16 lines …]'
    """
    out: list[str] = []
    block: list[str] = []
    for line in (*text.split("\n"), None):
        if line is not None and (not line.strip() or MACHINE_LINE.match(line)):
            block.append(line)
            continue
        if len(block) >= BLOCK_LINES:
            block[2:-2] = [f"[… {len(block) - 4} lines …]"]
        out += block if line is None else [*block, line]
        block = []
    return "\n".join(out)


_OUR_HEADING = re.compile(
    rf"^(\s*)(?={HEADING}(?:{'|'.join(map(re.escape, TITLES.values()))}))", re.M
)


def _defused(body: str) -> str:
    """Return a quoted text in which no line reads as a heading of ours."""
    return _OUR_HEADING.sub(r"\1\\", body) if HEADING in body else body
