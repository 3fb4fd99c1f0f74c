"""Details: the verbatim clauses whose identifiers are worth most for their tokens, each cut to the
smallest part that says what they mean.

A name alone is worthless: it keeps the word on either side, and enough plain words to tell a
reader what the line was about, where the line has them.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .corrections import Stale
from .identifiers import Classifier
from .model import Excerpt, Facts

Count = Callable[[str], int]

LISTED = 0.5
"""Share of its weight that an identifier keeps which a section only lists."""
AGAIN = 0.15
"""Share of its weight that an identifier keeps once it is bound: a second mention says more."""
FILLINGS = 2
"""What the clauses cost is known only when all are printed: so often is what is left spent."""
HEADING = "## Details (fragments; … leaves text out{}; > call, = result{})\n"
CAUTION = ", conditions and exceptions too"
"""Without it readers took a filter for the rule whose fallback was left out (the exam)."""
NOTES_PAY_TOKENS = 600
"""Below it what the heading says of things left out costs more than it saves."""


def details(
    facts: Facts,
    budget_tokens: int,
    count: Count,
    covered: set[str] | None = None,
    half: set[str] | None = None,
) -> str:
    """The excerpts that bind the most valuable identifiers, within the budget.

    `covered` identifiers are bound elsewhere in the view, `half` ones only listed there.
    """
    stale = Stale(facts.user)
    assistant = stale.without(item for item in facts.excerpts if item.source == "assistant")
    others = (item for item in facts.excerpts if item.source not in ("user", "assistant"))
    weights = {
        item.text: item.worth * (LISTED if half and item.text in half else 1.0)
        for item in facts.identifiers
        if not (covered and item.text in covered)
    }
    pool = sorted((*assistant, *others), key=lambda item: item.index)
    notes = budget_tokens >= NOTES_PAY_TOKENS
    root = shared_root(item.text for item in pool) if notes else ""
    heading = HEADING.format(
        CAUTION if notes else "", f"; left out of paths: {root}" if root else ""
    )
    room = budget_tokens - count(heading)
    if room < 20:
        return ""
    if root:
        pool = [replace(item, text=item.text.replace(root, "")) for item in pool]
    chooser = Chooser(pool, weights, count, Classifier(facts.patterns))
    body = ""
    for _ in range(FILLINGS):
        chooser.spend(room - count(body))
        body = excerpts_text(chooser.chosen(), stale.marked, facts.at)
    while body and (over := count(body) - room) > 0:
        chooser.give_back(over)
        body = excerpts_text(chooser.chosen(), stale.marked, facts.at)
    return f"{heading}{body}\n" if body else ""


MARKS = {"call": "> ", "result": "= ", "assistant": "", "user": "user: ", "host": "host: "}
# How a line may not begin that has no mark of its own.
_POSES = re.compile(r"[#>=]|user:|host:|the user said", re.IGNORECASE)


def excerpts_text(
    chosen: Iterable[Excerpt],
    marked: Callable[[str, int], str] = lambda text, index: text,
    at: Callable[[int], str] = lambda index: "",
) -> str:
    """Chosen excerpts in order, those of one message together; none opens as what it is not.

    `at` gives a message's reference, printed before the first of it;
    `marked` says behind the words of a message which of their values no longer hold.
    """
    out: list[str] = []
    last: tuple[int, str] | None = None
    for item in chosen:
        here = (item.index, item.source)
        text = marked(" ".join(item.text.split()), item.index)
        if here == last:
            out[-1] += f" … {text}"
        else:
            mark = MARKS.get(item.source, "")
            posing = not mark and _POSES.match(text)
            out.append(f"{at(item.index)}{'assistant: ' if posing else mark}{text}")
        last = here
    return "\n".join(out)


_FOLDER = re.compile(r"(?<![\w./~:])/(?:[\w.@+-]+/){2,}(?=[\w.@+-]+/)")
LEAST_USES = 4


def shared_root(texts: Iterable[str]) -> str:
    """The absolute folder that paths keep repeating, two parts of each path left; "" if none."""
    saved: Counter[str] = Counter()
    for folder in (found for text in texts for found in _FOLDER.findall(text)):
        parts = folder.split("/")[:-1]
        for root in ("/".join(parts[:depth]) + "/" for depth in range(2, len(parts) + 1)):
            saved[root] += len(root)
    worth = {root: chars for root, chars in saved.items() if chars >= LEAST_USES * len(root)}
    return max(worth, key=lambda root: (worth[root], root), default="")


# -------------------------------------------------------------- choosing


CHARS_PER_TOKEN = 3.3
OVERHEAD = 2.5
BINDING_CHARS = 12
"""What the words round a name cost at least."""
LEAST_WORTH = 1e-6
MOST_MISSES = 40
"""So many clauses in a row that did not fit: what room is left is not worth reading them all."""
WORTHWHILE = 0.35
"""A further identifier of a chosen clause is printed if its worth per token is at least this share
of the clause's own."""
Span = tuple[int, int]


