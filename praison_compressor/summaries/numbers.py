"""Whether the originals bear out the numbers of a claim.

A number has its witness where it stands beside words of the claim, is the label of a line that
shows what the claim names, or is how many there are of what the claim counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import Any, NamedTuple

from ..facts import wording
from ..facts.coverage import (
    CODE,
    STOP,
    Line,
    Lines,
    Words,
    base_name,
    measured,
    names_in,
    quoted,
    stem,
    ungrouped,
    words,
)
from ..facts.model import Attempt
from ..facts.passages import Passage

Found = tuple[str, str, Line | Attempt | None]
"""Verdict, reason, and the witness."""


class Numbers:
    """The numbers of claims beside their witnesses: lines, labels of lines, and counts."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._counts: list[tuple[int, frozenset[str]]] = []
        self._calls: dict[int, Counter[str]] = {}
        self._called: dict[int, frozenset[str]] = {}
        self._ranges: list[tuple[int, int, frozenset[str]]] = []

    def see(self, passage: Passage, found: frozenset[str]) -> None:
        """Take in what can be counted in a passage; `found`: its words."""
        at, call, text = passage.at, passage.call, passage.text
        counted: Iterable[tuple[int, str]] = _lists_in(text)
        if call is not None and passage.source == "call":
            self._calls.setdefault(at, Counter())[call.name] += 1
            self._ranges += [(int(a), int(b), found) for a, b in _RANGE.findall(text)]
            counted = [(len(_DEFINED.findall(text)), "test tests function functions")]
        elif call is not None and passage.source == "result":
            found = self.lines.shared(call.arguments[:400])
            counted = (*counted, *_arrays_in(text))
        if call is not None:
            self._called[at] = self._called.get(at, frozenset()) | found
        self._counts += [(n, self.lines.shared(told)) for n, told in counted if n > 1]
        if (places := len(_PLACE_LINE.findall(text))) > 1:
            self._counts.append((places, self._context(at) | found))

    def _context(self, at: int) -> frozenset[str]:
        return self._called.get(at, frozenset())

    # ---------------------------------------------------------- the check

    def number(self, text: str, said: Words) -> Found | None:
        """A number that the originals do not have, or in whose place they have another."""
        if found := self._literal(text):
            return found
        count, whole = listed(text) or ("", "")
        if count != whole:
            return "unwitnessed", f"{whole} are listed, not {count}", None
        rest = {one for one in said.content if not is_number(one)}
        told = order(text)
        for value in _values(text, told):
            if value.text == count or float(value.text) < 2:
                continue
            if found := self._doubt(value, rest, told, text, said):
                return found
        return None

    def _doubt(
        self, value: Value, rest: set[str], told: Sequence[str], text: str, said: Words
    ) -> Found | None:
        one, near = value.text, value.near
        if value.is_place:
            names = names_in(text).union(*(map(stem, words(code)) for code in CODE.findall(text)))
            names = {name for name in names if not is_number(name)}
            stands = self._own(one, near) or self._shown(value, names, rest, said)
        else:
            stands = self._stands(value, rest, told)
        if stands:
            return None
        is_table = sum(map(is_number, told)) > wording.MOST_NUMBERS
        line = None if is_table or value.is_place else self._other(near, rest, one)
        if line is not None:
            return "contradicted", quoted(line.text), line
        if value.of_times or float(one) <= wording.SMALL:
            return None
        nouns = value.nouns if len(one) < 3 else frozenset[str]()
        if nouns and not self._sizes(nouns, rest) and not self._numbered(nouns):
            return None  # what a writer counts himself
        beside = next(iter((*near[1], *near[0])), "it")
        return "unwitnessed", f"no line has {one} beside \u2018{beside}\u2019", None

    # ---------------------------------------------------------- witnesses

    def _stands(self, value: Value, rest: set[str], told: Sequence[str]) -> bool:
        one, near = value.text, value.near
        if value.is_sum or self._own(one, near) or self._is_id(one):
            return True
        if value.month and self._dated(value.month, int(float(one))):
            return True
        if value.nouns and float(one) in self._sizes(value.nouns, rest):
            return True
        words_near = {*near[0], *near[1]}
        others = {n for n in told if is_number(n)} - {one}
        for line in self.lines.having(one):
            if one in (there := order(line.text)):
                is_headline = line.source == "result" and len(line.text) < wording.HEADLINE
                whole = line.words | self._context(line.at) if is_headline else line.words
                known = filter(self.lines.having, rest) if is_headline else rest
                most = max(self.lines.cover(one, whole) for one in (words_near, known))
                if most >= wording.SAME_LINE or len(others.intersection(there)) > 1:
                    return True
        return False

    def _own(self, one: str, near: Sides) -> bool:
        """Whether a line has words of the claim next to the number, as the claim has."""
        names = {word for word in (*near[0], *near[1]) if not word.isalpha()}
        for line in self.lines.beside(one, {*near[0], *near[1]}):
            told = order(line.text)
            for at, value in enumerate(told):
                if value == one:
                    there = _around(told, at)
                    if names & {*there[0], *there[1]} or self._fits(near, there) >= wording.BESIDE:
                        return True
        return False

    def _is_id(self, one: str) -> bool:
        """Whether a name or an address has it (`card_6593`, pull/177); a long one: any line."""
        if len(one) < 3:
            return False
        if len(one) > 3 and any(one in order(line.text) for line in self.lines.having(one)):
            return True
        before = r"[/#_$]|\": ?" if len(one) < 4 else r"[/#_$A-Za-z]"
        return self.lines.find(one, re.compile(rf"(?:{before}){re.escape(one)}(?!\d)")) is not None

    def _dated(self, month: int, day: int) -> bool:
        name = _MONTHS[month - 1]
        spelled = (
            f"-{month:02}-{day:02}",
            f"{name} {day}",
            f"{name[:3]} {day}",
            f"{day} {name[:3]}",
        )
        return any(map(self.lines.has, spelled))

    def _shown(self, place: Value, names: set[str], rest: set[str], said: Words) -> bool:
        """Whether that line of a file was shown, and has one of the names or stands close to it."""
        one, first = place.text, int(place.text)
        files = {place.file} if place.file else said.files
        if any(self.lines.has(f"{file}:{one}") for file in files):
            return True
        names = {name for name in names - said.files if self.lines.having(name)}
        label = re.compile(rf"(?<![\d.])L?{one}(?=→|:|-|\t|\||[)\]])")
        for line in self.lines.having(one):
            whole = line.words | self._context(line.at)
            if not label.search(line.text) or (files and not files & whole):
                continue
            if names & line.words or self._close(line.at, first, names):
                return True
            if not names and (files or rest & line.words):
                return True
        return any(
            low <= first <= high and (files or names) & found for low, high, found in self._ranges
        )

    def _close(self, at: int, first: int, names: set[str]) -> bool:
        lines = (line for name in names for line in self.lines.having(name) if line.at == at)
        labels = (_LABEL.match(line.text) for line in lines)
        return any(label and abs(int(label[1]) - first) <= wording.CLOSE for label in labels)

    def _sizes(self, nouns: Set[str], rest: set[str]) -> set[int]:
        """How many there are: items of a list, calls, tests that were written."""
        least, told = (0.2, rest) if nouns & _ANY_NOUN else (0.5, nouns)
        turns = [(made, self._called[at]) for at, made in self._calls.items()]
        sizes = [(n, found) for made, found in turns for n in {*made.values(), made.total()}]
        sizes += self._counts
        return {n for n, found in sizes if self.lines.cover(told, found) >= least}

    def _numbered(self, nouns: Set[str]) -> bool:
        """Whether a line has a number of such things."""
        lines = (order(line.text) for noun in nouns for line in self.lines.having(noun))
        tokens = ((told, at) for told in lines for at, one in enumerate(told) if is_number(one))
        return any(nouns & {*_around(told, at)[1]} for told, at in tokens)

    # ---------------------------------------------------------- contradictions

    def _other(self, near: Sides, rest: set[str], one: str) -> Line | None:
        """The line that has another number where the claim has this one."""
        words_near = {*near[0], *near[1]}
        lines = dict.fromkeys(line for _, line in self.lines.nearest(rest))
        lines.update(dict.fromkeys(line for _, line in self.lines.nearest(words_near)[:100]))
        best, other = wording.ALIKE, None
        for line in lines:
            told = order(line.text)
            is_table = sum(map(is_number, told)) > wording.MOST_NUMBERS
            if is_table or line.source == "call" or not words_near & line.words:
                continue
            like = self.lines.cover(rest, line.words)
            digits = re.findall(r"\d+(?:\.\d+)?", ungrouped(line.text))
            for at, value in enumerate(told):
                # "one of them" is no count, and a price no number of bags.
                if value not in digits or not is_number(value) or not _alike(value, one):
                    continue
                fits = self._fits(near, _around(told, at))
                if fits >= wording.FITS and fits + like >= best:
                    best, other = fits + like, line
        return other

    def _fits(self, near: Sides, there: Sides) -> float:
        """How much of the words' weight round a number stands round another: 0 to 1.

        The nearer, the heavier; a word on the other side counts half.
        """
        held = whole = 0.0
        around = {*there[0], *there[1]}
        for mine, same in zip(near, there, strict=True):
            for distance, one in enumerate(mine):
                weight = self.lines.weight(one) / (1 + distance)
                whole += weight
                held += weight if one in same else weight / 2 if one in around else 0.0
        return held / whole if whole else 0.0

    def _literal(self, text: str) -> Found | None:
        for span in (*CODE.findall(text), *wording.QUOTED_SHORT.findall(text)):
            parts = sorted(re.split(r"\d+", span), key=len)
            if (
                len(parts) < 2
                or not (len(parts[-1]) > 3 or wording.INDEX.fullmatch(span))
                or wording.FILE_LINE.search(span)
                or self.lines.has(span)
            ):
                continue
            line = self.lines.find(parts[-1], re.compile(re.sub(r"\d+", r"\\d+", re.escape(span))))
            if line is not None:
                return "contradicted", quoted(line.text), line
        return None


