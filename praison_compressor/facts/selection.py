"""Budgeted coverage: choose the verbatim clauses whose identifiers are worth most, in the smallest
part that says what they mean.

A name alone is worthless: it keeps the word on either side, and enough plain words to tell a
reader what the line was about, where the line has them.

Greedy by uncovered weight per token with lazy re-evaluation: a clause's worth only falls as others
are chosen, so the one on top of the heap is the best as soon as its fresh worth still leads.
"""

from __future__ import annotations

import bisect
import heapq
import re
from collections.abc import Callable, Iterable, MutableMapping, Sequence

from .identifiers import Classifier
from .model import Excerpt

# -------------------------------------------------------------- windows


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


class ClauseWindows:
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


# -------------------------------------------------------------- selection


CHARS_PER_TOKEN = 3.3
OVERHEAD = 2.5
MENTIONS = 1
"""Of an identifier that a clause repeats, the first mention binds it."""
BINDING_CHARS = 10
"""What the words round a name cost at least."""
LEAST_WORTH = 1e-6
MOST_MISSES = 40
"""So many clauses in a row that did not fit: what room is left is not worth reading them all."""
WORTHWHILE = 0.35
"""A further identifier of a chosen clause is printed if its worth per token is at least this share
of the clause's own."""


class Chooser:
    """Spends a budget on clauses; `weights` falls as identifiers are covered."""

    def __init__(
        self,
        excerpts: Sequence[Excerpt],
        weights: MutableMapping[str, float],
        count: Callable[[str], int],
        classifier: Classifier | None = None,
    ) -> None:
        self._excerpts = excerpts
        self._weights = weights
        self._count = count
        self._classifier = classifier or Classifier()
        self._anatomy: dict[int, tuple[dict[str, list[Span]], ClauseWindows]] = {}
        self._printed: dict[int, set[str]] = {}
        self._heap: list[tuple[float, int]] | None = None
        self._too_large: list[tuple[float, int]] = []
        self._taken: list[tuple[int, frozenset[str], float]] = []

    def spend(self, room: float, again: float = 0.0) -> None:
        """Choose clauses until the room is spent; called again, it goes on where it stopped.

        A covered identifier keeps `again` of its weight: a second mention says more.
        """
        heap, misses = self._waiting(), 0
        while heap and room > OVERHEAD and misses < MOST_MISSES:
            stale, position = heapq.heappop(heap)
            # What it is worth at most, first: cutting a clause costs many times as much.
            most = min(
                -stale, self._hope(self._excerpts[position], self._printed.get(position, ()))
            )
            if heap and most < -heap[0][0] * 0.999:
                if most > LEAST_WORTH:
                    heapq.heappush(heap, (-most, position))
                continue
            text, keys, worth = self._best_part(position)
            if worth <= LEAST_WORTH:
                continue
            if heap and -worth > heap[0][0] and -worth > stale * 0.999:
                heapq.heappush(heap, (-worth, position))
                continue
            cost = self._count(text) + OVERHEAD
            if cost > room:
                self._too_large.append((-worth, position))
                misses += 1
                continue
            misses = 0
            room -= cost
            self._take(position, text, keys, again)
            self._taken.append((position, frozenset(keys), cost))
            rest = self._hope(self._excerpts[position], self._printed[position])
            if rest > 0:
                heapq.heappush(heap, (-rest, position))

    def _waiting(self) -> list[tuple[float, int]]:
        """The clauses that are not yet chosen, the most promising on top."""
        if self._heap is None:
            self._heap = [
                (-worth, position)
                for position, item in enumerate(self._excerpts)
                if (worth := self._hope(item)) > 0
            ]
        self._heap += self._too_large
        self._too_large.clear()
        heapq.heapify(self._heap)
        return self._heap

    def give_back(self, tokens: float) -> None:
        """Take back what was chosen last, at least so many tokens of it."""
        while self._taken and tokens > 0:
            position, keys, cost = self._taken.pop()
            tokens -= cost
            left = self._printed[position] - keys
            if left:
                self._printed[position] = left
            else:
                del self._printed[position]

    def chosen(self) -> list[Excerpt]:
        """The chosen parts in the order of the transcript."""
        out = []
        for position in sorted(self._printed):
            item = self._excerpts[position]
            wanted = self._printed[position]
            text = self._cut(position, wanted)
            out.append(Excerpt(item.index, item.source, text, tuple(wanted)))
        return out

    def _take(self, position: int, text: str, keys: set[str], again: float) -> None:
        self._printed.setdefault(position, set()).update(keys)
        for key in self._classifier.names(text):
            if key in self._weights:
                self._weights[key] *= again

    def _cut(self, position: int, wanted: Iterable[str]) -> str:
        """The clause cut to the wanted identifiers; what was found in it is remembered."""
        text = self._excerpts[position].text
        known = self._anatomy.get(position)
        if known is None:
            places: dict[str, list[Span]] = {}
            for key, _, start, end in self._classifier.keys(text):
                places.setdefault(key, []).append((start, end))
            known = self._anatomy[position] = (places, ClauseWindows(text))
        places, windows = known
        spans = [span for key in wanted for span in places.get(key, ())[:MENTIONS]]
        return windows.cut_out(spans) if spans else text

    def _best_part(self, position: int) -> tuple[str, set[str], float]:
        item = self._excerpts[position]
        printed = self._printed.get(position, ())
        weights = {key: self._weights.get(key, 0.0) for key in item.keys if key not in printed}
        ranked = sorted(
            (key for key, weight in weights.items() if weight > 0),
            key=lambda key: -weights[key] / (len(key) + 12),
        )
        if not ranked:
            return "", set(), 0.0
        wanted = {ranked[0]}
        floor = WORTHWHILE * weights[ranked[0]] / (len(ranked[0]) + 12)
        wanted |= {key for key in ranked[1:] if weights[key] / (len(key) + 12) >= floor}
        text = self._cut(position, wanted)
        return text, wanted, self._worth(tuple(wanted), text)

    def _hope(self, item: Excerpt, printed: Iterable[str] = ()) -> float:
        """The most the clause can be worth: its best identifiers at the price of their names."""
        get = self._weights.get
        left = [
            ((len(key) + BINDING_CHARS) / weight, weight, len(key))
            for key in item.keys
            if (weight := get(key)) and key not in printed
        ]
        left.sort()
        best = gain = 0.0
        chars = BINDING_CHARS
        for _, weight, length in left:
            gain += weight
            chars += length + BINDING_CHARS
            value = gain / (chars / CHARS_PER_TOKEN + OVERHEAD)
            if value <= best:
                break  # they come by worth per character: the next one only dilutes it
            best = value
        return best

    def _worth(self, keys: Sequence[str], text: str) -> float:
        gain = sum(self._weights.get(key, 0.0) for key in keys)
        return gain / (len(text) / CHARS_PER_TOKEN + OVERHEAD)
