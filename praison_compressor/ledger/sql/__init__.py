"""The ledger in SQLite or PostgreSQL; the only package that loads SQLAlchemy.

- `store`: `SqlStore`, whose methods are all that others call
- `schema`: the tables, and which names they take
- `database`: URLs, connections and transactions; `failures`: a database's errors in our words
- `archive`: payloads (compressed, checksummed, encrypted), the original messages, their index
- `sessions`: sessions, lineages, chains of entries and recorded transcripts read from rows
- `writing`: commits, forks and leases; secrets are masked here
- `queries`: the list of sessions, archived messages, search
- `audit`: `verify`; `transfer`: export and import, checked by the same audit
- `erasure`: `forget`, and the pages that it frees
"""
