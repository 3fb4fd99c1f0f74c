"""Accept or refuse a model's answer by what can be measured without understanding language.

The measures: why the answer ended, its form (JSON, a call, a page), loops, copies of the request,
how much more of its vocabulary the segment explains than chance does, and the order of its words.
"""

from __future__ import annotations

import json
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from ..errors import SummaryRejected
from ..messages import Message
from ..messages.shapes import encodable
from .prompts import INSTRUCTIONS, shown_in
from .protocol import SummaryReply
from .reasoning import strip_reasoning

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that put no spaces between words: two signs count as a word."""

LONGEST = 1_000_000
"""Characters: no model writes more, and reading more costs time."""


def accept(reply: SummaryReply, asked: Sequence[Message]) -> str:
    """Return the summary in a model's answer to the request `asked`.

    Raises:
        SummaryRejected: the answer is no finished text about the messages in the request.
    """
    if not isinstance(reply.text, (str, type(None))):
        raise SummaryRejected("no text", f"the summarizer gave {type(reply.text).__name__}")
    stopped = stopped_by(reply.finish_reason)
    if stopped:
        raise SummaryRejected(stopped, f"it ended by {reply.finish_reason!s:.60}")
    if len(reply.text or "") > LONGEST:
        raise SummaryRejected("too long", f"{len(reply.text)} characters, at most {LONGEST}")
    text = strip_reasoning(encodable(reply.text or ""))
    if not re.search(r"\w", text):
        raise SummaryRejected("empty")
    form = form_of(text)
    if form:
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
        raise SummaryRejected("no order", "its words stand in no order")
    return text


# -------------------------------------------------------------- why an answer ended

_STOPPED = {
    "refusal": ("filter", "safety", "refus", "block", "prohibit", "guardrail", "recitation",
                "spii", "moderat", "policy", "violat", "harm", "sensitive"),
    "tool call": ("tool", "function", "call"),
    "cut off": ("length", "max", "limit", "incomplete", "trunc", "exceed", "window", "error",
                "abort", "cancel", "timeout", "pause", "unfinished", "overflow"),
}  # fmt: skip
"""Parts of finish reasons, in any provider's spelling, by why the answer is no summary."""


def stopped_by(reason: Any) -> str:
    """Return why an answer with that finish reason is unfinished; "" where it is finished."""
    bare = re.sub(r"[^a-z]", "", str(getattr(reason, "value", reason) or "").casefold())
    found = (kind for kind, parts in _STOPPED.items() if any(part in bare for part in parts))
    return next(found, "")


# -------------------------------------------------------------- forms that are no prose

_CALL = re.compile(
    r"<\|?(?:tool_?calls?|function_?calls?|function=|invoke\b|python_tag|action\b)|"
    r"<[｜|]tool[▁_ ]calls?|\[TOOL_CALLS\]|"
    r"[\[{\s]*\"(?:name|function|tool|arguments|tool_calls|tool_name|parameters)\"\s*:",
    re.IGNORECASE,
)

_PAGE = re.compile(r"<!doctype|<html|<\?xml|\{\s*\"(?:error|detail|errors|fault)\"", re.IGNORECASE)

_JSON = re.compile(r"\{\s*(?:\"|\}|\Z)|\[\s*[\"{\[]")

_PREAMBLE = 300
"""Characters before JSON that only announce it."""


def form_of(text: str) -> str:
    """Return the name of a form that is no prose; "" for prose and complete JSON."""
    bare = re.sub(r"\A```\w*\n", "", text).lstrip()
    if _CALL.match(bare):
        return "tool call"
    if _PAGE.match(bare):
        return "error text"
    starts = [found.start() for found in re.finditer(r"^(?=[{\[])", bare[:_PREAMBLE], re.M)]
    if any(_is_unfinished_json(bare[start:]) for start in starts):
        return "unfinished JSON"
    return ""


def _is_unfinished_json(text: str) -> bool:
    """Return whether JSON begins the text and never ends."""
    if not _JSON.match(text):
        return False
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return _is_open(text)
    return False


def _is_open(text: str) -> bool:
    depth, quoted = 0, False
    for found in re.finditer(r'\\.|["{}\[\]]', text, re.S):
        if found[0] == '"':
            quoted = not quoted
        elif not quoted and found[0] in "{}[]":
            depth += 1 if found[0] in "{[" else -1
            if depth == 0:
                return False
    return True


# -------------------------------------------------------------- loops

REPEATED = 24
"""Repetitions of one stretch of words, one behind the other, that no author writes."""

_LEAST_LOOPED = 20
"""Words of a loop."""

_GRAM = 4
"""Words by which a place is recognized."""

_DEFLATED = 20
"""Times that a text deflates that says the same throughout; a summary deflates 4 times."""

_END = 2_000  # characters


