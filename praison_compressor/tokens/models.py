"""What a model can take and costs, by litellm's table: found without importing litellm, without
network. And what a provider's refusal says of it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

GUESSED_WINDOW = 128_000
"""For a model that nobody knows: the host guesses the same."""


@dataclass(frozen=True)
class Limits:
    """What a model can take."""

    window: int
    """Input tokens."""
    output: int | None
    """Tokens of one answer; None when not known."""
    source: str
    """Where the window is from, for a person."""
    guessed: bool
    """Whether the window is a guess."""


def litellm_folder() -> Path | None:
    """Where litellm is installed, found without importing it."""
    try:
        spec = find_spec("litellm")
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def model_limits(model: str | None, context_window: int | None = None) -> Limits:
    """The model's limits: `context_window` if given, else what is registered, else the file.

    A name that no table has is tried without its route (`openrouter/anthropic/`), tag, region
    and date; then guessed, with a warning once for each model.
    """
    known = _known(model)
    if context_window is not None:
        return Limits(context_window, known.output if known else None, "context_window", False)
    if known is None:
        _warn(model)
        return Limits(GUESSED_WINDOW, None, "guess", True)
    return known


def input_price(model: str | None) -> float | None:
    """US dollars for one input token, as listed; None where no table has the model's price."""
    return _price(model, "input_cost_per_token")


def cached_input_price(model: str | None) -> float | None:
    """The same for a token that the provider's prompt cache serves."""
    return _price(model, "cache_read_input_token_cost")


def _price(model: str | None, field: str) -> float | None:
    for table, _ in _tables():
        for name in _names(model):
            entry = table.get(name)
            price = entry.get(field) if isinstance(entry, Mapping) else None
            if isinstance(price, (int, float)) and price > 0:
                return float(price)
    return None


@lru_cache(maxsize=256)
def _warn(model: str | None) -> None:
    """Once per model: the cache is what keeps a long session from repeating it."""
    logger.warning(
        "the context window of model %r is not known; %d tokens are assumed; "
        "set context_window for the agent's model; that of an auxiliary one is learned when it "
        "refuses a request as too long, or told by litellm.register_model",
        *(model, GUESSED_WINDOW),
    )


def _known(model: str | None) -> Limits | None:
    for table, source in _tables():
        for name in _names(model):
            limits = _limits(table.get(name), f"{source}: {name}")
            if limits is not None:
                return limits
    return None


def _tables() -> Iterator[tuple[Mapping[str, Any], str]]:
    """First what is registered at run time: a user's own deployment is only there."""
    live = getattr(sys.modules.get("litellm"), "model_cost", None)
    if isinstance(live, Mapping):
        yield live, "litellm.model_cost"
    yield _file_table(), "litellm's table"


def _limits(entry: Any, source: str) -> Limits | None:
    if not isinstance(entry, Mapping):
        return None
    output = _positive(entry.get("max_output_tokens"))
    # max_tokens is the older field: the answer's limit where there is one, else the window's.
    window = _positive(entry.get("max_input_tokens")) or _positive(entry.get("max_tokens"))
    if window is None:
        return None
    return Limits(window, output or _positive(entry.get("max_tokens")), source, False)


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@lru_cache(maxsize=1)
def _file_table() -> dict[str, dict[str, Any]]:
    """The chat models of litellm's file: 3 MB of JSON are read once."""
    folder = litellm_folder()
    path = folder / "model_prices_and_context_window_backup.json" if folder else None
    if path is None or not path.is_file():
        logger.warning("litellm's wheel carries no model table: context windows are guessed")
        return {}
    limits = ("max_input_tokens", "max_output_tokens", "max_tokens")
    wanted = (*limits, "input_cost_per_token", "cache_read_input_token_cost")
    table = json.loads(path.read_bytes())
    return {
        name: {field: entry.get(field) for field in wanted}
        for name, entry in table.items()
        if entry.get("mode") in ("chat", "completion", "responses")
    }


# ---------------------------------------------------------------- names
def bare_names(model: str | None) -> list[str]:
    """The model's name in lower case, without what routes to it, in its possible spellings."""
    return [name for name in _names((model or "").lower()) if "/" not in name]


def _names(model: str | None) -> Iterator[str]:
    """The name as it is, then shorter and shorter: the first that a table has is the best."""
    seen = set()
    for routed in _without_routes(model or ""):
        for name in _spellings(routed):
            if name and name not in seen:
                seen.add(name)
                yield name


def _without_routes(model: str) -> Iterator[str]:
    yield model
    while "/" in model:
        model = model.partition("/")[2]
        yield model


_REGION = re.compile(r"^(us|eu|apac|au|jp|global|us-gov)\.(?=[a-z]+\.)")

_VENDOR = re.compile(r"^(anthropic|openai|meta|mistral|amazon|cohere|deepseek|qwen)\.(?=[a-z])")

_DATE = re.compile(r"[-@](20\d\d-?[01]\d-?[0-3]\d|latest|default)$")

_VERSION = re.compile(r"(-v\d+)?:[\w.-]*$")


def _spellings(name: str) -> Iterator[str]:
    yield name
    if name.startswith("ft:"):
        # ft:gpt-4o-2024-08-06:organisation:suffix:id
        base = name.split(":")[1]
        yield f"ft:{base}"
        yield from _spellings(base)
        return
    for pattern in (_REGION, _VERSION, _VENDOR, _DATE):
        shorter = pattern.sub("", name)
        if shorter != name:
            name = shorter
            yield name
    yield name.replace("gpt-35", "gpt-3.5")
    if "claude" in name:
        yield name.replace(".", "-")  # some routers spell it claude-sonnet-4.5


# -------------------------------------------------------------- refusals of what is too long

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