# -------------------------------------------------------------- the words round a number

Sides = tuple[list[str], list[str]]
"""The words before a number and behind it, the next of them first."""

_LABEL = re.compile(
    r"^[\s>*#|│-]*(?:[\w./-]+[:-])?(\d+)(?:[.)\]]|→|:| ?\||-(?=\W|$)|\t)[\s\d:-]*"
)  # fmt: skip
NEAR = 3  # words on either side of a number that may say what it is of


@lru_cache(maxsize=65_536)
def order(text: str) -> tuple[str, ...]:
    """The stems of a line in order, without those that say nothing and the label of the line.

    >>> order("  12: wait 2.50ms for the lock")
    ('wait', '2.5', 'ms', 'lock')
    """
    found = (one for word in words(_LABEL.sub("", text, count=1)) for one in measured(word))
    return tuple(one for one in map(stem, found) if one not in STOP)


def is_number(word: str) -> bool:
    return word[:1].isdigit() and word.replace(".", "", 1).isdigit()


def sides(told: Sequence[str], at: int) -> Sides:
    """The words on either side of one of the words of `order`."""
    before = [one for one in told[:at] if not is_number(one)]
    behind = [one for one in told[at + 1 :] if not is_number(one)]
    return before[: -NEAR - 1 : -1], behind[:NEAR]


