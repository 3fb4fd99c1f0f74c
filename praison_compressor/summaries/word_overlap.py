"""Compare a summary's rare words, and their order, with its source."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from .prompts import SUMMARY_INSTRUCTIONS

_UNSPACED_CHARS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words; two characters count as a word."""

# A word's frequency in any text follows from its length (Zipf's law of abbreviation). Its frequency
# in the source is counted. A word's evidence is the logarithm of the ratio of both frequencies, in
# bits. The evidence of a text is the sum over its words.

EVIDENCE_BITS = 16.0
"""Bits required of a text. In 61 recorded sessions ordinary words reach 15.3 by chance."""

PHRASE_WORDS, PHRASE_CHARS = 6, 20
"""Consecutive words, and their characters, that unrelated texts do not share."""

FEW_WORDS = 64  # different words of a short source, in which each shared word counts
SHARED_SHARE = 0.4  # share of a text's words, or of its numbers, that a short source must have

_LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _WORD_BITS = 2.2, 3.3, 4.5, 3.0

_FOREIGN_SHARE = 0.4  # share of a summary's words that are not in the source
SAMPLE_CHARS = 60_000  # characters of a long source that are read first: most summaries match

# To Python, vowel signs of Indian scripts are no word characters.
_PIECE = rf"(?:[^\W{_UNSPACED_CHARS}]|[\u0300-\u036f\u0900-\u0dff])+"

_WORD_OR_NAME = re.compile(rf"[{_UNSPACED_CHARS}]+|{_PIECE}(?:[.\-/_]+{_PIECE})*")

_NAME_JOINTS = re.compile(r"[.\-/_]+")

_SEPARATORS = frozenset(" \t\n,;:!?()[]{}<>\"'`*#|=")
"""Signs beside a whole name. Beside a joint the name may be a part of a longer one."""


def is_about(text: str, source: str) -> bool:
    """Return whether the text shares enough rare words with the source."""
    words = {*stems_of(text)} - _REQUEST_WORDS
    # To look for some names takes a hundredth of the time of counting all words of the source.
    shared_names = Counter(_names_in(source.casefold(), words))
    if _evidence(words, shared_names, len(source)) >= EVIDENCE_BITS:
        return True
    for part in _source_parts(source):
        counts = Counter(stems_of(part))
        if _evidence(words, counts, counts.total()) >= EVIDENCE_BITS:
            return True
    phrases = {*_phrases(text)}
    if phrases and not phrases.isdisjoint(_phrases(source)):
        return True
    return _shares_few_words(words, {*stems_of(source[:SAMPLE_CHARS])} - _REQUEST_WORDS)


def _shares_few_words(words: set[str], source_words: set[str]) -> bool:
    """Return whether a short source has enough of the words or numbers."""
    source_plain, source_numbers = _plain_and_numbers(source_words)
    plain, numbers = _plain_and_numbers(words)
    return len(source_plain) <= FEW_WORDS and any(
        len(ours) >= least and len(ours & theirs) >= SHARED_SHARE * len(ours)
        for ours, theirs, least in ((plain, source_plain, 1), (numbers, source_numbers, 2))
    )


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    """Yield each PHRASE_WORDS consecutive words that are long enough."""
    words = [*_word_tokens(text)]
    for at in range(len(words) - PHRASE_WORDS + 1):
        phrase = tuple(words[at : at + PHRASE_WORDS])
        if sum(map(len, phrase)) >= PHRASE_CHARS:
            yield phrase


def _plain_and_numbers(words: set[str]) -> tuple[set[str], set[str]]:
    """Return the first letters of plain words, and the words with digits."""
    plain = {word[:4] for word in words if word.isalpha() and len(word) > 3}
    return plain, {word for word in words if len(word) > 1 and any(map(str.isdigit, word))}


def _names_in(source: str, words: set[str]) -> Iterator[str]:
    """Yield the names with joints that a source has as words."""
    for name in filter(_NAME_JOINTS.search, words):
        start = source.find(name)  # `partition` would copy the source
        end = start + len(name)
        around = source[max(0, start - 1) : start] + source[end : end + 1]
        if start >= 0 and _SEPARATORS.issuperset(around):
            yield name


