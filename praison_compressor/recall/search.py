"""Search an archive: count matches, quote the best, reference the rest.

A call and its results are one document: they are shown together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ledger.words import distinct_words, missing_chunks
from ..messages import ToolCall, result_text, tool_calls_of
from ..messages.calls import argument_values, arguments_of, is_path
from ..messages.display import call_as_text, message_as_text, one_line, truncate_line
from .archive import SessionArchive
from .around import Around
from .layout import split_lines
from .matches import (
    FoundMessage,
    Match,
    count_documents,
    few_words,
    put_new_names_first,
    rank_passages,
    sought_terms,
    split_repeats,
    widen_best,
)
from .passages import (
    WORTH,
    Passage,
    Term,
    find_passages,
    line_scores,
    query_terms,
    terms_in,
)
from .references import Reference, in_runs

__all__ = ["SearchAnswer", "find_messages", "search_answer"]

MAX_COUNTED_MESSAGES = 400
"""Matching messages that are counted at most, with all names of a query."""
MAX_COUNTED_PARTIAL_MESSAGES = 100
"""Matching messages that are counted at most, with some names of a query."""
MAX_PASSAGES_PER_MESSAGE = 2
"""Passages shown of one message at most, if several messages match."""
MAX_NAMED_PASSAGES = 4
"""Passages at most that share the room, each for names that the others do not have."""
MAX_NAMED_LINES = 8
"""Numbers of further matching lines at most."""
MAX_NAMED_REPEATS = 6
"""References of similar messages at most."""
MAX_CALL_CHARS = 80
"""Characters of a shortened call."""
MAX_RESULT_CHARS = 100
"""Characters of a shortened result."""
MAX_PATH_CHARS = 56
"""Last characters that are shown of a longer path."""
MIN_VALUE_CHARS = 12
"""Characters left for the next value of a call; below them no further value is shown."""
OTHERS_DIVISOR = 3
"""An answer's tokens divided by this: the most for other matches of the whole query."""
CHARS_PER_TOKEN = 2.7
"""Characters of quoted lines per token of an answer."""
HEAD_TOKENS = 80
"""Tokens of an answer for what stands beside the quoted lines."""
NEIGHBOUR_MESSAGES = 12
"""Messages before and after a found one, among which calls and results are paired."""
WHOLE_RESULT_CHARS = 300
"""Longest result that is shown whole below its call."""
MAX_LACKING_PARTS = 6
"""Parts of a query that no message has: the most that are named."""
MAX_LACKING_CHARS = 40
"""Characters of each of these parts."""
MAX_RESULTS = 3
"""Results shown of a message with several calls at most."""


def find_messages(archive: SessionArchive, query: str) -> list[FoundMessage]:
    """Return the archived messages that match, best first."""
    session = archive.session
    # Other messages stand in the view, the user's question among them.
    hits = archive.store.search(
        session.namespace, query, session.id, MAX_COUNTED_MESSAGES, archived_only=True
    )
    places = {e.hash: n for n, e in enumerate(session.entries, 1) if not e.is_forgotten}
    return [FoundMessage(places[hit.entry], hit) for hit in hits if hit.entry in places]


@dataclass(frozen=True)
class SearchAnswer:
    """What a search found."""

    count: str
    """How many messages match."""
    passages: list[str]
    """The best, with their call or results."""
    rows: list[str]
    """A row for each passage, used if the passage does not fit."""
    alike: str
    """A line that names messages much like these; "" for none."""
    others: list[tuple[list[tuple[int, int]], str]]
    """Matching messages that are not shown (segment and number, from 1), with a few words."""
    further: str
    """The best message's other matching lines; "" for none."""
    after: str
    """Reference of the lines after the best passage; "" where nothing follows."""
    room: int
    """Tokens of the answer: more where it has a table."""
    others_room: int
    """Tokens of `others`, if more than for their references."""


