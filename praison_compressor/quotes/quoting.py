"""Read a segment's messages once; what a budget decides is decided later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ..messages import Message, ToolCall, calls, is_result, result_text, text_of
from . import speakers, user, work
from .rendering import CountText, Renderer
from .todos import TODO_TOOLS, TodoList
from .user import UserText
from .work import Newest

LEAST_DUPLICATE_CHARS = 24  # shorter texts are quoted although they stand in the view anyway
MOST_CHARS = 6
"""Characters of a token at most, in prose of any language."""
_ANY_TAG = re.compile(r"<[^>]*>")


@dataclass
class Quotes:
    """What a segment's messages say, as it can be quoted."""

    user_texts: list[UserText] = field(default_factory=list)
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
    pairs: calls.CallPairing = field(default_factory=calls.CallPairing)
    """The calls, each with its result."""
    _last_text: tuple[int, str] | None = None
    """The assistant's newest text, while neither a call nor a result stands behind it."""

    def text(
        self,
        budget_tokens: int,
        count: CountText,
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
            return (
                len(own) < LEAST_DUPLICATE_CHARS or not words.issuperset(some) or own not in visible
            )

        said = [one for one in self.user_texts if is_new(one.text)]
        wanted = sum(len(one.text) for one in said) // MOST_CHARS
        beside = budget_tokens - min(wanted, int(user.USER_SHARE * budget_tokens))
        sections = [
            user.user_section(said, budget_tokens),
            user.others_section(said),
            work.instructions_section({k: v for k, v in self.instructions.items() if is_new(v[1])}),
            self.plan.section(),
            work.files_section(self.files, beside),
            work.commands_section(self.runs, beside),
        ]
        if not beside_prose:
            others = sorted(set(self.texts).difference(at for at, _ in self.reports))
            sections += [
                user.reports_section([one for one in self.reports if is_new(one[1])], others),
                user.outline_section(outline),
                user.counts_section(self.roles, self.tools),
            ]
        return Renderer(count, references).render(sections, budget_tokens)

    # -------------------------------------------------------------- reading

    def read_message(self, at: int, message: Message) -> None:
        """Take in one message."""
        role = str(message.get("role"))
        self.roles[role] += 1
        if is_result(message):
            key = str(message.get("tool_call_id") or message.get("name") or "")
            self._read_result(key, result_text(message), at, message.get("is_error") is True)
        elif role == "assistant":
            text, called = text_of(message), self.pairs.add_calls(message, at)
            self._last_text = (at, text) if text.strip() and not called else None
            self.texts += [at] if text.strip() else []
        elif role == "user":
            for one in speakers.spoken_parts(message):
                self._read_part(at, one)

    def _read_part(self, at: int, one: speakers.SpokenPart) -> None:
        if one.block is not None:
            key = str(one.block.get("tool_use_id") or "")
            self._read_result(key, one.text, at, one.block.get("is_error") is True)
        elif self._last_text and (
            one.source == "result" or speakers.SHELL_PROMPT.search(one.text[-60:])
        ):
            # An agent without native calls: its text is the call.
            call = ToolCall("", work.AGENT_TEXT, self._last_text[1])
            self.pairs.calls.append(calls.AnsweredCall(self._last_text[0], call, one.text, at))
            del self.texts[-1]
            self._last_text = None
        elif one.source == "user":
            before = self._last_text or (-1, "")
            self._end_turn()
            self.user_texts.append(user.with_question(at, one.text, one.origin, *before))
        elif one.source == "host" and _ANY_TAG.sub("", one.text).strip():
            self.user_texts.append(UserText(at, one.text, one.origin, by_user=False))

    def _read_result(self, key: str, text: str, at: int, is_error: bool) -> None:
        self._last_text = None
        one = self.pairs.add_result(key, f"is_error: {text}" if is_error else text, at)
        if one is None:
            return
        words, most, how = text, 160, "answering"
        if calls.normalize_key(one.call.name) not in speakers.ASKING_TOOLS:
            words, most, how = speakers.user_words_in(text), 80, "in the result of"
            # What a fetched page or a file opens with is nobody's decision about a call.
            if words and not is_error and calls.kind_of(one.call) != calls.ACTS:
                return
        if words.strip():
            self.user_texts.append(
                UserText(at, words, f"{how} {speakers.call_line(one.call, most)}")
            )

    def _end_turn(self) -> None:
        self.reports += [self._last_text] if self._last_text else []
        self._last_text = None

    def finish(self, rule_sources: tuple[str, ...]) -> None:
        """Put each call where it belongs."""
        self._end_turn()
        for one in self.pairs.calls:
            if one.call.id:
                self.tools[one.call.name] += 1
            self._sort_call(one, rule_sources)

    def _sort_call(self, one: calls.AnsweredCall, rule_sources: tuple[str, ...]) -> None:
        if calls.normalize_key(one.call.name) in TODO_TOOLS:
            self.plan.read_call(one)
            return
        source = work.source_of(one.call, rule_sources)
        if source and one.is_answered:
            self.instructions[source] = (one.answered_at, speakers.without_notes(one.text))
            return
        paths = calls.paths_changed(one.call)
        for path in paths:
            work.note_newest(self.files, path, one)
        line = calls.command_of(one.call).strip()
        if line or not (paths or calls.normalize_key(one.call.name) in speakers.ASKING_TOOLS):
            work.note_newest(self.runs, line or calls.call_text(one.call), one)


def read_quotes(messages: Sequence[Message], rule_sources: tuple[str, ...] = ()) -> Quotes:
    """Read what a segment's messages say, in order; see the option `rule_sources`.

    >>> read_quotes([{"role": "user", "content": "Use port 9090."}]).said[0].text
    'Use port 9090.'
    """
    found = Quotes()
    for at, message in enumerate(messages):
        found.read_message(at, message)
    found.finish(rule_sources)
    return found


def read_calls(messages: Sequence[Message]) -> list[calls.AnsweredCall]:
    """Return the calls that messages make, each with its result."""
    return read_quotes(messages).pairs.calls


def user_words_exceed(messages: Sequence[Message], budget_tokens: int) -> bool:
    """Return whether the user's words alone exceed a budget."""
    own = (message for message in messages if message.get("role") == "user")
    said = (len(x.text) for m in own for x in speakers.spoken_parts(m) if x.source == "user")
    return any(sofar > budget_tokens * MOST_CHARS for sofar in accumulate(said))
