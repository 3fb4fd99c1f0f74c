"""The ledger: which text replaces which run of messages, append-only and verifiable.

- `segments`: segments, entries of the hash chain, epochs, sessions; the protocol of a store
- `words`: search by words, the same in every store
- `memory`: a store in this process's memory
- `sql`: a store in SQLite or PostgreSQL
- `references`: names of archived text, as s2.14:900-940
- `passages`: the lines of a text that match a query
- `outlines`: a segment as one line for each stretch of work
- `matches`: a search's list: passages with their role, call and results
- `recall`: search and read a session's archive within a budget
- `tools`: the agent's two recall functions
"""
