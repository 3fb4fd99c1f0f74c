"""Read a segment's messages once; print what they say within any budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from ..messages import Message, calls, results, shapes, speakers
from ..messages.shortening import cut_line
from ..messages.speakers import TYPED_COMMAND
from . import rendering
from .output_lines import (
    commands_section,
    files_section,
    instructions_section,
    source_of,
)
from .rendering import CountText, QuoteEntry, Renderer, Section
from .todo_list import TODO_TOOLS, TodoList

LEAST_DUPLICATE_CHARS = 24
"""Shorter texts are quoted even if the view shows them."""
LEAST_OUTLINE_SHARE, MOST_OUTLINE_SHARE = 0.075, 0.36
"""Shares of the budget for the outline."""
ASKING_CHARS, DECIDED_CHARS = 160, 80
"""Characters of a call whose arguments or result have the user's words."""
_ANY_TAG = re.compile(r"<[^>]*>")


@dataclass
class Quotes:
    """What a segment's messages say, by section."""

    user_texts: list[UserText] = field(default_factory=list)
    instructions: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Path or tool -> index and content of the newest reading."""
    plan: TodoList = field(default_factory=TodoList)
    files: dict[str, list[results.CallRecord]] = field(default_factory=dict)
    """Path -> the calls that change the file, oldest first."""
    runs: dict[str, list[results.CallRecord]] = field(default_factory=dict)
    """Command or call -> equal calls, oldest first."""
    reports: set[int] = field(default_factory=set)
    """Indices of the assistant's last text in each turn."""
    texts: dict[int, str] = field(default_factory=dict)
    """Index -> the assistant's text without calls."""
    roles: Counter[str] = field(default_factory=Counter)
    pairs: results.CallPairing = field(default_factory=results.CallPairing)

    def render(
        self,
        budget_tokens: int,
        count: CountText,
        references: Sequence[str] = (),
        visible: str = "",
        beside_prose: bool = False,
    ) -> str:
        """Return quotes of at most `budget_tokens`.

        Args:
            references: the reference of each message.
            visible: texts in it are not quoted again.
            beside_prose: leave out reports and counts.
        """
        is_new = _novelty_test(visible)
        texts = [text for text in self.user_texts if is_new(text.text)]
        instructions = {k: v for k, v in self.instructions.items() if is_new(v[1])}
        chars = sum(len(text.text) for text in texts)
        sections = [
            user_section(texts, budget_tokens),
            others_section(texts),
            instructions_section(instructions),
            self.plan.section(),
            files_section(self.files, budget_tokens),
            commands_section(self.runs, budget_tokens),
        ]
        if not beside_prose:
            written = {at: text for at, text in self.texts.items() if is_new(text)}
            tools = Counter(record.call.name for record in self.pairs.calls if record.call.id)
            sections.append(reports_section(written, self.reports))
            sections.append(counts_section(self.roles, tools))
        runs = (*self.files.values(), *self.runs.values())
        records = [*dict.fromkeys(record for run in runs for record in run)]
        # The outline shrinks as the user's words grow.
        outline = max(
            LEAST_OUTLINE_SHARE * budget_tokens, MOST_OUTLINE_SHARE * budget_tokens - chars / 8
        )
        return Renderer(count, references).render(sections, records, budget_tokens, int(outline))

    def read_message(self, at: int, message: Message) -> None:
        """Read the message at a position."""
        role = str(message.get("role"))
        self.roles[role] += 1
        if shapes.is_result(message):
            text = shapes.result_text(message)
            self._read_result(self.pairs.add_result(message, text, at), text, message)
        elif role == "assistant":
            text = shapes.text_of(message)
            self.pairs.add_calls(message, text, at)
            if text.strip():
                self.texts[at] = text
        elif role == "user":
            for part in speakers.spoken_parts(message):
                self._read_part(at, part)

    def _read_part(self, at: int, part: speakers.SpokenPart) -> None:
        before = self.pairs.last_text
        record = self.pairs.add_part(part, at)
        if part.block is not None:
            self._read_result(record, part.text, part.block)
        elif record is not None:  # the assistant's text was a call
            del self.texts[record.at]
        elif part.source == "user":
            if before:
                self.reports.add(before[0])
            question = before or (-1, "")
            self.user_texts.append(with_question(at, part.text, part.origin, *question))
        elif part.source == "host" and _ANY_TAG.sub("", part.text).strip():
            self.user_texts.append(UserText(at, part.text, part.origin, by_user=False))

    def _read_result(
        self, record: results.CallRecord | None, text: str, result: Mapping[str, object]
    ) -> None:
        """Read the user's words in a call's result, if any."""
        if record is None:
            return
        if calls.normalize_key(record.call.name) in speakers.ASKING_TOOLS:
            words, origin, most = text, "answering", ASKING_CHARS
        else:
            words, origin, most = speakers.user_words_in(text), "in the result of", DECIDED_CHARS
            # The user decides about calls that act. Another call's page or file may imitate a
            # decision.
            is_error = result.get("is_error") is True
            if words and not is_error and calls.kind_of(record.call) != calls.ACTS:
                return
        if words.strip():
            line = cut_line(calls.call_text(record.call), most)
            self.user_texts.append(UserText(record.answered_at, words, f"{origin} {line}"))

    def sort_calls(self, rule_sources: tuple[str, ...]) -> None:
        """Sort the calls into sections."""
        if self.pairs.last_text:
            self.reports.add(self.pairs.last_text[0])
        for record in self.pairs.calls:
            self._sort_call(record, rule_sources)

    def _sort_call(self, record: results.CallRecord, rule_sources: tuple[str, ...]) -> None:
        name = calls.normalize_key(record.call.name)
        if name in TODO_TOOLS:
            self.plan.read_call(record)
            return
        source = source_of(record.call, rule_sources)
        if source and record.is_answered:
            content = speakers.without_notes(record.text)
            self.instructions[source] = (record.answered_at, content)
            return
        paths = calls.paths_changed(record.call)
        for path in paths:
            self.files.setdefault(path, []).append(record)
        line = calls.command_of(record.call).strip()
        if line or not (paths or name in speakers.ASKING_TOOLS):
            self.runs.setdefault(line or calls.call_text(record.call), []).append(record)


