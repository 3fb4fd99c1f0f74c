"""The ledger: which text replaces which run of messages, append-only and verifiable.

- `segments`: segments, entries of the hash chain, epochs, sessions, transcripts
- `words`: search by words, the same in every store
- `stores`: what a store does: the protocols
- `memory_store`: a store in this process's memory
- `sql`: a store in SQLite or PostgreSQL
"""

from __future__ import annotations

from .memory_store import MemoryStore
from .segments import BLANK, DROPPED, GENESIS, Entry, Epoch, Segment, Session, Usage
from .stores import Store

__all__ = [
    "BLANK",
    "DROPPED",
    "GENESIS",
    "Entry",
    "Epoch",
    "MemoryStore",
    "Segment",
    "Session",
    "Store",
    "Usage",
]
