"""`Event`: one occurrence in a session, passed to listeners and hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

EventName = Literal[
    "started",
    "model_called",
    "model_answered",
    "part_summarized",
    "fell_back",
    "committed",
    "abandoned",
    "skipped",
    "failed",
    "redacted",
]


@dataclass(frozen=True)
class Event:
    """One occurrence in a session.

    `data` has the numbers (tokens, messages, seconds, model, reason). One "committed" or
    "abandoned" follows each "started"; one "model_answered", with its cost or its `error`, follows
    each "model_called". The `reason` of "skipped" is "cooldown" (that model rests after a failure),
    "no gain" (a due compression would free less than `min_gain_ratio`), "price" (it costs more than
    it saves yet), "fixed part" (messages that cannot be dropped exceed the trigger) or "veto" (a
    hook refused). "fixed part" is emitted once, "no gain", "price" and "veto" once until the next
    compression.
    """

    name: EventName
    """"started", "model_called", "model_answered", "part_summarized", "fell_back", "committed",
    "abandoned", "skipped", "failed" or "redacted"."""
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """Read-only: all listeners get the same event."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))


Listener = Callable[[Event], None]

Hook = Callable[[Event], Any]
"""Called, perhaps async, with the "started" event before that event is emitted. False refuses the
compression, a text is added to the request for the summary, None does nothing."""
