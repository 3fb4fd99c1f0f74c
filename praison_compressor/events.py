"""What happens during a compression, for whoever wants to watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """One thing that happened in a session.

    `name` is one of "started", "model_called", "model_answered", "part_summarized", "fell_back",
    "committed", "abandoned", "skipped", "failed", "redacted"; `data` carries the numbers (tokens,
    messages, seconds, model, reason). Each "started" is ended by one "committed" or "abandoned",
    each "model_called" by one "model_answered", which has what it cost or its `error`. "skipped"
    says in `reason` why something is not done: "cooldown" (that model rests after a failure), "no
    gain" (a compression is due and would free less than `min_gain_ratio`; told once until there is
    one), "fixed part" (what cannot be dropped is above the trigger; told once), "veto" (a hook said
    no; told once until there is a compression).
    """

    name: str
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]

Hook = Callable[[Event], Any]
"""Asked before a compression, with its "started" event, which nobody has heard yet: False refuses
it, a text is added to the request for the summary, None lets it be. It may be async."""
