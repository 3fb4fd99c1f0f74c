"""The ledger: which text replaces which run of messages, append-only and verifiable.

- `segments`: segments, entries of the hash chain, epochs, sessions, transcripts
- `words`: search by words, the same in every store
- `stores`: what a store does: the protocols
- `memory_store`: a store in this process's memory
- `sql`: a store in SQLite or PostgreSQL
- `references`: names of archived text, as s2.14:900-940
- `layout`: a text's lines, long JSON by its members; what says nothing goes first
- `around`: the messages around one, calls and results paired
- `passages`: the lines of a text that match a query
- `matches`: what a search found: counted, quoted with call and results, listed by reference
- `outlines`: a segment as one line for each stretch of work
- `fitting`: lists, messages and lines within a budget of tokens
- `recall`: search and read a session's archive
- `tools`: the agent's two recall functions, and their schemas for each API
"""

from __future__ import annotations

from .memory_store import MemoryStore
from .recall import READ, SEARCH, TURN_TOKENS, Recall
from .references import Reference, parse
from .segments import DROPPED, FORGOTTEN, GENESIS, Entry, Epoch, Segment, Session, Usage
from .stores import Store
from .tools import SCHEMAS, recall_tools

__all__ = [
    "DROPPED",
    "FORGOTTEN",
    "GENESIS",
    "READ",
    "SCHEMAS",
    "SEARCH",
    "TURN_TOKENS",
    "Entry",
    "Epoch",
    "MemoryStore",
    "Recall",
    "Reference",
    "Segment",
    "Session",
    "Store",
    "Usage",
    "parse",
    "recall_tools",
]
