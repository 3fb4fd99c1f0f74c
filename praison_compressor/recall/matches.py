"""Lay out a search's answer: count, best passages, other references.

Pure. A call and its results are one document: they are counted and shown together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..concurrency import lazy
from ..ledger.words import distinct_words, missing_chunks
from ..messages import Message, ToolCall, result_text, tool_calls_of
from ..messages.calls import argument_values, arguments_of, is_path
from ..messages.display import call_as_text, message_as_text, one_line, truncate_line
from ..quotes import read_calls
from .around import Around, ReadAround
from .layout import (
    NUMBERED,
    block_around,
    json_paths,
    length_without_ending,
    split_lines,
    value_around,
)
from .passages import (
    CONTEXT,
    WORTH,
    LineTerms,
    Passage,
    Term,
    find_passages,
    query_terms,
    term_weights,
    terms_by_line,
    terms_in,
)
from .references import Reference, in_runs
from .tables import table_of

__all__ = ["COUNTED", "FoundMessage", "SearchAnswer", "few_words", "search_answer"]

COUNTED, COUNTED_IN_PART = 400, 100
"""Matching messages that are counted at most, with all names of a query and with some."""
DETAILED = 24
"""Messages whose passages are ranked; the others are listed by reference."""
PASSAGES_A_MESSAGE, SECOND_SHARE = 2, 0.8
"""Most passages shown of one message, and what the second's score counts."""
LINES_NAMED = 8
"""Numbers of further matching lines that are named at most."""
ALIKE_NAMED = 6
"""References of older, similar messages at most."""
MOST_OF = 0.5
"""A short message is shown whole where a passage has that share of it."""
PART_WORTH = 0.5
"""Share of the best score that a match needs where none has the whole query."""
BLOCK_CHARS = 800
"""Characters up to which a passage is widened to the block around it."""
WIDE = 2
"""Factor for the lines around a match: what is quoted should decide without a second read."""
ALIKE, SAME_LINE = 0.8, 0.5
"""Of two passages that share this part of their words, or also a line, only one is shown."""
CALL_CHARS, RESULT_CHARS, ROW_CHARS = 80, 100, 50
PATH_CHARS, LEAST_VALUE = 56, 12
WHOLE_RESULT = 300
"""Characters of a result that is shown whole below its call."""
LACKING, NAME_CHARS = 6, 40
"""Parts of a query that no message has, at most, and characters of each."""
FOLLOWING = 40
"""Lines after a passage that a reference to what follows names."""
RESULTS = 3
"""Most results shown of a message with several calls."""


@dataclass(frozen=True)
class FoundMessage:
    """An archived message that matches a query."""

    segment: int
    """From 1."""
    ordinal: int
    """The message's place among the segment's originals, from 0."""
    message: Message
    score: float
    is_whole: bool
    """Whether the message, with its call or results, has every name of the query."""
    is_complete: bool = True
    """Whether the search looked at every message that may have every name."""


@dataclass(frozen=True)
class SearchAnswer:
    """What a search found."""

    count: str
    """How many messages match."""
    passages: list[str]
    """The best, with their call or results."""
    rows: list[str]
    """A row for each passage, where that does not fit."""
    older: str
    """A line that names older messages much like these; "" for none."""
    others: list[tuple[list[tuple[int, int]], str]]
    """Matching messages that are not shown (segment and number, from 1), with a few words."""
    further: str
    """The best message's other matching lines; "" for none."""
    after: str
    """Reference of the lines after the best passage; "" where nothing follows."""
    is_whole: bool
    """Whether the matches have every name of the query."""


def search_answer(
    query: str,
    found: Sequence[FoundMessage],
    limit: int,
    near: ReadAround,
    shared: Collection[str] = (),
    *,
    whole: int,
    quoted: int,
) -> SearchAnswer:
    """Return up to `limit` best matches, `quoted` of them as passages, others by reference.

    `shared` are lines that end several messages of the session. A message of at most `whole`
    characters is shown whole where a passage has most of it.
    """
    wanted = query_terms(query)
    documents = _count_documents(found)
    count = _count_line(query, found, documents)
    is_whole, least = found[0].is_whole, WORTH * found[0].score
    limit = limit if is_whole else max(1, limit - 1)
    most = limit if documents == 1 else PASSAGES_A_MESSAGE
    ranked, weight = _rank(found[:DETAILED], wanted, shared, whole, most)
    matches, older = _split_repeats(ranked)
    best = _widen_best(matches[:limit], quoted, whole, shared)
    chosen = {match.place for match in best[:quoted]}
    shown = _Quotes(near, wanted, weight, chosen)
    for match in best[:quoted]:
        shown.add(match)
    best = [match for match in best if match.place not in shown.places - chosen]
    rows = [match.row(wanted) for match in best]
    seen = shown.places | {match.place for match in (*best, *older)}
    rest = [x for x in found if x.score >= least and (x.segment, x.ordinal) not in seen]
    listed, further = _other_matches(rest, wanted), _further_lines(best[:quoted], wanted, weight)
    return SearchAnswer(
        *(count, shown.lines, rows, _older_line(older), listed, further, best[0].after, is_whole)
    )


