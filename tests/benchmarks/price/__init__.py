"""What compression costs in all: recorded sessions, replayed on a simulated, priced prompt cache.

    python -m tests.benchmarks.price --corpus FILE [--sessions 6] [--window 32000]

In the order in which a replay is made:

- `prices`: providers' prices, users' pauses, a session's requests and what they cost
- `ways`: ours with and without the clock, the host's, LangChain's, a plain rolling summary
- `hindsight`: the cheapest schedule, by dynamic programming
- `__main__`: the tables
"""
