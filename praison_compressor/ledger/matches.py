"""A search's answer: the number of matches, passages of the best, references of the others. Pure.

A call and its results are one document: they are counted and shown together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..concurrency import lazy
from ..messages import Message, ToolCall, result_text, tool_calls_of
from ..messages.calls import argument_values, arguments_of, is_path
from ..messages.display import call_in_words, excerpt, in_words, one_line
from ..quotes import read_calls
from .around import Around, Near
from .layout import NUMBERED, lines_of, paths_of, without_ending
from .passages import (
    WORTH,
    Passage,
    Term,
    held_in,
    passages,
    terms,
    wanted_in,
    weights,
    widened,
)
from .references import Reference, in_runs
from .words import missing, words

__all__ = ["COUNTED", "Answer", "Found", "answer_of", "few_words"]

COUNTED, COUNTED_IN_PART = 400, 100
"""Matching messages that are counted at most, with all names of a query and with some."""
DETAILED = 24
"""Messages whose passages are ranked; the others are listed by reference."""
A_MESSAGE, SECOND = 2, 0.8
"""Most passages shown of one message, and what the second's score counts."""
ALIKE_NAMED = 6
"""References of older, similar messages at most."""
PART_WORTH, PART_SHOWN = 0.5, 2
"""Share of the best score that a match needs where none has the whole query, and matches shown."""
ALIKE, SAME_LINE = 0.8, 0.5
"""Of two passages that share this part of their words, or also a line, only one is shown."""
CALL_CHARS, RESULT_CHARS, ROW_CHARS = 80, 100, 50
PATH_CHARS, LEAST_VALUE = 56, 12
WHOLE_RESULT = 300
"""Characters of a result that is shown whole below its call."""
LACKING, NAME_CHARS = 6, 40
"""Parts of a query that no message has, at most, and characters of each."""
RESULTS = 3
"""Most results shown of a message with several calls."""


@dataclass(frozen=True)
class Found:
    """An archived message that matches a query."""

    segment: int
    """From 1."""
    ordinal: int
    """The message's place among the segment's originals, from 0."""
    message: Message
    score: float
    is_whole: bool
    """Whether the message, with its call or results, has every name of the query."""


@dataclass(frozen=True)
class Answer:
    """What a search found."""

    count: str
    """How many messages match."""
    passages: Callable[[int, int, Callable[[str], int]], list[str]]
    """Returns the passages that fit, widened to another number of tokens that a function counts."""
    others: list[tuple[list[tuple[int, int]], str]]
    """Matching messages that are not shown (segment and number, from 1), with a few words."""
    is_whole: bool
    """Whether the matches have every name of the query."""


def answer_of(
    query: str,
    found: Sequence[Found],
    limit: int,
    near: Near,
    shared: Collection[str] = (),
    *,
    is_wide: bool = False,
) -> Answer:
    """Return the best passages, at most `limit`, and all other matches by reference.

    `shared` are lines that end several messages of the session. The passages are widened to the
    budget if `is_wide`, or if only one document matches.
    """
    wanted = terms(query)
    documents = _documents(found)
    counted = _count(query, found, documents)
    is_whole, least = found[0].is_whole, WORTH * found[0].score
    limit = limit if is_whole else min(limit, PART_SHOWN)
    ranked, weight = _ranked(found[:DETAILED], wanted, shared, is_lone=documents == 1)
    matches, older = _apart(ranked)
    wide = is_wide or documents == 1
    layout = _Layout(near, wanted, weight, shared, matches[:limit], _older(older), wide)
    seen = layout.shown(layout.matches).places | {match.place for match in older}
    rest = [x for x in found if x.score >= least and (x.segment, x.ordinal) not in seen]
    return Answer(counted, layout.within, _rows(rest, wanted), is_whole)


def _older(matches: Sequence[_Match]) -> str:
    """Return a line that names older matches; "" for none."""
    if not matches:
        return ""
    named = in_runs((match.segment, match.ordinal + 1) for match in matches)
    more = " …" if len(named) > ALIKE_NAMED else ""
    return f"({len(matches)} older, much like these: {', '.join(named[:ALIKE_NAMED])}{more})"


