"""Accept or refuse a summarizer's answer by measures that need no language."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import RejectionReason, SummaryRejected
from ..messages.shapes import replace_surrogates
from .prompts import SUMMARY_INSTRUCTIONS, SummaryRequest
from .protocol import SummaryReply
from .reasoning import strip_reasoning

MOST_ANSWER_CHARS = 1_000_000
"""Longer answers are refused: the checks would take long."""


def accept(reply: SummaryReply, request: SummaryRequest) -> str:
    """Return the summary in a model's answer to a request.

    Raises:
        SummaryRejected: the answer is no finished text about the messages in the request.
    """
    text = strip_reasoning(replace_surrogates(_finished_text(reply)))
    for flaw in FLAWS:
        if flaw.is_in(text, request):
            raise SummaryRejected(flaw.reason, flaw.detail or text[:80])
    return text


def _finished_text(reply: SummaryReply) -> str:
    text = reply.text or ""
    if not isinstance(text, str):
        raise SummaryRejected("no text", f"the summarizer gave {type(text).__name__}")
    reason = _reason_text(reply.finish_reason)
    if refusal := refusal_for_finish(reason):
        raise SummaryRejected(refusal, f"the finish reason is {reason.strip():.60}")
    if len(text) > MOST_ANSWER_CHARS:
        raise SummaryRejected("too long", f"{len(text)} characters, at most {MOST_ANSWER_CHARS}")
    return text


class Flaw(NamedTuple):
    """A reason to refuse a text."""

    reason: RejectionReason
    is_in: Callable[[str, SummaryRequest], object]
    detail: str = ""
    """Added to the reason; "": the text's first 80 characters."""


FLAWS = (
    Flaw("empty", lambda text, _: not re.search(r"\w", text)),
    Flaw("tool call", lambda text, _: _TOOL_CALL.match(text)),
    Flaw("error text", lambda text, _: _PAGE.match(text)),
    Flaw("unfinished JSON", lambda text, _: has_unfinished_json(text)),
    Flaw("echo", lambda text, _: is_copy(text, SUMMARY_INSTRUCTIONS), "of the instructions"),
    Flaw("echo", lambda text, asked: is_copy(text, asked.transcript), "of the messages"),
    Flaw("repetition", lambda text, _: is_loop(text), "its end repeats itself"),
    Flaw("unrelated", lambda text, asked: not is_about(text, asked.source), "no shared rare words"),
    Flaw("no order", lambda text, asked: is_shuffled(text, asked.source), "words in no order"),
)


# -------------------------------------------------------------- finish reasons

_BAD_FINISHES: Mapping[RejectionReason, tuple[str, ...]] = {
    "refusal": ("filter", "safe", "refus", "block", "prohibit", "guardrail", "recitation", "spii",
                "moderat", "policy", "violat", "harm", "sensitive", "toxic", "denied", "copyright"),
    "tool call": ("tool", "function", "call"),
    "cut off": ("length", "max", "limit", "incomplete", "trunc", "exceed", "window", "error",
                "fail", "abort", "cancel", "timeout", "pause", "unfinished", "notfinished",
                "overflow", "interrupt", "insufficient", "malformed", "partial", "budget",
                "repetit", "quota", "compact"),
}  # fmt: skip
"""Reason of our refusal → parts of finish reasons, in any provider's spelling."""


def refusal_for_finish(reason: str) -> RejectionReason | None:
    """Return the reason to refuse an answer that ended so, or None."""
    bare = re.sub(r"[^a-z]", "", reason.casefold())
    for refusal, parts in _BAD_FINISHES.items():
        if any(part in bare for part in parts):
            return refusal
    return None


def _reason_text(reason: Any) -> str:
    """Return a finish reason as text; an enumeration gives name and value."""
    with suppress(Exception):
        return f"{getattr(reason, 'name', '')} {getattr(reason, 'value', '')} {reason or ''}"
    return ""


# -------------------------------------------------------------- forms that are no prose

_OPENING = r"(?:```\w*\n)?\s*"

