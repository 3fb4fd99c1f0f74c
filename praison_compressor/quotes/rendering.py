"""Print sections within a budget by share; count what is left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from ..messages.display import pluralize, short_names
from ..messages.results import CallRecord, acts_first
from ..messages.shortening import common_limit, keep_ends, share_budget

CountText = Callable[[str], int]
Calls = Sequence[CallRecord]

HEADING = "## "


class SectionKind(NamedTuple):
    """A section's title, share and noun."""

    title: str
    share: float  # least share of the budget; the shares of all kinds sum to 1
    noun: str = ""
    """Noun to count the entries left out, with `{s}` for the plural; "": they are not counted."""
    least: int = 24
    """An entry gets at least this many tokens, even if other entries need tokens."""


USER = SectionKind("The user said", 0.67, "message{s} of the user")
OTHERS = SectionKind(
    "In the user's role, from hosts, environments and other agents",
    0.03,
    "text{s} in the user's role",
)
INSTRUCTIONS_READ = SectionKind(
    "Instructions read (contents of files)", 0.045, "file{s} of instructions", 60
)
PLAN = SectionKind("Plan (as last given)", 0.055, "item{s} of the plan")
FILES = SectionKind("Files: newest changing call of each -> its result", 0.06, "file{s}", 80)
COMMANDS = SectionKind("Commands and calls: newest run of each -> its output", 0.08, least=80)
REPORTS = SectionKind("Reports of the assistant", 0.045, "text{s} of the assistant", 60)
COUNTS = SectionKind("Counts", 0.015, least=100)
OUTLINE = "Outline: other calls, by tool"
_KINDS = (USER, OTHERS, INSTRUCTIONS_READ, PLAN, FILES, COMMANDS, REPORTS, COUNTS)
TITLES = (*(kind.title for kind in _KINDS), OUTLINE)


class QuoteEntry(NamedTuple):
    """One entry of a section."""

    at: int
    rank: tuple[int, ...]
    """The lowest ranks are printed first."""
    body: str
    lead: str = ""
    """Words before the body; they are never cut."""
    also: int = -1
    """Index of a second message with some of the words, or -1."""
    record: CallRecord | None = None


class Section(NamedTuple):
    """A heading and its entries, in the order of the transcript."""

    kind: SectionKind
    entries: Sequence[QuoteEntry]
    unlisted: Sequence[int] = ()
    """Messages that are counted but never printed."""


NAMED_IN_NOTE = 4
"""A note names at most this number of tools or references."""
NAME_CHARS = 48
"""The outline cuts a call's arguments to this length."""
OUTLINE_CALL_TOKENS, NAMED_TOKENS = 13, 8
"""Usual and smallest number of tokens of a named call."""
NOTE_TOKENS = 20
"""Tokens of the note below a section that counts what is left out."""
SMALL_BUDGET_TOKENS = 300
"""Below this budget one note counts for all sections."""
PRINT_TRIES = 4
"""A section is printed up to this number of times until it fits its tokens."""
HEADING_TOKENS = 14
LEAST_BODY_CHARS = 30
CUT_CHARS = 34
"""Characters of the mark where a text is cut."""
SLACK_FACTOR = 1.15
"""Factor for costs estimated from few entries, which may be too low."""


class _Part(NamedTuple):
    """A section with its estimated size and its text."""

    section: Section
    entries: Sequence[QuoteEntry]
    """In order of rank."""
    sizes: Sequence[int]
    ratio: float
    """Tokens a byte, estimated from some entries."""
    left: Sequence[QuoteEntry]
    note: int
    """Tokens for the part's own note; 0: the text's last note counts for this part."""
    text: str = ""
    tokens: int = 0

    @property
    def shown(self) -> Sequence[QuoteEntry]:
        return self.entries[: len(self.entries) - len(self.left)] if self.text else ()

    def costs(self) -> list[int]:
        """Return the estimated tokens of each entry."""
        return [1 + int(size * self.ratio) for size in self.sizes]