def _widen_best(
    matches: Sequence[_Match], quoted: int, chars: int, shared: Collection[str]
) -> list[_Match]:
    """Return the matches, those to be quoted widened, up to `chars` characters together.

    A match whose best line stands in a wider one is left out.
    """
    room, best = chars - sum(len(match.text) for match in matches[:quoted]), list[_Match]()
    for match in matches:
        if any(each.has(match) for each in best):
            continue
        most = min(len(match.text) + room, BLOCK_CHARS)
        wide = match.widened(most, shared) if len(best) < quoted else match
        room -= len(wide.text) - len(match.text)
        best.append(wide)
    return best


def _further_lines(
    best: Sequence[_Match], wanted: Sequence[Term], weight: Mapping[str, float]
) -> str:
    """Return how many other lines of the best message match nearly as well, and which."""
    first = best[0]
    held = terms_by_line(first.lines, wanted)
    scores = [sum(weight[text] * share for text, share in each.items()) for each in held]
    shown = {
        number
        for match in best
        if match.place == first.place
        for number in range(match.passage.first, match.passage.last + 1)
    }
    least = WORTH * scores[first.passage.best - 1]
    lines = [n for n, score in enumerate(scores, 1) if score >= least > 0 and n not in shown]
    if not lines:
        return ""
    named = ", ".join(map(str, lines[:LINES_NAMED])) + (" …" if len(lines) > LINES_NAMED else "")
    whole = Reference(first.segment, first.ordinal + 1)
    return f"{len(lines)} more matching line{'s' * (len(lines) > 1)} of {whole}: {named}"


def _older_line(matches: Sequence[_Match]) -> str:
    """Return a line that names older matches; "" for none."""
    if not matches:
        return ""
    named = in_runs((match.segment, match.ordinal + 1) for match in matches)
    more = " …" if len(named) > ALIKE_NAMED else ""
    return f"({len(matches)} older, much like these: {', '.join(named[:ALIKE_NAMED])}{more})"


def _count_line(query: str, found: Sequence[FoundMessage], documents: int) -> str:
    """Return how many documents match, those with the exact phrase apart."""
    is_whole, is_complete = found[0].is_whole, found[0].is_complete
    is_exact = len(found) < (COUNTED if is_whole else COUNTED_IN_PART)
    more = "" if is_exact and (is_complete or not is_whole) else " or more"
    if not is_whole:
        lacking = missing_chunks(query, [message_as_text(each.message) for each in found])
        shown = ", ".join(truncate_line(chunk, NAME_CHARS) for chunk in lacking[:LACKING])
        none = f" (none has {shown})" if lacking else ""
        has = "has" if is_complete else "was found with"
        return f"No archived message {has} all of it{none}; {documents}{more} have a part:"
    several = len(query.split()) > 1
    phrase = " ".join(query.casefold().split())
    exact = [e for e in found if phrase in " ".join(message_as_text(e.message).casefold().split())]
    said = f"{documents}{more} archived message{'s match' if documents > 1 else ' matches'}"
    return said + (
        f", {_count_documents(exact)} with these very words" if several and exact else ""
    )


def _count_documents(found: Sequence[FoundMessage]) -> int:
    """Return the number of found messages, calls and their results counted once."""
    return len(found) - len({answer for _, answer in _answer_pairs(found)})


def _answer_pairs(found: Sequence[FoundMessage]) -> list[tuple[int, int]]:
    """Return (call, result) index pairs of `found`."""
    by_segment: dict[int, list[int]] = {}
    for number, each in enumerate(found):
        by_segment.setdefault(each.segment, []).append(number)
    pairs = []
    for held in by_segment.values():
        held.sort(key=lambda number: found[number].ordinal)
        calls = read_calls([found[number].message for number in held])
        pairs += [(held[c.at], held[c.answered_at]) for c in calls if c.answered_at > c.at]
    return pairs


