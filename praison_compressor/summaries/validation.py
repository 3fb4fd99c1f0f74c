"""Accept or refuse a model's answer by what can be measured without reading language.

Measured are the finish reason, the form (JSON, a call, a page), loops, copies of the request, the
rare words shared with the segment, and the order of the words.
"""

from __future__ import annotations

import json
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import filterfalse, pairwise
from typing import Any

from ..errors import SummaryRejected
from ..messages import Message
from ..messages.shapes import encodable
from .prompts import INSTRUCTIONS, shown_in
from .protocol import SummaryReply
from .reasoning import strip_reasoning

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words: two characters count as a word."""

LONGEST = 1_000_000
"""Characters of an answer: no model writes more, and reading more costs time."""


def accept(reply: SummaryReply, asked: Sequence[Message]) -> str:
    """Return the summary in a model's answer to the request `asked`.

    Raises:
        SummaryRejected: the answer is no finished text about the messages in the request.
    """
    if not isinstance(reply.text, (str, type(None))):
        raise SummaryRejected("no text", f"the summarizer gave {type(reply.text).__name__}")
    reason = _spelled(reply.finish_reason)
    if stopped := stopped_by(reason):
        raise SummaryRejected(stopped, f"the finish reason is {reason.strip():.60}")
    if len(reply.text or "") > LONGEST:
        raise SummaryRejected("too long", f"{len(reply.text)} characters, at most {LONGEST}")
    text = strip_reasoning(encodable(reply.text or ""))
    if not re.search(r"\w", text):
        raise SummaryRejected("empty")
    if form := form_of(text):
        raise SummaryRejected(form, text[:80])
    transcript, summaries = shown_in(asked)
    if is_copy(text, INSTRUCTIONS) or is_copy(text, transcript):
        raise SummaryRejected("echo", "it repeats the request")
    if is_loop(text):
        raise SummaryRejected("repetition", f"{len(text)} characters that repeat themselves")
    source = f"{transcript}\n{summaries}"
    if not is_about(text, source):
        raise SummaryRejected("unrelated", "it shares no rare words with the messages")
    if is_shuffled(text, source):
        raise SummaryRejected("no order", "its words are in no order")
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
"""Reason of the refusal → parts of finish reasons, in any provider's spelling."""


def stopped_by(reason: str) -> str:
    """Return why a finish reason means no summary, or ""."""
    bare = re.sub(r"[^a-z]", "", reason.casefold())
    found = (kind for kind, parts in _STOPPED.items() if any(part in bare for part in parts))
    return next(found, "")


def _spelled(reason: Any) -> str:
    """Return a finish reason as text, an enumeration's with its name."""
    with suppress(Exception):
        return f"{getattr(reason, 'name', '')} {getattr(reason, 'value', '')} {reason or ''}"
    return ""


# -------------------------------------------------------------- forms that are no prose

_CALL = re.compile(
    r"<\|?(?:tool_?calls?|function_?calls?|function=|invoke\b|python_tag|(?:START_)?action\b)|"
    r"<[｜|]tool[▁_ ]calls?|\[TOOL_CALLS\]|"
    r"[\[{\s]*\"(?:name|function|tool|arguments|tool_calls|tool_name|parameters)\"\s*:",
    re.IGNORECASE,
)

_PAGE = re.compile(r"<!doctype|<html|<\?xml|\{\s*\"(?:error|detail|errors|fault)\"", re.IGNORECASE)

_JSON = re.compile(r"^(?:\{\s*(?:\"|\}|\Z)|\[\s*[\"{\[])", re.MULTILINE)

_PREAMBLE = 300
"""Characters before JSON that only announce it."""


def form_of(text: str) -> str:
    """Return the name of a form that is no prose, or "".

    Complete JSON is accepted.
    """
    bare = re.sub(r"\A```\w*\n", "", text).lstrip()
    if _CALL.match(bare):
        return "tool call"
    if _PAGE.match(bare):
        return "error text"
    starts = (found.start() for found in _JSON.finditer(bare) if found.start() < _PREAMBLE)
    return "unfinished JSON" if any(_is_unfinished(bare[start:]) for start in starts) else ""


def _is_unfinished(text: str) -> bool:
    """Return whether the JSON that begins the text is never closed."""
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        bare = re.sub(r'"(?:\\.|[^"\\])*(?:"|\Z)', "", text)
        return len(re.findall(r"[{\[]", bare)) > len(re.findall(r"[}\]]", bare))
    return False


# -------------------------------------------------------------- loops

REPEATED = 24
"""Consecutive repetitions of a phrase that count as a loop."""