def _novelty_test(visible: str) -> Callable[[str], bool]:
    words = {*visible.split()}

    def is_new(text: str) -> bool:
        # Comparing some words first is ten times as fast. The text's ends may be cut words.
        some, stripped = text.split(None, 9)[1:-1], text.strip()
        is_short = len(stripped) < LEAST_DUPLICATE_CHARS
        return is_short or not words.issuperset(some) or stripped not in visible

    return is_new


def read_quotes(messages: Sequence[Message], rule_sources: tuple[str, ...] = ()) -> Quotes:
    """Read what a segment's messages say, in order; see the option `rule_sources`."""
    quotes = Quotes()
    for at, message in enumerate(messages):
        quotes.read_message(at, message)
    quotes.sort_calls(rule_sources)
    return quotes


# -------------------------------------------------------------- sections of texts

FIRST, STATES, ASKS, REPEATED = range(4)
"""Ranks of the user's texts. FIRST: the first text, the newest texts and texts in results."""
NEWEST_TEXTS = 3
"""Number of newest texts with the rank FIRST."""
OTHERS_CHARS = 400
WHOLE_TOKENS = 90
"""Shorter texts are not cut."""
RARE_WORD_TEXTS = 2
"""A rare word is in at most this number of texts."""
WORDS_CHARS = 240
"""Characters of a text that are searched for rare words."""
ANSWER_CHARS = 16
"""A shorter answer is quoted with its question."""
ASKED_CHARS = 100
LEAST_TEXT_CHARS = 160
"""Shorter texts within a turn are only counted."""
_ASKS = ("?", "？", "؟", "?)", '?"')


