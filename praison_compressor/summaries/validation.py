"""Accept or refuse a summarizer's answer by measures that need no language.

They are the finish reason, the form (JSON, a call, a page), copies of the request, loops, the rare
words shared with the segment, and the order of the words.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import SummaryRejected
from ..messages.shapes import encodable
from .prompts import INSTRUCTIONS, SummaryRequest
from .protocol import SummaryReply
from .reasoning import strip_reasoning

MOST_ANSWER_CHARS = 1_000_000
"""No model writes more, and a longer text costs time to read."""


def accept(reply: SummaryReply, request: SummaryRequest) -> str:
    """Return the summary in a model's answer to a request.

    Raises:
        SummaryRejected: the answer is no finished text about the messages in the request.
    """
    text = strip_reasoning(encodable(_finished_text(reply)))
    for fault in FAULTS:
        if fault.is_in(text, request):
            raise SummaryRejected(fault.reason, fault.detail or text[:80])
    return text


def _finished_text(reply: SummaryReply) -> str:
    """Return the answer's text; refuse one that did not end by itself."""
    text = reply.text or ""
    if not isinstance(text, str):
        raise SummaryRejected("no text", f"the summarizer gave {type(text).__name__}")
    reason = _reason_text(reply.finish_reason)
    if refusal := refusal_for_finish(reason):
        raise SummaryRejected(refusal, f"the finish reason is {reason.strip():.60}")
    if len(text) > MOST_ANSWER_CHARS:
        raise SummaryRejected("too long", f"{len(text)} characters, at most {MOST_ANSWER_CHARS}")
    return text


# -------------------------------------------------------------- finish reasons

_STOPPED = {
    "refusal": ("filter", "safe", "refus", "block", "prohibit", "guardrail", "recitation", "spii",
                "moderat", "policy", "violat", "harm", "sensitive", "toxic", "denied", "copyright"),
    "tool call": ("tool", "function", "call"),
    "cut off": ("length", "max", "limit", "incomplete", "trunc", "exceed", "window", "error",
                "fail", "abort", "cancel", "timeout", "pause", "unfinished", "notfinished",
                "overflow", "interrupt", "insufficient", "malformed", "partial", "budget",
                "repetit", "quota", "compact"),
}  # fmt: skip
"""Reason of our refusal → parts of finish reasons, in any provider's spelling."""


def refusal_for_finish(reason: str) -> str:
    """Return our reason to refuse this finish reason, or ""."""
    bare = re.sub(r"[^a-z]", "", reason.casefold())
    refusals = (kind for kind, parts in _STOPPED.items() if any(part in bare for part in parts))
    return next(refusals, "")


def _reason_text(reason: Any) -> str:
    """Return a finish reason as text, an enumeration's with name and value."""
    with suppress(Exception):
        return f"{getattr(reason, 'name', '')} {getattr(reason, 'value', '')} {reason or ''}"
    return ""


# -------------------------------------------------------------- forms that are no prose

_FENCE = r"(?:```\w*\n)?\s*"

_TOOL_CALL = re.compile(
    rf"{_FENCE}(?:"
    r"<\|?(?:tool_?calls?|function_?calls?|function=|invoke\b|python_tag|(?:START_)?action\b)|"
    r"<[｜|]tool[▁_ ]calls?|\[TOOL_CALLS\]|"
    r"[\[{\s]*\"(?:name|function|tool|arguments|tool_calls|tool_name|parameters)\"\s*:)",
    re.IGNORECASE,
)

_PAGE = re.compile(
    rf"{_FENCE}(?:<!doctype|<html|<\?xml|\{{\s*\"(?:error|detail|errors|fault)\")", re.IGNORECASE
)

_JSON = re.compile(r"^(?:\{\s*(?:\"|\}|\Z)|\[\s*[\"{\[])", re.MULTILINE)

_PREAMBLE_CHARS = 300  # of an announcement before JSON


def has_unfinished_json(text: str) -> bool:
    """Return whether JSON begins the text, or follows an announcement, and never ends."""
    starts = (match.start() for match in _JSON.finditer(text[:_PREAMBLE_CHARS]))
    return any(_is_unfinished(text[start:]) for start in starts)


