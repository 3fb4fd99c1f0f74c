"""The price clock: lower the trigger of a request if the provider's prompt cache is cold.

No timer runs: the time since the session's last request decides when the next request comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..config import CompressorConfig
from ..ledger.segments import Session
from ..tokens.models import bare_names
from .request import Request
from .sessions import Sessions

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


def cooled(request: Request, session: Session, sessions: Sessions, now: float) -> Request:
    """Return the request with the cold trigger if the provider's cache is cold."""
    seconds = sessions.seconds_since(request.key, session, now)
    if seconds is None or seconds <= cache_seconds(request.config):
        return request
    is_kept = request.config.cache_ttl_seconds is None and seconds <= HOUR_SECONDS
    if is_kept and any(mark.get("ttl") == "1h" for mark in _marks(request.messages)):
        return request
    return request.cooled()


def cache_seconds(config: CompressorConfig) -> float:
    """Return the seconds without a request after which the provider's cache is cold."""
    if config.cache_ttl_seconds is not None:
        return config.cache_ttl_seconds
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
