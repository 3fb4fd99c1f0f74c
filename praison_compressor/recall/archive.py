"""Read a session's archived messages and their neighbours from its store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..concurrency import computed_once
from ..errors import LedgerError
from ..ledger.segments import DROPPED, Entry, Session
from ..ledger.stores import ALL_MESSAGES, Store
from ..ledger.words import distinct_words
from ..messages import Message, ToolCall
from ..messages.calls import argument_values, arguments_of
from ..messages.display import call_as_text, message_as_text
from ..messages.results import CallRecord, pair_calls
from .layout import length_without_ending, line_numbers, shared_endings, split_lines
from .references import Reference

EMPTY = "(empty)"
FOLLOWING_LINES = 40
"""The reference after a passage names at most this number of lines."""
NEIGHBOUR_MESSAGES = 32
"""Messages that are read before and after the wanted messages, to pair calls with results."""
SAMPLED_MESSAGES = 100
"""Newest messages that are searched for repeated endings."""
COMPARED_WORDS = 5_000
"""If a query has no match, its words are compared with this number of the newest words."""


@dataclass(frozen=True)
class SessionArchive:
    """The messages that a session's segments replace."""

    store: Store
    session: Session

    @property
    def entries(self) -> Sequence[Entry]:
        """The session's entries; references count the entries from 1."""
        return self.session.entries

    def originals(self, entry: Entry, wanted: slice = ALL_MESSAGES) -> list[Message] | None:
        """Return an entry's messages, or None if forgotten.

        A message outside `wanted` is `{}`.
        """
        # An entry that is only hidden is marked as forgotten too: the store still has its messages.
        forgotten = entry.is_forgotten
        return None if forgotten else self.store.originals(self.session, entry, wanted)

    def around(self, segment: int, places: range) -> Neighbourhood:
        """Return the messages at `places` and their neighbours; none if damaged."""
        start = max(0, places.start - NEIGHBOUR_MESSAGES)
        wanted = slice(start, places.stop + NEIGHBOUR_MESSAGES)
        messages: list[Message] = []
        # A damaged neighbour must not hide the wanted messages.
        with contextlib.suppress(LedgerError):
            messages = (self.originals(self.entries[segment - 1], wanted) or [])[wanted]
        return Neighbourhood(segment, start, messages, self.endings)

    @computed_once
    def endings(self) -> frozenset[str]:
        """The last lines that several of the newest messages share."""
        texts: list[str] = []
        for entry in reversed(self.entries):
            wanted = slice(max(0, SAMPLED_MESSAGES - len(texts)))
            with contextlib.suppress(LedgerError):
                texts += map(message_as_text, (self.originals(entry, wanted) or [])[wanted])
            if len(texts) >= SAMPLED_MESSAGES:
                break
        return shared_endings(texts)

    def newest_words(self) -> list[str]:
        """Return the different words of the newest segments."""
        distinct: dict[str, None] = {}
        for entry in reversed(self.entries):
            for message in self.originals(entry) or ():
                if message != DROPPED:
                    distinct.update(dict.fromkeys(distinct_words(message_as_text(message))))
            if len(distinct) > COMPARED_WORDS:
                break
        return list(distinct)


# -------------------------------------------------------------- the messages around a message


