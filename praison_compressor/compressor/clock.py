"""The price clock: when the provider's prompt cache is cold, and whether a compression pays.

No timer runs: the time since the session's last request decides when the next request comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..config import CompressorConfig
from ..tokens.models import Prices, bare_names, prices_of
from ..view.budget import Balance, Costs
from ..view.jobs import Plan
from ..view.view import View
from .request import Request

DEFAULT_SECONDS = 300.0
"""Anthropic's default, and the least of OpenAI's."""

HOUR_SECONDS = 3_600.0

_PROVIDERS = (
    # "Active for 5 to 10 minutes of inactivity."
    (re.compile(r"(chatgpt|gpt|o\d)\b"), 600.0),
    # "A few hours to a few days."
    (re.compile(r"deepseek"), 2 * HOUR_SECONDS),
)
"""Documented seconds of a prompt cache without a request, by the model's name."""


def cooled(request: Request, seconds: float | None) -> Request:
    """Return the request with the cold trigger if the provider's cache is cold.

    `seconds` passed since the session's last request; None: unknown.
    """
    if seconds is None or seconds <= cache_seconds(request.config):
        return request
    is_kept = request.config.cache_ttl_seconds is None and seconds <= HOUR_SECONDS
    if is_kept and any(mark.get("ttl") == "1h" for mark in _marks(request.messages)):
        return request
    return request.cooled()


def costs_of(request: Request) -> Costs | None:
    """Return prices and pace of a request, or None where a price is unknown."""
    main, config = prices_of(request.config.model), request.config
    if main.input is None:
        return None
    cached = main.input if main.cached is None else main.cached
    written = main.written_1h if config.cache_ttl == "1h" else main.written
    written = main.input if written is None else written
    if request.pace is not None and not request.pace.is_cached:
        cached = written = main.input
    summary = Prices(0.0, None, None, None, 0.0)
    if request.has_model:
        summary = prices_of(request.writer)
    if summary.input is None or summary.output is None:
        return None
    growth, cold, _ = request.pace or (None, 0.0, True)
    is_cold = request.cold_trigger is not None
    return Costs(cached, written, summary.input, summary.output, growth, is_cold, cold)


def balance_of(view: View, plan: Plan, costs: Costs) -> Balance:
    """Return what a plan costs now, and saves in each later request."""
    changed = [*(job.start for job in plan.jobs), *plan.masks, *plan.excerpted]
    again = plan.expected - view.shown(0, min(changed, default=0))
    prose = sum(job.prose for job in plan.jobs)
    # Of a fold the model reads the texts that it replaces, not their originals.
    read = sum(view.shown(job.start, job.end) for job in plan.jobs if job.by_model)
    return costs.balance(view.size() - plan.expected, max(0, again), read, prose)


def cache_seconds(config: CompressorConfig) -> float:
    """Return the seconds without a request after which the provider's cache is cold."""
    if config.cache_ttl_seconds is not None:
        return config.cache_ttl_seconds
    if config.cache_ttl is not None:
        return HOUR_SECONDS if config.cache_ttl == "1h" else DEFAULT_SECONDS
    names = bare_names(config.model)
    known = (s for pattern, s in _PROVIDERS if any(pattern.match(name) for name in names))
    return next(known, DEFAULT_SECONDS)


def _marks(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the cache marks of messages and their content parts."""
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in (message, *(content if isinstance(content, list) else ())):
            mark = part.get("cache_control") if isinstance(part, Mapping) else None
            if isinstance(mark, Mapping):
                yield mark