def _around(told: Sequence[str], at: int) -> Sides:
    """The same, each name with its parts: `ds.rows`, ds, rows."""
    before, behind = sides(told, at)
    return [*before, *_parts(before)], [*behind, *_parts(behind)]


def _parts(names: list[str]) -> Iterator[str]:
    for name in names:
        if not name.isalpha():
            yield from map(stem, re.split(r"[._]", name))


def _alike(one: str, other: str) -> bool:
    return abs(len(one.partition(".")[0]) - len(other.partition(".")[0])) <= 1


# -------------------------------------------------------------- the numbers of a claim


class Value(NamedTuple):
    """A number of a claim."""

    text: str
    near: Sides
    is_place: bool = False
    """It is a line of a file."""
    file: str = ""
    nouns: frozenset[str] = frozenset()
    """What it counts."""
    is_sum: bool = False
    """Two other numbers of the claim make it."""
    of_times: bool = False
    month: int = 0
    """It is a day of it."""


_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_DAY = re.compile(rf"\b({_MONTH})\.? $|^(?:st|nd|rd|th)?,? (?:of )?({_MONTH})\b")
_OF_LINES = re.compile(r"\blines?[ #~]*(?:\d+(?:, | and |, and | & |/))*$", re.I)
_PLACE = re.compile(r"([\w./-]+\.[a-z]\w{0,5}):(\d+)(?![\w-])", re.I)
_PHRASE = re.compile(
    r"(?:(?: |-(?=step|part|item|point|phase))[`*]{0,2}[A-Za-z][\w'/-]*[`*]{0,2}){1,3}"
)
_NOUNS = "step steps items points parts places phases errors matches usages lines"
_ANY_NOUN = frozenset(map(stem, _NOUNS.split()))


