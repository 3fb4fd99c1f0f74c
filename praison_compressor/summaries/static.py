"""The summary without a model, and the facts that a model's text lacks: at any budget."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..facts import Domain, Facts, Rule, extract, missing, render
from ..facts.rendering import Line, Section, fitted
from ..messages import Message
from ..view.frame import escape

ADDED = "Facts that it lacks (extracted, verbatim):"

CARRIED = "## Carried over from earlier summaries"

READ_ANEW = "## Read in the messages"
"""Ends what was carried over."""

CARRIED_SHARE = 0.4

OUTLINE_SHARE = 0.2


def static_summary(
    messages: Sequence[Message],
    *,
    budget_tokens: int,
    count: Callable[[str], int],
    facts: Facts | None = None,
    previous: Sequence[str] = (),
    visible: str = "",
    outline: Sequence[str] = (),
) -> str:
    """A readable summary of at most `budget_tokens`, most valuable facts first.

    `outline` has a line for each stretch of work, with the reference to read it by: for a reader
    who can.

    `previous` are earlier summaries to carry forward, `visible` is text that the view keeps
    verbatim anyway, so that nothing in it needs room here.
    """
    known = extract(messages) if facts is None else facts
    carried = _carried(previous, int(budget_tokens * CARRIED_SHARE), count)
    told = _outlined(outline, int(budget_tokens * OUTLINE_SHARE), count)
    room = budget_tokens - sum(count(text) + 2 for text in (carried, told) if text)
    shown = f"{visible}\n{carried}"
    body = render(known, budget_tokens=room, count=count, visible=shown, outline=told)
    # Where there are few facts the earlier summaries need not be cut.
    carried = _carried(previous, budget_tokens - count(body) - 2, count)
    return _within(f"{carried}\n{body}".strip(), budget_tokens, count)


def _outlined(lines: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """As many of the newest lines as there is room for."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= count(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return "\n".join(["## Outline", *kept]) if kept else ""