def _other_matches(
    found: Sequence[FoundMessage], wanted: Sequence[Term]
) -> list[tuple[list[tuple[int, int]], str]]:
    """Return rows of messages, each with a few words that they share."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for each in found:
        said = f"{each.message.get('role')}: {few_words(message_as_text(each.message), wanted)}"
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
    return ("…" if start else "") + truncate_line(text[start : start + 4 * chars], chars)


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

    @lazy
    def words(self) -> frozenset[str]:
        """Return the passage's distinct words."""
        return frozenset(distinct_words(self.text))

    @property
    def line(self) -> str:
        """The best line, without spaces and the number of a listing."""
        return NUMBERED.sub("", self.lines[self.passage.best - 1]).strip()

    @property
    def path(self) -> str:
        """Return the keys to a JSON passage in words, or ""."""
        path = self.paths[self.passage.first - 1]
        return f", in {path}" if path else ""

    @lazy
    def paths(self) -> list[str]:
        """Return the keys that lead to each line of JSON, "" elsewhere."""
        # A program among a call's arguments is no JSON.
        is_call = bool(tool_calls_of(self.message))
        return [""] * len(self.lines) if is_call else json_paths(message_as_text(self.message))

    def has(self, other: _Match) -> bool:
        """Return whether the passage has the other's best line."""
        first, last = self.passage.first, self.passage.last
        return self.place == other.place and first <= other.passage.best <= last

    @property
    def after(self) -> str:
        """Reference of the lines that follow; "" where nothing follows."""
        last = min(len(self.lines), self.passage.last + FOLLOWING)
        is_end = last == self.passage.last
        return "" if is_end else str(self.where.lines(self.passage.last + 1, last))

    def widened(self, most: int, shared: Collection[str] = ()) -> _Match:
        """Return the match with its JSON value or block, up to `most` characters.

        `shared` lines at the message's end are left out.
        """
        best, passage = self.passage.best - 1, self.passage
        table = table_of(message_as_text(self.message)) if self.paths[best] else ""
        if 0 < len(table) <= most:
            rows = table.split("\n")
            return replace(self, lines=rows, passage=replace(passage, first=1, last=len(rows)))
        if self.paths[best]:
            first, last = value_around(best, self.lines, self.paths, most)
            first, last = min(first, passage.first - 1), max(last, passage.last - 1)
        else:
            lines = self.lines[: max(passage.last, length_without_ending(self.lines, shared))]
            first, last = block_around(passage.first - 1, best, passage.last - 1, lines, most)
        return replace(self, passage=replace(passage, first=first + 1, last=last + 1))

    def row(self, wanted: Sequence[Term]) -> str:
        """Return the passage's reference and a few of its words."""
        said = few_words(self.text, wanted, 2 * ROW_CHARS)
        return f"[{self.where}] {self.message.get('role')}: {said}"


def _rank(
    found: Sequence[FoundMessage],
    wanted: Sequence[Term],
    shared: Collection[str],
    whole: int,
    most: int,
) -> tuple[list[_Match], dict[str, float]]:
    """Return passages, `most` of a message, best first, then newest; and the terms' weights.

    A message that has more of the query elsewhere comes first. A call whose result has more of it
    is shown with that.
    """
    texts = [split_lines(message_as_text(each.message)) for each in found]
    held = [terms_by_line(lines, wanted) for lines in texts]
    weight = term_weights(wanted, held)
    has = [sum(weight[text] for text in set().union(*terms_of)) for terms_of in held]
    worth = WORTH if found[0].is_whole and len(found) > 1 else PART_WORTH
    fullest, matches = max(has) or 1, list[_Match]()
    less = {call for call, result in _answer_pairs(found) if has[result] > has[call]}
    for number, (each, lines, terms_of) in enumerate(zip(found, texts, held, strict=True)):
        if number in less:
            continue
        part = (1 + has[number] / fullest) / 2
        for passage in find_passages(
            *(lines, wanted, most, weight),
            held=_drop_ending_terms(length_without_ending(lines, shared), terms_of),
            context=WIDE * CONTEXT,
            dull=shared,
            worth=worth,
        ):
            shown = _widen_to_whole(
                replace(passage, score=part * passage.score), lines, shared, whole
            )
            matches.append(_Match(each.segment, each.ordinal, shown, lines, each.message))
            if shown.last - shown.first > passage.last - passage.first:
                break
            part *= SECOND_SHARE
    least = worth * max((match.passage.score for match in matches), default=0)
    matches = [match for match in matches if match.passage.score >= least]
    matches.sort(key=lambda match: (match.passage.score, *match.place), reverse=True)
    return matches, weight


