"""Keep the ledger: which text replaces which messages.

A ledger is append-only, and its entries form a hash chain.

Each module imports only from those below it:

- `sql`: a store in SQLite or PostgreSQL
- `memory_store`: a store in this process's memory
- `stores`: the protocols of a store
- `words`: search by words, the same in every store
- `segments`: segments, entries of the hash chain, epochs, sessions, transcripts
"""