_LEAST_LOOPED = 20
"""Words of a loop."""

_GRAM = 4
"""Words that identify a place in the text."""

_DEFLATED = 20
"""Compression ratio of a text that repeats itself; a summary's is about 4."""

_SHORT, _END = 400, 2_000
"""Bytes of a text that is not compressed; characters of the end that are compressed alone."""


def is_loop(text: str) -> bool:
    """Return whether words repeat themselves, also after a good beginning."""
    for part in (text.encode(), text[-_END:].encode()):
        if len(part) > _SHORT and _DEFLATED * len(zlib.compress(part)) < len(part):
            return True
    return _has_period(re.findall(rf"[{_UNSPACED}]|\w+", text.casefold()))


def _has_period(words: Sequence[str]) -> bool:
    """Return whether one period continues for REPEATED times its length."""
    last: dict[tuple[str, ...], int] = {}
    period = run = 0
    for at in range(len(words)):
        gram = tuple(words[max(0, at - _GRAM + 1) : at + 1])
        distance = at - last.get(gram, at)
        last[gram] = at
        run = run + 1 if distance and distance == period else 0
        period = distance
        if period and run >= max(_LEAST_LOOPED, (REPEATED - 1) * period):
            return True
    return False


# -------------------------------------------------------------- copies

_COPY = 240
"""Characters of a copied stretch; a quotation is shorter."""

_PROBES = 12
"""Stretches of the text that are searched in the source."""

_COPIED = 0.8
"""Share of the stretches that a copy has in common with the source."""


