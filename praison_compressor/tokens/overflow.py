"""What a provider's refusal says about its window: pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARKS = re.compile(
    r"context_length_exceeded|context length|context window|contextwindowexceeded|"
    r"prompt is too long|input is too long|too many (input )?tokens|maximum context|"
    r"exceeds? the (maximum|model'?s|available)[^.]{0,40}(context|tokens)|"
    r"input token count|string too long.*tokens|exceed_context_size|exceed context limit|"
    r"max_new_tokens`? must be",
    re.IGNORECASE,
)

# A rate limit speaks of tokens too, and a smaller view would not help.
_NOT = re.compile(r"rate.?limit|tokens per (min|day)|\bTPM\b|quota", re.IGNORECASE)


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Ways to say one number, the surest first."""
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_WINDOWS = _compiled(
    r"maximum context length (?:is|of) (\d[\d,_]*)",
    r"tokens? > (\d[\d,_]*) maximum",
    r"context limit: \d+ \+ \d+ > (\d+)",
    r"must be <= (\d+)",
    r"(\d[\d,_]*) maximum context length",
    r"context (?:length|window|size)[^\d]{0,40}?(\d[\d,_]*)",
    r"n_ctx\D{0,5}(\d[\d,_]*)",
    r"maximum (?:number of )?(?:input )?tokens (?:allowed )?\(?(\d[\d,_]*)",
    r"limit (?:of|is) (\d[\d,_]*)",
)

_ASKED = _compiled(
    r"resulted in (\d[\d,_]*) tokens",
    r"requested (?:about |a total of )?(\d[\d,_]*) tokens",
    r"context limit: (\d+) \+",
    r"request has (\d[\d,_]*) input tokens",
    r"prompt contains (\d[\d,_]*) tokens",
    r"given: (\d+) `?inputs",
    r"too long: (\d[\d,_]*) tokens",
    r"input token count \(?(\d[\d,_]*)",
    r"request \(?(\d[\d,_]*) tokens",
)

# Room for the answer, which the first of these counts in what was "requested".
_WITHIN = re.compile(r"(\d[\d,_]*)(?: tokens)? (?:in|for) the (?:completion|output)", re.IGNORECASE)

_ANSWERS = (
    _WITHIN,
    *_compiled(
        r"context limit: \d+ \+ (\d+)",
        r"requested (\d[\d,_]*) output tokens",
        r"is too large: (\d[\d,_]*)\. This model's maximum context",
        r"and (\d+) `?max_new_tokens",
    ),
)


@dataclass(frozen=True)
class Overflow:
    """A refusal because the request was too long."""

    window: int | None
    """The window, where the provider names it."""
    asked: int | None
    """How many tokens it counted in the prompt, where it says."""
    answer: int | None = None
    """How many it kept free for the answer, where it says: also where nobody had asked for that."""


def overflow_of(error: BaseException) -> Overflow | None:
    """What the error says; None when it is about something else."""
    text = _text(error)
    if not _MARKS.search(text) or _NOT.search(text):
        return None
    asked, within = _number(_ASKED, text), _number((_WITHIN,), text)
    if asked is not None and within is not None:
        asked -= within
    return Overflow(_number(_WINDOWS, text), asked, _number(_ANSWERS, text))


def _text(error: BaseException) -> str:
    """The error's words and code, with those of what it wraps."""
    parts: list[str] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        parts += [type(link).__name__, str(getattr(link, "code", "")), str(link)]
        link = link.__cause__  # not __context__: that may be an older, unrelated failure
    return " ".join(parts)


def _number(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        found = pattern.search(text)
        if found:
            return int(re.sub(r"[,_]", "", found.group(1)))
    return None
