"""The ledger: which text stands for which run of messages, kept append-only and verifiable.

- `segments`: segments, entries of the hash chain, epochs, sessions; the protocol of a store
- `words`: how messages are found by their words, the same in every store
- `memory`: a store in this process's memory
- `sql`: a store in SQLite or PostgreSQL
- `references`: the one way to name archived text, as s2.14:900-940
- `passages`, `outlines`: the lines of a text that a query is about; a segment in a line a stretch
- `matches`: what a search lists: the passages that match, with who said them and what came of it
- `recall`: searching and reading a session's archive within a budget
- `tools`: the two functions by which an agent does so
"""
