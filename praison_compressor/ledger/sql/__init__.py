"""The ledger in SQLite or PostgreSQL; the only package that loads SQLAlchemy.

- `store`: `SqlStore`, whose methods are all that others call
- `schema`: the tables, and which names they take
- `database`: URLs, connections and transactions; a database's errors in our words
- `archive`: payloads (compressed, checksummed, encrypted), the original messages, their index
- `sessions`: sessions, lineages, chains of entries, recorded transcripts; their list, their words
- `writing`: commits, forks and leases; secrets are masked here
- `audit`: `verify`, and export and import, which it checks
- `erasure`: `forget`, and the pages that it frees
"""
