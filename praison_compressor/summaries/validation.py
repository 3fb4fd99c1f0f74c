"""Accept or refuse a summarizer's answer by measures that need no language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import filterfalse, islice
from typing import Any, NamedTuple

from ..errors import SummaryRejected
from ..messages.shapes import replace_surrogates
from .prompts import SUMMARY_INSTRUCTIONS, SummaryRequest
from .protocol import SummaryReply
from .reasoning import strip_reasoning
from .word_overlap import is_about, is_shuffled

MOST_ANSWER_CHARS = 1_000_000
"""No model writes more, and a longer text costs time to read."""


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


class Flaw(NamedTuple):
    """A way in which a text is no summary."""

    reason: str
    is_in: Callable[[str, SummaryRequest], object]
    detail: str = ""
    """"" means the text's beginning."""


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
"""Checked in this order."""


# -------------------------------------------------------------- finish reasons

_BAD_FINISHES = {
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
    for refusal, parts in _BAD_FINISHES.items():
        if any(part in bare for part in parts):
            return refusal
    return ""


def _reason_text(reason: Any) -> str:
    """Return a finish reason as text, an enumeration's with name and value."""
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

_PREAMBLE_CHARS = 300  # characters of an announcement before JSON


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

_LOOP = re.compile(r"(\w.{2,199}?)\1{23}", re.DOTALL)
"""A phrase 24 times in a row."""

_END_CHARS = 5_000  # a loop lasts until the answer is cut off


def is_loop(text: str) -> bool:
    """Return whether a phrase repeats itself at the text's end."""
    end = text[-_END_CHARS:]
    return _has_run(end) and _LOOP.search(end) is not None


def _has_run(text: str) -> bool:
    """Return whether a phrase stands 22 times in a row.

    Only every sixth place is tried, since each loop has such a run there. The pattern `_LOOP` takes
    four times as long.
    """
    for start in range(0, len(text), 6):
        opening, again = text[start : start + 3], start + 2
        while (again := text.find(opening, again + 1, start + 203)) > 0:
            if text.startswith(text[start:again] * 21, again):
                return True
    return False


# -------------------------------------------------------------- copies

_COPY_CHARS = 240  # characters of a copied stretch; a quotation is shorter
_PROBES = 12  # stretches of the text that are searched in the source
_ALTERED = 5  # one of five stretches of a copy may differ: a model changes some words


def is_copy(text: str, source: str) -> bool:
    """Return whether nearly all of the text is copied, line breaks aside."""
    text = " ".join(text.split())
    places = range(0, len(text) - _COPY_CHARS + 1, max(_COPY_CHARS, len(text) // _PROBES))
    stretches = [text[at : at + _COPY_CHARS] for at in places]
    # Words are looked for first: to join the lines of a long source takes longer.
    if not _nearly_all(lambda stretch: all(map(source.__contains__, stretch.split())), stretches):
        return False
    return _nearly_all(" ".join(source.split()).__contains__, stretches)


def _nearly_all(holds: Callable[[str], bool], stretches: Sequence[str]) -> bool:
    """Return whether `holds` is true for four of five stretches."""
    most = len(stretches) // _ALTERED
    return bool(stretches) and len([*islice(filterfalse(holds, stretches), most + 1)]) <= most
