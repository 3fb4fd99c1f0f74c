"""Budgeted coverage: which clauses to print so that the most valuable identifiers survive.

Greedy by uncovered weight per token with lazy re-evaluation: a clause's worth only falls as others
are chosen, so the one on top of the heap is the best as soon as its fresh worth still leads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from .identifiers import Classifier
from .model import Excerpt

CHARS_PER_TOKEN = 3.2
OVERHEAD = 3.0
MARGIN_WORDS = 4


def choose(
    excerpts: Sequence[Excerpt],
    weights: Mapping[str, float],
    budget_tokens: int,
    count: Callable[[str], int],
    covered: set[str] | None = None,
) -> list[Excerpt]:
    """The chosen excerpts, trimmed to what they newly bind, in the order of the transcript."""
    done = set(covered or ())
    classifier = Classifier()
    heap: list[tuple[float, int]] = []
    for position, item in enumerate(excerpts):
        worth = _worth(item, item.text, weights, done)
        if worth > 0:
            heap.append((-worth, position))
    heapq.heapify(heap)
    chosen: list[tuple[int, Excerpt]] = []
    room = float(budget_tokens)
    while heap and room > OVERHEAD:
        stale, position = heapq.heappop(heap)
        item = excerpts[position]
        fresh = [key for key in item.keys if key not in done]
        if not fresh:
            continue
        text = trim(item.text, set(fresh), classifier)
        worth = _worth(item, text, weights, done)
        if worth <= 0:
            continue
        if heap and -worth > heap[0][0] and -worth > stale + 1e-12:
            heapq.heappush(heap, (-worth, position))
            continue
        cost = count(text) + OVERHEAD
        if cost > room:
            continue
        room -= cost
        done.update(key for key, _, _, _ in classifier.keys(text))
        chosen.append((position, Excerpt(item.index, item.source, text, tuple(fresh))))
    chosen.sort(key=lambda pair: pair[0])
    return [item for _, item in chosen]


def _worth(item: Excerpt, text: str, weights: Mapping[str, float], done: set[str]) -> float:
    gain = sum(weights.get(key, 0.0) for key in item.keys if key not in done)
    return gain / (len(text) / CHARS_PER_TOKEN + OVERHEAD)


def trim(text: str, wanted: set[str], classifier: Classifier) -> str:
    """The part of a clause from the first to the last wanted identifier, with words round it."""
    spans = [(start, end) for key, _, start, end in classifier.keys(text) if key in wanted]
    if not spans:
        return text
    start = _words_left(text, min(first for first, _ in spans), MARGIN_WORDS)
    end = _words_right(text, max(last for _, last in spans), MARGIN_WORDS)
    return text[start:end].strip()


def _words_left(text: str, at: int, words: int) -> int:
    for _ in range(words):
        at = text.rfind(" ", 0, max(0, at - 1)) + 1
        if at <= 0:
            return 0
    return at


def _words_right(text: str, at: int, words: int) -> int:
    for _ in range(words + 1):
        found = text.find(" ", at + 1)
        if found < 0:
            return len(text)
        at = found
    return at