@dataclass(frozen=True)
class Renderer:
    """Print sections; count whole texts, since counting each entry is slow."""

    count: CountText
    references: Sequence[str] = ()

    def render(self, sections: Sequence[Section], calls: Calls, budget: int, outline: int) -> str:
        """Return the sections, and an outline of the calls they leave out.

        `budget`: upper bound of the text's tokens. `outline`: tokens that the outline may reserve.
        """
        reserved = min(outline, OUTLINE_CALL_TOKENS * len(calls)) if self.references else 0
        sections = [section for section in sections if section.entries or section.unlisted]
        first = next((section.kind.title for section in sections), "")
        if budget < SMALL_BUDGET_TOKENS and first == USER.title:
            parts = self._fill_user_first(sections, calls, budget, reserved)
        else:
            parts = [self._part(section, NOTE_TOKENS) for section in sections]
            parts = self._fill_by_share(parts, budget - reserved)
        text = "\n".join(part.text for part in parts if part.text)
        quoted = {entry.record for part in parts for entry in part.shown}
        others = [call for call in calls if call not in quoted]
        uncounted = [part for part in parts if not (part.text and part.note)]
        below = self._render_outline(others, uncounted, budget - self.count(text) - 1)
        return "\n".join(filter(None, (text, below)))

    def _fill_user_first(
        self, sections: Sequence[Section], calls: Calls, budget: int, reserved: int
    ) -> list[_Part]:
        """Return the parts; the user's section takes the tokens that it needs."""
        user, *others = (self._part(section, 0) for section in sections)
        most = budget
        while True:
            text, left = self._print_part(user, most)
            printed = user._replace(text=text, left=left)
            below = max(reserved, self.count(self._note([printed, *others], calls)))
            free = budget - below - self.count(f"{text}\n")
            if not text or free >= 0:
                return [printed, *self._fill_by_share(others, free)]
            most = min(most, budget - below) + free

    def _fill_by_share(self, parts: Sequence[_Part], budget: int) -> list[_Part]:
        # Each note has its tokens before the shares are computed.
        spare = budget - sum(part.note for part in parts)
        needs = [HEADING_TOKENS + int(SLACK_FACTOR * sum(part.costs())) for part in parts]
        shares = share_budget(needs, [part.section.kind.share for part in parts], max(0, spare))
        spare -= sum(shares)
        filled = [*parts]
        # Spare tokens go to the section that lacks the fewest tokens, then to the next section.
        for n in sorted(range(len(parts)), key=lambda n: needs[n] - shares[n]):
            share = shares[n] + parts[n].note
            more = spare if shares[n] < needs[n] else 0
            filled[n] = self._print_within(parts[n], share + more)
            spare += share - filled[n].tokens
        for n, part in enumerate(filled):
            if part.left and spare > max(30, 0.03 * budget):
                filled[n] = self._print_within(part, part.tokens + spare)
                spare += part.tokens - filled[n].tokens
        return filled

    def _render_outline(self, calls: Calls, left_out: Sequence[_Part], most: int) -> str:
        """Return a line of calls for each tool, and a note."""
        ranked = sorted(calls, key=acts_first)
        # Calls are named only if references are given: nobody can read a call without its
        # reference.
        named = ranked[: max(0, most) // NAMED_TOKENS] if self.references else []
        names = dict(zip(named, short_names([x.call for x in named], NAME_CHARS), strict=True))
        while names:
            note = self._note(left_out, ranked[len(names) :], NAMED_IN_NOTE)
            lines = (HEADING + OUTLINE, *self._tool_lines(names), note)
            text = "\n".join(filter(None, lines))
            tokens = self.count(text)
            if tokens <= most:
                return text
            names = dict([*names.items()][: min(len(names) - 1, len(names) * most // tokens)])
        notes = (
            self._note(left_out, ranked, tools, refers)
            for tools in range(NAMED_IN_NOTE, -1, -1)
            for refers in (True, False)
        )
        return next((note for note in notes if self.count(note) <= most), "")

    def _tool_lines(self, names: Mapping[CallRecord, str]) -> Iterator[str]:
        lines: dict[str, dict[str, str]] = {}
        for record, name in sorted(names.items(), key=lambda item: item[0].where):
            line = lines.setdefault(record.call.name, {})
            line[name] = f"{line.get(name, name)} {self._reference(record.where)}".strip()
        yield from (f"- {tool}: {', '.join(line.values())}" for tool, line in lines.items())

    def _part(self, section: Section, note: int) -> _Part:
        some = section.entries[:: len(section.entries) // 24 + 1]
        sample = "\n".join(self._print_entry(entry, entry.body[:200]) for entry in some)
        ratio = (self.count(sample) + 1) / (len(sample.encode("utf-8", "replace")) + 1)
        entries = sorted(section.entries, key=lambda entry: entry.rank)
        marks = 14 if self.references else 2
        sizes = [len((x.lead + x.body).encode("utf-8", "replace")) + marks for x in entries]
        return _Part(section, entries, sizes, ratio, entries, note)

    def _print_within(self, part: _Part, most: int) -> _Part:
        for attempt in range(PRINT_TRIES):
            text, left = self._print_part(part, most - HEADING_TOKENS)
            if not text or text == part.text:
                break
            tokens = self.count(f"{text}\n")
            # A text with cut entries is smaller than the estimate, whatever the ratio.
            estimate = most if tokens <= most else min(most, sum(part.costs()))
            factor = min(2.0, (1.02 + attempt / 20) * tokens / max(1, estimate))
            part = part._replace(ratio=part.ratio * factor)
            if tokens <= most:
                return part._replace(text=text, tokens=tokens, left=left)
        if part.text or not part.note:
            return part
        return part._replace(tokens=self.count(self._note([part])) + 1)

    def _print_part(self, part: _Part, tokens: int) -> tuple[str, Sequence[QuoteEntry]]:
        section, chosen, costs = part.section, part.entries, part.costs()
        if sum(costs) > tokens or section.unlisted:
            tokens -= part.note
            used = accumulate(min(cost, section.kind.least) for cost in costs)
            fitting = sum(1 for size in used if size <= tokens)
            chosen, costs = chosen[:fitting], costs[:fitting]
        if not chosen:
            return "", part.entries
        # Cut entries stay below their limit, so the limits of all entries may sum to a tenth more.
        most = common_limit(costs, tokens if sum(costs) <= tokens else tokens * 11 // 10)
        texts = {id(x): self._cut_entry(x, c, most) for x, c in zip(chosen, costs, strict=True)}
        printed = [texts[id(entry)] for entry in section.entries if id(entry) in texts]
        left = part.entries[len(chosen) :]
        note = self._note([part._replace(left=left)]) if part.note else ""
        return "\n".join(filter(None, [HEADING + section.kind.title, *printed, note])), left

    def _note(
        self, parts: Sequence[_Part], calls: Calls = (), tools: int = 0, refers: bool = False
    ) -> str:
        counts, places = list[str](), [record.where for record in calls]
        for part in (part for part in parts if part.section.kind.noun):
            if left := [*part.section.unlisted, *(entry.at for entry in part.left)]:
                noun = part.section.kind.noun.format(s="" if len(left) == 1 else "s")
                counts.append(f"{len(left):,} more {noun} not shown")
                places += left
        named = [
            f"{tool} {self._range(x.where for x in calls if refers and x.call.name == tool) or n}"
            for tool, n in Counter(x.call.name for x in calls).most_common(tools)
        ]
        if calls:
            more = f"{pluralize(len(calls), 'more call')} not shown"
            counts.append(f"{more} ({', '.join(named)})" if named else more)
        where = self._range(places)
        return f"({', '.join(counts)}{f': {where}' if where else ''})" if counts else ""

    def _range(self, places: Iterable[int]) -> str:
        names = [*dict.fromkeys(filter(None, map(self._reference, sorted(places))))]
        return f"{names[0]} to {names[-1]}" if len(names) > NAMED_IN_NOTE else " ".join(names)

    def _cut_entry(self, entry: QuoteEntry, cost: int, most: int) -> str:
        if cost <= most:
            return self._print_entry(entry, entry.body)
        chars = len(entry.lead + entry.body) * most // cost - len(entry.lead) - CUT_CHARS
        return self._print_entry(entry, keep_ends(entry.body, max(LEAST_BODY_CHARS, chars)))

    def _print_entry(self, entry: QuoteEntry, body: str) -> str:
        """Return an entry with its references; indent its further lines."""
        references = dict.fromkeys(map(self._reference, (entry.at, entry.also)))
        marks = "".join(f"[{reference}] " for reference in references if reference)
        # A quoted line must not look like a heading of ours.
        body = _OUR_HEADING.sub(r"\1\\", body) if HEADING in body else body
        return f"- {marks}{entry.lead}" + "\n  ".join(body.split("\n"))

    def _reference(self, at: int) -> str:
        return self.references[at] if 0 <= at < len(self.references) else ""


_OUR_HEADING = re.compile(rf"^(\s*)(?={HEADING}(?:{'|'.join(map(re.escape, TITLES))}))", re.M)
