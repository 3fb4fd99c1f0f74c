"""Keep the ledger: which text replaces which messages.

A ledger is append-only, and its entries form a hash chain.

In the order in which data passes the modules:

- `segments`: segments, entries of the hash chain, epochs, sessions, transcripts
- `stores`: the protocols of a store
- `words`: search by words, the same in every store
- `memory_store`: a store in this process's memory
- `sql`: a store in SQLite or PostgreSQL
"""
