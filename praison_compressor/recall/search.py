"""Search an archive; count the matches, choose passages and rows.

`fitting` writes the text of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..ledger.words import MOST_PARTIAL_HITS, distinct_words, missing_chunks
from ..messages import ToolCall, result_text, tool_calls_of
from ..messages.calls import argument_values, arguments_of
from ..messages.display import call_as_text, message_as_text, one_line, pluralize, truncate_line
from .archive import EMPTY, Neighbourhood, SessionArchive
from .layout import block_around, chars_of, split_lines, unnumbered
from .matches import FoundMessage, Match, best_match, snippet
from .passages import LEAST_SCORE_SHARE, Term, line_scores, query_terms, terms_in
from .ranking import (
    MOST_BLOCK_CHARS,
    choose_matches,
    count_documents,
    first_lines,
    rank_passages,
)
from .references import Reference, in_runs

MOST_COUNTED_MESSAGES = 400
"""A search counts, and may quote, at most this number of messages."""
MOST_PASSAGES_PER_MESSAGE = 2
MOST_NAMED = 8
"""At most this number of line numbers, and of references of similar messages, are named."""
MOST_CALL_CHARS = 80
PATH_NAMES = 4
"""A shortened path keeps this number of names at its end."""
RESULT_CHARS = 300
OTHERS_DIVISOR = 3
"""Rows of other messages get at most 1 / OTHERS_DIVISOR of an answer."""
CHARS_PER_TOKEN = 2.7
HEAD_TOKENS = 80
"""Tokens of an answer without its quoted lines."""
MOST_LACKING_CHARS = 100
"""The list of words that no message has is cut to this number of characters."""
REPEATED, LEAST_REPEATED_CHARS = "(quoted above)", 80
"""REPEATED replaces a passage of more than LEAST_REPEATED_CHARS characters that the turn's earlier
answers have."""


def find_messages(archive: SessionArchive, query: str) -> list[FoundMessage]:
    """Return the archived messages that match, best first."""
    session = archive.session
    # Search only archived messages: the agent sees all other messages.
    hits = archive.store.search(
        session.namespace, query, session.id, MOST_COUNTED_MESSAGES, archived_only=True
    )
    places = {e.hash: n for n, e in enumerate(session.entries, 1) if not e.is_forgotten}
    return [FoundMessage(places[hit.entry], hit) for hit in hits if hit.entry in places]


class OtherMessages(NamedTuple):
    """Messages without a passage that share their words."""

    places: list[tuple[int, int]]
    """(segment, number from 1) of each message."""
    words: str


@dataclass(frozen=True)
class SearchAnswer:
    """What a search found."""

    count: str
    passages: list[str]
    """The best passages, each with its call and results."""
    rows: list[str]
    """A row for each passage that does not fit, and for other matches."""
    others: list[OtherMessages]
    further: str
    """The line with the best message's other matching lines, or ""."""
    after: str
    """Reference of the lines after the best passage, or ""."""
    free_tokens: int
    """Tokens of the answer."""
    others_tokens: int
    """Tokens for `others` with their words; 0: only the references are shown."""


