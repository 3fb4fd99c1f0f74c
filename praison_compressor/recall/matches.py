"""Rank the passages of found messages; widen the best ones. Pure.

A call and its results are one document: they are counted once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..concurrency import computed_once
from ..ledger.words import Hit, distinct_words
from ..messages import Message, ToolCall, tool_calls_of
from ..messages.display import call_as_text, message_as_text, truncate_line
from ..messages.results import pair_calls
from .layout import (
    block_around,
    chars_of,
    count_fitting,
    json_paths,
    length_without_ending,
    split_lines,
    unnumbered,
)
from .passages import (
    BEFORE,
    CONTEXT,
    NEIGHBOUR_SHARE,
    WORTH,
    LineTerms,
    Passage,
    Term,
    find_passages,
    line_scores,
    terms_by_line,
    terms_in,
    weigh_terms,
    weight_of,
)
from .references import Reference
from .tables import best_rows, may_be_table, table_of, table_rows

__all__ = [
    "FoundMessage",
    "Match",
    "Page",
    "Source",
    "best_match",
    "choose_matches",
    "count_documents",
    "first_lines",
    "rank_passages",
    "snippet",
]

MAX_RANKED_MESSAGES = 24
"""Messages whose passages are ranked; the others are listed by reference."""
SHORT_CALL_CHARS = 200
"""Longest call whose words count for its result, which is shown below it."""
MAX_BLOCK_CHARS = 800
"""Characters up to which a passage is widened to the block around it."""
OVERRUN = 2
"""A block that ends within OVERRUN times its room is not cut."""
WIDEN_FACTOR = 2
"""Factor for the lines around a match: a wide quote saves a second read."""
MIN_FILLING_CHARS = 200
"""Least room left for a further passage."""
REPEATED_SHARE, REPEATED_LINES = 0.03, 4
"""Score bonus per further line equal to the best, and the most lines counted."""
ALIKE_WORDS_SHARE = 0.8
"""Of two passages that share this part of the older one's words only one is shown."""
ROW_CHARS = 50
"""Most characters of the words in a row."""
FOLLOWING_LINES = 40
"""Most lines that the reference after a passage names."""


class FoundMessage(NamedTuple):
    """An archived message that matches a query."""

    segment: int
    """From 1."""
    hit: Hit

    @property
    def place(self) -> tuple[int, int]:
        """Segment and ordinal: newer is larger."""
        return self.segment, self.hit.ordinal


def count_documents(found: Sequence[FoundMessage]) -> int:
    """Return the number of found messages, calls and their results counted once."""
    return len(found) - len({answer for _, answer, _ in _answer_pairs(found)})


def _answer_pairs(found: Sequence[FoundMessage]) -> list[tuple[int, int, ToolCall]]:
    """Return indexes of each call and its results in `found`."""
    by_segment: dict[int, list[int]] = {}
    for number, match in enumerate(found):
        by_segment.setdefault(match.segment, []).append(number)
    pairs = []
    for numbers in by_segment.values():
        numbers.sort(key=lambda number: found[number].place)
        calls = pair_calls([found[number].hit.message for number in numbers])
        pairs += [
            (numbers[c.at], numbers[c.answered_at], c.call) for c in calls if c.answered_at > c.at
        ]
    return pairs


