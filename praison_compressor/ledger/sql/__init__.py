"""The ledger in SQLite or PostgreSQL; the only package that loads SQLAlchemy.

- `store`: `SqlStore`, the methods that others call; redacts what it writes
- `schema`: the tables, and valid names
- `engines`: SQLite's file, opened for several processes and checked; PostgreSQL's server; their
  errors as errors of the ledger, with the remedy
- `database`: URLs, connections, transactions, clearing of freed pages
- `archive`: payloads (compressed, checksummed, encrypted), original messages
- `index`: the full-text index of the originals' words
- `queries`: sessions, lineages, chains of entries, recorded transcripts
- `search`: messages by their words
- `commits`: commits, forks and leases; `redact_segment`, which `store` calls before a commit
- `maintenance`: `verify` and `forget`
"""

from __future__ import annotations

from .database import default_path
from .store import SqlStore, open_store

__all__ = ["SqlStore", "default_path", "open_store"]