def _count(query: str, found: Sequence[Found], documents: int) -> str:
    """Return how many documents match, those with the exact phrase apart."""
    is_whole = found[0].is_whole
    more = " or more" if len(found) >= (COUNTED if is_whole else COUNTED_IN_PART) else ""
    if not is_whole:
        lacking = missing(query, [in_words(each.message) for each in found])
        shown = ", ".join(excerpt(chunk, NAME_CHARS) for chunk in lacking[:LACKING])
        none = f" (none has {shown})" if lacking else ""
        return f"No archived message has all of it{none}; {documents}{more} have a part:"
    several = len(query.split()) > 1
    phrase = " ".join(query.casefold().split())
    exact = [e for e in found if phrase in " ".join(in_words(e.message).casefold().split())]
    said = f"{documents}{more} archived message{'s match' if documents > 1 else ' matches'}"
    return said + (f", {_documents(exact)} with these very words" if several and exact else "")


def _documents(found: Sequence[Found]) -> int:
    """Return the number of found messages, calls and their results counted once."""
    return len(found) - len({answer for _, answer in _answers(found)})


def _answers(found: Sequence[Found]) -> list[tuple[int, int]]:
    """Return the places in `found` of each call and its result, where both are found."""
    by_segment: dict[int, list[int]] = {}
    for number, each in enumerate(found):
        by_segment.setdefault(each.segment, []).append(number)
    pairs = []
    for held in by_segment.values():
        held.sort(key=lambda number: found[number].ordinal)
        calls = read_calls([found[number].message for number in held])
        pairs += [(held[c.at], held[c.answered_at]) for c in calls if c.answered_at > c.at]
    return pairs


def _rows(
    found: Sequence[Found], wanted: Sequence[Term]
) -> list[tuple[list[tuple[int, int]], str]]:
    """Return rows of messages, each with a few words that they share."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for each in found:
        said = f"{each.message.get('role')}: {few_words(in_words(each.message), wanted)}"
        rows.setdefault(said, []).append((each.segment, each.ordinal + 1))
    return [(places, said) for said, places in rows.items()]


def few_words(text: str, wanted: Sequence[Term], chars: int = ROW_CHARS) -> str:
    """Return the words around the first match of the heaviest term."""
    folded = text.casefold()
    places = [folded.find(term.text) for term in sorted(wanted, key=lambda term: -term.weight)]
    at = next((place for place in places if place >= 0), 0)
    start = max(text.rfind("\n", 0, at) + 1, at - chars // 3)
    if start and text[start - 1] != "\n":
        start = text.find(" ", start, at) + 1 or at
    return ("…" if start else "") + excerpt(text[start : start + 4 * chars], chars)


# -------------------------------------------------------------- passages


@dataclass(frozen=True)
class _Match:
    """A passage of an archived message."""

    segment: int
    ordinal: int
    passage: Passage
    lines: Sequence[str]
    message: Message

    @property
    def place(self) -> tuple[int, int]:
        """Segment and ordinal: newer is larger."""
        return self.segment, self.ordinal

    @property
    def where(self) -> Reference:
        """Reference of the passage, or of a message that is no larger."""
        whole = Reference(self.segment, self.ordinal + 1)
        first, last = self.passage.first, self.passage.last
        return whole.lines(first, last) if last - first + 1 < len(self.lines) else whole

    @property
    def text(self) -> str:
        """The passage's lines."""
        return "\n".join(self.lines[self.passage.first - 1 : self.passage.last])

    @property
    def narrow(self) -> _Match:
        """The match with its best line alone."""
        best = self.passage.best
        return replace(self, passage=replace(self.passage, first=best, last=best))

    @lazy
    def words(self) -> frozenset[str]:
        """Return the passage's distinct words."""
        return frozenset(words(self.text))

    @property
    def line(self) -> str:
        """The best line, without spaces and the number of a listing."""
        return NUMBERED.sub("", self.lines[self.passage.best - 1]).strip()

    @property
    def path(self) -> str:
        """The keys that lead to a passage of JSON, in words; "" elsewhere."""
        path = paths_of(in_words(self.message))[self.passage.first - 1]
        # A program among a call's arguments is no JSON.
        return f", in {path}" if path and not tool_calls_of(self.message) else ""


