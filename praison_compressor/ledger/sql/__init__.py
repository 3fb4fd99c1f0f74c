"""Keep the ledger in SQLite or PostgreSQL; only this package loads SQLAlchemy.

In the order in which data passes the modules:

- `store`: `SqlStore`, which redacts secrets and calls the other modules
- `database`: URLs, connections, transactions, clearing of freed pages
- `engines`: opens SQLite's file or PostgreSQL's server; translates their errors
- `schema`: the tables
- `commits`: commits, forks, leases; `redact_segment`, which `store` calls before a commit
- `archive`: payloads (compressed, checksummed, encrypted), original messages
- `index`: the full-text index of the originals' words
- `queries`: sessions, lineages, chains of entries, recorded transcripts
- `search`: searches messages by their words
- `maintenance`: `verify` and `forget`
"""
