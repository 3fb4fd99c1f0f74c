"""The smallest verbatim part of a clause that still says what its identifiers mean.

A name alone is worthless: it keeps the word on either side, and enough plain words to tell a
reader what the line was about, where the line has them.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence

PLAIN_WORDS = 2
REACH_CHARS = 78
JOIN_CHARS = 14
ELLIPSIS = " … "
_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_PLAIN = re.compile(r"(?<![\w/.@#-])(?:[A-Za-z][a-z]{3,}|[A-Z]{4,})(?![\w/@-]|\.\w)")
_STALE = frozenset(
    "this that with from have been were will would could should there their which when what your "
    "into than then them they also only just some more most such very over after before about "
    "other these those file files line lines code true false null none name text content type "
    "value return function call tool result output error".split()
)

Span = tuple[int, int]


def plain_words(text: str) -> list[Span]:
    """The spans of the words that carry meaning on their own."""
    return [found.span() for found in _PLAIN.finditer(text) if found.group().lower() not in _STALE]


class Windows:
    """One text's windows, each found once: a clause is cut anew whenever its worth changes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._plain = plain_words(text)
        self._found: dict[Span, Span] = {}

    def cut_out(self, spans: Sequence[Span]) -> str:
        """The parts that bind the identifiers at `spans`, joined where they nearly touch."""
        parts: list[list[int]] = []
        for span in sorted(spans):
            start, end = self._window(span)
            if parts and start - parts[-1][1] <= JOIN_CHARS:
                parts[-1][1] = max(end, parts[-1][1])
            else:
                parts.append([start, end])
        return ELLIPSIS.join([self._text[start:end].strip() for start, end in parts])

    def _window(self, span: Span) -> Span:
        found = self._found.get(span)
        if found is None:
            found = self._found[span] = _window(self._text, span, self._plain)
        return found


def _window(text: str, span: Span, plain: Sequence[Span]) -> Span:
    first, last = span
    after = _WORD.search(text, last)
    start = _word_before(text, first)
    end = after.end() if after else last
    begin = bisect.bisect_left(plain, (first - REACH_CHARS, 0))
    stop = bisect.bisect_right(plain, (last + REACH_CHARS, 0))
    near = [
        word
        for word in plain[begin:stop]
        if word[1] <= first or (last <= word[0] and word[1] <= last + REACH_CHARS)
    ]
    if len(near) > PLAIN_WORDS:
        near.sort(key=lambda word: max(start - word[0], word[1] - end))
    for word in near[:PLAIN_WORDS]:
        start, end = min(start, word[0]), max(end, word[1])
    return _whole(text, start, end)


def _word_before(text: str, at: int) -> int:
    """Where the word before `at` begins; `at` itself if none stands near."""
    end = at
    while end > 0 and not (text[end - 1].isalnum() or text[end - 1] == "_"):
        end -= 1
        if at - end > REACH_CHARS:
            return at
    start = end
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return start if start < end else at


def _whole(text: str, start: int, end: int) -> Span:
    """The span widened to whitespace where that is near, so that no word is cut."""
    left = text.rfind(" ", max(0, start - 12), start) + 1
    if left or start <= 12:
        start = left if left else 0
    right = text.find(" ", end, end + 12)
    if right >= 0:
        end = right
    elif len(text) - end <= 12:
        end = len(text)
    return start, end
