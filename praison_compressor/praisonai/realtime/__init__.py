"""A voice conversation that remembers: the host's `RealtimeAgent` on any Realtime server."""

from __future__ import annotations

from .acks import ServerRefused
from .agent import RealtimeAgent
from .marks import Marks

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
