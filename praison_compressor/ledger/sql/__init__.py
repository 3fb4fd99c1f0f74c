"""The ledger in SQLite or PostgreSQL; the only package that loads SQLAlchemy.

- `store`: `SqlStore`, the methods that others call
- `schema`: the tables, and valid names
- `database`: URLs, connections, transactions, a database's errors translated
- `archive`: payloads (compressed, checksummed, encrypted), original messages, their index
- `reading`: sessions, lineages, chains of entries, recorded transcripts, search
- `writing`: commits, forks and leases; masks secrets
- `maintenance`: `verify`, `forget`, and clearing of freed pages
"""

from __future__ import annotations

from .database import default_path
from .store import SqlStore, open_store

__all__ = ["SqlStore", "default_path", "open_store"]