def _carried(previous: Sequence[str], budget_tokens: int, count: Callable[[str], int]) -> str:
    if not previous:
        return ""
    room = budget_tokens - count(f"{CARRIED}\n{READ_ANEW}\n")
    whole = "\n".join([CARRIED, *previous, READ_ANEW])
    if count(whole) <= budget_tokens:
        return whole
    # Each its share: cut as one text, the newest would go first.
    shares = [_within(text, room // len(previous), count) for text in previous]
    return "\n".join([CARRIED, *shares, READ_ANEW])


def repair(
    summary: str,
    facts: Facts,
    *,
    budget_tokens: int,
    count: Callable[[str], int],
    visible: str = "",
    words_of: int = 0,
) -> str:
    """The facts section that `summary` lacks, within the budget; the summary itself stays whole.

    Up to `words_of` tokens, where that is more, are for the user's words.
    """
    left = missing(facts, summary)
    # What the user took back is told though the summary has the words: it has them as if they held.
    lacks = set(left.user)
    said = tuple(item for item in facts.user if item.superseded_by or item in lacks)
    body = render(
        # The names that it has still tell what the session is about.
        replace(left, identifiers=facts.identifiers, user=said),
        budget_tokens=budget_tokens - count(ADDED) - 2,
        count=count,
        visible=f"{visible}\n{summary}",
        beside_prose=True,
        words_of=words_of,
    )
    most = max(budget_tokens, words_of)
    return _within(f"{ADDED}\n{body}", most, count) if body else ""


def without_rules(summary: str) -> str:
    """A summary without its list of rules: each newer one has a list of its own."""
    return summary.rpartition(f"\n\n## {RULES}")[0] or summary


def without_added(summary: str) -> str:
    """A model's own text, without the facts that were added to it: those are read anew."""
    return without_rules(summary).partition(f"\n\n{ADDED}")[0]


def carried_on(summary: str, method: str) -> str:
    """What a later summary takes over from a text: a model's words, wherever they stand by now."""
    if method == "model":
        return without_added(summary)
    return summary.partition(READ_ANEW)[0].partition(f"{CARRIED}\n")[2].strip()


def _within(text: str, budget_tokens: int, count: Callable[[str], int]) -> str:
    """The text cut at a line so that it fits: the last lines are the least valuable."""
    size = count(text)
    while size > budget_tokens and text:
        keep = max(0, int(len(text) * budget_tokens / size) - 8)
        cut = text.rfind("\n", 0, keep)
        text = text[: cut if cut > 0 else keep].rstrip()
        size = count(text)
    return text


# -------------------------------------------------------------- rules


RULES = "Rules that hold (verbatim, binding; later words win)"
MOST_NAMED = 4
"""Places told of rules for which there was no room."""
NO_LIMIT = 10**9


@dataclass(frozen=True)
class RuleList:
    """The rules that a summary carries, in the order in which they were said."""

    rules: tuple[Rule, ...] = ()
    """Lifted ones are told as lifted: their words stand elsewhere as if they held."""
    references: Mapping[int, str] = field(default_factory=dict)
    """By which the archive reads the messages, by their positions."""
    request: str = ""
    """What the user asked for, where the newest message only says to go on."""
    asked: int = 0
    """The position of its message."""

    def mapped(self, change: Callable[[str], str]) -> RuleList:
        """The list with every text changed: secrets masked."""
        rules = (
            replace(rule, text=change(rule.text), lifted_by=change(rule.lifted_by))
            for rule in self.rules
        )
        return replace(self, rules=tuple(rules), request=change(self.request))

    def text(self, budget_tokens: int, count: Callable[[str], int]) -> str:
        """The section; where not all fits, the oldest preferences go first, and it says so."""
        lines = self._ranked()

        def made(kept: int) -> str:
            section = Section(RULES, tuple(line for _, line in lines[:kept]), "\n  ")
            text = fitted(section, NO_LIMIT, count).rstrip()
            gone = [rule for rule, _ in lines[kept:] if rule and self._is_missed(rule)]
            return f"{text or f'## {RULES}'}\n{self._left_out(gone)}" if gone else text

        def is_too_long(kept: int) -> bool:
            return count(escape(made(kept))) > budget_tokens  # as it will stand in its frame

        kept = bisect_left(range(len(lines) + 1), True, key=is_too_long) - 1
        return made(kept) if kept >= 0 else ""

    def beside(self, budget_tokens: int, count: Callable[[str], int]) -> str | None:
        """The section beside a text that leaves it so little; None where more would have to go
        than what the user merely states."""
        text = self.text(budget_tokens, count)
        kept = (rule.text for rule in self.rules if rule.kind != "fact" or not rule.holds)
        return text if all(words in text for words in (*kept, self.request)) else None

    def _is_missed(self, rule: Rule) -> bool:
        """Whether it is said to have no room: what is merely stated, only where it can be read."""
        return rule.holds and (rule.kind != "fact" or bool(self._at(rule.since)))

    def _left_out(self, gone: Sequence[Rule]) -> str:
        where = dict.fromkeys(filter(None, (self._at(rule.since).strip() for rule in gone)))
        named = f": {', '.join([*where][:MOST_NAMED])}" if where else ""
        return f"- {len(gone)} more, no room{named}"

    def _ranked(self) -> list[tuple[Rule | None, Line]]:
        """The lines, of which the last go first; the request has no rule."""
        newest_first = reversed([*enumerate(self.rules)])
        lines: list[tuple[Rule | None, Line]]
        lines = [(rule, self._line(order, rule)) for order, rule in newest_first]
        if self.request:
            label = f"{self._at(self.asked)}the user's open request: "
            lines.append((None, Line(len(lines), self.request, "request", label)))
        return sorted(lines, key=lambda pair: _yields(pair[0]))

    def _line(self, order: int, rule: Rule) -> Line:
        if rule.until is not None:
            by = f'"{rule.lifted_by}" {self._at(rule.until)}'.strip()
            return Line(order, f'"{rule.text}"', f"until {order}", f"no longer holds since {by}: ")
        does = {"approval": " allowed this, once", "fact": " states"}.get(rule.kind, "")
        label = f"{self._at(rule.since)}{rule.source}{does}: "
        return Line(order, rule.text, label, label)

    def _at(self, index: int) -> str:
        named = self.references.get(index, "")
        return f"[{named}] " if named else ""


def _yields(rule: Rule | None) -> int:
    """How early a line goes where there is no room for all; of equal ones the oldest does."""
    if rule is None:
        return 1
    return {"fact": 2, "preference": 3}.get(rule.kind, 0) if rule.holds else 4


# -------------------------------------------------------------- facts


REMEMBERED = 4
"""Stretches: those of the plans that are carried out at about the same time."""


class FactFinder:
    """Extracts facts, and remembers the newest."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._found: tuple[tuple[tuple[Message, ...], Facts], ...] = ()

    def of(self, messages: tuple[Message, ...], references: tuple[str, ...] = ()) -> Facts:
        """What must survive of the messages, which the archive reads by these references."""
        facts = self._found_in(messages)
        return replace(facts, references=references) if references else facts

    def _found_in(self, messages: tuple[Message, ...]) -> Facts:
        for known, facts in self._found:
            if known == messages:
                return facts
        facts = extract(messages, domain=self._domain)
        self._found = (*self._found, (messages, facts))[-REMEMBERED:]
        return facts