def _is_unfinished(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        bare = re.sub(r'"(?:\\.|[^"\\])*(?:"|\Z)', "", text)
        return len(re.findall(r"[{\[]", bare)) > len(re.findall(r"[}\]]", bare))
    return False


# -------------------------------------------------------------- loops

_LOOP = re.compile(r"(\w.{2,199}?)\1{23}", re.DOTALL)
"""A phrase 24 times in a row."""

_END_CHARS = 5_000  # a loop lasts until the answer is cut off


def is_loop(text: str) -> bool:
    """Return whether a phrase repeats itself at the end, even after a good beginning."""
    return _LOOP.search(text[-_END_CHARS:]) is not None


# -------------------------------------------------------------- copies

_COPY_CHARS = 240  # of a copied stretch; a quotation is shorter
_PROBES = 12  # stretches of the text that are searched in the source
_COPIED_SHARE = 0.8  # of the stretches of a copy; a model may change some words


def is_copy(text: str, source: str) -> bool:
    """Return whether nearly all of the text is copied, line breaks aside."""
    text, source = " ".join(text.split()), " ".join(source.split())
    places = range(0, len(text) - _COPY_CHARS + 1, max(_COPY_CHARS, len(text) // _PROBES))
    copied = sum(text[at : at + _COPY_CHARS] in source for at in places)
    return bool(places) and copied >= _COPIED_SHARE * len(places)


# -------------------------------------------------------------- words shared with the segment

UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words; two characters count as a word."""

# A word's frequency in any text follows from its length (Zipf's law of abbreviation). Its frequency
# in the segment is counted. The evidence that an answer is about the segment is the sum of the
# logarithms of the ratio of both, in bits, over the answer's words.

EVIDENCE_BITS = 13.0
"""Bits required of an answer that shares a name with its segment. In 61 recorded sessions short
true summaries have 13.6 bits and more, other texts up to 12.6."""

NAMELESS_BITS = 16.0
"""Bits required of an answer that shares no name: ordinary words reach 15.3 by chance."""

PHRASE_WORDS, PHRASE_CHARS = 6, 20
"""Consecutive words, and their characters, that unrelated texts do not share."""

FEW_WORDS = 64  # different words of a short source, in which each shared word counts
SHARED_SHARE = 0.4  # share of the answer's words, or of its numbers, that a short source must have

_LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _WORD_BITS = 2.2, 3.3, 4.5, 3.0

_FOREIGN_SHARE = 0.4  # share of a summary's words that are not the segment's
SAMPLE_CHARS = 60_000  # characters of a long source that are read first: most summaries match there

# To Python, vowel signs of Indian scripts are no word characters.
_PIECE = rf"(?:[^\W{UNSPACED_SCRIPTS}]|[\u0300-\u036f\u0900-\u0dff])+"

_WORD_OR_NAME = re.compile(rf"[{UNSPACED_SCRIPTS}]+|{_PIECE}(?:[.\-/_]+{_PIECE})*")

_NAME_JOINTS = re.compile(r"[.\-/_]+")

_NAME = re.compile(
    r"\w{0,40}\d\w{0,40}|\w{1,40}[./_-]{1,3}\w[\w./-]{0,80}|[^\W\d_]{1,40}(?=[A-Z])\w{1,40}|"
    r"(?<=[^\W.!?:] )[A-Z]\w{1,40}|[A-Z]{2,40}"
)
"""A word with a digit, a joint, or a capital that begins no sentence."""


def is_about(text: str, source: str) -> bool:
    """Return whether the text shares enough rare words with the source."""
    words = {*stems_of(text)} - _REQUEST_WORDS
    names = {next(stems_of(name), "") for name in _NAME.findall(text[:SAMPLE_CHARS])}
    for part in _source_parts(source):
        counts = Counter(stems_of(part))
        least = EVIDENCE_BITS if any(map(counts.get, names)) else NAMELESS_BITS
        if _evidence(words, counts) >= least:
            return True
    phrases = {*_phrases(text)}
    if phrases and not phrases.isdisjoint(_phrases(source)):
        return True
    known, numbers = _split({*stems_of(source[:SAMPLE_CHARS])} - _REQUEST_WORDS)
    if len(known) > FEW_WORDS:
        return False
    plain, with_digits = _split(words)
    return any(
        len(found) >= least and len(found & there) >= SHARED_SHARE * len(found)
        for found, there, least in ((plain, known, 1), (with_digits, numbers, 2))
    )


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    """Yield each PHRASE consecutive words that are long enough."""
    words = [*_word_tokens(text)]
    for at in range(len(words) - PHRASE_WORDS + 1):
        phrase = tuple(words[at : at + PHRASE_WORDS])
        if sum(map(len, phrase)) >= PHRASE_CHARS:
            yield phrase


def _split(words: set[str]) -> tuple[set[str], set[str]]:
    """Return the first letters of plain words, and the words with digits."""
    plain = {word[:4] for word in words if word.isalpha() and len(word) > 3}
    return plain, {word for word in words if len(word) > 1 and any(map(str.isdigit, word))}


def _evidence(words: set[str], counts: Counter[str]) -> float:
    """Return the bits by which counts explain words better than chance."""
    share = (1 - _FOREIGN_SHARE) / max(1, counts.total())
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


_UNSPACED_SIGN = re.compile(f"[{UNSPACED_SCRIPTS}]")

_REQUEST_WORDS = frozenset(
    stems_of(
        f"{INSTRUCTIONS} transcript summarize summarized summaries headings "
        "user assistant system tool result calls"
    )
)
"""Words of the request, which an answer may repeat."""


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


_WORD_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+")

_OUTER_SIGNS = ".,;:!?()[]{}\"'`*#|-–—>…“”„«»"


# -------------------------------------------------------------- the table


class Fault(NamedTuple):
    """A way in which a text is no summary."""

    reason: str
    is_in: Callable[[str, SummaryRequest], object]
    detail: str = ""
    """"" means the text's beginning."""


FAULTS = (
    Fault("empty", lambda text, request: not re.search(r"\w", text)),
    Fault("tool call", lambda text, request: _TOOL_CALL.match(text)),
    Fault("error text", lambda text, request: _PAGE.match(text)),
    Fault("unfinished JSON", lambda text, request: has_unfinished_json(text)),
    Fault(
        "echo",
        lambda text, request: any(is_copy(text, t) for t in (INSTRUCTIONS, request.transcript)),
        "it repeats the request",
    ),
    Fault("repetition", lambda text, request: is_loop(text), "its end repeats itself"),
    Fault(
        "unrelated",
        lambda text, request: not is_about(text, request.source),
        "it shares no rare words with the messages",
    ),
    Fault(
        "no order",
        lambda text, request: is_shuffled(text, request.source),
        "its words are in no order",
    ),
)
"""Checked in this order."""