def is_loop(text: str) -> bool:
    """Return whether a stretch of words repeats itself, also behind a good beginning."""
    ends = (text, text[-_END:])
    if any(len(end) > 400 and _deflates(end) for end in ends):
        return True
    return _longest_loop(re.findall(rf"[{_UNSPACED}]|\w+", text.casefold()))


def _deflates(text: str) -> bool:
    data = text.encode()
    return _DEFLATED * len(zlib.compress(data)) < len(data)


def _longest_loop(words: Sequence[str]) -> bool:
    """Return whether one period holds for REPEATED times its length."""
    last: dict[tuple[str, ...], int] = {}
    period = run = 0
    for at in range(len(words)):
        gram = tuple(words[max(0, at - _GRAM + 1) : at + 1])
        distance = at - last.get(gram, at)
        last[gram] = at
        run = run + 1 if distance and distance == period else 0
        period = distance
        if run >= max(_LEAST_LOOPED, (REPEATED - 1) * period) and period:
            return True
    return False


# -------------------------------------------------------------- copies

_PIECE = 240
"""Characters of a copied stretch: a quotation is shorter."""

_PROBES = 12

_COPIED = 0.8
"""Share of the probes that stand in the source."""


def is_copy(text: str, source: str) -> bool:
    """Return whether the text is a stretch of the source and little else."""
    if len(text) < _PIECE:
        return False
    places = range(0, len(text) - _PIECE + 1, max(_PIECE, len(text) // _PROBES))
    found = [_stands(text[place : place + _PIECE], source) for place in places]
    return sum(found) >= _COPIED * len(found)


def _stands(piece: str, source: str) -> bool:
    if piece in source:
        return True
    # Wrapped again.
    start = source.find(piece.lstrip()[: _PIECE // 6])
    if start < 0:
        return False
    return _squeezed(piece) in _squeezed(source[start : start + 3 * _PIECE])


def _squeezed(text: str) -> str:
    return " ".join(text.split())


# -------------------------------------------------------------- what a text is about

# How likely a word is in any text follows from its length (Zipf's law of abbreviation). How likely
# it is in the segment is counted. The sum of the logarithms of both ratios is the evidence, in
# bits, that the text speaks of the segment: names and numbers count much, "please provide" nothing.

EVIDENCE = 13.0
"""Bits. Requests for input and refusals reach 12 in 61 recorded sessions, short true summaries have
13.6 and more; see the benchmark `answers`."""

PHRASE, PHRASE_CHARS = 6, 20
"""Words in a row, of so many characters, that unrelated texts do not share."""

FEW_WORDS = 64
"""Different words of a source, by their beginnings, in which each shared word counts."""

SHARED = 0.4
"""Share of the text's words, or of its numbers, that stand in such a source."""

_LETTER_BITS, _DIGIT_BITS, _SIGN_BITS, _WORD_BITS = 2.2, 3.3, 4.5, 3.0

_OTHER = 0.4
"""Share of a summary's words that come from elsewhere than the segment."""

SAMPLE = 60_000
"""Characters of a long source that are searched first: most summaries show there."""

_WORD = re.compile(
    # Vowel signs of Indian scripts are no word characters.
    rf"[{_UNSPACED}]+|(?:[^\W{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])+"
    rf"(?:[.\-/_]+(?:[^\W{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])+)*"
)

_JOINTS = re.compile(r"[.\-/_]+")

_ALONE, _PLACES = frozenset(" \t\n,;:!?()[]{}<>\"'`*#|="), 8
"""Signs around a name that are no part of it, and the places that are looked at."""


def is_about(text: str, source: str) -> bool:
    """Return whether the text shares enough rare words with the source."""
    words = {*words_of(text)} - _OURS
    if least_evidence(words, source) >= EVIDENCE:
        return True
    if any(evidence(words, part) >= EVIDENCE for part in _parts(source)):
        return True
    if shares_phrase(text, source):
        return True
    # In a source of few words each shared word counts, and each shared number.
    # The request's own words do not count: "assist" begins like its label "[assistant]".
    known, numbers = _split({*words_of(source[:SAMPLE])} - _OURS)
    plain, named = _split(words)
    if len(known) > FEW_WORDS:
        return False
    return _is_shared(plain, known, 1) or _is_shared(named, numbers, 2)


def shares_phrase(text: str, source: str) -> bool:
    """Return whether PHRASE words of the text follow each other in the source."""
    wanted = {*_phrases(text)}
    return bool(wanted) and any(phrase in wanted for phrase in _phrases(source))


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    words = [*_tokens(text)]
    for at in range(len(words) - PHRASE + 1):
        phrase = tuple(words[at : at + PHRASE])
        if sum(map(len, phrase)) >= PHRASE_CHARS:
            yield phrase


def _is_shared(words: set[str], known: set[str], least: int) -> bool:
    return len(words) >= least and SHARED * len(words) <= len(words & known)


def _split(words: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the beginnings of plain words, and the words with digits."""
    plain, named = set(), set()
    for word in words:
        if word.isalpha() and len(word) > 3:
            plain.add(word[:4])
        elif len(word) > 1 and any(map(str.isdigit, word)):
            named.add(word)
    return plain, named


def evidence(words: set[str], source: str) -> float:
    """Return the bits by which the source explains the words better than chance does."""
    counts = Counter(words_of(source))
    return _evidence(words, counts, max(1, counts.total()))


def least_evidence(words: set[str], source: str) -> float:
    """Return a lower bound of the evidence: names once each, as if each sign were a word.

    A search for some names takes a hundredth of the time in which all words are counted.
    """
    folded = source.casefold()
    names = Counter(word for word in words if _JOINTS.search(word) and _has_name(folded, word))
    return _evidence(words, names, max(1, len(source)))


def _has_name(source: str, name: str) -> bool:
    """Return whether one of the first places of a name has no other sign of a word around it."""
    at = -1
    for _ in range(_PLACES):
        at = source.find(name, at + 1)
        if at < 0:
            return False
        end = at + len(name)
        if _ALONE.issuperset(source[max(0, at - 1) : at] + source[end : end + 1]):
            return True
    return False


def _evidence(words: set[str], counts: Counter[str], total: int) -> float:
    return sum(
        math.log2((1 - _OTHER) * counts[word] / total * 2.0 ** _bits(word) + _OTHER)
        for word in words
    )


def _parts(source: str) -> Iterator[str]:
    """Yield the source's beginning and end, and then the whole where it is longer."""
    if len(source) > SAMPLE:
        yield f"{source[: SAMPLE // 4]}\n{source[-SAMPLE * 3 // 4 :]}"
    yield source


def words_of(text: str) -> Iterator[str]:
    """Yield a text's words as stems; names whole and in their parts."""
    for word in _WORD.findall(text.casefold()):
        if _is_unspaced(word[0]):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            continue
        parts = _JOINTS.split(word)
        if len(parts) > 1:
            yield word
        yield from (_stem(part) for part in parts if part)


def _stem(word: str) -> str:
    return word[: max(4, len(word) - 2)] if word.isalpha() else word


def _bits(word: str) -> float:
    """Return the information of a word in any text: the negative logarithm of its frequency."""
    return min(60.0, _WORD_BITS + sum(map(_sign_bits, word)))


def _sign_bits(sign: str) -> float:
    if _is_unspaced(sign):
        return _SIGN_BITS
    return _DIGIT_BITS if sign.isdigit() else _LETTER_BITS


def _is_unspaced(sign: str) -> bool:
    return _UNSPACED_SIGN.match(sign) is not None


_UNSPACED_SIGN = re.compile(f"[{_UNSPACED}]")

_OURS = frozenset(
    words_of(
        f"{INSTRUCTIONS} transcript summarize summarized summaries headings "
        "user assistant system tool result calls"
    )
)
"""Words of the request itself: an answer that has them may only repeat it."""


# -------------------------------------------------------------- the order of words

LEAST_ORDERED = 30
"""Words without digits and signs: in fewer, chance neighbours are as many."""

_KNOWN = 0.5
"""Share of a text's words that stand in the source; with less the text is in another language."""

ORDER = 2.5
"""Standard deviations by which neighbours of the source exceed those of the same words shuffled.
True texts of 40 words have 4.7 and more, shuffled ones up to 1.4."""

_SHUFFLES = 4


def is_shuffled(text: str, source: str) -> bool:
    """Return whether the text's words stand beside each other as by chance."""
    words = [*_tokens(text)]
    if sum(map(str.isalpha, words)) < LEAST_ORDERED:
        return False
    return all(_by_chance(words, [*_tokens(part)]) for part in _parts(source))


def _by_chance(words: list[str], source: list[str]) -> bool:
    known = {*source}
    if sum(word in known for word in words) < _KNOWN * len(words):
        return False
    pairs = {*pairwise(source)}
    seen = sum(pair in pairs for pair in pairwise(words))
    shuffler, chance = random.Random(len(words)), 0
    for _ in range(_SHUFFLES):
        shuffled = shuffler.sample(words, len(words))
        chance += sum(pair in pairs for pair in pairwise(shuffled))
    expected = chance / _SHUFFLES
    return (seen - expected) / math.sqrt(expected + 1) < ORDER


def _tokens(text: str) -> Iterator[str]:
    """Yield words without the punctuation at their ends; single signs of unspaced scripts."""
    for token in _TOKEN.findall(text.casefold()):
        bare = token.strip(_EDGES)
        if bare:
            yield bare


_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")

_EDGES = ".,;:!?()[]{}\"'`*#|-–—>…“”„«»"
