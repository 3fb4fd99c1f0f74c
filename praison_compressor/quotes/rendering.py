"""Print sections within a budget: a share each, unused room to the others, omissions counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Count = Callable[[str], int]


@dataclass(frozen=True)
class Line:
    """One entry of a section."""

    at: int
    """The position of its message; -1 where it has none."""
    rank: tuple[int, ...]
    """Lower ranks are printed first where not all fit."""
    body: str
    lead: str = ""
    """Words before the body that are never cut."""


@dataclass(frozen=True)
class Section:
    """A heading and its entries, in the order of the transcript."""

    title: str
    lines: Sequence[Line]
    share: float
    """Part of the budget that the section has at least, where it needs that much."""
    least: int = 24
    """Tokens to which an entry may be cut so that others fit."""
    noun: str = "entries"
    unlisted: int = 0
    """Entries of the segment that are not among the lines."""


@dataclass
class _Filled:
    text: str = ""
    tokens: int = 0
    complete: bool = True


HEADING = "## "
_PER_LINE = 1  # the line break


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
        filled = [self.fill(s, room) for s, room in zip(wanted, rooms, strict=True)]
        spare = budget - sum(one.tokens for one in filled)
        for n, section in enumerate(wanted):
            if not filled[n].complete and spare > section.least:
                again = self.fill(section, filled[n].tokens + spare)
                spare += filled[n].tokens - again.tokens
                filled[n] = again
        return self._within([one.text for one in filled if one.text], budget)

    def _within(self, texts: list[str], budget: int) -> str:
        """Return the joined texts, without lines at the end that exceed the budget after all."""
        lines = "\n".join(texts).split("\n")
        while lines and self.count("\n".join(lines)) > budget:
            del lines[-1]
        while lines and lines[-1].startswith(HEADING):
            del lines[-1]
        return "\n".join(lines)

    # ---------------------------------------------------------- one section

    def _need(self, section: Section, budget: int) -> int:
        """Return the tokens of the whole section, estimated where it is larger than the budget."""
        chars = sum(len(line.body) + len(line.lead) + 12 for line in section.lines)
        if chars > 6 * budget:
            return max(budget, chars // 4)
        return self._cost(HEADING + section.title) + sum(map(self._whole, section.lines))

    def fill(self, section: Section, room: int) -> _Filled:
        """Return the section within `room` tokens: the best ranks, long entries cut alike."""
        room -= self._cost(HEADING + section.title)
        if room < section.least:
            return _Filled(complete=False)
        ranked = sorted(section.lines, key=lambda line: line.rank)
        chosen = ranked[: max(1, room // 4)]
        costs = [self._whole(line, room) for line in chosen]
        complete = len(chosen) == len(ranked) and sum(costs) <= room and not section.unlisted
        if not complete:
            room -= NOTE_TOKENS
            chosen, costs = _that_fit(chosen, costs, room, section.least)
        level = _level(costs, room)
        printed = {
            id(line): self._printed(line, cost, level)
            for line, cost in zip(chosen, costs, strict=True)
        }
        texts = [printed[id(line)] for line in section.lines if id(line) in printed]
        left = [line for line in section.lines if id(line) not in printed]
        body = [HEADING + section.title, *texts, *self._left_out(section, left)]
        text = "\n".join(body)
        return (
            _Filled(text, self._cost(text) + _PER_LINE, complete)
            if texts
            else _Filled("", 0, False)
        )

    def _left_out(self, section: Section, left: Sequence[Line]) -> list[str]:
        if not left and not section.unlisted:
            return []
        ends = [self._reference(line.at) for line in (*left[:1], *left[-1:])]
        where = " to ".join(dict.fromkeys(filter(None, ends)))
        return [
            f"({len(left) + section.unlisted:,} more {section.noun} not shown"
            + (f": {where})" if where else ")")
        ]

    def _whole(self, line: Line, room: int | None = None) -> int:
        """Return the tokens of an entry, estimated where it is far larger than the room."""
        text = self.entry(line, line.body)
        if room is not None and len(text) > 12 * room:
            return len(text) // 4
        return self._cost(text) + _PER_LINE

    def _printed(self, line: Line, cost: int, level: int) -> str:
        if cost <= level:
            return self.entry(line, line.body)
        body = line.body
        chars = max(20, int(len(body) * level / cost))
        while True:
            text = self.entry(line, ends(body, chars))
            if chars <= 20 or self._cost(text) < level:
                return text
            chars = int(chars * 0.85)

    def entry(self, line: Line, body: str) -> str:
        """Return an entry as it is printed; its further lines are indented."""
        reference = self._reference(line.at)
        mark = f"[{reference}] " if reference else ""
        return f"- {mark}{line.lead}" + "\n  ".join(_defused(body).split("\n"))

    def _reference(self, at: int) -> str:
        return self.references[at] if 0 <= at < len(self.references) else ""

    def _cost(self, text: str) -> int:
        if text not in self._costs:
            self._costs[text] = self.count(text)
        return self._costs[text]


NOTE_TOKENS = 20
"""Tokens of the line that counts what is left out."""


def shares(needs: Sequence[int], weights: Sequence[float], budget: int) -> list[int]:
    """Return the room of each section: its need at most, its share of what others leave at least.

    >>> shares([10, 500, 500], [.5, .25, .25], 400)
    [10, 195, 195]
    """
    rooms = [0] * len(needs)
    open_ = [n for n, need in enumerate(needs) if need > 0]
    left = budget
    while open_ and left > 0:
        total = sum(weights[n] for n in open_)
        given = {n: int(left * weights[n] / total) for n in open_}
        small = [n for n in open_ if needs[n] <= given[n]]
        for n in small or open_:
            rooms[n] = min(needs[n], given[n])
        left -= sum(rooms[n] for n in small or open_)
        open_ = [n for n in open_ if n not in small] if small else []
    return rooms


def _that_fit(
    chosen: list[Line], costs: list[int], room: int, least: int
) -> tuple[list[Line], list[int]]:
    """Return the first entries that fit when each is cut to at most `least` tokens."""
    used, last = 0, 0
    for last, cost in enumerate(costs):
        used += min(cost, least)
        if used > room:
            return chosen[: max(1, last)], costs[: max(1, last)]
    return chosen, costs


def _level(costs: Sequence[int], room: int) -> int:
    """Return the tokens to which longer entries are cut so that all fit."""
    left, open_ = room, len(costs)
    for cost in sorted(costs):
        if cost * open_ >= left:
            return max(1, left // open_)
        left, open_ = left - cost, open_ - 1
    return max(costs, default=0)


_STOPS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", ", ", " ")


def ends(text: str, most: int) -> str:
    """Return a text's beginning and end within `most` characters, and the size of the whole.

    Both ends break at a line, else at a sentence, where one is near.
    """
    if len(text) <= most:
        return text
    first = most * 3 // 5
    head = _broken(text[:first], first // 2)
    tail = text[-(most - first) :]
    for stop in _STOPS:
        at = tail.find(stop)
        if 0 <= at < len(tail) // 2:
            tail = tail[at + len(stop) :]
            break
    return f"{head.rstrip()} [… {len(text) - len(head) - len(tail):,} of {len(text):,} characters …] {tail.lstrip()}"


def _broken(head: str, least: int) -> str:
    for stop in _STOPS:
        at = head.rfind(stop)
        if at >= least:
            return head[: at + len(stop)]
    return head


def _defused(body: str) -> str:
    """Return a quoted text in which no line reads as a heading of ours."""
    if "## " not in body:
        return body
    lines = body.split("\n")
    return "\n".join(
        "\\" + line if line.lstrip().startswith(HEADING) and is_heading(line) else line
        for line in lines
    )


TITLES = {
    "user": "The user said",
    "instructions": "Instructions read (file contents)",
    "plan": "Plan (as last given)",
    "files": "Files: newest changing call of each -> its result",
    "commands": "Commands and calls: newest run of each -> its output",
    "reports": "Reports of the assistant",
    "outline": "Outline",
    "counts": "Counts",
}


def is_heading(line: str) -> bool:
    """Return whether a line reads as one of our headings."""
    return line.strip().removeprefix(HEADING).strip().startswith(tuple(TITLES.values()))