def search_answer(
    query: str,
    found: Sequence[FoundMessage],
    limit: int,
    archive: SessionArchive,
    *,
    free_tokens: int,
    table_tokens: int,
    most_tokens: int,
    answered: str,
) -> SearchAnswer:
    """Lay out what a search found.

    Args:
        limit: most passages.
        free_tokens: tokens of the answer.
        table_tokens: tokens of the answer if a passage is a table or a long block.
        most_tokens: tokens of the answer if a passage goes on in another listing.
        answered: the turn's earlier answers; their passages are not quoted again.
    """
    is_whole, documents = found[0].hit.is_whole, count_documents(found)
    limit = limit if is_whole else max(1, limit - 1)
    chars, table_chars = map(_chars_for, (free_tokens, table_tokens))
    ranked = _rank(query, found, archive, limit if documents == 1 else MOST_PASSAGES_PER_MESSAGE)
    choice = choose_matches(ranked, is_whole, limit, chars, table_chars)
    quotes = _quote_matches(
        archive, choice.quoted, ranked, chars, _chars_for(most_tokens), answered
    )
    beside = quotes.places - {match.place for match in choice.quoted}
    best = [*quotes.quoted, *(each for each in choice.listed if each.place not in beside)]
    seen = quotes.places | {match.place for match in (*best, *choice.alike)}
    least = LEAST_SCORE_SHARE * found[0].hit.score
    rest = [each for each in found if each.hit.score >= least and each.place not in seen]
    is_longer = (
        quotes.has_following
        or any(match.is_table for match in best)
        or chars < sum(len(match.text) for match in quotes.quoted)
    )
    used = table_tokens if is_longer else free_tokens
    used = most_tokens if quotes.has_following else used
    return SearchAnswer(
        count=_count_line(query, found, documents),
        passages=[*quotes.lines],
        rows=[*(match.row for match in best), *_alike_row(choice.alike)],
        others=_other_matches(rest, ranked[0].wanted),
        further=_further_lines(best),
        after=best[0].after,
        free_tokens=used,
        others_tokens=free_tokens // OTHERS_DIVISOR if is_whole and not is_longer else 0,
    )


def _chars_for(free_tokens: int) -> int:
    return int(max(0, free_tokens - HEAD_TOKENS) * CHARS_PER_TOKEN)


def _rank(
    query: str, found: Sequence[FoundMessage], archive: SessionArchive, most: int
) -> list[Match]:
    """Return the matching passages, best first, or each message's first line."""
    ranked = rank_passages(found, query_terms(query), archive.endings, most)
    # Then search for single words: an identifier's words may stand apart in a text.
    words = [Term(word, 1.0) for word in distinct_words(query)]
    ranked = ranked or rank_passages(found, words, archive.endings, most)
    # No line may match although the store found the message: only the store normalizes letters.
    return ranked or first_lines(found, words)


def _further_lines(best: Sequence[Match]) -> str:
    """Return the line with the best message's other matching lines, or ""."""
    first = best[0]
    scores = line_scores(first.lines, first.wanted)
    shown = {
        number
        for match in best
        if match.place == first.place
        for number in range(match.passage.first, match.passage.last + 1)
    }
    least = LEAST_SCORE_SHARE * scores[first.passage.best - 1]
    lines = [n for n, score in enumerate(scores, 1) if score >= least > 0 and n not in shown]
    if not lines:
        return ""
    whole = Reference(first.segment, first.ordinal + 1)
    count = pluralize(len(lines), "more matching line")
    return f"{count} of {whole}: {_list_first([str(number) for number in lines])}"


def _alike_row(matches: Sequence[Match]) -> Iterator[str]:
    references = in_runs((match.segment, match.ordinal + 1) for match in matches)
    if references:
        yield f"({len(matches)} more much like these: {_list_first(references)})"


def _list_first(names: Sequence[str]) -> str:
    """Join the first `MOST_NAMED` names; "…" replaces the rest."""
    listed = ", ".join(names[:MOST_NAMED])
    return f"{listed} …" if len(names) > MOST_NAMED else listed


def lacking_words(query: str, texts: Sequence[str]) -> str:
    """Return the words of a query that no text has."""
    return truncate_line(", ".join(missing_chunks(query, texts)), MOST_LACKING_CHARS)


def _count_line(query: str, found: Sequence[FoundMessage], documents: int) -> str:
    texts = [message_as_text(each.hit.message) for each in found]
    is_whole, is_complete = found[0].hit.is_whole, found[0].hit.is_complete
    is_exact = len(found) < (MOST_COUNTED_MESSAGES if is_whole else MOST_PARTIAL_HITS)
    more = "" if is_exact and (is_complete or not is_whole) else " or more"
    if not is_whole:
        lacking = lacking_words(query, texts)
        none = f" (none has {lacking})" if lacking else ""
        has = "has" if is_complete else "was found with"
        return f"No archived message {has} all of it{none}; {documents}{more} have a part:"
    remark = f"{documents}{more} archived message{'s match' if documents > 1 else ' matches'}"
    words = query.casefold().split()
    if len(words) < 2:
        return remark
    phrase, folded = " ".join(words), (" ".join(text.casefold().split()) for text in texts)
    exact = [each for each, text in zip(found, folded, strict=True) if phrase in text]
    return remark + (f", {count_documents(exact)} with these very words" if exact else "")


