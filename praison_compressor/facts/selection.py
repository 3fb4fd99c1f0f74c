"""Budgeted coverage: which clauses to print so that the most valuable identifiers survive.

Greedy by uncovered weight per token with lazy re-evaluation: a clause's worth only falls as others
are chosen, so the one on top of the heap is the best as soon as its fresh worth still leads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, MutableMapping, Sequence

from .identifiers import Classifier
from .model import Excerpt
from .windows import Span, Windows

CHARS_PER_TOKEN = 3.3
OVERHEAD = 2.5
MENTIONS = 1
"""Of an identifier that a clause repeats, the first mention binds it."""
BINDING_CHARS = 10
"""What the words round a name cost at least."""
LEAST_WORTH = 1e-6
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
        self._anatomy: dict[int, tuple[dict[str, list[Span]], Windows]] = {}
        self._printed: dict[int, set[str]] = {}
        self._heap: list[tuple[float, int]] | None = None
        self._too_large: list[tuple[float, int]] = []
        self._taken: list[tuple[int, frozenset[str], float]] = []

    def spend(self, room: float, again: float = 0.0) -> None:
        """Choose clauses until the room is spent; called again, it goes on where it stopped.

        A covered identifier keeps `again` of its weight: a second mention says more.
        """
        heap = self._waiting()
        while heap and room > OVERHEAD:
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
                continue
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
            known = self._anatomy[position] = (places, Windows(text))
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
