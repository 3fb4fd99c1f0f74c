"""Read a segment's messages once; what a budget decides is decided later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ..messages import Message, ToolCall, calls, is_result, result_text, text_of
from . import speakers, user, work
from .rendering import Count, Renderer
from .todos import TOOLS, TodoList
from .user import Said
from .work import Newest

LEAST_REPEATED = 24  # shorter texts are quoted although they stand in the view anyway
MOST_CHARS = 6
"""Characters of a token at most, in prose of any language."""
_TAGS = re.compile(r"<[^>]*>")


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
    pairs: calls.Pairing = field(default_factory=calls.Pairing)
    """The calls, each with its result."""
    _last: tuple[int, str] | None = None
    """The assistant's newest text, while neither a call nor a result stands behind it."""

    def text(
        self,
        budget_tokens: int,
        count: Count,
        references: Sequence[str] = (),
        visible: str = "",
        beside_prose: bool = False,
        outline: Sequence[str] = (),
    ) -> str:
        """Return quotations of at most `budget_tokens`, in a fixed order.

        `references` are those of the messages; `visible` is text that stands in the view anyway.
        """
        words = {*visible.split()}

        def is_new(text: str) -> bool:
            # A look for some words takes a tenth of a search; a cut text may end in its last word.
            own, some = text.strip(), text.split(None, 9)[1:-1]
            return len(own) < LEAST_REPEATED or not words.issuperset(some) or own not in visible

        said = [one for one in self.said if is_new(one.text)]
        wanted = sum(len(one.text) for one in said) // MOST_CHARS
        beside = budget_tokens - min(wanted, int(user.SHARE * budget_tokens))
        sections = [
            user.section(said, budget_tokens),
            user.others(said),
            work.instructions({k: v for k, v in self.instructions.items() if is_new(v[1])}),
            self.plan.section(),
            work.files(self.files, beside),
            work.commands(self.runs, beside),
        ]
        if not beside_prose:
            others = sorted(set(self.texts).difference(at for at, _ in self.reports))
            sections += [
                user.reports([one for one in self.reports if is_new(one[1])], others),
                user.outlined(outline),
                user.counted(self.roles, self.tools),
            ]
        return Renderer(count, references).render(sections, budget_tokens)

    # -------------------------------------------------------------- reading

    def read(self, at: int, message: Message) -> None:
        """Take in one message."""
        role = str(message.get("role"))
        self.roles[role] += 1
        if is_result(message):
            key = str(message.get("tool_call_id") or message.get("name") or "")
            self._answered(key, result_text(message), at, message.get("is_error") is True)
        elif role == "assistant":
            text, called = text_of(message), self.pairs.calls(message, at)
            self._last = (at, text) if text.strip() and not called else None
            self.texts += [at] if text.strip() else []
        elif role == "user":
            for one in speakers.spoken(message):
                self._heard(at, one)

    def _heard(self, at: int, one: speakers.Spoken) -> None:
        if one.block is not None:
            key = str(one.block.get("tool_use_id") or "")
            self._answered(key, one.text, at, one.block.get("is_error") is True)
        elif self._last and (
            one.source == "result" or speakers.SHELL_PROMPT.search(one.text[-60:])
        ):
            # An agent without native calls: its text is the call.
            call = ToolCall("", work.AGENT, self._last[1])
            self.pairs.made.append(calls.AnsweredCall(self._last[0], call, one.text, at))
            del self.texts[-1]
            self._last = None
        elif one.source == "user":
            before = self._last or (-1, "")
            self._end_turn()
            self.said.append(user.answering(at, one.text, one.how, *before))
        elif one.source == "host" and _TAGS.sub("", one.text).strip():
            self.said.append(Said(at, one.text, one.how, by_user=False))

    def _answered(self, key: str, text: str, at: int, is_error: bool) -> None:
        self._last = None
        one = self.pairs.answer(key, f"is_error: {text}" if is_error else text, at)
        if one is None:
            return
        words, most, how = text, 160, "answering"
        if calls.key_of(one.call.name) not in speakers.ASKING_TOOLS:
            words, most, how = speakers.words_in_result(text), 80, "in the result of"
            # What a fetched page or a file opens with is nobody's decision about a call.
            if words and not is_error and calls.kind_of(one.call) != calls.ACTS:
                return
        if words.strip():
            self.said.append(Said(at, words, f"{how} {speakers.call_line(one.call, most)}"))

    def _end_turn(self) -> None:
        self.reports += [self._last] if self._last else []
        self._last = None

    def finish(self, rule_sources: tuple[str, ...]) -> None:
        """Put each call where it belongs."""
        self._end_turn()
        for one in self.pairs.made:
            if one.call.id:
                self.tools[one.call.name] += 1
            self._place(one, rule_sources)

    def _place(self, one: calls.AnsweredCall, rule_sources: tuple[str, ...]) -> None:
        if calls.key_of(one.call.name) in TOOLS:
            self.plan.see(one)
            return
        source = work.source_of(one.call, rule_sources)
        if source and one.is_answered:
            self.instructions[source] = (one.answered_at, speakers.without_notes(one.text))
            return
        paths = calls.changed_by(one.call)
        for path in paths:
            work.note(self.files, path, one)
        line = calls.command_of(one.call).strip()
        if line or not (paths or calls.key_of(one.call.name) in speakers.ASKING_TOOLS):
            work.note(self.runs, line or calls.call_text(one.call), one)


def read_quotes(messages: Sequence[Message], rule_sources: tuple[str, ...] = ()) -> Quotes:
    """Read what a segment's messages say, in order; see the option `rule_sources`.

    >>> read_quotes([{"role": "user", "content": "Use port 9090."}]).said[0].text
    'Use port 9090.'
    """
    found = Quotes()
    for at, message in enumerate(messages):
        found.read(at, message)
    found.finish(rule_sources)
    return found


def read_calls(messages: Sequence[Message]) -> list[calls.AnsweredCall]:
    """Return the calls that messages make, each with its result."""
    return read_quotes(messages).pairs.made


def fill(messages: Sequence[Message], budget_tokens: int) -> bool:
    """Return whether the user's words alone exceed a budget."""
    own = (message for message in messages if message.get("role") == "user")
    said = (len(x.text) for m in own for x in speakers.spoken(m) if x.source == "user")
    return any(sofar > budget_tokens * MOST_CHARS for sofar in accumulate(said))