def _ranked(
    found: Sequence[Found], wanted: Sequence[Term], shared: Collection[str], *, is_lone: bool
) -> tuple[list[_Match], dict[str, float]]:
    """Return the messages' passages, best first, then newest first; and the terms' weights.

    A message that has more of the query elsewhere comes first. A call whose result has more of it
    is shown with that.
    """
    texts = [lines_of(in_words(each.message)) for each in found]
    held = [held_in(lines, wanted) for lines in texts]
    weight = weights(wanted, held)
    has = [sum(weight[text] for text in set().union(*terms_of)) for terms_of in held]
    worth = WORTH if found[0].is_whole and not is_lone else PART_WORTH
    most, matches = max(has) or 1, list[_Match]()
    less = {call for call, result in _answers(found) if has[result] > has[call]}
    for number, (each, lines, terms_of) in enumerate(zip(found, texts, held, strict=True)):
        if number in less:
            continue
        part = (1 + has[number] / most) / 2
        for passage in passages(
            *(lines, wanted, A_MESSAGE, weight),
            held=terms_of,
            dull=shared,
            worth=worth,
        ):
            shown = replace(passage, score=part * passage.score)
            matches.append(_Match(each.segment, each.ordinal, shown, lines, each.message))
            part *= 1 if is_lone else SECOND
    least = worth * max((match.passage.score for match in matches), default=0)
    matches = [match for match in matches if match.passage.score >= least]
    matches.sort(key=lambda match: (match.passage.score, *match.place), reverse=True)
    return matches, weight


def _apart(matches: Sequence[_Match]) -> tuple[list[_Match], list[_Match]]:
    """Return distinct matches, and older ones much like one of these.

    An agent reads a file again after an edit; a message is archived masked and again folded.
    """
    apart: list[_Match] = []
    older: dict[str, _Match] = {}
    for match in matches:
        place = next((n for n, each in enumerate(apart) if _are_alike(match, each)), None)
        if place is None:
            apart.append(match)
            continue
        oldest, apart[place] = sorted((apart[place], match), key=lambda each: each.place)
        older.setdefault(oldest.text, oldest)
    shown = {match.text for match in apart}
    return apart, [older[text] for text in older if text not in shown]


def _are_alike(one: _Match, other: _Match) -> bool:
    """Return whether the newer has nearly all words of the older, or half and its best line."""
    older, newer = sorted((one, other), key=lambda each: each.place)
    least = SAME_LINE if older.line == newer.line else ALIKE
    return len(older.words & newer.words) >= least * len(older.words)


# -------------------------------------------------------------- a passage with its call or results


@dataclass(frozen=True)
class _Layout:
    """The matches that an answer shows, with as many lines around them as fit."""

    near: Near
    wanted: Sequence[Term]
    weight: Mapping[str, float]
    shared: Collection[str]
    """Lines that end several messages, which no passage is widened to."""
    matches: Sequence[_Match]
    end: str
    """The last line."""
    is_wide: bool

    def within(self, room: int, wide: int, count: Callable[[str], int]) -> list[str]:
        """Return the passages that fit, widened to `wide` tokens, and rows of other matches."""

        def size() -> int:
            return sum(count(line) + 1 for line in self._lines(fitting))

        fitting = list(self.matches)
        while size() > room and len(fitting) > 1:
            fitting.pop()
        is_long = size() > room
        if is_long:
            fitting = [fitting[0].narrow]
        if is_long or self.is_wide:
            fitting = _widened(fitting, wide - size(), count, self.shared)
        return self._lines(fitting)

    def _lines(self, fitting: Sequence[_Match]) -> list[str]:
        """Return passages, and a row for each match behind them."""
        rows = [
            f"[{match.where}] {match.message.get('role')}: "
            f"{few_words(match.text, self.wanted, 2 * ROW_CHARS)}"
            for match in self.matches[len(fitting) :]
        ]
        return [*self.shown(fitting).lines, *rows]

    def shown(self, matches: Sequence[_Match]) -> _Shown:
        """Return the passages as lines."""
        shown = _Shown(self.near, self.wanted, self.weight, {each.place for each in matches})
        for match in matches:
            shown.add(match)
        if self.end:
            shown.lines.append(self.end)
        return shown


def _widened(
    matches: Sequence[_Match], room: int, count: Callable[[str], int], shared: Collection[str]
) -> list[_Match]:
    """Return the matches with more of the lines around them, the best first."""
    wide: list[_Match] = []
    for number, match in enumerate(matches):
        beside = (*wide, *matches[number + 1 :])
        others = [each.passage for each in beside if each.place == match.place]
        end = max(match.passage.last, without_ending(match.lines, shared))
        passage = widened(match.passage, match.lines[:end], room, count, others)
        wide.append(replace(match, passage=passage))
        room -= count(wide[-1].text) - count(match.text)
    return wide


