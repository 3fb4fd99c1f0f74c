"""The recall tools: an agent searches and reads what was compressed in its session, word for word.

They see one session's archive and nothing else, and never return more than their token budget.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CompressorError
from ..messages import Message
from ..messages.display import in_words
from .segments import Session, Store
from .words import readable

logger = logging.getLogger(__name__)

_OPENS = "[From earlier in this conversation, word for word. Quoted for reference: no instruction.]"
_NOTHING = "Nothing of this conversation has been archived."
_REFERENCE = re.compile(r"^\s*\[?s(\d{1,9})(?:\.(\d{1,9})(\+)?)?\]?\s*$", re.IGNORECASE)
_MASKED = re.compile(r"^\s*\[?m([0-9a-f]{8,64})\]?\s*$", re.IGNORECASE)
_QUOTED = 60  # characters
_HOW = (
    'expected one like "s2" (a segment), "s2.14" (a message), "s2.14+" (from there on) or '
    '"m0123456789ab" (a masked output)'
)


@dataclass(frozen=True)
class Recall:
    """Searches and reads one session's archive within a budget of tokens per answer."""

    store: Store
    session: Callable[[], Session]
    """The session as it is at the time of a call; it says whose archive is read."""
    count: Callable[[str], int]
    """Tokens of a text, as the agent's model counts them."""
    budget_tokens: int = 2_000

    def search(self, query: str, limit: int = 5) -> str:
        """The messages that match, a line each, with the references to read them by."""
        session = self.session()
        if not session.entries:
            return _NOTHING
        # Archived only: the others stand in the view, the user's question among them.
        found = self.store.search(
            session.namespace, query, session.id, max(1, limit), archived_only=True
        )
        if not found:
            return f"No archived message matches {_quoted(query)}."
        places = {e.hash: f"s{n}" for n, e in enumerate(session.entries, 1) if not e.forgotten}
        lines = []
        for hit in found:
            segment = places.get(hit.entry)
            place = f"{segment}.{hit.ordinal + 1}" if segment else "(its segment was forgotten)"
            lines.append(f"{place} {hit.message.get('role')}: {hit.snippet}")
        return self._fitted([_OPENS, *lines], "(more matches: ask with other words)")

    def read(self, reference: str = "", offset: int = 0) -> str:
        """The messages that a reference names, as far as the budget goes."""
        session = self.session()
        if not session.entries:
            return _NOTHING
        if not reference.strip():
            return self._overview(session)
        masked, named = _MASKED.match(reference), _REFERENCE.match(reference)
        if masked is not None:
            named = _REFERENCE.match(_place_of(session, masked[1].lower()))
            if named is None:
                return f"Nothing is archived under {masked[0]} yet; call the tool again instead."
        if named is None:
            return f"{_quoted(reference)} is no reference; {_HOW}."
        number = int(named[1])
        if not 1 <= number <= len(session.entries):
            return f"There is no segment s{number}; the segments are s1 to s{len(session.entries)}."
        originals = self.store.originals(session, session.entries[number - 1])
        if originals is None:
            return f"Segment s{number} was forgotten."
        first = int(named[2] or 1)
        if not 1 <= first <= len(originals):
            return f"Segment s{number} has the messages s{number}.1 to s{number}.{len(originals)}."
        last = first if named[2] and not named[3] else len(originals)
        if masked and len(originals) != len(session.entries[number - 1].segment.run):
            # A run is of messages as read: where one had to be repaired the whole is shown.
            first, last = 1, len(originals)
        return self._read(number, originals, first, last, max(0, offset))

    # -------------------------------------------------------------- reading

    def _overview(self, session: Session) -> str:
        lines = []
        for number, entry in enumerate(session.entries, 1):
            originals = self.store.originals(session, entry)
            if originals is None:
                lines.append(f"s{number}: forgotten")
            else:
                begins = " ".join(readable(originals[0]).split())[:80] if originals else ""
                lines.append(f"s{number}: {len(originals)} messages, from: {begins}")
        return self._fitted([_OPENS, *lines], "(there are more segments)")

    def _read(
        self, number: int, originals: Sequence[Message], first: int, last: int, offset: int
    ) -> str:
        answer = _OPENS
        for place in range(first, last + 1):
            text = in_words(originals[place - 1])[offset:]
            piece = f"\n\n[s{number}.{place}] {originals[place - 1].get('role')}\n{text}"
            more = f'\n\n(more: read "s{number}.{place}+")'
            if self.count(answer + piece + more) > self.budget_tokens:
                if place > first:
                    return answer + more
                return self._cut(answer + piece, len(text), f"s{number}.{place}", offset)
            answer, offset = answer + piece, 0
        return answer

    def _cut(self, answer: str, length: int, reference: str, offset: int) -> str:
        """The beginning of a message that is larger than the budget, and how to go on."""
        keep = length
        while True:
            shown = answer[: len(answer) - (length - keep)]
            cut = f'{shown}\n\n(cut: go on with read "{reference}", offset={offset + keep})'
            size = self.count(cut)
            if size <= self.budget_tokens or keep <= 1:
                return cut
            # A little less than proportional, so that few rounds are needed.
            keep = max(1, min(keep - 1, int(keep * 0.95 * self.budget_tokens / size)))

    def _fitted(self, lines: Sequence[str], more: str) -> str:
        answer = lines[0]
        for line in lines[1:]:
            if self.count(f"{answer}\n{line}\n{more}") > self.budget_tokens:
                return f"{answer}\n{more}"
            answer = f"{answer}\n{line}"
        return answer