class Neighbourhood:
    """Consecutive messages of a segment; calls are paired with results."""

    def __init__(
        self, segment: int, start: int, messages: Sequence[Message], shared: frozenset[str]
    ) -> None:
        """Hold messages from ordinal `start`; `shared`: lines that end several messages."""
        self.segment, self.start, self.messages, self.shared = segment, start, messages, shared
        self._calls = pair_calls(messages)

    def lines(self, at: int) -> list[str]:
        """Return a message's lines without a shared ending."""
        lines = split_lines(message_as_text(self.messages[at]))
        return lines[: length_without_ending(lines, self.shared)]

    def lines_at(self, where: Reference) -> list[str]:
        """Return the lines of a reference."""
        assert where.message is not None
        assert where.line is not None
        return self.lines(where.message - 1 - self.start)[where.line - 1 : where.last_line]

    def where(self, at: int) -> Reference:
        """Return the reference of the message at an index."""
        return Reference(self.segment, self.start + at + 1)

    def place(self, at: int) -> tuple[int, int]:
        """Return segment and ordinal of the message at an index."""
        return self.segment, self.start + at

    def calls_answered_by(self, ordinal: int) -> list[CallRecord]:
        """Return the calls in other messages that a message answers."""
        at = ordinal - self.start
        return [call for call in self._calls if call.answered_at == at and call.at != at]

    def calls_in(self, ordinal: int) -> list[CallRecord]:
        """Return a message's calls that other messages answer."""
        at = ordinal - self.start
        answered = (call for call in self._calls if call.is_answered)
        return [call for call in answered if call.at == at and call.answered_at != at]

    def listed_after(self, ordinal: int) -> Reference | None:
        """Return where a listing goes on in another message, or None."""
        numbers = [n for n in line_numbers(self.lines(ordinal - self.start)) if n is not None]
        return self.listed_at(ordinal, numbers[-1] + 1) if numbers else None

    def listed_at(self, ordinal: int, number: int) -> Reference | None:
        """Return where another listing has lines from `number` on, or None."""
        asked = [_named_by(each.call) for each in self.calls_answered_by(ordinal)]
        others = [
            each for each in self._calls if each.is_answered and _named_by(each.call) in asked
        ]
        for other in sorted(others, key=lambda each: abs(self.start + each.answered_at - ordinal)):
            numbers = [*line_numbers(self.lines(other.answered_at))]
            if number in numbers:
                first = numbers.index(number) + 1
                last = min(len(numbers), first + FOLLOWING_LINES - 1)
                return self.where(other.answered_at).lines(first, last)
        return None

    def results_of(self, ordinal: int) -> list[int]:
        """Return the ordinals of the results of a message's calls."""
        places = dict.fromkeys(call.answered_at for call in self.calls_in(ordinal))
        return [self.start + at for at in places]

    def paired_with(self, ordinal: int) -> list[int]:
        """Return the ordinals of a message's results and calls."""
        calls = [self.start + call.at for call in self.calls_answered_by(ordinal)]
        return self.results_of(ordinal) + calls

    def messages_not_asked(
        self, ordinals: Iterable[int], asked: Sequence[Reference]
    ) -> dict[int, Message]:
        """Return the messages at the ordinals, unless `asked` names them."""
        return {
            ordinal: self.messages[ordinal - self.start]
            for ordinal in ordinals
            if not any(each.names(self.segment, ordinal) for each in asked)
        }

    def calls_above(self, places: range, asked: Sequence[Reference]) -> list[str]:
        """Return the calls above the results at `places`, unless `asked` names them."""
        calls: dict[int, list[str]] = {}
        for answered in (
            answered for ordinal in places for answered in self.calls_answered_by(ordinal)
        ):
            text = call_as_text(answered.call) if answered.call.id else answered.call.arguments
            calls.setdefault(self.start + answered.at, []).append(text)
        return [
            "\n".join([f"[{Reference(self.segment, n + 1)}] {message.get('role')}", *calls[n]])
            for n, message in self.messages_not_asked(calls, asked).items()
        ]

    def results_below(self, places: range, asked: Sequence[Reference]) -> list[str]:
        """Return the results of the calls at `places`, unless `asked` names them."""
        results = self.messages_not_asked(
            (n for ordinal in places for n in self.results_of(ordinal)), asked
        )
        texts = {n - self.start: "\n".join(self.lines(n - self.start)) for n in results}
        return [f"=> [{self.where(at)}] {text or EMPTY}" for at, text in texts.items()]


def _named_by(call: ToolCall) -> tuple[str, ...]:
    return call.name, *argument_values(arguments_of(call))