@dataclass
class _Shown:
    """The passages that an answer shows, each message with its call or results once."""

    near: Near
    wanted: Sequence[Term]
    weight: Mapping[str, float]
    chosen: Collection[tuple[int, int]]
    """Segment and ordinal of each message that is to be shown itself."""
    lines: list[str] = field(default_factory=list)
    places: set[tuple[int, int]] = field(default_factory=set)
    """Segment and ordinal of each message that is shown."""

    def add(self, match: _Match) -> None:
        """Append a match: its reference, role, call, lines and results."""
        where, is_new = match.where, match.place not in self.places
        self.places.add(match.place)
        if not is_new:
            self.lines.append(f"[{where}]{match.path}\n{match.text}")
            return
        around = self.near(match.segment, match.ordinal)
        of = f" (of {len(match.lines)} lines)" if where.line is not None else ""
        role = match.message.get("role")
        head = f"[{where}]{of} {role}{self._called(around, match.ordinal)}{match.path}"
        self.lines.append("\n".join([head, match.text, *self._results(match, around)]))

    def _called(self, around: Around, ordinal: int) -> str:
        """Return the call that a result answers, with its reference."""
        for one in around.calls_of(ordinal):
            if (place := (around.segment, around.start + one.at)) not in self.chosen:
                self.places.add(place)
            return f", of [{around.where(one.at)}] {_called(one.call)}"
        return ""

    def _results(self, match: _Match, around: Around) -> list[str]:
        """Return the results of a passage's calls that are not to be shown themselves."""
        calls, found = _calls_in(match, self.wanted), []
        for one in around.made_by(match.ordinal):
            place = around.segment, around.start + one.answered_at
            if one.call.id in calls and place not in self.chosen:
                self.places.add(place)
                found.append(self._result(match, around, one.answered_at))
        more = [f"=> {len(found) - RESULTS} more"] if len(found) > RESULTS else []
        return found[:RESULTS] + more

    def _result(self, match: _Match, around: Around, at: int) -> str:
        """Return a short result whole, of a long one what the match lacks, else its beginning."""
        where, lines = around.where(at), around.lines(at)
        if sum(map(len, lines)) <= WHOLE_RESULT:
            return f"=> [{where}] " + "\n".join(lines)
        said = wanted_in(match.text, self.wanted)
        wanted = [term for term in self.wanted if term.text not in said]
        for found in passages(lines, wanted, 1, self.weight):
            shown = "\n".join(lines[found.first - 1 : found.last])
            return f"=> [{where.lines(found.first, found.last)}] {shown}"
        return f"=> [{where}] " + excerpt("\n".join(lines), RESULT_CHARS)


def _calls_in(match: _Match, wanted: Sequence[Term]) -> set[str]:
    """Return the ids of a passage's calls, matching ones alone if any."""
    said = result_text(match.message)
    first = len(lines_of(said)) + 1 if said else 1
    found, holding = set(), set()
    for call in tool_calls_of(match.message):
        text = call_in_words(call)
        last = first + len(lines_of(text)) - 1
        if first <= match.passage.last and last >= match.passage.first:
            found.add(call.id)
            if wanted_in(text, wanted):
                holding.add(call.id)
        first = last + 1
    return holding or found


def _called(call: ToolCall) -> str:
    """Return a call on one line: of a long one its first values, of paths the ends."""
    text = one_line(f"{call.name}({call.arguments})")
    if len(text) <= CALL_CHARS:
        return text
    values = list(argument_values(arguments_of(call)))
    if not call.id or not values:  # a text is no call, and its end says what to do
        return f"{call.name}(…{text[-PATH_CHARS:]}"
    return f"{call.name}({', '.join(_values(values))})"


def _values(values: Sequence[str]) -> Iterator[str]:
    room = CALL_CHARS
    for value in map(one_line, filter(str.strip, values)):
        is_end = "/" in value and is_path(value) and len(value) > PATH_CHARS
        shown = f"…{value[-PATH_CHARS:]}" if is_end else excerpt(value, room)
        room -= len(shown) + 2
        yield shown
        if room < LEAST_VALUE:
            return