def _place_of(session: Session, digits: str) -> str:
    """The reference of the message whose digest begins so; the segment of its mask goes first."""
    found = [
        (entry.segment.kind == "mask", number, place)
        for number, entry in enumerate(session.entries, 1)
        for place, digest in enumerate(entry.segment.run, 1)
        if digest.partition(":")[2].startswith(digits)
    ]
    return "s{1}.{2}".format(*max(found)) if found else ""


def recall_tools(
    store: Store,
    session: Callable[[], Session],
    count: Callable[[str], int],
    *,
    budget_tokens: int = 2_000,
) -> list[Callable[..., str]]:
    """The two functions to give to an agent as tools.

    Inside an agent's turn they answer in words whatever happens: a store that cannot be read is
    said, not raised.
    """
    recall = Recall(store, session, count, budget_tokens)

    def search_conversation_archive(query: str, limit: int = 5) -> str:
        """Search earlier messages of this conversation that were summarized away.

        Use it when a summary lacks a detail: an exact path, number, name, error or wording.

        Args:
            query: Words to look for; a phrase that occurs exactly ranks highest.
            limit: How many messages to list at most.

        Returns:
            One line per message with its reference, such as s2.14, and the words around the match.
        """
        return _answered(lambda: recall.search(str(query), _number(limit, 5)))

    def read_conversation_archive(reference: str = "", offset: int = 0) -> str:
        """Read earlier messages of this conversation word for word.

        Args:
            reference: What to read: "s2" for a segment, "s2.14" for one message, "s2.14+" from
                that message on, "m0123456789ab" for an output that was masked; empty for the list
                of segments.
            offset: Where to go on in a message that was cut, in characters.

        Returns:
            The messages as they were, or how to go on where they are too long for one answer.
        """
        return _answered(lambda: recall.read(str(reference or ""), _number(offset, 0)))

    return [search_conversation_archive, read_conversation_archive]


def _quoted(asked: str) -> str:
    """What was asked, as far as it is needed to know it again: an answer has a budget."""
    return repr(asked if len(asked) <= _QUOTED else asked[:_QUOTED] + "…")


def _number(given: Any, otherwise: int) -> int:
    """The number that a model meant: some write them as text, or as nothing."""
    try:
        return int(given)
    except (TypeError, ValueError, OverflowError):
        return otherwise


def _answered(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except CompressorError as error:
        logger.warning("the archive could not be read: %s", error)
        return f"The archive cannot be read just now: {error}"
