"""The ledger: which text stands for which run of messages, kept append-only and verifiable.

- `segments`: segments, entries of the hash chain, epochs, sessions; the protocol of a store
- `words`: how messages are found by their words, the same in every store
- `memory`: a store in this process's memory
- `sql`: a store in SQLite or PostgreSQL
- `recall`: the two tools by which an agent searches and reads its session's archive
"""
