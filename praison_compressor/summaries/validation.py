"""Accept or refuse a summarizer's answer by measures that need no language.

They are the finish reason, the form (JSON, a call, a page), copies of the request, loops, the rare
words shared with the segment, and the order of the words.
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
from itertools import filterfalse, islice, pairwise
from typing import Any

from ..errors import SummaryRejected
from ..messages import Message
from ..messages.shapes import replace_surrogates
from .prompts import INSTRUCTIONS, parts_of_request
from .protocol import SummaryReply
from .reasoning import strip_reasoning

UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words; two characters count as a word."""

MOST_ANSWER_CHARS = 1_000_000
"""Characters of an answer; no model writes more, and a longer text costs time to read."""


def accept(reply: SummaryReply, asked: Sequence[Message]) -> str:
    """Return the summary in a model's answer to the request `asked`.

    Raises:
        SummaryRejected: the answer is no finished text about the messages in the request.
    """
    if not isinstance(reply.text, (str, type(None))):
        raise SummaryRejected("no text", f"the summarizer gave {type(reply.text).__name__}")
    reason = _reason_text(reply.finish_reason)
    if stopped := refusal_for_finish(reason):
        raise SummaryRejected(stopped, f"the finish reason is {reason.strip():.60}")
    answer = reply.text or ""
    if len(answer) > MOST_ANSWER_CHARS:
        raise SummaryRejected("too long", f"{len(answer)} characters, at most {MOST_ANSWER_CHARS}")
    text = strip_reasoning(replace_surrogates(answer))
    if not re.search(r"\w", text):
        raise SummaryRejected("empty")
    if form := refusal_for_form(text):
        raise SummaryRejected(form, text[:80])
    transcript, summaries = parts_of_request(asked)
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
"""Reason of our refusal → parts of finish reasons, in any provider's spelling."""


def refusal_for_finish(reason: str) -> str:
    """Return our reason to refuse this finish reason, or ""."""
    bare = re.sub(r"[^a-z]", "", reason.casefold())
    found = (kind for kind, parts in _STOPPED.items() if any(part in bare for part in parts))
    return next(found, "")


def _reason_text(reason: Any) -> str:
    """Return a finish reason as text, an enumeration's with name and value."""
    with suppress(Exception):
        return f"{getattr(reason, 'name', '')} {getattr(reason, 'value', '')} {reason or ''}"
    return ""


# -------------------------------------------------------------- forms that are no prose

_TOOL_CALL = re.compile(
    r"<\|?(?:tool_?calls?|function_?calls?|function=|invoke\b|python_tag|(?:START_)?action\b)|"
    r"<[｜|]tool[▁_ ]calls?|\[TOOL_CALLS\]|"
    r"[\[{\s]*\"(?:name|function|tool|arguments|tool_calls|tool_name|parameters)\"\s*:",
    re.IGNORECASE,
)

_PAGE = re.compile(r"<!doctype|<html|<\?xml|\{\s*\"(?:error|detail|errors|fault)\"", re.IGNORECASE)

_JSON = re.compile(r"^(?:\{\s*(?:\"|\}|\Z)|\[\s*[\"{\[])", re.MULTILINE)

_PREAMBLE_CHARS = 300  # characters of an announcement before JSON


def refusal_for_form(text: str) -> str:
    """Return a form that is no prose and no JSON, or ""."""
    bare = re.sub(r"\A```\w*\n", "", text).lstrip()
    if _TOOL_CALL.match(bare):
        return "tool call"
    if _PAGE.match(bare):
        return "error text"
    starts = (found.start() for found in _JSON.finditer(bare) if found.start() < _PREAMBLE_CHARS)
    return "unfinished JSON" if any(_is_unfinished(bare[start:]) for start in starts) else ""


def _is_unfinished(text: str) -> bool:
    """Return whether the JSON that begins a text is never closed."""
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        bare = re.sub(r'"(?:\\.|[^"\\])*(?:"|\Z)', "", text)
        return len(re.findall(r"[{\[]", bare)) > len(re.findall(r"[}\]]", bare))
    return False


# -------------------------------------------------------------- loops

LOOP_REPEATS = 24  # consecutive repetitions of a phrase that count as a loop
_LEAST_LOOP_WORDS = 20  # words of a shortest loop
_GRAM_WORDS = 4  # words that identify a place in the text
_LOOP_RATIO = 20  # compression ratio of a text that repeats itself; a summary's is about 4