def search_answer(
    query: str,
    found: Sequence[FoundMessage],
    limit: int,
    archive: SessionArchive,
    *,
    room: int,
    table_room: int,
) -> SearchAnswer:
    """Lay out what a search found.

    Of the `limit` best matches those that fit are shown as passages; others have a row. The answer
    has `room` tokens, or `table_room` with a table.
    """
    shared, chars = archive.endings, int(max(0, room - HEAD_TOKENS) * CHARS_PER_TOKEN)
    table_chars = (
        chars if room == table_room else int((table_room - HEAD_TOKENS // 2) * CHARS_PER_TOKEN)
    )
    wanted = query_terms(query)
    documents = count_documents(found)
    count = _count_line(query, found, documents)
    is_whole, least = found[0].hit.is_whole, WORTH * found[0].hit.score
    limit = limit if is_whole else max(1, limit - 1)
    most = limit if documents == 1 else MAX_PASSAGES_PER_MESSAGE
    ranked, wanted = rank_passages(found, wanted, shared, most)
    if not ranked:  # the words of a name stand apart
        words = [Term(word, 1.0) for word in distinct_words(query)]
        ranked, wanted = rank_passages(found, words, shared, most)
    sought = sought_terms(wanted, is_whole)
    matches, alike = split_repeats(ranked, sought)
    matches, named = put_new_names_first(matches, sought)
    limit, quoted = max(limit, named), min(named, MAX_NAMED_PASSAGES)
    best, quoted = widen_best(matches[:limit], quoted, chars, table_chars, wanted)
    chosen = {match.place: match for match in best[:quoted][::-1]}
    left = chars - sum(len(match.text) for match in best[:quoted])
    shown = _Quotes(archive, wanted, chosen, ranked, left)
    for match in best[:quoted]:
        shown.add(match)
    best = [
        *shown.quoted,
        *(match for match in best[quoted:] if match.place not in shown.places - chosen.keys()),
    ]
    rows = [match.row(wanted) for match in best]
    seen = shown.places | {match.place for match in (*best, *alike)}
    rest = [each for each in found if each.hit.score >= least and each.place not in seen]
    listed, further = _other_matches(rest, wanted), _further_lines(best, wanted)
    after = best[0].after if best else ""
    is_table = any(match.is_table for match in best)
    room = table_room if is_table else room
    return SearchAnswer(
        count=count,
        passages=shown.lines,
        rows=rows,
        alike=_alike_line(alike),
        others=listed,
        further=further,
        after=after,
        room=room,
        others_room=room // OTHERS_DIVISOR if is_whole and not is_table else 0,
    )


def _further_lines(best: Sequence[Match], wanted: Sequence[Term]) -> str:
    """Count and name the best message's other lines that match well."""
    if not best:
        return ""
    first = best[0]
    scores = line_scores(first.lines, wanted)
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
    numbers = ", ".join(map(str, lines[:MAX_NAMED_LINES])) + (
        " …" if len(lines) > MAX_NAMED_LINES else ""
    )
    whole = Reference(first.segment, first.ordinal + 1)
    return f"{len(lines)} more matching line{'s' * (len(lines) > 1)} of {whole}: {numbers}"


def _alike_line(matches: Sequence[Match]) -> str:
    """Return a line that names similar matches; "" for none."""
    if not matches:
        return ""
    references = in_runs((match.segment, match.ordinal + 1) for match in matches)
    more = " …" if len(references) > MAX_NAMED_REPEATS else ""
    return (
        f"({len(matches)} more much like these: {', '.join(references[:MAX_NAMED_REPEATS])}{more})"
    )


def _count_line(query: str, found: Sequence[FoundMessage], documents: int) -> str:
    """Return how many documents match, and how many have the exact phrase."""
    is_whole, is_complete = found[0].hit.is_whole, found[0].hit.is_complete
    is_exact = len(found) < (MAX_COUNTED_MESSAGES if is_whole else MAX_COUNTED_PARTIAL_MESSAGES)
    more = "" if is_exact and (is_complete or not is_whole) else " or more"
    if not is_whole:
        lacking = missing_chunks(query, [message_as_text(each.hit.message) for each in found])
        shown = ", ".join(
            truncate_line(chunk, MAX_LACKING_CHARS) for chunk in lacking[:MAX_LACKING_PARTS]
        )
        none = f" (none has {shown})" if lacking else ""
        has = "has" if is_complete else "was found with"
        return f"No archived message {has} all of it{none}; {documents}{more} have a part:"
    several = len(query.split()) > 1
    phrase = " ".join(query.casefold().split())
    exact = [
        match
        for match in found
        if phrase in " ".join(message_as_text(match.hit.message).casefold().split())
    ]
    remark = f"{documents}{more} archived message{'s match' if documents > 1 else ' matches'}"
    return remark + (
        f", {count_documents(exact)} with these very words" if several and exact else ""
    )


def _other_matches(
    found: Sequence[FoundMessage], wanted: Sequence[Term]
) -> list[tuple[list[tuple[int, int]], str]]:
    """Return rows of messages, each with a few words that they share."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for segment, hit in found:
        row = f"{hit.message.get('role')}: {few_words(message_as_text(hit.message), wanted)}"
        rows.setdefault(row, []).append((segment, hit.ordinal + 1))
    return [(places, row) for row, places in rows.items()]


# -------------------------------------------------------------- a passage with its call or results


@dataclass
class _Quotes:
    """Lay out an answer's passages, each with its call or results once."""

    archive: SessionArchive
    wanted: Sequence[Term]
    chosen: Mapping[tuple[int, int], Match]
    """The first passage to be shown of each message, by segment and ordinal."""
    ranked: Sequence[Match]
    left: int
    """Characters left for the results of calls."""
    quoted: list[Match] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """A passage for each quoted match."""
    places: set[tuple[int, int]] = field(default_factory=set)
    """Segment and ordinal of each message that is shown."""

    def add(self, match: Match) -> None:
        """Append a match: its reference, role, call, lines and results."""
        where, is_new = match.where, match.place not in self.places
        if not is_new and match is self.chosen[match.place]:  # shown beside its call or result
            return
        self.quoted.append(match)
        self.places.add(match.place)
        if not is_new:
            self.lines.append(f"[{where}]{match.path}\n{match.text}")
            return
        around = self.archive.around(
            match.segment, range(match.ordinal, match.ordinal + 1), NEIGHBOUR_MESSAGES
        )
        length = max(match.end, match.passage.last)
        size = f" (of {length} lines)" if where.line is not None else ""
        role = match.message.get("role")
        head = f"[{where}]{size} {role}{self._answered_call(around, match.ordinal)}{match.path}"
        self.lines.append("\n".join([head, match.text, *self._results(match, around)]))

    def _answered_call(self, around: Around, ordinal: int) -> str:
        """Return the call that a result answers, with its reference."""
        for answered in around.calls_answered_by(ordinal):
            place, call = (around.segment, around.start + answered.at), answered.call
            if place not in self.chosen or len(call_as_text(call)) <= MAX_CALL_CHARS:
                self.places.add(place)
            return f", of [{around.where(answered.at)}] {_shorten_call(call)}"
        return ""

    def _results(self, match: Match, around: Around) -> list[str]:
        """Return results of a passage's calls that are not shown otherwise."""
        calls, results = _calls_in(match, self.wanted), []
        for answered in around.calls_in(match.ordinal):
            place = around.segment, around.start + answered.answered_at
            # A call in a text has no id.
            if answered.call.id in {"", *calls} and place not in self.places:
                self.places.add(place)
                results.append(self._result(match, around, answered.answered_at))
        more = [f"=> {len(results) - MAX_RESULTS} more"] if len(results) > MAX_RESULTS else []
        return results[:MAX_RESULTS] + more

    def _result(self, match: Match, around: Around, at: int) -> str:
        """Return a result whole, or the part that the match lacks."""
        where, lines = around.where(at), around.lines(at)
        if shown := self.chosen.get((around.segment, around.start + at)):
            return f"=> [{shown.where}]{shown.path} {shown.text}"
        if sum(map(len, lines)) <= WHOLE_RESULT_CHARS:
            return f"=> [{where}] " + "\n".join(lines)
        shown_terms = terms_in(match.text, self.wanted)
        missing = [term for term in self.wanted if term.text not in shown_terms]
        passages = find_passages(lines, missing, 1)
        if not passages and self.left <= MAX_RESULT_CHARS:
            return f"=> [{where}] " + truncate_line("\n".join(lines), MAX_RESULT_CHARS)
        passage = (*passages, Passage(1, 1, 0.0, 1))[0]
        ordinal, message = around.start + at, around.messages[at]
        whole = Match(around.segment, ordinal, passage, lines, message, len(lines))
        result = next((each for each in self.ranked if each.place == whole.place), whole)
        most = max(self.left, len(result.text))
        result = result.widen(most, most, self.wanted)
        self.left -= len(result.text)
        return f"=> [{result.where}] {result.text}"


def _calls_in(match: Match, wanted: Sequence[Term]) -> set[str]:
    """Return the ids of a passage's calls, matching ones alone if any."""
    result = result_text(match.message)
    first = len(split_lines(result)) + 1 if result else 1
    quoted, matching = set(), set()
    for call in tool_calls_of(match.message):
        text = call_as_text(call)
        last = first + len(split_lines(text)) - 1
        if first <= match.passage.last and last >= match.passage.first:
            quoted.add(call.id)
            if terms_in(text, wanted):
                matching.add(call.id)
        first = last + 1
    return matching or quoted


def _shorten_call(call: ToolCall) -> str:
    """Return a call on one line, shortened to its first values."""
    text = one_line(f"{call.name}({call.arguments})")
    if len(text) <= MAX_CALL_CHARS:
        return text
    values = list(argument_values(arguments_of(call)))
    if not call.id or not values:  # a text is no call, and its end says what to do
        return f"{call.name}(…{text[-MAX_PATH_CHARS:]}"
    return f"{call.name}({', '.join(_shorten_values(values))})"


def _shorten_values(values: Sequence[str]) -> Iterator[str]:
    room = MAX_CALL_CHARS
    for value in map(one_line, filter(str.strip, values)):
        is_end = "/" in value and is_path(value) and len(value) > MAX_PATH_CHARS
        shown = f"…{value[-MAX_PATH_CHARS:]}" if is_end else truncate_line(value, room)
        room -= len(shown) + 2
        yield shown
        if room < MIN_VALUE_CHARS:
            return