def _other_matches(found: Sequence[FoundMessage], wanted: Sequence[Term]) -> list[OtherMessages]:
    """Return the messages by their words."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for segment, hit in found:
        row = f"{hit.message.get('role')}: {snippet(message_as_text(hit.message), wanted)}"
        rows.setdefault(row, []).append((segment, hit.ordinal + 1))
    return [OtherMessages(places, row) for row, places in rows.items()]


# -------------------------------------------------------------- a passage with its call or results


@dataclass(frozen=True)
class _Quotes:
    """Passages, each with its call and results."""

    quoted: tuple[Match, ...]
    lines: tuple[str, ...]
    places: frozenset[tuple[int, int]]
    """The messages that the lines quote or name."""
    has_following: bool
    """Whether a passage goes on in another listing."""


def _quote_matches(
    archive: SessionArchive,
    matches: Sequence[Match],
    ranked: Sequence[Match],
    chars: int,
    most_chars: int,
    answered: str,
) -> _Quotes:
    """Quote the matches, then their results, in `chars` characters.

    `most_chars`: a passage of more characters does not go on in another listing.
    """
    layout = _QuoteLayout(
        archive=archive,
        ranked=ranked,
        chosen={match.place: match for match in reversed(matches)},
        left=chars - sum(len(match.text) for match in matches),
        block_chars=min(chars, MOST_BLOCK_CHARS),
        most_chars=most_chars,
        answered=answered,
    )
    for match in matches:
        layout.add(match)
    return _Quotes(
        tuple(layout.quoted), tuple(layout.lines), frozenset(layout.places), layout.has_following
    )


@dataclass
class _QuoteLayout:
    """Lay out quotes, one match after the other."""

    archive: SessionArchive
    ranked: Sequence[Match]
    chosen: dict[tuple[int, int], Match]
    left: int
    """Characters for results."""
    block_chars: int
    most_chars: int
    answered: str
    quoted: list[Match] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    places: set[tuple[int, int]] = field(default_factory=set)
    has_following: bool = False

    def add(self, match: Match) -> None:
        """Add a passage with its call and results, unless already shown."""
        where, is_new = match.where, match.place not in self.places
        if not is_new and match is self.chosen[match.place]:  # already shown beside its call
            return
        self.quoted.append(match)
        self.places.add(match.place)
        text = self._text(match)
        if not is_new:
            self.lines.append(f"[{where}]{_size(match)}{match.path}\n{text}")
            return
        around = self.archive.around(match.segment, range(match.ordinal, match.ordinal + 1))
        by = f"{match.source.message.get('role')}{self._answered_call(around, match.ordinal)}"
        next_lines = _next_lines(match, around)
        following = (
            self._following(match, around, next_lines) if next_lines and text != REPEATED else []
        )
        head = f"[{where}]{_size(match, None if following else next_lines)} {by}{match.path}"
        self.lines.append("\n".join([head, text, *following, *self._results(match, around)]))

    def _text(self, match: Match) -> str:
        is_repeated = len(match.text) > LEAST_REPEATED_CHARS and match.text in self.answered
        return REPEATED if is_repeated else match.text + match.definition

    def _following(self, match: Match, around: Neighbourhood, where: Reference) -> list[str]:
        """Return the rest of a block from the listing at `where`.

        The block may go on there, because an agent reads a file in pieces.
        """
        quoted = match.quoted
        block, size = self.block_chars, chars_of(quoted)
        if size > self.most_chars:
            return []
        lines = [*quoted, *around.lines_at(where)]
        best = match.passage.best - match.passage.first
        _, end = block_around(0, best, len(quoted) - 1, lines, size + block * 3 // 4, size + block)
        following = lines[len(quoted) : end + 1]
        if not following:
            return []
        self.has_following = True
        texts, numbers = unnumbered(following)
        shown, rest = where.split(len(following))
        return [f"[{shown}]{_stated('', numbers, rest)}", *texts]

    def _answered_call(self, around: Neighbourhood, ordinal: int) -> str:
        for answered in around.calls_answered_by(ordinal):
            place, call = around.place(answered.at), answered.call
            if place not in self.chosen or len(call_as_text(call)) <= MOST_CALL_CHARS:
                self.places.add(place)
            return f", of [{around.where(answered.at)}] {_shorten_call(call)}"
        return ""

    def _results(self, match: Match, around: Neighbourhood) -> list[str]:
        calls = _calls_in(match)
        # A call written as text has the id "".
        answered = dict.fromkeys(
            call.answered_at
            for call in around.calls_in(match.ordinal)
            if call.call.id in {"", *calls} and around.place(call.answered_at) not in self.places
        )
        self.places |= set(map(around.place, answered))
        return [self._result(match, around, at) for at in answered]

    def _result(self, match: Match, around: Neighbourhood, at: int) -> str:
        place = around.place(at)
        ranked = next((each for each in self.ranked if each.place == place), None)
        result = self.chosen.get(place) or ranked or _missing_part(match, around, at)
        if place in self.chosen:  # its characters were already subtracted
            self.left += len(result.text)
        most = max(self.left, RESULT_CHARS)
        result = result.widen(most, most)
        self.left -= len(result.text)
        text = self._text(result) or EMPTY
        return f"=> [{result.where}]{_size(result)}{result.path} {text}"


def _missing_part(match: Match, around: Neighbourhood, at: int) -> Match:
    shown = terms_in(match.text, match.wanted)
    missing = [term for term in match.wanted if term.text not in shown]
    return best_match(around.place(at), around.messages[at], around.lines(at), missing)


def _next_lines(match: Match, around: Neighbourhood) -> Reference | None:
    """Return where the quoted listing goes on, or None."""
    if not match.numbers or match.after:
        return None
    return around.listed_at(match.ordinal, int(match.numbers.rpartition("-")[2]) + 1)


def _size(match: Match, after: Reference | None = None) -> str:
    """Return a passage's size, as " (of 90 lines, numbered 7-9)"."""
    length = max(match.source.end, match.passage.last)
    size = f"of {length} lines" if match.where.line is not None else ""
    return _stated(size, match.numbers, after)


