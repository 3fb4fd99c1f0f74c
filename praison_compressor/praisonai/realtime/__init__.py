"""A voice conversation with a memory: the host's `RealtimeAgent` on any Realtime server.

- `items`: the server's conversation, an ordered list of items with their words
- `memory`: which items leave the window, and their summary by `ContextCompressor`
- `folding`: replaces old items by the memory on the server, off the audio path
- `agent`: `RealtimeAgent`
"""

from __future__ import annotations

from .agent import RealtimeAgent
from .folding import ServerRefused
from .voice_memory import Marks

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
