"""Find the passages of a text that match a query.

A passage is a few whole lines around a match. Phrases and identifiers (paths, ids, numbers,
snake_case and camelCase names) count more than words.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..ledger.words import STOP_WORDS, UNSPACED_SCRIPTS, distinct_words

PHRASE_WEIGHT, IDENTIFIER_WEIGHT, PAIR_WEIGHT = 3.0, 2.5, 0.7
OTHER_CASE, APART = 0.8, 0.5
"""Share of an identifier's weight if it occurs in another case; if its words stand apart."""
DEFINED_SHARE = 1.2
"""Share of an identifier's weight in a line that defines the identifier or reports its failure."""
NEIGHBOUR_SHARE = 0.8
"""Share of a term's weight in a line beside the match."""
SHOWN_SHARE = 0.65
"""Share of a term's weight in later passages, after a passage with the term was chosen."""
LEAST_NUMBER_DIGITS = 3
"""A number of fewer digits is no identifier."""
LINES_BEFORE, LINES_AFTER = 1, 3
"""Lines around a match, as far as `CONTEXT_CHARS` allows."""
CONTEXT_CHARS = 300
"""A match and the lines around it have at most this number of characters."""
LEAST_SCORE_SHARE = 0.6
"""Passages with a smaller share of the best score are left out."""
MOST_DEFINITION_CHARS = 150
MOST_COMPARED_LINES = 200

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IDENTIFIER = re.compile(r"\d|[^\W_][._/:#@\\-]+[^\W_]|[a-z][A-Z]|[^\W_]_|_[^\W_]|^[~./\\]")
_DEFINES = re.compile(r"(?:\b(?:def|func|fn|class|type|const|let|var)\b|\bFAIL:)[^=]*$")
_GIVES_VALUE = re.compile(
    r"\s*(?:\d+[→\t]\s*)?(?:[A-Za-z]\w* )*([^\W\d]\w*)(?:: [\w.\[\]]+)? ?:?= ?[\"'`\d]"
)
_WORDS = re.compile(r"[^\W_]+")
_EMPTY = re.compile(r"\s*(?:\d+\s*[→|:])?\s*(?:</?[\w-]+>)?\s*")
_EDGE_MARKS = "\"'`()[]{}<>,;!?*"


@dataclass(frozen=True)
class Term:
    """A phrase, identifier or word of a query."""

    text: str
    """The term in lower case."""
    weight: float
    parts: tuple[str, ...] = ()
    """An identifier's words, which also match where they stand side by side."""
    written: str = ""
    """The term in the query's case."""


@dataclass(frozen=True)
class Passage:
    """Lines of a text, counted from 1."""

    first: int
    last: int
    score: float
    """Score of the best line with the lines around it."""
    best: int


def query_terms(query: str) -> list[Term]:
    """Return a query's phrase, identifiers and words."""
    chunks = [each for chunk in query.split() if (each := chunk.strip(_EDGE_MARKS).rstrip(".:"))]
    chunks = [each for each in chunks if each.casefold() not in STOP_WORDS] or chunks
    terms: dict[str, Term] = {}
    for chunk in chunks:
        if _IDENTIFIER.search(chunk) and not (chunk.isdigit() and len(chunk) < LEAST_NUMBER_DIGITS):
            parts = tuple(_split_words(chunk))
            terms[chunk.casefold()] = Term(chunk.casefold(), IDENTIFIER_WEIGHT, parts, chunk)
        else:
            for word in distinct_words(chunk):
                terms.setdefault(word, Term(word, 1.0))
    written = query.casefold().split()
    pairs = (f"{a} {b}".strip(f" {_EDGE_MARKS}") for a, b in pairwise(written))
    terms |= {pair: Term(pair, PAIR_WEIGHT) for pair in filter(None, pairs)}
    if len(chunks) > 1:
        phrase = " ".join(written).strip(_EDGE_MARKS)
        terms[phrase] = Term(phrase, PHRASE_WEIGHT)
    return list(terms.values())


def terms_in(text: str, wanted: Sequence[Term]) -> frozenset[str]:
    """Return the terms in a text."""
    folded = text.casefold()
    return frozenset(term.text for term in wanted if _has_word(text, folded, term.text))


LineTerms = dict[str, float]
"""Term → share of its weight in the line."""


def terms_by_line(lines: Sequence[str], wanted: Sequence[Term]) -> list[LineTerms]:
    """Return the terms of each line."""
    whole = "\n".join(lines).casefold()
    possible = [
        term
        for term in wanted
        if term.text in whole or (term.parts and all(part in whole for part in term.parts))
    ]
    return [_terms_of_line(line, possible) for line in lines]


def line_scores(lines: Sequence[str], wanted: Sequence[Term]) -> list[float]:
    """Return each line's weight."""
    weight = {term.text: term.weight for term in wanted}
    return [
        math.fsum(weight[text] * share for text, share in terms.items())
        for terms in terms_by_line(lines, wanted)
    ]


def weigh_terms(wanted: Sequence[Term], held: Sequence[Sequence[LineTerms]]) -> list[Term]:
    """Return the terms; rare terms get more weight."""
    times = Counter(text for lines in held for line in lines for text in line)
    number = sum(map(len, held))
    return [
        replace(term, weight=term.weight * math.log(2 + number / (1 + times[term.text])))
        for term in wanted
    ]


