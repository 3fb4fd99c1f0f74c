"""What happens during a compression, for whoever wants to watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Event", "Listener"]


@dataclass(frozen=True)
class Event:
    """One thing that happened in a session.

    `name` is one of "started", "model_called", "part_summarized", "fell_back", "committed",
    "abandoned", "skipped", "failed", "redacted"; `data` carries the numbers (tokens, messages,
    seconds, model, reason). Each "started" is ended by one "committed" or "abandoned".
    """

    name: str
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]
