"""`Event`: one occurrence in a session, for listeners and hooks."""

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

    One "committed" or "abandoned" follows each "started". One "model_answered" follows each
    "model_called".

    The `reason` of "skipped" is one of:
        "cooldown": that model rests after a failure.
        "no gain": a due compression would free less than `min_gain_ratio`.
        "price": a compression does not yet save what it costs.
        "fixed part": messages that cannot be dropped exceed the trigger. Emitted once a session.
        "veto": a hook refused.
    "no gain", "price" and "veto" are emitted once until the next compression.
    """

    name: EventName
    """"started", "model_called", "model_answered", "part_summarized", "fell_back", "committed",
    "abandoned", "skipped", "failed" or "redacted"."""
    session_id: str
    """Stable id of the session."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Tokens, messages, seconds, model, cost, `error` or reason; read-only."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))


Listener = Callable[[Event], None]

Hook = Callable[[Event], Any]
"""Called in a thread, or async, before the event "started" is emitted. False refuses the
compression. A text is added to the request for the summary. None continues."""
