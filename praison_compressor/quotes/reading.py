"""Read a segment's messages once; everything that a budget decides is decided later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..messages import Message, is_result, result_text, text_of, tool_calls_of
from . import commands, instructions, reports, user
from .exchanges import Exchange, Pairing
from .files import changed_by
from .passages import (
    QuoteOptions,
    asks_the_user,
    call_line,
    said_by,
    spoken,
    without_notes,
    words_in_result,
)
from .plan import Plan, is_plan_tool
from .rendering import TITLES, Count, Line, Renderer, Section
from .user import Said


@dataclass(frozen=True)
class Quotes:
    """What a segment's messages say, as it can be quoted."""

    said: tuple[Said, ...] = ()
    instructions: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Path or tool -> position and content of the newest reading."""
    plan: Plan = field(default_factory=Plan)
    files: Mapping[str, commands.Newest] = field(default_factory=dict)
    """Path -> the newest call that names it to change it."""
    runs: tuple[commands.Newest, ...] = ()
    """Every other call, the newest of equal ones, in order."""
    reports: tuple[tuple[int, str], ...] = ()
    counts: str = ""

    def text(
        self,
        budget_tokens: int,
        count: Count,
        references: Sequence[str] = (),
        visible: str = "",
        beside_prose: bool = False,
        outline: Sequence[str] = (),
    ) -> str:
        """Return the quotations of at most `budget_tokens`, in sections of a fixed order.

        `references` are those of the messages; `visible` is text that stands in the view anyway.
        """
        sections = [
            user.section(self.said, visible),
            instructions.section(self.instructions, visible),
            self._plan(),
            commands.files(self.files, budget_tokens),
            commands.runs(self.runs, budget_tokens),
        ]
        if not beside_prose:
            lines = [Line(-1, (n,), line) for n, line in enumerate(outline)]
            sections += [
                reports.section(self.reports, visible),
                Section(TITLES["outline"], lines, 0.08, noun="lines of the outline"),
                Section(
                    TITLES["counts"], [Line(-1, (0,), self.counts)] if self.counts else [], 0.03
                ),
            ]
        return Renderer(count, references).render(sections, budget_tokens)

    def _plan(self) -> Section:
        lines = [Line(at, (n,), line) for n, (at, line) in enumerate(self.plan.lines())]
        return Section(TITLES["plan"], lines, 0.1, noun="items of the plan")


def read_quotes(messages: Sequence[Message], options: QuoteOptions = QuoteOptions()) -> Quotes:  # noqa: B008
    """Read what a segment's messages say, in order.

    >>> read_quotes([{"role": "user", "content": "Use port 9090."}]).said[0].text
    'Use port 9090.'
    """
    reader = _Reader(options)
    for at, message in enumerate(messages):
        reader.read(at, message)
    return reader.quotes(messages)


class _Reader:
    """One pass over the messages."""

    def __init__(self, options: QuoteOptions) -> None:
        self._options = options
        self._pairs = Pairing()
        self._said: list[Said] = []
        self._reports: list[tuple[int, str]] = []
        self._last: tuple[int, str] | None = None
        """The newest text of the assistant without a call behind it."""
        self._roles: Counter[str] = Counter()

    def read(self, at: int, message: Message) -> None:
        role = str(message.get("role"))
        self._roles[role] += 1
        if is_result(message):
            self._result(at, message)
        elif role == "assistant":
            self._assistant(at, message)
        elif role == "user":
            self._user(at, message)

    def _assistant(self, at: int, message: Message) -> None:
        self._pairs.calls(message, at)
        text = text_of(message)
        if tool_calls_of(message):
            self._last = None
        elif text.strip():
            self._last = (at, text)

    def _user(self, at: int, message: Message) -> None:
        name = str(message.get("name") or "")
        for one in spoken(message, self._options):
            if one.source == "result":
                block = one.block or {}
                text = said_by(block) if block else one.text
                self._answered(str(block.get("tool_use_id") or ""), text, at, one.text)
            elif one.source == "user":
                self._end_turn()
                self._said.append(Said(at, one.text))
            elif one.text.strip():
                how = f"{name}, in the user's role" if name else "in the user's role"
                self._said.append(Said(at, one.text, how, by_user=False))

    def _result(self, at: int, message: Message) -> None:
        key = str(message.get("tool_call_id") or message.get("name") or "")
        text = result_text(message)
        flagged = message.get("is_error") is True
        self._answered(key, f"is_error: {text}" if flagged else text, at, text)

    def _answered(self, key: str, text: str, at: int, plain: str) -> None:
        self._last = None
        one = self._pairs.answer(key, text, at) if key else None
        name = one.call.name if one else ""
        if asks_the_user(name):
            if plain.strip() and one:
                self._said.append(Said(at, plain, f"answering {call_line(one.call)}"))
        elif words := words_in_result(one.call if one else None, plain):
            how = f"in the result of {call_line(one.call, 80)}" if one else "in a result"
            self._said.append(Said(at, words, how))

    def _end_turn(self) -> None:
        if self._last is not None:
            self._reports.append(self._last)
            self._last = None

    # ---------------------------------------------------------- what was read

    def quotes(self, messages: Sequence[Message]) -> Quotes:
        self._end_turn()
        read: dict[str, tuple[int, str]] = {}
        plan = Plan()
        changed: dict[str, commands.Newest] = {}
        others: dict[str, commands.Newest] = {}
        for one in self._pairs.made:
            if is_plan_tool(one.call.name):
                plan.see(one.call, one.at)
                if one.is_answered:
                    plan.answer(one.call, one.text, one.answered_at)
                continue
            source = instructions.source_of(one.call, self._options.rule_sources)
            if source and one.is_answered:
                read.pop(source, None)
                read[source] = (
                    one.answered_at,
                    without_notes(one.text, self._options.host_prefixes),
                )
                continue
            paths = changed_by(one.call)
            for path in paths:
                commands.note(changed, path, one, self._options)
            if not asks_the_user(one.call.name) and not (paths and not commands.is_run(one.call)):
                commands.note(others, commands.key(one.call), one, self._options)
        return Quotes(
            said=tuple(self._said),
            instructions=read,
            plan=plan,
            files=changed,
            runs=tuple(others.values()),
            reports=tuple(self._reports),
            counts=_counts(self._roles, self._pairs.made),
        )


def _counts(roles: Counter[str], made: Sequence[Exchange]) -> str:
    """Return the messages by role and the tools called, as numbers."""
    said = ", ".join(f"{n:,} {role}" for role, n in roles.most_common())
    used = Counter(one.call.name for one in made)
    tools = ", ".join(f"{name} {n:,}" for name, n in used.most_common(TOOLS_NAMED))
    more = f", {len(used) - TOOLS_NAMED} more tools" if len(used) > TOOLS_NAMED else ""
    return f"{sum(roles.values()):,} messages: {said}" + (f"; calls: {tools}{more}" if used else "")


TOOLS_NAMED = 12
