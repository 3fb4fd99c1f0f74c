"""Keep the ledger in SQLite or PostgreSQL; only this package loads SQLAlchemy.

Each module imports only from those below it:

- `store`: `SqlStore`, which redacts secrets and calls the other modules
- `commits`: commits, forks, leases; `redact_segment`, which `store` calls before a commit
- `maintenance`: `verify` and `forget`
- `search`: searches messages by their words
- `queries`: sessions, lineages, chains of entries, recorded transcripts
- `database`: URLs, connections, transactions, clearing of freed pages
- `engines`: opens SQLite's file or PostgreSQL's server; translates their errors
- `archive`: payloads (compressed, checksummed, encrypted), original messages
- `index`: the full-text index of the originals' words
- `schema`: the tables
"""
