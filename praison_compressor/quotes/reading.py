"""Read a segment's messages once; what a budget decides is decided later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..messages import Message, ToolCall, is_result, result_text, text_of
from ..messages.calls import Exchange, Pairing, call_text, command_of
from . import commands, files, instructions, reports, user
from .commands import AGENT, Newest
from .passages import (
    QuoteOptions,
    Spoken,
    asks_the_user,
    call_line,
    ends_in_prompt,
    said_by,
    spoken,
    without_notes,
    words_in_result,
)
from .plan import Plan, is_plan_tool
from .rendering import Count, Renderer
from .telling import ACTS, kind_of
from .user import Said


@dataclass(frozen=True)
class Quotes:
    """What a segment's messages say, as it can be quoted."""

    said: tuple[Said, ...] = ()
    instructions: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Path or tool -> position and content of the newest reading."""
    plan: Plan = field(default_factory=Plan)
    files: Mapping[str, Newest] = field(default_factory=dict)
    """Path -> the newest call that names it to change it."""
    runs: tuple[Newest, ...] = ()
    """Every other call, the newest of equal ones, in order."""
    reports: tuple[tuple[int, str], ...] = ()
    roles: Mapping[str, int] = field(default_factory=dict)
    tools: Counter[str] = field(default_factory=Counter)

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
            user.others(self.said, visible),
            instructions.section(self.instructions, visible),
            self.plan.section(),
            files.section(self.files, budget_tokens),
            commands.section(self.runs, budget_tokens),
        ]
        if not beside_prose:
            sections += [
                reports.section(self.reports, visible),
                reports.outlined(outline),
                reports.counted(self.roles, self.tools),
            ]
        return Renderer(count, references).render(sections, budget_tokens)


def read_quotes(messages: Sequence[Message], options: QuoteOptions | None = None) -> Quotes:
    """Read what a segment's messages say, in order.

    >>> read_quotes([{"role": "user", "content": "Use port 9090."}]).said[0].text
    'Use port 9090.'
    """
    reader = _Reader(options or QuoteOptions())
    for at, message in enumerate(messages):
        reader.read(at, message)
    return reader.quotes()


_TAGS = re.compile(r"<[^>]*>")


class _Reader:
    """One pass over the messages."""

    def __init__(self, options: QuoteOptions) -> None:
        self._options = options
        self._pairs = Pairing()
        self._said: list[Said] = []
        self._reports: list[tuple[int, str]] = []
        self._last: tuple[int, str] | None = None
        """The assistant's newest text, while neither a call nor a result stands behind it."""
        self._roles: Counter[str] = Counter()

    def read(self, at: int, message: Message) -> None:
        """Take in one message."""
        role = str(message.get("role"))
        self._roles[role] += 1
        if is_result(message):
            key = str(message.get("tool_call_id") or message.get("name") or "")
            self._answered(key, result_text(message), at, message.get("is_error") is True)
        elif role == "assistant":
            text = text_of(message)
            called = self._pairs.calls(message, at)
            self._last = (at, text) if text.strip() and not called else None
        elif role == "user":
            for one in spoken(message, self._options):
                self._heard(at, one)

    def _heard(self, at: int, one: Spoken) -> None:
        if one.block is not None:
            key, flagged = str(one.block.get("tool_use_id") or ""), said_by(one.block) != one.text
            self._answered(key, one.text, at, flagged)
        elif self._last is not None and (one.source == "result" or ends_in_prompt(one.text)):
            # An agent without native calls: its text is the call.
            call = ToolCall("", AGENT, self._last[1])
            self._pairs.made.append(Exchange(self._last[0], call, one.text, at))
            self._last = None
        elif one.source == "user":
            self._end_turn()
            self._said.append(Said(at, one.text, one.how))
        elif one.source == "host" and _TAGS.sub("", one.text).strip():
            self._said.append(Said(at, one.text, one.how, by_user=False))

    def _answered(self, key: str, text: str, at: int, is_error: bool) -> None:
        self._last = None
        flagged = f"is_error: {text}" if is_error else text
        one = self._pairs.answer(key, flagged, at) if key else None
        if one is not None and asks_the_user(one.call.name):
            if text.strip():
                self._said.append(Said(at, text, f"answering {call_line(one.call)}"))
        # What a fetched page or a file opens with is nobody's decision about a call.
        elif one is not None and (words := words_in_result(text)):
            # What a fetched page or a file opens with is nobody's decision about a call.
            if is_error or kind_of(one.call) == ACTS:
                self._said.append(Said(at, words, f"in the result of {call_line(one.call, 80)}"))

    def _end_turn(self) -> None:
        if self._last is not None:
            self._reports.append(self._last)
        self._last = None

    def quotes(self) -> Quotes:
        """Return what was read."""
        self._end_turn()
        prefixes = self._options.host_prefixes
        read: dict[str, tuple[int, str]] = {}
        plan, changed, runs = Plan(), dict[str, Newest](), dict[str, Newest]()
        for one in self._pairs.made:
            if is_plan_tool(one.call.name):
                plan.see(one.call, one.at)
                plan.answer(one.call, one.text, one.answered_at)
                continue
            source = instructions.source_of(one.call, self._options.rule_sources)
            if source and one.is_answered:
                read[source] = (one.answered_at, without_notes(one.text, prefixes))
                continue
            paths = files.changed_by(one.call)
            for path in paths:
                commands.note(changed, path, one, prefixes)
            if not asks_the_user(one.call.name) and (not paths or command_of(one.call)):
                key = command_of(one.call).strip() or call_text(one.call)
                commands.note(runs, key, one, prefixes)
        return Quotes(
            said=tuple(self._said),
            instructions=read,
            plan=plan,
            files=changed,
            runs=tuple(runs.values()),
            reports=tuple(self._reports),
            roles=dict(self._roles),
            tools=Counter(one.call.name for one in self._pairs.made if one.call.id),
        )