def _evidence(words: set[str], counts: Counter[str], total: int) -> float:
    """Return the bits by which counts explain words better than chance.

    `total` is the sum of all counts. A larger number gives a lower bound.
    """
    share = (1 - _FOREIGN_SHARE) / max(1, total)
    return sum(
        math.log2(share * counts[word] * 2.0 ** _bits(word) + _FOREIGN_SHARE) for word in words
    )


def _source_parts(source: str) -> Iterator[str]:
    """Yield a long source's beginning and end, then the whole."""
    if len(source) > SAMPLE_CHARS:
        yield f"{source[: SAMPLE_CHARS // 4]}\n{source[-SAMPLE_CHARS * 3 // 4 :]}"
    yield source


def stems_of(text: str) -> Iterator[str]:
    """Yield a text's words as stems, and names whole and in parts."""
    for word in _WORD_OR_NAME.findall(text.casefold()):
        if _UNSPACED_SIGN.match(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            continue
        parts = _NAME_JOINTS.split(word)
        if len(parts) > 1:
            yield word
        yield from (part[: max(4, len(part) - 2)] if part.isalpha() else part for part in parts)


def _bits(word: str) -> float:
    """Return a word's information in any text, in bits."""
    signs, digits = len(_UNSPACED_SIGN.findall(word)), sum(map(str.isdigit, word))
    letters = len(word) - signs - digits
    bits = _WORD_BITS + _SIGN_BITS * signs + _DIGIT_BITS * digits + _LETTER_BITS * letters
    return min(60.0, bits)


_UNSPACED_SIGN = re.compile(f"[{_UNSPACED_CHARS}]")

_REQUEST_WORDS = frozenset(
    stems_of(
        f"{SUMMARY_INSTRUCTIONS} transcript summarize summarized summaries headings "
        "user assistant system tool result calls"
    )
)
"""Words of the request, which are no evidence."""


# -------------------------------------------------------------- the order of words

LEAST_ORDERED_WORDS = 30  # words of letters alone; a shorter text has too few neighbours to measure

_SHARED_WORDS = 0.5
"""Share of the text's words in the source; with a smaller share its language is another."""

LEAST_DEVIATIONS = 2.5
"""Standard deviations by which a text has more neighbours of the source than its words shuffled.
True texts of 40 words have 4.7 and more, shuffled ones up to 1.4."""

_SHUFFLES = 4


def is_shuffled(text: str, source: str) -> bool:
    """Return whether the text has the source's word pairs only by chance."""
    words = [*_word_tokens(text)]
    if sum(map(str.isalpha, words)) < LEAST_ORDERED_WORDS:
        return False
    return all(_is_by_chance(words, [*_word_tokens(part)]) for part in _source_parts(source))


def _is_by_chance(words: list[str], source: list[str]) -> bool:
    vocabulary = {*source}
    if sum(word in vocabulary for word in words) < _SHARED_WORDS * len(words):
        return False
    pairs = {*pairwise(source)}
    seen = sum(pair in pairs for pair in pairwise(words))
    shuffler = random.Random(len(words))
    shuffled = (shuffler.sample(words, len(words)) for _ in range(_SHUFFLES))
    expected = sum(pair in pairs for order in shuffled for pair in pairwise(order)) / _SHUFFLES
    return (seen - expected) / math.sqrt(expected + 1) < LEAST_DEVIATIONS


def _word_tokens(text: str) -> Iterator[str]:
    """Yield words without outer punctuation, and each sign of unspaced scripts."""
    folded = text.casefold()
    tokens = folded.split() if folded.isascii() else _WORD_TOKEN.findall(folded)
    return filter(None, (token.strip(_OUTER_SIGNS) for token in tokens))


_WORD_TOKEN = re.compile(rf"[{_UNSPACED_CHARS}]|[^\s{_UNSPACED_CHARS}]+")

_OUTER_SIGNS = ".,;:!?()[]{}\"'`*#|-–—>…“”„«»"
