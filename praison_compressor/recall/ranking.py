"""Rank the passages of found messages; choose the passages to quote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from ..messages import Message, ToolCall
from ..messages.display import call_as_text, message_as_text
from ..messages.results import pair_calls
from .layout import chars_of, length_without_ending, split_lines
from .matches import FoundMessage, Match, Source, best_match
from .passages import (
    CONTEXT_CHARS,
    LEAST_SCORE_SHARE,
    NEIGHBOUR_SHARE,
    LineTerms,
    Passage,
    Term,
    find_passages,
    terms_by_line,
    terms_in,
    weigh_terms,
    weight_of,
)

MOST_RANKED_MESSAGES = 24
SHORT_CALL_CHARS = 200
"""The words of a call of at most this length count for its result too."""
MOST_BLOCK_CHARS = 800
WIDEN_FACTOR = 2
"""Factor by which a passage's limit of characters is enlarged for ranking."""
LEAST_FILLING_CHARS = 200
REPEATED_SHARE, REPEATED_LINES = 0.03, 4
"""Bonus for each line with the best score; upper limit of the lines that count."""
ALIKE_WORDS_SHARE = 0.8
"""Two passages are similar if they have at least this share of their words in common."""


def count_documents(found: Sequence[FoundMessage]) -> int:
    """Count the messages; a call and its result count as one."""
    return len(found) - len({answer for _, answer, _ in _answer_pairs(found)})


def _answer_pairs(found: Sequence[FoundMessage]) -> list[tuple[int, int, ToolCall]]:
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


def rank_passages(
    found: Sequence[FoundMessage], wanted: Sequence[Term], shared: Collection[str], most: int
) -> list[Match]:
    """Return the passages, best first; at most `most` of each message."""
    texts = [
        split_lines(message_as_text(each.hit.message)) for each in found[:MOST_RANKED_MESSAGES]
    ]
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
    """Return the message's source without a shared ending that has no term."""
    end = length_without_ending(lines, shared)
    return Source(message, lines, end if any(line_terms[:end]) else len(lines))


def _score_passages(
    source: Source,
    line_terms: Sequence[LineTerms],
    wanted: Sequence[Term],
    most: int,
    above: Set[str],
) -> Iterator[Passage]:
    """Yield a message's passages; a short call's terms count too."""
    held, context_chars = line_terms[: source.end], WIDEN_FACTOR * CONTEXT_CHARS
    lines = source.lines[: source.end]
    for passage in find_passages(lines, wanted, most, held=held, context_chars=context_chars):
        own = {term for terms in held[passage.first - 1 : passage.last] for term in terms}
        added = NEIGHBOUR_SHARE * weight_of(above - own, wanted)
        yield replace(passage, score=passage.score + added)


def first_lines(found: Sequence[FoundMessage], wanted: Sequence[Term]) -> list[Match]:
    """Return each message's first line."""
    some = found[:MOST_RANKED_MESSAGES]
    texts = (split_lines(message_as_text(each.hit.message)) for each in some)
    return [
        best_match(each.place, each.hit.message, lines, wanted)
        for each, lines in zip(some, texts, strict=True)
    ]


def _repeated_factor(line_terms: Sequence[LineTerms], wanted: Sequence[Term]) -> float:
    sums = [round(weight_of(terms, wanted), 6) for terms in line_terms]
    return 1 + REPEATED_SHARE * min(REPEATED_LINES, sums.count(max(sums)) - 1)


# -------------------------------------------------------------- the passages to show


def choose_matches(
    ranked: Sequence[Match], is_whole: bool, limit: int, chars: int, table_chars: int
) -> Page:
    """Choose up to `limit` matches; widen the quoted matches to `chars` characters.

    Args:
        is_whole: whether a message has all of the query.
        table_chars: characters of a whole table.
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
    """Matches to quote and to list."""

    def __init__(self, sharing: int, chars: int, table_chars: int, alike: Sequence[Match]) -> None:
        """Share `chars` among the `sharing` first matches."""
        self.sharing, self.chars, self.table_chars = sharing, chars, table_chars
        self.alike = alike
        self.quoted, self.listed = list[Match](), list[Match]()

    def add(self, match: Match) -> None:
        """Quote the match if it fits, else list it and later matches."""
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
        most = min(share, MOST_BLOCK_CHARS)
        narrow = match.narrow(share) if self.sharing > 1 else match
        return narrow.widen(most, self.table_chars)

    def _fill(self, match: Match, left: int) -> Match | None:
        if match.source.table and self.table_chars > 0:
            return match.widen(self.table_chars, self.table_chars)
        if left < LEAST_FILLING_CHARS:
            return None
        narrow = match.narrow(left)
        if chars_of(match.source.lines[: match.source.end]) <= left:
            return narrow.widen(left, 0)
        return narrow if len(narrow.text) <= left else None


def _drop_weak(ranked: Sequence[Match], sought: Set[str]) -> Iterator[Match]:
    shown = set[str]()
    for match in ranked:
        terms = match.terms & sought
        if match.passage.score >= LEAST_SCORE_SHARE * ranked[0].passage.score or terms - shown:
            yield match
        shown |= terms


def _put_new_terms_first(
    matches: Sequence[Match], sought: Set[str], names: Set[str]
) -> tuple[list[Match], int]:
    """Return the matches; matches with new terms follow the best match.

    The number counts the first matches that each add a name.
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
    """Return the different matches, and older matches that resemble one of them.

    Matches repeat, because an agent reads a file again after an edit, and because a message is
    archived when it is masked and again when it is folded.
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
    """Return whether the newer match has the older match's terms and words."""
    older, newer = sorted((one, other), key=lambda each: each.place)
    if older.place == newer.place or (older.terms - newer.terms) & sought:
        return False
    return len(older.words & newer.words) >= ALIKE_WORDS_SHARE * len(older.words)
