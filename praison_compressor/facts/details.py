"""Details: the verbatim clauses whose identifiers are worth most for their tokens, each cut to the
smallest part that says what they mean.

A name alone is worthless: it keeps the word on either side, and enough plain words to tell a
reader what the line was about, where the line has them.
"""

from __future__ import annotations

import bisect
import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import replace

from .corrections import Stale
from .identifiers import Classifier
from .model import Excerpt, Facts

Count = Callable[[str], int]

LISTED = 0.5
"""Share of its weight that an identifier keeps which a section only lists."""
AGAIN = 0.15
"""Share of its weight that an identifier keeps once it is bound: a second mention says more."""
FILLINGS = 3
"""What the clauses cost is known only when all are printed: so often is what is left spent."""
LEFT_OVER = 0.01
"""Share of the room that is not worth another round."""


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
    pool = sorted((*assistant, *others), key=lambda item: item.index)
    root = shared_root(item.text for item in pool) if budget_tokens >= ROOT_PAYS_TOKENS else ""
    note = f" (left out of paths: {root})" if root else ""
    heading = f"## Details (> call, = result){note}\n"
    room = budget_tokens - count(heading)
    if room < 20:
        return ""
    if root:
        pool = [replace(item, text=item.text.replace(root, "")) for item in pool]
    weights = {
        item.text: item.worth * (LISTED if half and item.text in half else 1.0)
        for item in facts.identifiers
        if not (covered and item.text in covered)
    }
    chooser = Chooser(pool, weights, count, Classifier(facts.patterns))
    body, left = "", room
    for _ in range(FILLINGS):
        chooser.spend(left, AGAIN)
        body = excerpts_text(chooser.chosen(), stale.marked)
        left = room - count(body)
        if left <= LEFT_OVER * room:
            break
    while body and left < 0:
        chooser.give_back(-left)
        body = excerpts_text(chooser.chosen(), stale.marked)
        left = room - count(body)
    return heading + body + "\n" if body else ""


MARKS = {"call": "> ", "result": "= ", "assistant": "", "user": "user: ", "host": "host: "}
# How a line may not begin that has no mark of its own.
_POSES = re.compile(r"[#>=]|user:|host:|the user said", re.IGNORECASE)


def excerpts_text(
    chosen: Iterable[Excerpt], marked: Callable[[str, int], str] = lambda text, index: text
) -> str:
    """Chosen excerpts in order, those of one message together; none opens as what it is not.

    `marked` says behind the words of a message which of their values no longer hold.
    """
    out: list[str] = []
    last: tuple[int, str] | None = None
    for item in chosen:
        here = (item.index, item.source)
        text = marked(item.text, item.index)
        if here == last:
            out[-1] += f" … {text}"
        else:
            mark = MARKS.get(item.source, "")
            posing = not mark and _POSES.match(text)
            out.append(f"{'… ' if posing else mark}{text}")
        last = here
    return "\n".join(out)


_FOLDER = re.compile(r"(?<![\w./~:])/(?:[\w.@+-]+/){2,}(?=[\w.@+-]+/)")
LEAST_USES = 4
ROOT_PAYS_TOKENS = 600
"""Below it the note on what is left out of paths costs more than it saves."""


def shared_root(texts: Iterable[str]) -> str:
    """The absolute folder that paths keep repeating, two parts of each path left; "" if none."""
    saved: Counter[str] = Counter()
    for folder, uses in Counter(found for text in texts for found in _FOLDER.findall(text)).items():
        parts = folder.split("/")[:-1]
        roots = ("/".join(parts[:depth]) + "/" for depth in range(2, len(parts) + 1))
        saved.update({root: uses * len(root) for root in roots})
    worth = {root: chars for root, chars in saved.items() if chars >= LEAST_USES * len(root)}
    return max(worth, key=lambda root: (worth[root], root), default="")


# -------------------------------------------------------------- choosing


