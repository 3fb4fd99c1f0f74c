"""Look up models' windows and prices in litellm's table, without importing litellm."""

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
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

GUESSED_WINDOW = 128_000
"""Window of an unknown model; the host's guess too."""


@dataclass(frozen=True)
class Limits:
    """Limits of a model, in tokens."""

    window: int
    """Input tokens."""
    output: int | None
    """Tokens of one answer; None if unknown."""
    source: str
    """The table or option that has the window."""
    guessed: bool
    """Whether the window is a guess."""


def litellm_folder() -> Path | None:
    """Return litellm's folder, found without importing litellm."""
    try:
        spec = find_spec("litellm")
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def model_limits(model: str | None, context_window: int | None = None) -> Limits:
    """Return the limits from `context_window`, else litellm's tables.

    Models registered with litellm come before its file. An unknown name is tried without its route
    (`openrouter/anthropic/`), tag, region and date. Then the window is guessed, with one warning
    for each model.
    """
    entries = (_limits(entry, source) for entry, source in _table_entries(model))
    listed = next(filter(None, entries), None)
    if context_window is not None:
        return Limits(context_window, listed.output if listed else None, "context_window", False)
    if listed is None:
        _warn_unknown(model)
        return Limits(GUESSED_WINDOW, None, "guess", True)
    return listed


class Prices(NamedTuple):
    """Listed US dollars for one token of each kind, or None."""

    input: float | None
    cached: float | None
    written: float | None
    """Written to the provider's cache for minutes."""
    written_1h: float | None
    """Written to the provider's cache for an hour."""
    output: float | None


_PRICED = (
    "input_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "output_cost_per_token",
)
"""Fields of litellm's table, in the order of `Prices`."""


def prices_of(model: str | None) -> Prices:
    """Return what litellm's table lists for a model."""
    return Prices(*(_price(model, field) for field in _PRICED))


def _price(model: str | None, field: str) -> float | None:
    prices = (entry.get(field) for entry, _ in _table_entries(model))
    return next((float(p) for p in prices if isinstance(p, (int, float)) and p > 0), None)


@lru_cache(maxsize=256)
def _warn_unknown(model: str | None) -> None:
    """Warn once per model; `lru_cache` remembers which."""
    subject = f"the context window of model {model!r} is unknown" if model else "no model is named"
    logger.warning(
        "%s, %s tokens are assumed; set context_window for the agent's model; for an auxiliary "
        "model call litellm.register_model",
        subject,
        f"{GUESSED_WINDOW:,}",
    )


def _table_entries(model: str | None) -> Iterator[tuple[Mapping[str, Any], str]]:
    for table, source in _tables():
        for name in _candidate_names(model):
            entry = table.get(name)
            if isinstance(entry, Mapping):
                yield entry, f"{source}: {name}"


def _tables() -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the tables, first the table with the user's deployments."""
    live = getattr(sys.modules.get("litellm"), "model_cost", None)
    if isinstance(live, Mapping):
        yield live, "litellm.model_cost"
    yield _file_table(), "litellm's table"


def _limits(entry: Mapping[str, Any], source: str) -> Limits | None:
    output = _positive_int(entry.get("max_output_tokens"))
    # max_tokens is the older field: the answer's limit if known, else the window.
    older = _positive_int(entry.get("max_tokens"))
    window = _positive_int(entry.get("max_input_tokens")) or older
    return Limits(window, output or older, source, False) if window else None


def _positive_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@lru_cache(maxsize=1)
def _file_table() -> dict[str, dict[str, Any]]:
    """Return the chat models of litellm's file, 3 MB of JSON."""
    folder = litellm_folder()
    path = folder / "model_prices_and_context_window_backup.json" if folder else None
    if path is None or not path.is_file():
        logger.warning("litellm's wheel carries no model table: context windows are guessed")
        return {}
    limits = ("max_input_tokens", "max_output_tokens", "max_tokens")
    wanted = (*limits, *_PRICED)
    table = json.loads(path.read_bytes())
    return {
        name: {field: entry.get(field) for field in wanted}
        for name, entry in table.items()
        if entry.get("mode") in ("chat", "completion", "responses")
    }


# ---------------------------------------------------------------- names
def bare_names(model: str | None) -> list[str]:
    """Return the model's possible spellings, in lower case, without routes."""
    return [name for name in _candidate_names((model or "").lower()) if "/" not in name]


def _candidate_names(model: str | None) -> Iterator[str]:
    """Yield the name, then shorter ones: the first match is best."""
    seen, routed = {""}, model or ""
    while True:
        for name in _spellings(routed):
            if name not in seen:
                seen.add(name)
                yield name
        if "/" not in routed:
            return
        routed = routed.partition("/")[2]


_EXTRAS = (
    re.compile(r"^(us|eu|apac|au|jp|global|us-gov)\.(?=[a-z]+\.)"),
    re.compile(r"(-v\d+)?:[\w.-]*$"),
    re.compile(r"^(anthropic|openai|meta|mistral|amazon|cohere|deepseek|qwen)\.(?=[a-z])"),
    re.compile(r"[-@](20\d\d-?[01]\d-?[0-3]\d|latest|default)$"),
)
"""Parts around a model's name, removed in this order: region, version, vendor, date."""


def _spellings(name: str) -> Iterator[str]:
    yield name
    if name.startswith("ft:"):
        # ft:gpt-4o-2024-08-06:organisation:suffix:id
        base = name.split(":")[1]
        yield f"ft:{base}"
        yield from _spellings(base)
        return
    for extra in _EXTRAS:
        shorter = extra.sub("", name)
        if shorter != name:
            name = shorter
            yield name
    yield name.replace("gpt-35", "gpt-3.5")
    if "claude" in name:
        yield name.replace(".", "-")  # some routers spell it claude-sonnet-4.5