def is_copy(text: str, source: str) -> bool:
    """Return whether nearly all of the text is copied.

    Line breaks may differ.
    """
    text = " ".join(text.split())
    if len(text) < _COPY:
        return False
    places = range(0, len(text) - _COPY + 1, max(_COPY, len(text) // _PROBES))
    stretches = [text[at : at + _COPY] for at in places]
    # To join the lines of a long source takes longer than to look for some words.
    if not _nearly_all(lambda one: all(map(source.__contains__, one.split())), stretches):
        return False
    return _nearly_all(" ".join(source.split()).__contains__, stretches)


def _nearly_all(holds: Callable[[str], bool], stretches: Sequence[str]) -> bool:
    least = _COPIED * len(stretches)
    failing = enumerate(filterfalse(holds, stretches), 1)
    return not any(len(stretches) - failed < least for failed, _ in failing)


# -------------------------------------------------------------- words shared with the segment

# A word's frequency in any text follows from its length (Zipf's law of abbreviation), its frequency
# in the segment is counted. The logarithms of both ratios, summed over the answer's words, are the
# evidence, in bits, that the answer is about the segment.

EVIDENCE = 13.0
"""Bits required of an answer that shares a name with its segment. In 61 recorded sessions short
true summaries have 13.6 bits and more, other texts up to 12.6."""

NAMELESS = 16.0
"""Bits required of an answer that shares none: ordinary words reach 15.3 by chance."""

PHRASE, PHRASE_CHARS = 6, 20
"""Consecutive words, and their characters, that unrelated texts do not share."""

FEW_WORDS = 64
"""In a source of at most this many different words, each shared word counts."""

SHARED = 0.4
"""Share of the answer's words, or of its numbers, that such a source must have."""

_LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _WORD_BITS = 2.2, 3.3, 4.5, 3.0

_OTHER = 0.4
"""Share of a summary's words that come from elsewhere than the segment."""

SAMPLE = 60_000
"""Characters of a long source that are searched first: most summaries match there."""

_PIECE = rf"(?:[^\W{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])+"
# Vowel signs of Indian scripts are no word characters.
_WORD = re.compile(rf"[{_UNSPACED}]+|{_PIECE}(?:[.\-/_]+{_PIECE})*")

_JOINTS = re.compile(r"[.\-/_]+")

_NAME = re.compile(
    r"\w{0,40}\d\w{0,40}|\w{1,40}[./_-]{1,3}\w[\w./-]{0,80}|[^\W\d_]{1,40}(?=[A-Z])\w{1,40}|"
    r"(?<=[^\W.!?:] )[A-Z]\w{1,40}|[A-Z]{2,40}"
)
"""A word with a digit, a joint, or a capital that begins no sentence."""


def is_about(text: str, source: str) -> bool:
    """Return whether the text shares enough rare words with the source."""
    words = {*words_of(text)} - _OURS
    names = {next(words_of(name), "") for name in _NAME.findall(text[:SAMPLE])}
    for part in _parts(source):
        counts = Counter(words_of(part))
        least = EVIDENCE if any(map(counts.get, names)) else NAMELESS
        if _evidence(words, counts) >= least:
            return True
    if _shares_phrase(text, source):
        return True
    known, numbers = _split({*words_of(source[:SAMPLE])} - _OURS)
    plain, with_digits = _split(words)
    pairs = ((plain, known, 1), (with_digits, numbers, 2)) if len(known) <= FEW_WORDS else ()
    return any(
        len(found) >= least and len(found & there) >= SHARED * len(found)
        for found, there, least in pairs
    )


def _shares_phrase(text: str, source: str) -> bool:
    """Return whether PHRASE consecutive words are consecutive in the source."""
    wanted = {*_phrases(text)}
    return bool(wanted) and any(phrase in wanted for phrase in _phrases(source))


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    words = [*_tokens(text)]
    for at in range(len(words) - PHRASE + 1):
        phrase = tuple(words[at : at + PHRASE])
        if sum(map(len, phrase)) >= PHRASE_CHARS:
            yield phrase


def _split(words: set[str]) -> tuple[set[str], set[str]]:
    """Return the beginnings of plain words, and the words with digits."""
    plain = {word[:4] for word in words if word.isalpha() and len(word) > 3}
    return plain, {word for word in words if len(word) > 1 and any(map(str.isdigit, word))}


def _evidence(words: set[str], counts: Counter[str]) -> float:
    """Return the bits by which counts explain words better than chance."""
    share = (1 - _OTHER) / max(1, counts.total())
    return sum(math.log2(share * counts[word] * 2.0 ** _bits(word) + _OTHER) for word in words)


def _parts(source: str) -> Iterator[str]:
    """Yield a long source's beginning and end, then the whole."""
    if len(source) > SAMPLE:
        yield f"{source[: SAMPLE // 4]}\n{source[-SAMPLE * 3 // 4 :]}"
    yield source


def words_of(text: str) -> Iterator[str]:
    """Yield a text's words as stems, and names whole and in parts."""
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED_SIGN.match(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            continue
        parts = _JOINTS.split(word)
        if len(parts) > 1:
            yield word
        yield from (part[: max(4, len(part) - 2)] if part.isalpha() else part for part in parts)


def _bits(word: str) -> float:
    """Return a word's information in any text, in bits."""
    signs, digits = len(_UNSPACED_SIGN.findall(word)), sum(map(str.isdigit, word))
    letters = len(word) - signs - digits
    found = _SIGN_BITS * signs + _DIGIT_BITS * digits + _LETTER_BITS * letters
    return min(60.0, _WORD_BITS + found)


_UNSPACED_SIGN = re.compile(f"[{_UNSPACED}]")

_OURS = frozenset(
    words_of(
        f"{INSTRUCTIONS} transcript summarize summarized summaries headings "
        "user assistant system tool result calls"
    )
)
"""Words of the request: an answer that has them may only repeat the request."""


# -------------------------------------------------------------- the order of words

LEAST_ORDERED = 30
"""Words without digits and signs; in fewer, chance neighbours are as frequent."""

_KNOWN = 0.5
"""Share of a text's words that the source has; with less the text is in another language."""

ORDER = 2.5
"""Standard deviations by which neighbours of the source exceed those of the same words shuffled.
True texts of 40 words have 4.7 and more, shuffled ones up to 1.4."""

_SHUFFLES = 4


def is_shuffled(text: str, source: str) -> bool:
    """Return whether the text's words are neighbours only by chance."""
    words = [*_tokens(text)]
    if sum(map(str.isalpha, words)) < LEAST_ORDERED:
        return False
    return all(_is_by_chance(words, [*_tokens(part)]) for part in _parts(source))


def _is_by_chance(words: list[str], source: list[str]) -> bool:
    known = {*source}
    if sum(word in known for word in words) < _KNOWN * len(words):
        return False
    pairs = {*pairwise(source)}
    seen = sum(pair in pairs for pair in pairwise(words))
    shuffler = random.Random(len(words))
    shuffled = (shuffler.sample(words, len(words)) for _ in range(_SHUFFLES))
    expected = sum(pair in pairs for order in shuffled for pair in pairwise(order)) / _SHUFFLES
    return (seen - expected) / math.sqrt(expected + 1) < ORDER


def _tokens(text: str) -> Iterator[str]:
    """Yield words without outer punctuation; signs of unspaced scripts singly."""
    folded = text.casefold()
    found = folded.split() if folded.isascii() else _TOKEN.findall(folded)
    return filter(None, (token.strip(_EDGES) for token in found))


_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")

_EDGES = ".,;:!?()[]{}\"'`*#|-–—>…“”„«»"
