"""Compose the text of a summary: prose with quotes, or quotes alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import SummaryRejected
from ..ledger.segments import TextMethod
from ..messages import Message
from ..quotes import Quotes, read_quotes
from ..quotes.rendering import HEADING, TITLES
from ..tokens.counter import TokenCounter
from ..view.frame import IN_REACH, QUOTES_OPEN, SHORT_IN_REACH, frame_summary
from .protocol import Brief, SegmentText

WORD_TOKENS = 3  # tokens of a word in prose with ids and numbers; 1.8 to 2.8 in recorded summaries
CARRIED_SHARE = 0.4  # share of a static text's room for carried prose, if the quotes need the rest
LITTLE_ROOM = 350  # tokens of a summary in which `IN_REACH` would take a tenth
SEAM_TOKENS = 4  # tokens by which a framed text may exceed the sum of its parts


@dataclass(frozen=True)
class Composition:
    """Fit a brief's prose and quotes into its room."""

    brief: Brief
    method: TextMethod
    tokens: TokenCounter
    rule_sources: tuple[str, ...] = ()
    """Files whose newest state is quoted."""

    def measure(self) -> tuple[int, int]:
        """Return the segment's tokens, and the words of prose that surely fit."""
        size = sum(self.tokens.each(self.tokens.cache.all(self.brief.messages)))
        room = min(self.brief.room_tokens, size) - self._size("")
        return size, (room - SEAM_TOKENS) // WORD_TOKENS

    def with_prose(self, prose: str, segment_tokens: int) -> SegmentText:
        """Return the model's prose, with quotes in the room left.

        Raises:
            SummaryRejected: the prose alone exceeds room and spare, or the segment.
        """
        brief, size = self.brief, self._size(prose)
        most = min(brief.room_tokens + brief.spare_tokens, segment_tokens)
        if size > most:
            raise SummaryRejected("not smaller", f"{size} tokens, at most {most} fit")
        room = min(brief.room_tokens, size + brief.quotes_tokens)
        if room - size <= SEAM_TOKENS:
            return SegmentText(self._frame(prose), self.method)
        quotes = read_quotes(brief.messages, self.rule_sources)
        return SegmentText(self._add_quotes(prose, quotes, room), self.method)

    def without_model(self) -> SegmentText:
        """Return quotes, after the prose of folded summaries."""
        quotes, prose = read_quotes(self.brief.messages, self.rule_sources), ""
        if self.brief.folded:
            # Few quotes leave more room for carried prose.
            room = self.brief.room_tokens - self._size("")
            needed = self.tokens.text(self._quote(quotes, "", room))
            most = max(int(room * CARRIED_SHARE), room - needed - 2 * SEAM_TOKENS)
            prose = self._carry_prose(most)
        message = self._add_quotes(prose, quotes, self.brief.room_tokens)
        return SegmentText(message, self.method)

    def _carry_prose(self, room: int) -> str:
        """Return earlier prose, each text cut to an equal share."""
        texts = self.brief.folded
        whole = "\n\n".join(texts)
        if self.tokens.text(whole) <= room:
            return whole
        shortened = [cut_text(text, room // len(texts), self.tokens.text) for text in texts]
        return "\n\n".join(filter(None, shortened))

    def _add_quotes(self, prose: str, quotes: Quotes, room: int) -> Message:
        """Return the framed prose with the quotes that fit the room."""
        budget = room - self._size(self._join(prose, "-"))
        while budget > 0 and (text := self._quote(quotes, prose, budget)):
            message = self._frame(self._join(prose, text))
            # The count of joined texts differs from the sum of their counts.
            excess = self.tokens.message(message) - room
            if excess <= 0:
                return message
            budget -= excess
        return self._frame(self._join(prose, ""))

    def _quote(self, quotes: Quotes, prose: str, budget: int) -> str:
        brief, is_static = self.brief, self.method == "static"
        text = quotes.render(
            budget,
            self.tokens.text,
            references=brief.references,
            visible=f"{brief.visible}\n{prose}",
            beside_prose=not is_static,
        )
        # A text without a heading has only the count of the entries left out.
        return text if is_static or HEADING in text else ""

    def _join(self, prose: str, quotes: str) -> str:
        """Join prose and quotes in the form that `prose_of` parses."""
        if not prose or (self.method == "model" and not quotes):
            return prose or quotes
        return f"{prose}\n\n{QUOTES_OPEN}\n{quotes}"

    def _frame(self, text: str) -> Message:
        in_reach = SHORT_IN_REACH if self.brief.room_tokens < LITTLE_ROOM else IN_REACH
        content = frame_summary(
            text,
            count=len(self.brief.messages),
            method=self.method,
            reference=self.brief.reference,
            in_reach=in_reach if self.brief.references else "",
        )
        return {"role": "user", "content": content}

    def _size(self, text: str) -> int:
        return self.tokens.message(self._frame(text))


def mark_headings(prose: str) -> str:
    """Return the prose with each imitated heading of quotes marked.

    >>> mark_headings("## The user said")
    'The summarizer writes: The user said'
    """
    return _IMITATED_HEADING.sub("The summarizer writes: ", prose)


_IMITATED_HEADING = re.compile(
    rf"^[^\w\n]{{0,20}}(?={'|'.join(re.escape(t) for t in (QUOTES_OPEN[:-1], *TITLES))})",
    re.IGNORECASE | re.MULTILINE,
)


def cut_text(text: str, room: int, count: Callable[[str], int]) -> str:
    """Return a text's first lines, or its first characters, within the room."""
    size = count(text)
    while size > room and text:
        keep = max(0, int(len(text) * room / size) - 8)
        cut = text.rfind("\n", 0, keep)
        text = text[: cut if cut > 0 else keep].rstrip()
        size = count(text)
    return text