def _drop_ending_terms(end: int, held: Sequence[LineTerms]) -> Sequence[LineTerms]:
    """Return the lines' terms without those of an ending, unless only that has any."""
    terms_of = [*held[:end], *({} for _ in held[end:])]
    return terms_of if any(terms_of) else held


def _widen_to_whole(
    passage: Passage, lines: Sequence[str], shared: Collection[str], most: int
) -> Passage:
    """Return the passage, or a short message whole if little is missing."""
    end = length_without_ending(lines, shared)
    chars = sum(map(len, lines[passage.first - 1 : passage.last]))
    whole = sum(map(len, lines[:end]))
    is_most = whole <= most and chars >= MOST_OF * whole and passage.last <= end
    return replace(passage, first=1, last=end) if is_most else passage


def _split_repeats(matches: Sequence[_Match]) -> tuple[list[_Match], list[_Match]]:
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
    """Return whether the newer match repeats the older one.

    It has nearly all words of the older match, or half of them and its best line.
    """
    older, newer = sorted((one, other), key=lambda each: each.place)
    least = SAME_LINE if older.line == newer.line else ALIKE
    return len(older.words & newer.words) >= least * len(older.words)


# -------------------------------------------------------------- a passage with its call or results


@dataclass
class _Quotes:
    """Lay out an answer's passages, each with its call or results once."""

    near: ReadAround
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
        for one in around.calls_answered_by(ordinal):
            if (place := (around.segment, around.start + one.at)) not in self.chosen:
                self.places.add(place)
            return f", of [{around.where(one.at)}] {_called(one.call)}"
        return ""

    def _results(self, match: _Match, around: Around) -> list[str]:
        """Return results of a passage's calls that are not shown otherwise."""
        calls, found = _calls_in(match, self.wanted), []
        for one in around.calls_in(match.ordinal):
            place = around.segment, around.start + one.answered_at
            if one.call.id in calls and place not in self.chosen:
                self.places.add(place)
                found.append(self._result(match, around, one.answered_at))
        more = [f"=> {len(found) - RESULTS} more"] if len(found) > RESULTS else []
        return found[:RESULTS] + more

    def _result(self, match: _Match, around: Around, at: int) -> str:
        """Return a result whole, or the part that the match lacks."""
        where, lines = around.where(at), around.lines(at)
        if sum(map(len, lines)) <= WHOLE_RESULT:
            return f"=> [{where}] " + "\n".join(lines)
        said = terms_in(match.text, self.wanted)
        wanted = [term for term in self.wanted if term.text not in said]
        for found in find_passages(lines, wanted, 1, self.weight):
            shown = "\n".join(lines[found.first - 1 : found.last])
            return f"=> [{where.lines(found.first, found.last)}] {shown}"
        return f"=> [{where}] " + truncate_line("\n".join(lines), RESULT_CHARS)


def _calls_in(match: _Match, wanted: Sequence[Term]) -> set[str]:
    """Return the ids of a passage's calls, matching ones alone if any."""
    said = result_text(match.message)
    first = len(split_lines(said)) + 1 if said else 1
    found, holding = set(), set()
    for call in tool_calls_of(match.message):
        text = call_as_text(call)
        last = first + len(split_lines(text)) - 1
        if first <= match.passage.last and last >= match.passage.first:
            found.add(call.id)
            if terms_in(text, wanted):
                holding.add(call.id)
        first = last + 1
    return holding or found


def _called(call: ToolCall) -> str:
    """Return a call on one line, shortened to its first values."""
    text = one_line(f"{call.name}({call.arguments})")
    if len(text) <= CALL_CHARS:
        return text
    values = list(argument_values(arguments_of(call)))
    if not call.id or not values:  # a text is no call, and its end says what to do
        return f"{call.name}(…{text[-PATH_CHARS:]}"
    return f"{call.name}({', '.join(_shorten_values(values))})"


def _shorten_values(values: Sequence[str]) -> Iterator[str]:
    room = CALL_CHARS
    for value in map(one_line, filter(str.strip, values)):
        is_end = "/" in value and is_path(value) and len(value) > PATH_CHARS
        shown = f"…{value[-PATH_CHARS:]}" if is_end else truncate_line(value, room)
        room -= len(shown) + 2
        yield shown
        if room < LEAST_VALUE:
            return
