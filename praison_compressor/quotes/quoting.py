"""Read a segment's messages once; print what they say within any budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..messages import Message, calls, results, shapes, speakers
from ..messages.shortening import cut_line
from . import user, work
from .rendering import CountText, Renderer
from .todos import TODO_TOOLS, TodoList
from .user import UserText

LEAST_DUPLICATE_CHARS = 24  # a shorter text is quoted even where the view shows it already
LEAST_OUTLINE, MOST_OUTLINE = 0.075, 0.36  # shares of the budget for the outline
ASKING_CHARS, DECIDED_CHARS = 160, 80  # characters of a call whose result has the user's words
_ANY_TAG = re.compile(r"<[^>]*>")


@dataclass
class Quotes:
    """What a segment's messages say, by section."""

    user_texts: list[UserText] = field(default_factory=list)
    instructions: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Path or tool -> position and content of the newest reading."""
    plan: TodoList = field(default_factory=TodoList)
    files: dict[str, list[results.CallRecord]] = field(default_factory=dict)
    """Path -> the calls that change the file, in order."""
    runs: dict[str, list[results.CallRecord]] = field(default_factory=dict)
    """Command or call -> equal calls, in order."""
    reports: set[int] = field(default_factory=set)
    """Positions of the assistant's last texts of turns."""
    texts: dict[int, str] = field(default_factory=dict)
    """Position -> text of the assistant, calls left out."""
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
        """Return quotations of at most `budget_tokens`, in a fixed order.

        `references` name the messages. Texts of `visible` are not quoted again. `beside_prose`: a
        model's prose takes the place of reports and counts.
        """
        is_new = _novelty_test(visible)
        texts = [text for text in self.user_texts if is_new(text.text)]
        instructions = {k: v for k, v in self.instructions.items() if is_new(v[1])}
        chars = sum(len(text.text) for text in texts)
        sections = [
            user.user_section(texts, budget_tokens),
            user.others_section(texts),
            work.instructions_section(instructions),
            self.plan.section(),
            work.files_section(self.files, budget_tokens),
            work.commands_section(self.runs, budget_tokens),
        ]
        if not beside_prose:
            written = {at: text for at, text in self.texts.items() if is_new(text)}
            tools = Counter(record.call.name for record in self.pairs.calls if record.call.id)
            sections.append(user.reports_section(written, self.reports))
            sections.append(user.counts_section(self.roles, tools))
        runs = (*self.files.values(), *self.runs.values())
        records = [*dict.fromkeys(record for run in runs for record in run)]
        # The user's words come first: at 60 % of the budget they still are whole.
        room = max(LEAST_OUTLINE * budget_tokens, MOST_OUTLINE * budget_tokens - chars / 8)
        return Renderer(count, references).render(sections, records, budget_tokens, int(room))

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
            self.texts |= {at: text} if text.strip() else {}
        elif role == "user":
            for part in speakers.spoken_parts(message):
                self._read_part(at, part)

    def _read_part(self, at: int, part: speakers.SpokenPart) -> None:
        before = self.pairs.last_text
        record = self.pairs.add_part(part, at)
        if part.block is not None:
            self._read_result(record, part.text, part.block)
        elif record is not None:  # an agent without native calls: its text is the call
            del self.texts[record.at]
        elif part.source == "user":
            self.reports |= {before[0]} if before else set()
            question = before or (-1, "")
            self.user_texts.append(user.with_question(at, part.text, part.origin, *question))
        elif part.source == "host" and _ANY_TAG.sub("", part.text).strip():
            self.user_texts.append(UserText(at, part.text, part.origin, by_user=False))

    def _read_result(
        self, record: results.CallRecord | None, text: str, result: Mapping[str, object]
    ) -> None:
        """Read the user's words in a call's result."""
        if record is None:
            return
        if calls.normalize_key(record.call.name) in speakers.ASKING_TOOLS:
            words, origin, most = text, "answering", ASKING_CHARS
        else:
            words, origin, most = speakers.user_words_in(text), "in the result of", DECIDED_CHARS
            # What a fetched page or a file opens with is nobody's decision about a call.
            is_error = result.get("is_error") is True
            if words and not is_error and calls.kind_of(record.call) != calls.ACTS:
                return
        if words.strip():
            line = cut_line(calls.call_text(record.call), most)
            self.user_texts.append(UserText(record.answered_at, words, f"{origin} {line}"))

    def finish(self, rule_sources: tuple[str, ...]) -> None:
        """Sort the calls into sections."""
        self.reports |= {self.pairs.last_text[0]} if self.pairs.last_text else set()
        for record in self.pairs.calls:
            self._sort_call(record, rule_sources)

    def _sort_call(self, record: results.CallRecord, rule_sources: tuple[str, ...]) -> None:
        name = calls.normalize_key(record.call.name)
        if name in TODO_TOOLS:
            self.plan.read_call(record)
            return
        source = work.source_of(record.call, rule_sources)
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
    """Return a test that accepts short texts and texts not visible."""
    words = {*visible.split()}

    def is_new(text: str) -> bool:
        # Some words are found ten times as fast; a cut text may end inside its last word.
        some, stripped = text.split(None, 9)[1:-1], text.strip()
        is_short = len(stripped) < LEAST_DUPLICATE_CHARS
        return is_short or not words.issuperset(some) or stripped not in visible

    return is_new


def read_quotes(messages: Sequence[Message], rule_sources: tuple[str, ...] = ()) -> Quotes:
    """Read what a segment's messages say, in order; see the option `rule_sources`."""
    quotes = Quotes()
    for at, message in enumerate(messages):
        quotes.read_message(at, message)
    quotes.finish(rule_sources)
    return quotes