CHARS_PER_TOKEN = 3.3
OVERHEAD = 2.5
BINDING_CHARS = 10
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
        weights: MutableMapping[str, float],
        count: Count,
        classifier: Classifier | None = None,
    ) -> None:
        self._excerpts = excerpts
        self._weights = weights
        self._count = count
        self._classifier = classifier or Classifier()
        self._anatomy: dict[int, tuple[dict[str, Span], Windows]] = {}
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
            known, position = heapq.heappop(heap)
            # What it is worth at most, first: cutting a clause costs many times as much.
            most = min(-known, self._hope(position))
            if heap and most < -heap[0][0] * 0.999:
                if most > LEAST_WORTH:
                    heapq.heappush(heap, (-most, position))
                continue
            text, keys, worth = self._best_part(position)
            if worth <= LEAST_WORTH:
                continue
            if heap and -worth > heap[0][0] and -worth > known * 0.999:
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
            rest = self._hope(position)
            if rest > 0:
                heapq.heappush(heap, (-rest, position))

    def _waiting(self) -> list[tuple[float, int]]:
        """The clauses that are not yet chosen, the most promising on top."""
        if self._heap is None:
            hopes = ((self._hope(position), position) for position in range(len(self._excerpts)))
            self._heap = [(-worth, position) for worth, position in hopes if worth > 0]
        self._heap += self._too_large
        self._too_large.clear()
        heapq.heapify(self._heap)
        return self._heap

    def give_back(self, tokens: float) -> None:
        """Take back what was chosen last, at least so many tokens of it."""
        while self._taken and tokens > 0:
            position, keys, cost = self._taken.pop()
            tokens -= cost
            self._printed[position] -= keys

    def chosen(self) -> list[Excerpt]:
        """The chosen parts in the order of the transcript."""
        return [
            replace(self._excerpts[position], text=self._cut(position, keys), keys=tuple(keys))
            for position, keys in sorted(self._printed.items())
            if keys
        ]

    def _take(self, position: int, text: str, keys: set[str], again: float) -> None:
        self._printed.setdefault(position, set()).update(keys)
        for key in self._classifier.names(text):
            if key in self._weights:
                self._weights[key] *= again

    def _cut(self, position: int, wanted: Iterable[str]) -> str:
        """The clause cut to the first mentions of these names; its anatomy is remembered."""
        text = self._excerpts[position].text
        known = self._anatomy.get(position)
        if known is None:
            places: dict[str, Span] = {}
            for key, _, start, end in self._classifier.keys(text):
                places.setdefault(key, (start, end))
            known = self._anatomy[position] = (places, Windows(text))
        places, windows = known
        spans = [places[key] for key in wanted if key in places]
        return windows.cut_out(spans) if spans else text

    def _best_part(self, position: int) -> tuple[str, set[str], float]:
        printed = self._printed.get(position, ())
        weights = {
            key: weight
            for key in self._excerpts[position].keys
            if key not in printed and (weight := self._weights.get(key, 0.0)) > 0
        }
        if not weights:
            return "", set(), 0.0
        value = {key: weight / (len(key) + 12) for key, weight in weights.items()}
        floor = WORTHWHILE * max(value.values())
        wanted = {key for key in value if value[key] >= floor}
        text = self._cut(position, wanted)
        gain = sum(weights[key] for key in wanted)
        return text, wanted, gain / (len(text) / CHARS_PER_TOKEN + OVERHEAD)

    def _hope(self, position: int) -> float:
        """The most the clause can be worth: its best identifiers at the price of their names."""
        get, printed = self._weights.get, self._printed.get(position, ())
        left = [
            ((len(key) + BINDING_CHARS) / weight, weight, len(key))
            for key in self._excerpts[position].keys
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


class Windows:
    """The parts of one text that bind a name in it, each found once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._plain = plain_words(text)
        self._found: dict[Span, Span] = {}

    def cut_out(self, spans: Iterable[Span]) -> str:
        """The parts that bind the names at `spans`, joined where they nearly touch."""
        parts: list[list[int]] = []
        for span in sorted(spans):
            if span not in self._found:
                self._found[span] = self._window(*span)
            start, end = self._found[span]
            if parts and start - parts[-1][1] <= JOIN_CHARS:
                parts[-1][1] = max(end, parts[-1][1])
            else:
                parts.append([start, end])
        return ELLIPSIS.join([self._text[start:end].strip() for start, end in parts])

    def _window(self, first: int, last: int) -> Span:
        """From the word before to the word behind, and as far as the nearest plain words."""
        text, plain = self._text, self._plain
        start = first
        for before in _WORD.finditer(text, max(0, first - REACH_CHARS), first):
            start = before.start()
        after = _WORD.search(text, last)
        end = after.end() if after else last
        begin = bisect.bisect_left(plain, (first - REACH_CHARS, 0))
        stop = bisect.bisect_right(plain, (last + REACH_CHARS, 0))
        words = [w for w in plain[begin:stop] if w[1] <= first or last <= w[0]]
        words = [w for w in words if w[1] <= last + REACH_CHARS]
        words.sort(key=lambda word: max(start - word[0], word[1] - end))
        for word in words[:PLAIN_WORDS]:
            start, end = min(start, word[0]), max(end, word[1])
        return _whole(text, start, end)


def plain_words(text: str) -> list[Span]:
    """The spans of the words that carry meaning on their own."""
    found = _PLAIN.finditer(text)
    return [word.span() for word in found if word.group().lower() not in _SAYS_NOTHING]


def _whole(text: str, start: int, end: int) -> Span:
    """The span widened to whitespace where that is near, so that no word is cut."""
    left = text.rfind(" ", max(0, start - WIDENED_CHARS), start) + 1
    if left or start <= WIDENED_CHARS:
        start = left
    right = text.find(" ", end, end + WIDENED_CHARS)
    if right >= 0:
        end = right
    elif len(text) - end <= WIDENED_CHARS:
        end = len(text)
    return start, end