class UserText(NamedTuple):
    """A text of a speaker in the user's role."""

    at: int
    text: str
    origin: str = ""
    """Where the text was, if not in the user's own message."""
    by_user: bool = True
    question_at: int = -1
    """Index of the message with the agent's question, or -1."""


def with_question(at: int, text: str, origin: str, asked_at: int, before: str) -> UserText:
    """Return a text; a short answer gets the question before it."""
    if not origin and len(text.strip()) <= ANSWER_CHARS:
        lines = (line.strip(" *_") for line in reversed(before.splitlines()))
        if question := next((line for line in lines if line.endswith(_ASKS)), ""):
            answering = f'answering "{cut_line(question, ASKED_CHARS)}"'
            return UserText(at, text, answering, question_at=asked_at)
    return UserText(at, text, origin)


def user_section(texts: Sequence[UserText], budget: int) -> Section:
    """Return the section of the user's texts."""
    own = [text for text in texts if text.by_user]
    entries = [
        QuoteEntry(at, rank, text.strip(), origin and f"{origin}: ", question_at)
        for (at, text, origin, _, question_at), rank in zip(own, _text_ranks(own), strict=True)
    ]
    least = min(WHOLE_TOKENS, max(50, budget // 27))
    return Section(rendering.USER._replace(least=least), entries)


def others_section(texts: Sequence[UserText]) -> Section:
    """Return the section of hosts' and other agents' texts."""
    newest = {text.text: text for text in texts if not text.by_user}
    entries = [
        QuoteEntry(text.at, (-text.at,), cut_line(text.text, OTHERS_CHARS), f"{text.origin}: ")
        for text in sorted(newest.values())
    ]
    return Section(rendering.OTHERS, entries)


def _text_ranks(texts: Sequence[UserText]) -> Iterator[tuple[int, ...]]:
    """Yield each text's rank: kind, rare words, length, age."""
    words = [set(text.text[:WORDS_CHARS].lower().split()) for text in texts]
    times = Counter(chain.from_iterable(words))
    common = {word for word, count in times.items() if count > RARE_WORD_TEXTS}
    newest = {text.text: n for n, text in enumerate(texts)}
    for n, (_, text, origin, _, question_at) in enumerate(texts):
        size, rare = len(words[n]), len(words[n] - common)
        is_in_result = origin not in ("", TYPED_COMMAND) and question_at < 0
        if n == 0 or n >= len(texts) - NEWEST_TEXTS or is_in_result:
            kind = FIRST
        elif newest[text] != n:
            kind = REPEATED
        else:
            kind = ASKS if text.rstrip().endswith(_ASKS) else STATES
        yield kind, -(10 * rare // max(5, size)), len(text) // 200, -n


def reports_section(texts: Mapping[int, str], reports: Set[int]) -> Section:
    """Return the section of reports and of the agent's long texts."""
    long = {at for at, text in texts.items() if len(text) >= LEAST_TEXT_CHARS}
    quoted = [at for at in texts if at in long | reports]
    entries = [QuoteEntry(at, (at not in reports, -at), texts[at].strip()) for at in quoted]
    return Section(rendering.REPORTS, entries, sorted(texts.keys() - quoted))


def counts_section(roles: Mapping[str, int], tools: Counter[str]) -> Section:
    """Return the section of counts: messages by role, calls by tool."""
    by_role = ", ".join(f"{n:,} {role}" for role, n in roles.items())
    by_tool = ", ".join(f"{name} {n:,}" for name, n in tools.most_common())
    text = f"{sum(roles.values()):,} messages: {by_role}"
    text += f"; calls: {by_tool}" if by_tool else ""
    return Section(rendering.COUNTS, [QuoteEntry(-1, (0,), text)] if roles else [])