def _stated(size: str, numbers: str, after: Reference | None) -> str:
    listed = f"numbered {numbers}" if numbers else ""
    goes_on = f"goes on at {after}" if after else ""
    stated = ", ".join(filter(None, (size, listed, goes_on)))
    return f" ({stated})" if stated else ""


def _calls_in(match: Match) -> set[str]:
    result = result_text(match.source.message)
    first = len(split_lines(result)) + 1 if result else 1
    quoted, matching = set(), set()
    for call in tool_calls_of(match.source.message):
        text = call_as_text(call)
        last = first + len(split_lines(text)) - 1
        if first <= match.passage.last and last >= match.passage.first:
            quoted.add(call.id)
            if terms_in(text, match.wanted):
                matching.add(call.id)
        first = last + 1
    return matching or quoted


def _shorten_call(call: ToolCall) -> str:
    # A call without an id was written as text, whose end says what to do.
    values = argument_values(arguments_of(call)) if call.id else [call.arguments]
    short, half = one_line(", ".join(map(_shorten_path, values))), MOST_CALL_CHARS // 2
    shown = short if len(short) <= MOST_CALL_CHARS else f"{short[:half]}…{short[-half:]}"
    return f"{call.name}({shown})"


def _shorten_path(value: str) -> str:
    names = value.split("/")
    is_path = value[:1] in "/~." and not any(map(str.isspace, value))
    return f"…/{'/'.join(names[-PATH_NAMES:])}" if is_path and len(names) > PATH_NAMES else value