def snippet(text: str, wanted: Sequence[Term], chars: int = ROW_CHARS) -> str:
    """Return the words around the first match of the heaviest term."""
    folded = text.casefold()
    places = [folded.find(term.text) for term in sorted(wanted, key=lambda term: -term.weight)]
    at = next((place for place in places if place >= 0), 0)
    start = max(text.rfind("\n", 0, at) + 1, at - chars // 3)
    if start and text[start - 1] != "\n":
        start = text.find(" ", start, at) + 1 or at
    return ("…" if start else "") + truncate_line(text[start : start + 4 * chars], chars)


@dataclass(frozen=True)
class Source:
    """A message as lines; its passages share its parsed JSON."""

    message: Message
    lines: Sequence[str]
    end: int
    """Lines before an ending that other messages have too."""

    @computed_once
    def paths(self) -> list[str]:
        """Return the keys that lead to each line of JSON, "" elsewhere."""
        # A program among a call's arguments is no JSON.
        is_call = bool(tool_calls_of(self.message))
        text = "" if is_call else message_as_text(self.message)
        return json_paths(text, self.lines)

    @computed_once
    def table(self) -> str:
        """Return the message's JSON as a table, or ""."""
        # Most texts are no JSON, which `table_of` sees at the first character.
        table = table_of(message_as_text(self.message))
        return table if table and any(self.paths) else ""


@dataclass(frozen=True)
class Match:
    """A passage of an archived message."""

    segment: int
    ordinal: int
    passage: Passage
    lines: Sequence[str]
    source: Source
    wanted: Sequence[Term]
    """The query's terms; rare ones weigh more."""
    is_table: bool = False
    """Whether the lines are the message's JSON as a table."""

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
        """The passage's lines, without the numbers of a listing."""
        return "\n".join(self._unnumbered[0])

    @property
    def numbers(self) -> str:
        """The listing's own numbers of the passage's lines, or ""."""
        return self._unnumbered[1]

    @computed_once
    def _unnumbered(self) -> tuple[Sequence[str], str]:
        return unnumbered(self.lines[self.passage.first - 1 : self.passage.last])

    @computed_once
    def words(self) -> frozenset[str]:
        """Return the passage's distinct words."""
        return frozenset(distinct_words(self.text))

    @property
    def path(self) -> str:
        """Return the keys to a JSON passage in words, or ""."""
        path = self.source.paths[self.passage.first - 1]
        return f", in {path}" if path else ""

    @computed_once
    def terms(self) -> frozenset[str]:
        """Return the terms that the passage shows."""
        # A table shows all of a message; only a quoted message's table is built.
        text = message_as_text(self.source.message)
        return terms_in(text if may_be_table(text) else self.text, self.wanted)

    def has(self, other: Match) -> bool:
        """Return whether the passage has the other's best line."""
        first, last = self.passage.first, self.passage.last
        is_inside = self.is_table or first <= other.passage.best <= last
        return self.place == other.place and is_inside

    @property
    def after(self) -> str:
        """Reference of the lines that follow; "" where nothing follows."""
        last = min(self.source.end, self.passage.last + FOLLOWING_LINES)
        is_end = self.is_table or last <= self.passage.last
        return "" if is_end else str(self.where.lines(self.passage.last + 1, last))

    def narrow(self, most: int) -> Match:
        """Cut a passage to its weightiest lines, `most` characters at most."""
        if len(self.text) <= most:
            return self
        best, cuts = self.passage.best, list[Passage]()
        for first in range(self.passage.first, self.passage.last + 1):
            lines = self.lines[first - 1 : self.passage.last]
            last = first + max(1, count_fitting(lines, most, len)) - 1
            cuts.append(
                replace(self.passage, first=first, last=last, best=max(first, min(best, last)))
            )
        return max(
            (replace(self, passage=cut) for cut in cuts),
            key=lambda match: (
                weight_of(terms_in(match.text, self.wanted), self.wanted),
                -abs(best - BEFORE - match.passage.first),
            ),
        )

    def widen(self, most: int, table_chars: int) -> Match:
        """Widen the match to its message, table, JSON value or block.

        The passage has at most `most` characters, a whole table `table_chars`, a whole block
        OVERRUN times `most`. Of a longer table the rows with the most weight are shown. An ending
        that other messages have too is left out.
        """
        best, passage = self.passage.best - 1, self.passage
        end = max(passage.last, self.source.end)
        if chars_of(self.lines[:end]) <= most:
            return replace(self, passage=replace(passage, first=1, last=end))
        if table := self.source.table:
            # A match at the top names all of the JSON.
            if len(table) > (most if self.source.paths[best] else table_chars):
                rows = table_rows(message_as_text(self.source.message))
                scores = line_scores([row.line for row in rows], self.wanted)
                table = best_rows(rows, scores, most)
            shown = table.split("\n")
            whole = Passage(1, len(shown), passage.score, 1)
            return replace(self, lines=shown, passage=whole, is_table=True)
        lines = self.lines[:end]
        first, last = block_around(
            passage.first - 1, best, passage.last - 1, lines, most, OVERRUN * most
        )
        return replace(self, passage=replace(passage, first=first + 1, last=last + 1))

    @property
    def row(self) -> str:
        """The passage's reference and a few of its words."""
        words = snippet(self.text, self.wanted, 2 * ROW_CHARS)
        return f"[{self.where}] {self.source.message.get('role')}: {words}"


def rank_passages(
    found: Sequence[FoundMessage], wanted: Sequence[Term], shared: Collection[str], most: int
) -> list[Match]:
    """Return the passages, best first, then newest.

    A message has at most `most` passages. A message that has more of the query elsewhere comes
    first.
    """
    texts = [split_lines(message_as_text(each.hit.message)) for each in found[:MAX_RANKED_MESSAGES]]
    line_terms = [terms_by_line(lines, wanted) for lines in texts]
    weighed = weigh_terms(wanted, line_terms)
    weights = [weight_of(set().union(*terms_of), weighed) for terms_of in line_terms]
    calls = {n: call_as_text(call) for _, n, call in _answer_pairs(found[: len(texts)])}
    matches = list[Match]()
    for n, lines in enumerate(texts):
        source = _source_of(found[n].hit.message, lines, line_terms[n], shared)
        part = (1 + weights[n] / (max(weights) or 1)) / 2 * _repeated_factor(line_terms[n], weighed)
        call = calls.get(n, "")
        above = terms_in(call if len(call) <= SHORT_CALL_CHARS else "", weighed)
        for passage in _score_passages(source, line_terms[n], weighed, most, above):
            scored = replace(passage, score=part * passage.score)
            matches.append(Match(*found[n].place, scored, lines, source, weighed))
    return sorted(matches, key=lambda each: (each.passage.score, *each.place), reverse=True)


def _source_of(
    message: Message, lines: Sequence[str], line_terms: Sequence[LineTerms], shared: Collection[str]
) -> Source:
    """Drop an ending of `shared` lines, unless only this ending has terms."""
    end = length_without_ending(lines, shared)
    return Source(message, lines, end if any(line_terms[:end]) else len(lines))


def _score_passages(
    source: Source,
    line_terms: Sequence[LineTerms],
    wanted: Sequence[Term],
    most: int,
    above: Set[str],
) -> Iterator[Passage]:
    """Yield a message's passages; terms of the call above count in part."""
    held, context = line_terms[: source.end], WIDEN_FACTOR * CONTEXT
    lines = source.lines[: source.end]
    for passage in find_passages(lines, wanted, most, held=held, context=context):
        own = {term for terms in held[passage.first - 1 : passage.last] for term in terms}
        added = NEIGHBOUR_SHARE * weight_of(above - own, wanted)
        yield replace(passage, score=passage.score + added)


def first_lines(found: Sequence[FoundMessage], wanted: Sequence[Term]) -> list[Match]:
    """Return each message's first line: no line has a term."""
    some = found[:MAX_RANKED_MESSAGES]
    texts = (split_lines(message_as_text(each.hit.message)) for each in some)
    return [
        best_match(each.place, each.hit.message, lines, wanted)
        for each, lines in zip(some, texts, strict=True)
    ]


def best_match(
    place: tuple[int, int], message: Message, lines: Sequence[str], wanted: Sequence[Term]
) -> Match:
    """Return a message's best passage; without terms, its first line."""
    passage = (*find_passages(lines, wanted, 1), Passage(1, 1, 0.0, 1))[0]
    return Match(*place, passage, lines, Source(message, lines, len(lines)), wanted)


def _repeated_factor(line_terms: Sequence[LineTerms], wanted: Sequence[Term]) -> float:
    sums = [round(weight_of(terms, wanted), 6) for terms in line_terms]
    return 1 + REPEATED_SHARE * min(REPEATED_LINES, sums.count(max(sums)) - 1)


# -------------------------------------------------------------- the ones to show


def choose_matches(
    ranked: Sequence[Match], is_whole: bool, limit: int, chars: int, table_chars: int
) -> Page:
    """Choose up to `limit` matches; widen the quoted to `chars` characters.

    Names of the query that the best passage lacks share the room, each with its best passage; if no
    message has all of the query (`is_whole`), words come before repetitions too. A table may have
    `table_chars`. A match whose best line stands in a wider one is left out.
    """
    names = {term.text for term in ranked[0].wanted if term.parts}
    words = {term.text for term in ranked[0].wanted if " " not in term.text}
    sought = names if is_whole else names | words
    distinct, alike = _split_repeats(_drop_weak(ranked, sought), sought)
    matches, named = _put_new_terms_first(distinct, sought, names)
    page = Page(max(1, named), chars, table_chars, alike)
    for match in matches[: max(limit, named)]:
        page.add(match)
    return page


class Page:
    """Hold matches to quote, matches to list, and matches `alike` to both."""

    def __init__(self, sharing: int, chars: int, table_chars: int, alike: Sequence[Match]) -> None:
        """Let the `sharing` first matches share the characters."""
        self.sharing, self.chars, self.table_chars = sharing, chars, table_chars
        self.alike = alike
        self.quoted, self.listed = list[Match](), list[Match]()

    def add(self, match: Match) -> None:
        """Quote the widened match if it fits before any listed match."""
        if any(each.has(match) for each in (*self.quoted, *self.listed)):
            return
        sharing = self.sharing - len(self.quoted)
        share = self.chars // max(1, sharing)
        lay_out = self._share if sharing > 0 else self._fill
        quoted = None if self.listed else lay_out(match, share)
        if quoted is None:
            self.listed.append(match)
            return
        self.quoted.append(quoted)
        self.chars -= min(share, len(quoted.text))
        self.table_chars -= len(quoted.text)

    def _share(self, match: Match, share: int) -> Match:
        """Return the match within its share, or its slightly longer block."""
        most = min(share, MAX_BLOCK_CHARS)
        narrow = match.narrow(share) if self.sharing > 1 else match
        return narrow.widen(most, self.table_chars)

    def _fill(self, match: Match, left: int) -> Match | None:
        """Return a further match that fits the remaining room, else None."""
        if match.source.table and self.table_chars > 0:
            return match.widen(self.table_chars, self.table_chars)
        if left < MIN_FILLING_CHARS:
            return None
        narrow = match.narrow(left)
        if chars_of(match.source.lines[: match.source.end]) <= left:
            return narrow.widen(left, 0)
        return narrow if len(narrow.text) <= left else None


def _drop_weak(ranked: Sequence[Match], sought: Set[str]) -> Iterator[Match]:
    """Yield matches that score enough or have a new sought term."""
    shown = set[str]()
    for match in ranked:
        terms = match.terms & sought
        if match.passage.score >= WORTH * ranked[0].passage.score or terms - shown:
            yield match
        shown |= terms


def _put_new_terms_first(
    matches: Sequence[Match], sought: Set[str], names: Set[str]
) -> tuple[list[Match], int]:
    """Put matches with new sought terms behind the best one.

    Return the matches, and the number of first matches that each add one of the names.
    """
    left, first, missing, named = list(matches), list[Match](), {*sought}, 0
    while left:
        gains = [weight_of(match.terms & missing, match.wanted) for match in left]
        if first and not max(gains):
            break
        best = left.pop(gains.index(max(gains)) if first else 0)
        named += named == len(first) and bool(best.terms & missing & names)
        first.append(best)
        missing -= best.terms
    return [*first, *left], named


def _split_repeats(matches: Iterable[Match], sought: Set[str]) -> tuple[list[Match], list[Match]]:
    """Return distinct matches, and others much like one of these.

    An agent reads a file again after an edit; a message is archived masked and again folded. The
    newest is returned.
    """
    apart: list[Match] = []
    others: dict[str, Match] = {}
    for match in matches:
        place = next((n for n, each in enumerate(apart) if _are_alike(match, each, sought)), None)
        if place is None:
            apart.append(match)
            continue
        other, apart[place] = sorted((apart[place], match), key=lambda each: each.place)
        others.setdefault(other.text, other)
    shown = {match.text for match in apart}
    return apart, [others[text] for text in others if text not in shown]


def _are_alike(one: Match, other: Match, sought: Set[str]) -> bool:
    """Return whether a newer match has an older one's terms and words."""
    older, newer = sorted((one, other), key=lambda each: each.place)
    if older.place == newer.place or (older.terms - newer.terms) & sought:
        return False
    return len(older.words & newer.words) >= ALIKE_WORDS_SHARE * len(older.words)
