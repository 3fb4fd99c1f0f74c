"""Keep the ledger in SQLite or PostgreSQL; only this package loads SQLAlchemy.

In the order in which data passes the modules:

- `store`: `SqlStore`, which redacts secrets and calls the other modules
- `engines`: opens SQLite's file or PostgreSQL's server; translates their errors
- `database`: URLs, connections, transactions, clearing of freed pages
- `schema`: the tables
- `archive`: payloads (compressed, checksummed, encrypted), original messages
- `commits`: commits, forks, leases; `redact_segment`, which `store` calls before a commit
- `index`: the full-text index of the originals' words
- `queries`: sessions, lineages, chains of entries, recorded transcripts
- `search`: searches messages by their words
- `maintenance`: `verify` and `forget`
"""
