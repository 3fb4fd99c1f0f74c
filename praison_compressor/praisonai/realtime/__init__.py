"""A voice conversation that remembers: the host's `RealtimeAgent` on any Realtime server.

- `items`: the conversation as the server has it, an ordered list of items with their words
- `protocol`: the client events we send, and their acknowledgements
- `memory`: which items leave the window, and their memory, by the core's `ContextCompressor`
- `keeper`: keeps the conversation between its marks, off the audio path
- `agent`: `RealtimeAgent`
"""

from __future__ import annotations

from .agent import RealtimeAgent
from .memory import Marks
from .protocol import ServerRefused

__all__ = ["Marks", "RealtimeAgent", "ServerRefused"]
