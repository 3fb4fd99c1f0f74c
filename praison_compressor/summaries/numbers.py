"""Whether the originals bear out the numbers of a claim.

A number has its witness where it stands beside words of the claim, or is the label of a line that
shows what the claim names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

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
    """The numbers of claims beside their witnesses: lines, and labels of lines."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._called: dict[int, frozenset[str]] = {}

    def see(self, passage: Passage, found: frozenset[str]) -> None:
        """Take in a call or a result; `found`: its words."""
        at, call = passage.at, passage.call
        if call is not None:
            asked = self.lines.shared(call.arguments[:400])
            given = asked if passage.source == "result" else found
            self._called[at] = self._called.get(at, frozenset()) | given

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
            # "(706)" may be a line of the file that the claim names.
            is_label = len(one) > 2 and one.isdigit() and bool(said.files)
            stands = self._stands(value, rest, told) or (
                is_label and self._shown(value, set(), rest, said)
            )
        if stands:
            return None
        is_table = sum(map(is_number, told)) > wording.MOST_NUMBERS
        line = None if is_table or value.is_place else self._other(near, rest, one)
        if line is not None:
            return "contradicted", quoted(line.text), line
        most = wording.MOST_COUNTED if value.counts else wording.SMALL
        if value.of_times or (one.isdigit() and int(one) <= most):
            return None  # what a writer counts himself
        beside = next(iter((*near[1], *near[0])), "it")
        return "unwitnessed", f"no line has {one} beside \u2018{beside}\u2019", None

    # ---------------------------------------------------------- witnesses

    def _stands(self, value: Value, rest: set[str], told: Sequence[str]) -> bool:
        one, near = value.text, value.near
        if self._own(one, near) or self._is_id(one):
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

    def _shown(self, place: Value, names: set[str], rest: set[str], said: Words) -> bool:
        """Whether that line of a file was shown, and has one of the names."""
        one = place.text
        files = {place.file} if place.file else said.files
        if any(self.lines.has(f"{file}:{one}") for file in files):
            return True
        names = {name for name in names - said.files if self.lines.having(name)}
        label = re.compile(rf"(?<![\d.])L?{one}(?=→|:|-|\t|\||[)\]])")
        for line in self.lines.having(one):
            whole = line.words | self._context(line.at)
            if not label.search(line.text) or (files and not files & whole):
                continue
            if names & line.words if names else files or rest & whole:
                return True
        return False

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
    counts: bool = False
    """A plural stands behind it: what may be counted."""
    of_times: bool = False


_OF_LINES = re.compile(r"\blines?[ #~]*(?:\d+(?:, | and |, and | & |/))*$", re.I)
_PLACE = re.compile(r"([\w./-]+\.[a-z]\w{0,5}):(\d+)(?![\w-])", re.I)
_COUNTS = re.compile(r"(?: |-)(?:[`*A-Za-z][\w'/`*-]* ){0,2}[`*A-Za-z][\w'/-]{2,}s\b")
_ORDINAL = re.compile(r"\b[A-Z][a-z]+[^\Ws] $")  # "Edit 3" is a name


def _values(text: str, told: Sequence[str]) -> Iterator[Value]:
    """The numbers of a claim with what they are of."""
    label = _LABEL.match(text)
    places = {found.start(2): found for found in _PLACE.finditer(text)}
    for at, found in places.items():
        n = len(order(text[:at]))
        if told[n : n + 1] == (found[2],):
            yield Value(found[2], sides(told, n), True, base_name(found[1]))
    for found in wording.VALUE.finditer(text):
        if found.start() in places or found.start() < (label.end() if label else 0):
            continue
        one = measured(ungrouped(found[0]))[0]
        before, behind = text[: found.start()], text[found.end() :]
        at = len(order(before))
        if told[at : at + 1] != (one,):
            at = told.index(one) if one in told else -1
        if at < 0 or (len(one) < 3 and _ORDINAL.search(before)):
            continue
        near = sides(told, at)
        if _OF_LINES.search(before):
            yield Value(one, near, True)
            continue
        counts, of_times = bool(_COUNTS.match(behind)), behind.startswith(" time")
        yield Value(one, near, counts=counts, of_times=of_times)


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
