"""`Event`: what happens in a session, for listeners and hooks."""

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
    each "model_called" by one "model_answered", which has its cost or its `error`. "skipped"
    has in `reason` why something is not done: "cooldown" (that model rests after a failure), "no
    gain" (a compression is due and would free less than `min_gain_ratio`), "fixed part" (what
    cannot be dropped is above the trigger), "veto" (a hook refused). "no gain" and "veto" are
    emitted once until the next compression, "fixed part" once.
    """

    name: str
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]

Hook = Callable[[Event], Any]
"""Called before a compression, with its "started" event, before that event is emitted. It may be
async. False refuses the compression; a text is added to the request for the summary; None does
nothing."""
