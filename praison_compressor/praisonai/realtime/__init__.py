"""Give the host's `RealtimeAgent` a memory, on any Realtime server.

Each module imports only from those below it:

- `agent`: `RealtimeAgent`
- `folding`: replaces old items by the memory on the server
- `items`: the server's conversation, an ordered list of items
- `voice_memory`: archives and summarizes the replaced items
"""

from __future__ import annotations

from .agent import RealtimeAgent
from .folding import Marks, ServerRefused

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
