"""Read a segment's messages once; what a budget decides is decided later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..messages import Message, ToolCall, is_result, result_text, text_of
from ..messages.calls import (
    ACTS,
    AnsweredCall,
    Pairing,
    call_text,
    changed_by,
    command_of,
    key_of,
    kind_of,
)
from . import commands, files, instructions, reports, user
from .commands import Newest
from .passages import (
    ASKING_TOOLS,
    Spoken,
    call_line,
    ends_in_prompt,
    said_by,
    spoken,
    without_notes,
    words_in_result,
)
from .plan import TOOLS, TodoList
from .rendering import Count, Renderer
from .user import Said


@dataclass
class Quotes:
    """What a segment's messages say, as it can be quoted."""

    said: list[Said] = field(default_factory=list)
    instructions: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Path or tool -> position and content of the newest reading."""
    plan: TodoList = field(default_factory=TodoList)
    files: dict[str, Newest] = field(default_factory=dict)
    """Path -> the newest call that names it to change it."""
    runs: dict[str, Newest] = field(default_factory=dict)
    """Command or call -> the newest of equal ones, in order."""
    reports: list[tuple[int, str]] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)
    """Positions of the assistant's texts, but for those that are quoted as calls."""
    roles: Counter[str] = field(default_factory=Counter)
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
            user.section(self.said, visible, budget_tokens),
            user.others(self.said, visible),
            instructions.section(self.instructions, visible),
            self.plan.section(),
            files.section(self.files, budget_tokens),
            commands.section(list(self.runs.values()), budget_tokens),
        ]
        if not beside_prose:
            sections.append(reports.section(self.reports, self.texts, visible))
            sections.append(reports.outlined(outline))
            sections.append(reports.counted(self.roles, self.tools))
        return Renderer(count, references).render(sections, budget_tokens)


def read_quotes(messages: Sequence[Message], rule_sources: tuple[str, ...] = ()) -> Quotes:
    """Read what a segment's messages say, in order; see the option `rule_sources`.

    >>> read_quotes([{"role": "user", "content": "Use port 9090."}]).said[0].text
    'Use port 9090.'
    """
    reader = _Reader(rule_sources)
    for at, message in enumerate(messages):
        reader.read(at, message)
    return reader.finished()


def read_calls(messages: Sequence[Message]) -> list[AnsweredCall]:
    """Return the calls that messages make, each with its result."""
    reader = _Reader(())
    for at, message in enumerate(messages):
        reader.read(at, message)
    return reader.pairs.made


MOST_CHARS = 6
"""Characters of a token at most, in prose of any language."""


def fill(messages: Sequence[Message], budget_tokens: int) -> bool:
    """Return whether the user's words alone exceed a budget, without reading the rest."""
    own = (message for message in messages if message.get("role") == "user")
    said = sum(len(one.text) for m in own for one in spoken(m) if one.source == "user")
    return said > budget_tokens * MOST_CHARS


_TAGS = re.compile(r"<[^>]*>")


class _Reader:
    """One pass over the messages."""

    def __init__(self, rule_sources: tuple[str, ...]) -> None:
        self._rule_sources = rule_sources
        self._found = Quotes()
        self.pairs = Pairing()
        self._last: tuple[int, str] | None = None
        """The assistant's newest text, while neither a call nor a result stands behind it."""

    def read(self, at: int, message: Message) -> None:
        """Take in one message."""
        role = str(message.get("role"))
        self._found.roles[role] += 1
        if is_result(message):
            key = str(message.get("tool_call_id") or message.get("name") or "")
            self._answered(key, result_text(message), at, message.get("is_error") is True)
        elif role == "assistant":
            text, called = text_of(message), self.pairs.calls(message, at)
            self._last = (at, text) if text.strip() and not called else None
            self._found.texts += [at] if text.strip() else []
        elif role == "user":
            for one in spoken(message):
                self._heard(at, one)

    def _heard(self, at: int, one: Spoken) -> None:
        said = self._found.said
        if one.block is not None:
            key, flagged = str(one.block.get("tool_use_id") or ""), said_by(one.block) != one.text
            self._answered(key, one.text, at, flagged)
        elif self._last is not None and (one.source == "result" or ends_in_prompt(one.text)):
            # An agent without native calls: its text is the call.
            call = ToolCall("", commands.AGENT, self._last[1])
            self.pairs.made.append(AnsweredCall(self._last[0], call, one.text, at))
            self._found.texts.remove(self._last[0])
            self._last = None
        elif one.source == "user":
            self._end_turn()
            said.append(Said(at, one.text, one.how))
        elif one.source == "host" and _TAGS.sub("", one.text).strip():
            said.append(Said(at, one.text, one.how, by_user=False))

    def _answered(self, key: str, text: str, at: int, is_error: bool) -> None:
        self._last = None
        one = self.pairs.answer(key, f"is_error: {text}" if is_error else text, at)
        if one is None:
            return
        if key_of(one.call.name) in ASKING_TOOLS:
            words, how = text, f"answering {call_line(one.call)}"
        else:
            # What a fetched page or a file opens with is nobody's decision about a call.
            can_refuse = is_error or kind_of(one.call) == ACTS
            words = words_in_result(text) if can_refuse else ""
            how = f"in the result of {call_line(one.call, 80)}"
        if words.strip():
            self._found.said.append(Said(at, words, how))

    def _end_turn(self) -> None:
        if self._last is not None:
            self._found.reports.append(self._last)
        self._last = None

    def finished(self) -> Quotes:
        """Return what was read, with each call where it belongs."""
        self._end_turn()
        for one in self.pairs.made:
            if one.call.id:
                self._found.tools[one.call.name] += 1
            self._place(one)
        return self._found

    def _place(self, one: AnsweredCall) -> None:
        found = self._found
        if key_of(one.call.name) in TOOLS:
            found.plan.see(one)
            return
        source = instructions.source_of(one.call, self._rule_sources)
        if source and one.is_answered:
            found.instructions[source] = (one.answered_at, without_notes(one.text))
            return
        paths = changed_by(one.call)
        for path in paths:
            commands.note(found.files, path, one)
        line = command_of(one.call).strip()
        if line or not (paths or key_of(one.call.name) in ASKING_TOOLS):
            commands.note(found.runs, line or call_text(one.call), one)
