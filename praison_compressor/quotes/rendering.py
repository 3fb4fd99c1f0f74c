"""Print sections within a budget by share; count what is left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from ..messages.shortening import common_limit, keep_ends

CountText = Callable[[str], int]

HEADING = "## "
TITLES = {
    "user": "The user said",
    "others": "In the user's role, from hosts, environments and other agents",
    "instructions": "Instructions read (contents of files)",
    "plan": "Plan (as last given)",
    "files": "Files: newest changing call of each -> its result",
    "commands": "Commands and calls: newest run of each -> its output",
    "reports": "Reports of the assistant",
    "outline": "Outline",
    "counts": "Counts",
}


class QuoteEntry(NamedTuple):
    """One entry of a section."""

    at: int
    """The position of its message; -1 where it has none."""
    rank: tuple[int, ...]
    """Entries of lower rank are printed first where not all fit."""
    body: str
    lead: str = ""
    """Words before the body that are never cut."""
    also: int = -1
    """The position of a second message that some of its words stand in; -1 without one."""


@dataclass(frozen=True)
class Section:
    """A heading and its entries, in the order of the transcript."""

    title: str
    lines: Sequence[QuoteEntry]
    share: float
    """Guaranteed share of the budget."""
    least: int = 24
    """Tokens to which an entry may be cut so that others fit."""
    noun: str = "entries"
    """What entries left out are counted as; with "" they are not."""
    unlisted: Sequence[int] = ()
    """Positions of entries that are not among the lines."""
    tools: Mapping[int, str] = field(default_factory=dict)
    """Position -> tool: entries left out are counted by tool."""


TOOLS_IN_NOTE = 4  # of the calls that are left out
NOTE_TOKENS = 20  # tokens of the line that counts what is left out
TRIES = 4
HEADING_TOKENS = 14
LEAST_BODY_CHARS = 30
CUT_CHARS = 34  # characters of the words that say how much is left out
SLACK = 1.15  # of a section's estimate, for which few of its entries are counted


@dataclass
class _Part:
    """A section, its estimated tokens, and its printed text so far."""

    section: Section
    lines: Sequence[QuoteEntry]
    """Its entries, lowest rank first."""
    sizes: Sequence[int]
    """Bytes of each."""
    ratio: float
    """Tokens a byte: names take more than prose."""
    text: str = ""
    tokens: int = 0
    left: Sequence[QuoteEntry] = ()
    """Entries left out."""

    def costs(self) -> list[int]:
        """Return the estimated tokens of each entry."""
        return [1 + int(size * self.ratio) for size in self.sizes]


@dataclass
class Renderer:
    """Prints sections for one reader; to count each entry is slow."""

    count: CountText
    references: Sequence[str] = ()

    def render(self, sections: Sequence[Section], budget: int) -> str:
        """Return the sections' text of at most `budget` tokens."""
        parts = [self._part(each) for each in sections if each.lines or each.unlisted]
        # Each section can count what it leaves out, whatever room the others take.
        spare = budget - NOTE_TOKENS * len(parts)
        needs = [HEADING_TOKENS + int(SLACK * sum(part.costs())) for part in parts]
        rooms = share_budget(needs, [part.section.share for part in parts], max(0, spare))
        spare -= sum(rooms)
        # What others leave goes to the section that lacks least, then to the next.
        for n in sorted(range(len(parts)), key=lambda n: needs[n] - rooms[n]):
            room = rooms[n] + NOTE_TOKENS
            self._fill(parts[n], room + (spare if rooms[n] < needs[n] else 0))
            spare += room - parts[n].tokens
        for part in parts:
            if part.left and spare > max(30, 0.03 * budget):
                before = part.tokens
                self._fill(part, before + spare)
                spare += before - part.tokens
        texts = [part.text for part in parts if part.text]
        texts += filter(None, [self._left_out_note([part for part in parts if not part.text])])
        is_over = sum(part.tokens for part in parts) > budget
        while is_over and texts and self.count("\n".join(texts)) > budget:
            del texts[-1]  # Less than the counts of all sections fit.
        return "\n".join(texts)

    def _part(self, section: Section) -> _Part:
        """Return a section with an estimate by some of its entries."""
        some = section.lines[:: len(section.lines) // 24 + 1]
        sample = "\n".join(self._print_entry(line, line.body[:200]) for line in some)
        ratio = (self.count(sample) + 1) / (_bytes(sample) + 1)
        lines = sorted(section.lines, key=lambda line: line.rank)
        marks = 14 if self.references else 2
        sizes = [_bytes(line.lead) + _bytes(line.body) + marks for line in lines]
        return _Part(section, lines, sizes, ratio, left=lines)

    def _fill(self, part: _Part, room: int) -> None:
        """Print the best ranks within `room` tokens; cut long entries alike."""
        for attempt in range(TRIES):
            text, left = self._print_part(part, room - HEADING_TOKENS)
            if not text or text == part.text:
                break
            tokens = self.count(f"{text}\n")
            # Cut entries take less than their estimate; whole ones that take more correct it.
            estimate = room if tokens <= room else min(room, sum(part.costs()))
            part.ratio *= min(2.0, (1.02 + attempt / 20) * tokens / max(1, estimate))
            if tokens <= room:
                part.text, part.tokens, part.left = text, tokens, left
                return
        if not part.text:
            part.tokens = self.count(self._left_out_note([part])) + 1

    def _print_part(self, part: _Part, room: int) -> tuple[str, Sequence[QuoteEntry]]:
        """Return a text of about `room` tokens, and the entries left out."""
        section, chosen, costs = part.section, part.lines, part.costs()
        if sum(costs) > room or section.unlisted:
            room -= NOTE_TOKENS
            used = accumulate(min(cost, section.least) for cost in costs)
            fitting = sum(1 for tokens in used if tokens <= room)
            chosen, costs = chosen[:fitting], costs[:fitting]
        if not chosen:
            return "", part.lines
        # Entries that are cut take less than they are given.
        most = common_limit(costs, room if sum(costs) <= room else room * 11 // 10)
        texts = {id(x): self._cut_entry(x, c, most) for x, c in zip(chosen, costs, strict=True)}
        printed = [texts[id(line)] for line in section.lines if id(line) in texts]
        left = part.lines[len(chosen) :]
        lines = [HEADING + section.title, *printed, self._left_out_note([replace(part, left=left)])]
        return "\n".join(filter(None, lines)), left

    def _left_out_note(self, parts: Sequence[_Part]) -> str:
        """Return the line that counts the entries left out, or ""."""
        places, counts = list[int](), list[str]()
        for part in parts:
            section = part.section
            own = [*section.unlisted, *(line.at for line in part.left)] if section.noun else []
            # Tools are named beside calls that are printed; less room has better uses.
            known = section.tools if len(part.left) < len(part.lines) else {}
            tools = Counter(known[at] for at in own if at in known).most_common(TOOLS_IN_NOTE)
            named = ", ".join(f"{name} {n:,}" for name, n in tools)
            if own:
                by_tool = f" ({named})" if named else ""
                counts.append(f"{len(own):,} more {section.noun} not shown{by_tool}")
                places += own
        ends_of = map(self._reference, (min(places), max(places))) if places else ()
        where = " to ".join(dict.fromkeys(filter(None, ends_of)))
        return f"({', '.join(counts)}{f': {where}' if where else ''})" if counts else ""

    def _cut_entry(self, line: QuoteEntry, cost: int, most: int) -> str:
        """Return an entry of about `most` tokens."""
        if cost <= most:
            return self._print_entry(line, line.body)
        chars = len(line.lead + line.body) * most // cost - len(line.lead) - CUT_CHARS
        return self._print_entry(line, keep_ends(line.body, max(LEAST_BODY_CHARS, chars)))

    def _print_entry(self, line: QuoteEntry, body: str) -> str:
        """Return an entry as printed, its further lines indented."""
        references = dict.fromkeys(map(self._reference, (line.at, line.also)))
        marks = "".join(f"[{reference}] " for reference in references if reference)
        # In a quoted text no line may read as a heading of ours.
        body = _OUR_HEADING.sub(r"\1\\", body) if HEADING in body else body
        return f"- {marks}{line.lead}" + "\n  ".join(body.split("\n"))

    def _reference(self, at: int) -> str:
        return self.references[at] if 0 <= at < len(self.references) else ""


def share_budget(needs: Sequence[int], weights: Sequence[float], budget: int) -> list[int]:
    """Give each section at most its need and at least its share.

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


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


_OUR_HEADING = re.compile(
    rf"^(\s*)(?={HEADING}(?:{'|'.join(map(re.escape, TITLES.values()))}))", re.M
)