_SHORT_BYTES, _END_CHARS = 400, 2_000
"""Bytes of a text too short to compress; characters of the end, which is compressed alone, too."""


def is_loop(text: str) -> bool:
    """Return whether words repeat themselves, even after a good beginning."""
    for part in (text.encode(), text[-_END_CHARS:].encode()):
        if len(part) > _SHORT_BYTES and _LOOP_RATIO * len(zlib.compress(part)) < len(part):
            return True
    return _has_period(re.findall(rf"[{UNSPACED_SCRIPTS}]|\w+", text.casefold()))


def _has_period(words: Sequence[str]) -> bool:
    """Return whether words repeat with one period, REPEATED times."""
    last: dict[tuple[str, ...], int] = {}
    period = run = 0
    for at in range(len(words)):
        gram = tuple(words[max(0, at - _GRAM_WORDS + 1) : at + 1])
        distance = at - last.get(gram, at)
        last[gram] = at
        run = run + 1 if distance and distance == period else 0
        period = distance
        if period and run >= max(_LEAST_LOOP_WORDS, (LOOP_REPEATS - 1) * period):
            return True
    return False


# -------------------------------------------------------------- copies

_COPY_CHARS = 240  # characters of a copied stretch; a quotation is shorter
_PROBES = 12  # stretches of the text that are searched in the source
_ONE_DIFFERENT_OF = 5  # at most one of five stretches of a copy is different from its source


def is_copy(text: str, source: str) -> bool:
    """Return whether nearly all of the text is copied, line breaks aside."""
    text = " ".join(text.split())
    if len(text) < _COPY_CHARS:
        return False
    places = range(0, len(text) - _COPY_CHARS + 1, max(_COPY_CHARS, len(text) // _PROBES))
    stretches = [text[at : at + _COPY_CHARS] for at in places]
    # The words of the stretches first: to join the lines of a long source takes longer.
    if not _nearly_all(lambda one: all(map(source.__contains__, one.split())), stretches):
        return False
    return _nearly_all(" ".join(source.split()).__contains__, stretches)


def _nearly_all(holds: Callable[[str], bool], stretches: Sequence[str]) -> bool:
    most = len(stretches) // _ONE_DIFFERENT_OF
    return len([*islice(filterfalse(holds, stretches), most + 1)]) <= most


# -------------------------------------------------------------- words shared with the segment

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

_ALONE = frozenset(" \t\n,;:!?()[]{}<>\"'`*#|=")
"""Signs around a name that are no part of it."""


def is_about(text: str, source: str) -> bool:
    """Return whether the text shares enough rare words with the source."""
    words = {*stems_of(text)} - _REQUEST_WORDS
    # To look for some names takes a hundredth of the time of counting all words of the source.
    joined = Counter(_names_in(source.casefold(), words))
    if _evidence(words, joined, len(source)) >= EVIDENCE_BITS:
        return True
    names = {next(stems_of(name), "") for name in _NAME.findall(text[:SAMPLE_CHARS])}
    for part in _source_parts(source):
        counts = Counter(stems_of(part))
        least = EVIDENCE_BITS if any(map(counts.get, names)) else NAMELESS_BITS
        if _evidence(words, counts, counts.total()) >= least:
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


def _names_in(source: str, words: set[str]) -> Iterator[str]:
    """Yield the names with joints that a source has as words."""
    for name in filter(_NAME_JOINTS.search, words):
        at = source.find(name)
        around = source[max(0, at - 1) : at] + source[at + len(name) : at + len(name) + 1]
        if at >= 0 and _ALONE.issuperset(around):
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
    found = _SIGN_BITS * signs + _DIGIT_BITS * digits + _LETTER_BITS * letters
    return min(60.0, _WORD_BITS + found)


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
    known = {*source}
    if sum(word in known for word in words) < _SHARED_WORDS * len(words):
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
    found = folded.split() if folded.isascii() else _WORD_TOKEN.findall(folded)
    return filter(None, (token.strip(_OUTER_SIGNS) for token in found))


_WORD_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+")

_OUTER_SIGNS = ".,;:!?()[]{}\"'`*#|-–—>…“”„«»"