class Chooser:
    """Spends a budget on clauses; `weights` falls as identifiers are covered.

    Greedy by uncovered weight per token with lazy re-evaluation: a clause's worth only falls as
    others are chosen, so the one on top of the heap is the best as soon as its fresh worth leads.
    """

    def __init__(
        self,
        excerpts: Sequence[Excerpt],
        weights: dict[str, float],
        count: Count,
        classifier: Classifier,
    ) -> None:
        self._excerpts = excerpts
        self._weights = weights
        self._count = count
        self._classifier = classifier
        self._windows: dict[int, dict[str, Span]] = {}
        self._printed: dict[int, set[str]] = {}
        self._taken: list[tuple[int, set[str], float]] = []

    def spend(self, room: float) -> None:
        """Choose clauses until the room is spent; called again, it goes on where it stopped."""
        hopes = ((-self._hope(position), position) for position in range(len(self._excerpts)))
        heap = [hope for hope in hopes if hope[0] < -LEAST_WORTH]
        heapq.heapify(heap)
        misses = 0
        while heap and room > OVERHEAD and misses < MOST_MISSES:
            known, position = heapq.heappop(heap)
            # What it is worth at most, first: cutting a clause costs many times as much.
            worth = min(-known, self._hope(position))
            keys: set[str] = set()
            if not heap or worth >= -heap[0][0] * 0.999:
                keys, worth = self._best_part(position)
            if worth <= LEAST_WORTH:
                continue
            if not keys or (heap and worth < -heap[0][0] and worth < -known * 0.999):
                heapq.heappush(heap, (-worth, position))
                continue
            text = self._cut(position, keys)
            cost = self._count(text) + OVERHEAD
            if cost > room:
                misses += 1
                continue
            misses = 0
            room -= cost
            self._printed.setdefault(position, set()).update(keys)
            self._taken.append((position, keys, cost))
            for key in self._classifier.names(text):
                if key in self._weights:
                    self._weights[key] *= AGAIN
            heapq.heappush(heap, (-self._hope(position), position))

    def give_back(self, tokens: float) -> None:
        """Take back what was chosen last, at least so many tokens of it."""
        while self._taken and tokens > 0:
            position, keys, cost = self._taken.pop()
            tokens -= cost
            self._printed[position] -= keys

    def chosen(self) -> list[Excerpt]:
        """The chosen parts in the order of the transcript."""
        return [
            replace(self._excerpts[position], text=self._cut(position, keys))
            for position, keys in sorted(self._printed.items())
            if keys
        ]

    def _cut(self, position: int, wanted: Iterable[str]) -> str:
        """The clause cut to the first mentions of these names."""
        text = self._excerpts[position].text
        if position not in self._windows:
            keys = reversed(self._classifier.keys(text))
            self._windows[position] = windows(text, {key: (at, end) for key, _, at, end in keys})
        found = self._windows[position]
        return joined(text, (found[key] for key in wanted if key in found)) or text

    def _open(self, position: int) -> dict[str, float]:
        """What the names of a clause weigh that it does not print yet."""
        printed = self._printed.get(position, ())
        keys = (key for key in self._excerpts[position].keys if key not in printed)
        return {key: weight for key in keys if (weight := self._weights.get(key, 0.0)) > 0}

    def _best_part(self, position: int) -> tuple[set[str], float]:
        weights = self._open(position)
        value = {key: weight / (len(key) + BINDING_CHARS) for key, weight in weights.items()}
        floor = WORTHWHILE * max(value.values(), default=0.0)
        wanted = {key for key in value if value[key] >= floor}
        # In the names' own order: sums of a set's numbers differ from process to process.
        gain = sum(weights[key] for key in weights if key in wanted)
        return wanted, gain / (len(self._cut(position, wanted)) / CHARS_PER_TOKEN + OVERHEAD)

    def _hope(self, position: int) -> float:
        """The most the clause can be worth: its best identifiers at the price of their names."""
        weights = self._open(position)
        best = gain = 0.0
        chars = BINDING_CHARS
        for key in sorted(weights, key=lambda key: (len(key) + BINDING_CHARS) / weights[key]):
            gain += weights[key]
            chars += len(key) + BINDING_CHARS
            value = gain / (chars / CHARS_PER_TOKEN + OVERHEAD)
            if value <= best:
                break  # they come by worth per character: the next one only dilutes it
            best = value
        return best