def _values(text: str, told: Sequence[str]) -> Iterator[Value]:
    """The numbers of a claim with what they are of."""
    label = _LABEL.match(text)
    places = {found.start(2): found for found in _PLACE.finditer(text)}
    for at, found in places.items():
        n = len(order(text[:at]))
        if told[n : n + 1] == (found[2],):
            yield Value(found[2], sides(told, n), True, base_name(found[1]))
    matches = [
        found
        for found in wording.VALUE.finditer(text)
        if found.start() not in places and found.start() >= (label.end() if label else 0)
    ]
    numbers = [measured(ungrouped(found[0]))[0] for found in matches]
    for found, one in zip(matches, numbers, strict=True):
        before, behind = text[: found.start()], text[found.end() :]
        at = len(order(before))
        if told[at : at + 1] != (one,):
            at = told.index(one) if one in told else -1
        if at < 0:
            continue
        near = sides(told, at)
        if _OF_LINES.search(before):
            yield Value(one, near, True)
            continue
        day = _DAY.search(before) or _DAY.search(behind)
        month = 1 + [n[:3] for n in _MONTHS].index((day[1] or day[2])[:3]) if day else 0
        yield Value(
            one,
            near,
            nouns=_nouns(behind),
            is_sum=_is_sum(one, numbers),
            of_times=behind.startswith(" time"),
            month=month,
        )


def _nouns(text: str) -> frozenset[str]:
    """What a number counts: the words behind it up to a plural."""
    found = _PHRASE.match(text)
    told = words(found[0]) if found else []
    ends = next((n for n, word in enumerate(told, 1) if word.endswith("s")), 1)
    return frozenset(map(stem, told[:ends])) - STOP


def _is_sum(one: str, numbers: list[str]) -> bool:
    others = [float(n) for n in numbers if n != one]
    made = {a + sign * b for n, a in enumerate(others) for b in others[:n] for sign in (1, -1)}
    return float(one) in made or -float(one) in made


def listed(text: str) -> tuple[str, str] | None:
    """A number, and how many things, or the sum of what parts, the text lists behind it."""
    found = wording.LISTED.search(text)
    if not found or wording.NOT_ALL.search(found[2]):
        return None
    items = [one.strip("*` ") for one in re.split(r",(?: and)? | and ", found[2])]
    counts = [re.match(r"\d+(?= )", one) for one in items]
    twice = sum("twice" in one for one in items)
    whole = sum(int(one[0]) for one in counts if one) if all(counts) else len(items) + twice
    return (found[1], str(whole)) if len(items) > 2 else None


# -------------------------------------------------------------- what can be counted

_NUMBERED = re.compile(r"(?:#+ |\*\*)*(\d{1,2})[.)] ")
_BULLET = re.compile(r"(?:[-*\u2022]|\d{1,2}[.)]) ")
_DEFINED = re.compile(r"^\s*(?:func|def|async def|it|test)\b", re.M)
_RANGE = re.compile(r"\b(\d+),(\d+)p\b")
_PLACE_LINE = re.compile(r"^[\w./-]+\.\w+:\d+", re.M)
LONGEST_JSON = 20_000


def _lists_in(text: str) -> Iterator[tuple[int, str]]:
    """How many items each list of a text has, and the lines that tell what it lists.

    A list: items below one line, numbered items below one heading, all of the numbered items.
    """
    top, above, heading = 0, "", ""
    told, section, items = [text.partition("\n")[0]], 0, 0
    for line in (*text.split("\n"), "# "):
        number = _NUMBERED.match(line)
        if number:
            section += 1
            top += int(number[1]) == top + 1
        elif line.startswith("#"):
            yield section, heading
            told.append(line)
            heading, section = line, 0
        if _BULLET.match(line):
            items += 1
        elif line.strip() and not line.startswith((" ", "\t")):
            yield items, f"{heading}\n{above}"
            above, items = line, 0
    yield top, "\n".join(told)


def _arrays_in(text: str) -> Iterator[tuple[int, str]]:
    """How many items each array of a result in JSON has, and its key."""
    if len(text) > LONGEST_JSON or text[:1] not in ("{", "["):
        return
    try:
        left: list[tuple[str, Any]] = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return
    while left:
        key, value = left.pop()
        if isinstance(value, list):
            yield len(value), key
            left += [(key, one) for one in value]
        elif isinstance(value, dict):
            left += value.items()
