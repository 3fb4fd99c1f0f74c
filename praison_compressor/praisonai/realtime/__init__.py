"""Give the host's `RealtimeAgent` a memory, on any Realtime server.

In the order in which data passes the modules:

- `agent`: `RealtimeAgent`
- `items`: the server's conversation, an ordered list of items
- `folding`: replaces old items by the memory on the server
- `voice_memory`: archives and summarizes the replaced items
"""

from __future__ import annotations

from .agent import RealtimeAgent
from .folding import Marks, ServerRefused

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
