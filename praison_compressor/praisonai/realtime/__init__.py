"""A voice conversation that remembers: the host's `RealtimeAgent` on any Realtime server.

- `items`: the conversation as the server has it, an ordered list of items with their words
- `memory`: which items leave the window, and their memory, by the core's `ContextCompressor`
- `keeper`: keeps the conversation between its marks, off the audio path; what it sends for that
- `agent`: `RealtimeAgent`
"""

from __future__ import annotations

from .agent import RealtimeAgent
from .keeper import ServerRefused
from .memory import Marks

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
