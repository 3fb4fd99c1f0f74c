"""A voice conversation that remembers: the host's `RealtimeAgent` on any Realtime server."""

from __future__ import annotations

from .agent import RealtimeAgent
from .memory import Marks
from .protocol import ServerRefused

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