def weight_of(texts: Collection[str], wanted: Sequence[Term]) -> float:
    """Return the weight of the terms with these texts."""
    return math.fsum(term.weight for term in wanted if term.text in texts)


def find_passages(
    lines: Sequence[str],
    wanted: Sequence[Term],
    most: int,
    *,
    held: Sequence[LineTerms] | None = None,
    context_chars: int = CONTEXT_CHARS,
) -> list[Passage]:
    """Return up to `most` passages, best first.

    Args:
        held: each line's terms, if known.
        context_chars: characters of a match with the lines around it.
    """
    held = terms_by_line(lines, wanted) if held is None else held
    weight = {term.text: term.weight for term in wanted}
    weights = {n: sum(weight[text] for text in terms) for n, terms in enumerate(held) if terms}
    likely = heapq.nlargest(
        MOST_COMPARED_LINES, weights, key=lambda number: (weights[number], number)
    )
    places = {number: _context_lines(number, lines, context_chars) for number in likely}
    left, taken, least = weight, list[Passage](), 0.0
    while places and len(taken) < most:
        scores = {n: _score_line(n, held, place, left) for n, place in places.items()}
        # Of lines with equal scores take the last: a tool's output ends with its conclusion.
        best = max(scores, key=lambda number: (scores[number], number))
        least = least or LEAST_SCORE_SHARE * scores[best]
        if scores[best] < least:
            break
        first, last = places[best]
        matching = next(n for n in range(first, best + 2) if held[n - 1])
        passage = Passage(max(first, matching - LINES_BEFORE), last, scores[best], best + 1)
        taken.append(passage)
        quoted = {text for line in held[passage.first - 1 : passage.last] for text in line}
        left = left | {text: SHOWN_SHARE * weight[text] for text in quoted}
        apart = passage.first - 1, passage.last + 1
        places = {n: (a, b) for n, (a, b) in places.items() if b < apart[0] or a > apart[1]}
    return taken


def _context_lines(number: int, lines: Sequence[str], context_chars: int) -> tuple[int, int]:
    wide = round(context_chars / CONTEXT_CHARS)
    after = range(number + 1, min(len(lines), number + 1 + wide * LINES_AFTER))
    before = range(number - 1, max(-1, number - 1 - wide * LINES_BEFORE), -1)
    left, shown = context_chars - len(lines[number]), [number]
    for beside in (*after, *before):
        left -= len(lines[beside])
        if left < 0:
            break
        if not _EMPTY.fullmatch(lines[beside]):
            shown.append(beside)
    return min(shown) + 1, max(shown) + 1


def defining_line(lines: Sequence[str], quoted: range, wanted: Iterable[Term]) -> int | None:
    """Return the number of a line that defines a quoted name.

    The name must consist of wanted words: `metadataDenyRule` for "metadata deny rule".
    """
    sought = {word for term in wanted for word in (*term.parts, *_split_words(term.text))}
    text = "\n".join(lines[number - 1] for number in quoted)
    short = ((n, line) for n, line in enumerate(lines, 1) if len(line) <= MOST_DEFINITION_CHARS)
    given = ((n, match[1]) for n, line in short if (match := _GIVES_VALUE.match(line)))
    for number, name in given:
        words, is_quoted = _split_words(name), re.search(rf"\b{name}\b", text)
        if number not in quoted and is_quoted and len(words) > 1 and sought.issuperset(words):
            return number
    return None


# -------------------------------------------------------------- scoring


def _terms_of_line(line: str, wanted: Iterable[Term]) -> LineTerms:
    folded, shares = line.casefold(), dict[str, float]()
    for term in wanted:
        if _has_word(line, folded, term.text):
            at = line.find(term.written)
            is_defined = term.parts and _DEFINES.search(line[: max(at, 0)])
            # `retriesLeft` is another name than `retries`.
            runs_on = term.parts and line[at + len(term.written) :][:1].isalnum()
            is_other = at < 0 or runs_on
            shares[term.text] = OTHER_CASE if is_other else DEFINED_SHARE if is_defined else 1.0
        elif (
            term.parts
            and all(part in folded for part in term.parts)
            and f" {' '.join(term.parts)} " in f" {' '.join(_split_words(line))} "
        ):
            shares[term.text] = APART
    return shares


def _score_line(
    number: int, held: Sequence[LineTerms], place: tuple[int, int], weight: Mapping[str, float]
) -> float:
    """Return a line's weight; neighbouring lines count in part."""
    best: LineTerms = {}
    for near in range(place[0] - 1, place[1]):
        part = 1.0 if near == number else NEIGHBOUR_SHARE
        for text, share in held[near].items():
            best[text] = max(best.get(text, 0.0), part * share)
    return sum(weight[text] * share for text, share in best.items())


def _split_words(text: str) -> list[str]:
    return _WORDS.findall(_CAMEL.sub(" ", text).casefold())


def _has_word(text: str, folded: str, wanted: str) -> bool:
    """Return whether a word begins with `wanted`; a number must be equal."""
    place = folded.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        inside = place > 0 and folded[place - 1].isalnum() and wanted[:1].isalnum()
        inside = inside and not UNSPACED_SCRIPTS.search(folded[place - 1 : place + 1])
        is_part = inside and len(text) == len(folded) and text[place].isupper()
        runs_on = wanted[-1:].isdigit() and folded[end : end + 1].isdigit()
        if (not inside or (is_part and text[place - 1].islower())) and not runs_on:
            return True
        place = folded.find(wanted, place + 1)
    return False