_TOOL_CALL: re.Pattern[str] = re.compile(
    rf"{_OPENING}(?:"
    r"<\|?(?:tool_?calls?|function_?calls?|function=|invoke\b|python_tag|(?:START_)?action\b)|"
    r"<[｜|]tool[▁_ ]calls?|\[TOOL_CALLS\]|"
    r"[\[{\s]*\"(?:name|function|tool|arguments|tool_calls|tool_name|parameters)\"\s*:)",
    re.IGNORECASE,
)

_PAGE: re.Pattern[str] = re.compile(
    rf"{_OPENING}(?:<!doctype|<html|<\?xml|\{{\s*\"(?:error|detail|errors|fault)\")",
    re.IGNORECASE,
)

_JSON = re.compile(r"^(?:\{\s*(?:\"|\}|\Z)|\[\s*[\"{\[])", re.MULTILINE)

_PREAMBLE_CHARS = 300  # characters before the JSON


def has_unfinished_json(text: str) -> bool:
    """Return whether JSON at the text's beginning never ends."""
    starts = (match.start() for match in _JSON.finditer(text))
    return any(_is_unfinished(text[start:]) for start in starts if start < _PREAMBLE_CHARS)


def _is_unfinished(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        bare = re.sub(r'"(?:\\.|[^"\\])*(?:"|\Z)', "", text)
        return len(re.findall(r"[{\[]", bare)) > len(re.findall(r"[}\]]", bare))
    return False


# -------------------------------------------------------------- loops

LOOP_TIMES = 24
"""A text is a loop from this many repetitions on. A model's loop lasts until the answer is cut
off."""


def is_loop(text: str) -> bool:
    """Return whether the text ends in a repeated phrase."""
    # The text may end inside the phrase: compare with the text one phrase earlier.
    return any(
        text[-LOOP_TIMES * size : -size] == text[(1 - LOOP_TIMES) * size :]
        for size in range(3, 201)
        if re.search(r"\w", text[-size:])
    )


# -------------------------------------------------------------- copies

_COPY_CHARS = 200  # characters of a copied stretch without spaces; quotations are shorter
_PROBES = 12  # stretches that are searched in the source
_ALTERED = 5  # one stretch in five of a copy may differ


def is_copy(text: str, source: str) -> bool:
    """Return whether nearly all of the text stands in the source."""
    text, source = _without_spaces(text), _without_spaces(source)
    places = range(0, len(text) - _COPY_CHARS + 1, max(_COPY_CHARS, len(text) // _PROBES))
    missing = [text[at : at + _COPY_CHARS] not in source for at in places]
    return bool(missing) and sum(missing) <= len(missing) // _ALTERED


def _without_spaces(text: str) -> str:
    # Spaces are removed from bytes: this takes a sixth of the time.
    return text.encode(errors="replace").translate(None, b" \t\n\r\f\v").decode()


# -------------------------------------------------------------- words compared with the source

_UNSPACED_CHARS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces; two characters count as a word."""

# A word's evidence in bits: log2(frequency in the source / frequency in any text). The frequency in
# any text follows from the word's length (Zipf's law of abbreviation). A text's evidence is the
# sum.

EVIDENCE_BITS = 16.0
"""Bits required of a text. In 61 recorded sessions unrelated words reach 15.3."""

PHRASE_WORDS, PHRASE_CHARS = 6, 20
"""Unrelated texts share no phrase of this many words and characters."""

FEW_WORDS = 64
"""A short source has at most this number of different words."""
SHARED_SHARE = 0.4
"""A short source must have this share of the text's words or numbers."""

_LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _WORD_BITS = 2.2, 3.3, 4.5, 3.0

_FOREIGN_SHARE = 0.4  # expected share of the words that the source lacks
SAMPLE_CHARS = 60_000
"""Characters of a source that are compared first."""

# `\w` lacks vowel signs of Indian scripts.
_PIECE = rf"(?:[^\W{_UNSPACED_CHARS}]|[\u0300-\u036f\u0900-\u0dff])+"

_WORD_OR_NAME = re.compile(rf"[{_UNSPACED_CHARS}]+|{_PIECE}(?:[.\-/_]+{_PIECE})*")

_NAME_JOINTS = re.compile(r"[.\-/_]+")

_SEPARATORS = frozenset(" \t\n,;:!?()[]{}<>\"'`*#|=")
"""Signs that end a name; after every other sign the name may go on."""


def is_about(text: str, source: str) -> bool:
    """Return whether the text shares enough rare words with the source."""
    words = {*stems_of(text)} - _REQUEST_WORDS
    # Names are compared first: finding names takes a hundredth of the time of counting all words.
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
    """Return whether a short source has enough of the text's words."""
    source_plain, source_numbers = _plain_and_numbers(source_words)
    plain, numbers = _plain_and_numbers(words)
    return len(source_plain) <= FEW_WORDS and any(
        len(ours) >= least and len(ours & theirs) >= SHARED_SHARE * len(ours)
        for ours, theirs, least in ((plain, source_plain, 1), (numbers, source_numbers, 2))
    )


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    words = [*_word_tokens(text)]
    for at in range(len(words) - PHRASE_WORDS + 1):
        phrase = tuple(words[at : at + PHRASE_WORDS])
        if sum(map(len, phrase)) >= PHRASE_CHARS:
            yield phrase


def _plain_and_numbers(words: set[str]) -> tuple[set[str], set[str]]:
    plain = {word[:4] for word in words if word.isalpha() and len(word) > 3}
    return plain, {word for word in words if len(word) > 1 and any(map(str.isdigit, word))}


def _names_in(source: str, words: set[str]) -> Iterator[str]:
    """Yield the names of several parts that stand whole in the source."""
    for name in filter(_NAME_JOINTS.search, words):
        start = source.find(name)  # not `partition`, which copies the source
        end = start + len(name)
        around = source[max(0, start - 1) : start] + source[end : end + 1]
        if start >= 0 and _SEPARATORS.issuperset(around):
            yield name


def _evidence(words: set[str], counts: Counter[str], total: int) -> float:
    """Return a text's evidence in bits; a larger `total` lowers the evidence."""
    share = (1 - _FOREIGN_SHARE) / max(1, total)
    return sum(
        math.log2(share * counts[word] * 2.0 ** _bits(word) + _FOREIGN_SHARE) for word in words
    )


def _source_parts(source: str) -> Iterator[str]:
    """Yield the ends of a long source, then the whole source."""
    if len(source) > SAMPLE_CHARS:
        yield f"{source[: SAMPLE_CHARS // 4]}\n{source[-SAMPLE_CHARS * 3 // 4 :]}"
    yield source


def stems_of(text: str) -> Iterator[str]:
    """Yield the stems of words; yield whole names and their parts."""
    for word in _WORD_OR_NAME.findall(text.casefold()):
        if _UNSPACED_SIGN.match(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            continue
        parts = _NAME_JOINTS.split(word)
        if len(parts) > 1:
            yield word
        yield from (part[: max(4, len(part) - 2)] if part.isalpha() else part for part in parts)


def _bits(word: str) -> float:
    """Return a word's rarity in any text, in bits."""
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


# -------------------------------------------------------------- the order of words

LEAST_ORDERED_WORDS = 30
"""A shorter text has too few word pairs."""

_SHARED_WORDS = 0.5
"""If the source has a smaller share of the text's words, the text is in another language."""

LEAST_DEVIATIONS = 2.5
"""Lower bound, in standard deviations, of the distance between the number of a text's word pairs
that the source has and this number for the shuffled text. True texts of 40 words reach 4.7 or more,
shuffled texts at most 1.4."""

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
    """Yield the words without outer punctuation; unspaced signs singly."""
    folded = text.casefold()
    tokens = folded.split() if folded.isascii() else _WORD_TOKEN.findall(folded)
    return filter(None, [token.strip(_OUTER_SIGNS) for token in tokens])


_WORD_TOKEN = re.compile(rf"[{_UNSPACED_CHARS}]|[^\s{_UNSPACED_CHARS}]+")

_OUTER_SIGNS = ".,;:!?()[]{}\"'`*#|-–—>…“”„«»"