# -------------------------------------------------------------- windows


PLAIN_WORDS = 2
REACH_CHARS = 78
JOIN_CHARS = 14
WIDENED_CHARS = 12
ELLIPSIS = " … "
_WORD = re.compile(r"\w+")
_PLAIN = re.compile(r"(?<![\w/.@#-])(?:[A-Za-z][a-z]{3,}|[A-Z]{4,})(?![\w/@-]|\.\w)")
_SAYS_NOTHING = frozenset(
    "this that with from have been were will would could should there their which when what your "
    "into than then them they also only just some more most such very over after before about "
    "other these those file files line lines code true false null none name text content type "
    "value return function call tool result output error".split()
)


def windows(text: str, names: dict[str, Span]) -> dict[str, Span]:
    """The part of the text round each name: from the word before it to the word behind, and as far
    as the nearest words that carry meaning on their own."""
    plain = [
        word.span() for word in _PLAIN.finditer(text) if word.group().lower() not in _SAYS_NOTHING
    ]
    return {name: _window(text, plain, *span) for name, span in names.items()}


def _window(text: str, plain: Iterable[Span], first: int, last: int) -> Span:
    start = first
    for before in _WORD.finditer(text, max(0, first - REACH_CHARS), first):
        start = before.start()
    after = _WORD.search(text, last)
    end = after.end() if after else last
    words = [
        (a, b)
        for a, b in plain
        if first - REACH_CHARS <= a and b <= last + REACH_CHARS and (b <= first or last <= a)
    ]
    words.sort(key=lambda word: max(start - word[0], word[1] - end))
    for a, b in words[:PLAIN_WORDS]:
        start, end = min(start, a), max(end, b)
    return _whole(text, start, end)


LINE_CHARS = 60
"""A line that goes on for no more is shown to its end: what decides often stands there."""


def _whole(text: str, start: int, end: int) -> Span:
    """The span widened to the ends of its line where they are near, else to whitespace."""
    left = text.rfind("\n", 0, start) + 1
    if start - left > LINE_CHARS:
        left = text.rfind(" ", max(0, start - WIDENED_CHARS), start) + 1 or start
    right = text.find("\n", end)
    right = len(text) if right < 0 else right
    if right - end > LINE_CHARS:
        found = text.find(" ", end, end + WIDENED_CHARS)
        right = found if found >= 0 else end
    return left, right


def joined(text: str, spans: Iterable[Span]) -> str:
    """The parts of the text in order, as one where they nearly touch."""
    parts: list[list[int]] = []
    for start, end in sorted(spans):
        if parts and start - parts[-1][1] <= JOIN_CHARS:
            parts[-1][1] = max(end, parts[-1][1])
        else:
            parts.append([start, end])
    return ELLIPSIS.join([text[start:end].strip() for start, end in parts])
