"""Price requests and compressions; judge whether the provider's cache is cold.

Pure. No timer runs; a cold cache is noticed when the next request arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..config import CompressorConfig
from ..tokens.models import Prices, bare_names, prices_of
from ..view.costs import Balance, Costs
from ..view.jobs import Plan
from ..view.view import View
from .request import Request

FREE = Prices(0.0, None, None, None, 0.0)
"""Of summaries without a model."""


def costs_of(request: Request, *, is_cached: bool) -> Costs | None:
    """Return a request's prices; None without a known price.

    `is_cached` is False once the provider's reports show that no cache serves the session.
    """
    reader = prices_of(request.config.model)
    writer = prices_of(request.writer) if request.budget.has_model else FREE
    if reader.input is None or writer.input is None or writer.output is None:
        return None
    read = written = reader.input
    if is_cached:
        listed = reader.written_1h if request.config.cache_ttl == "1h" else reader.written
        read = reader.input if reader.cached is None else reader.cached
        written = reader.input if listed is None else listed
    return Costs(read, written, writer.input, writer.output, is_cold=request.is_cold)


def balance_of(view: View, plan: Plan, costs: Costs) -> Balance:
    """Return what a plan costs now, and saves in each later request."""
    changed = [*(job.start for job in plan.jobs), *plan.masks, *plan.excerpted]
    again = plan.expected - view.shown_tokens(0, min(changed, default=0))
    prose = sum(job.prose for job in plan.jobs)
    # For a fold the model reads the summaries that the fold replaces, not the originals.
    read = sum(view.shown_tokens(job.start, job.end) for job in plan.jobs if job.asks_model)
    return costs.balance(view.size() - plan.expected, max(0, again), read, prose)


# -------------------------------------------------------------- the cache

DEFAULT_SECONDS = 300.0
"""Anthropic's default lifetime, and the shortest that OpenAI documents."""

HOUR_SECONDS = 3_600.0

_PROVIDERS = (
    # "Active for 5 to 10 minutes of inactivity."
    (re.compile(r"(chatgpt|gpt|o\d)\b"), 600.0),
    # "A few hours to a few days."
    (re.compile(r"deepseek"), 2 * HOUR_SECONDS),
)
"""Documented lifetime in seconds of an unused prompt cache, by model name."""


def is_cold(request: Request, last_request: float, now: float) -> bool:
    """Return whether the cache is cold `now`; `last_request` 0: unknown."""
    seconds = now - last_request
    if not last_request or seconds <= cache_seconds(request.config):
        return False
    is_kept = request.config.cache_ttl_seconds is None and seconds <= HOUR_SECONDS
    is_marked = is_kept and any(m.get("ttl") == "1h" for m in _cache_marks(request.messages))
    return not is_marked


def cache_seconds(config: CompressorConfig) -> float:
    """Return the seconds that the provider's cache lives without a request."""
    if config.cache_ttl_seconds is not None:
        return config.cache_ttl_seconds
    if config.cache_ttl is not None:
        return HOUR_SECONDS if config.cache_ttl == "1h" else DEFAULT_SECONDS
    names = bare_names(config.model)
    seconds = (s for pattern, s in _PROVIDERS if any(pattern.match(name) for name in names))
    return next(seconds, DEFAULT_SECONDS)


def _cache_marks(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in (message, *(content if isinstance(content, list) else ())):
            mark = part.get("cache_control") if isinstance(part, Mapping) else None
            if isinstance(mark, Mapping):
                yield mark
