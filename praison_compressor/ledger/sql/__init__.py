"""Keep the ledger in SQLite or PostgreSQL; only this package loads SQLAlchemy.

In the order in which data passes the modules:

- `store`: `SqlStore`, the methods that others call; redacts what it writes
- `engines`: SQLite's file, opened for several processes and checked; PostgreSQL's server; their
  errors as errors of the ledger, with the remedy
- `database`: URLs, connections, transactions, clearing of freed pages
- `schema`: the tables, and valid names
- `archive`: payloads (compressed, checksummed, encrypted), original messages
- `commits`: commits, forks and leases; `redact_segment`, which `store` calls before a commit
- `index`: the full-text index of the originals' words
- `queries`: sessions, lineages, chains of entries, recorded transcripts
- `search`: messages by their words
- `maintenance`: `verify` and `forget`
"""
