"""Processor time of a search in a million messages, and what its index takes.

    python -m tests.benchmarks.search [--messages 1000000] [--database sqlite]

The store has one session of that many archived messages, and 100 sessions of 100 messages: half
written before it, half after it. Each figure is the median of 20 searches for what recall asks (400
hits, archived messages alone), this process and PostgreSQL's server together.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import create_engine, text

from praison_compressor.ledger.sql import SqlStore
from praison_compressor.ledger.sql.database import parse
from tests.benchmarks.common import DATABASES, databases, options, show
from tests.benchmarks.store import MESSAGES, conversation, size_of
from tests.helpers.talks import NAMESPACE, segment

MOST_MS = 50
HITS = 400
SEARCHES = 20
SESSIONS = 100
RUN = 1_000
LARGE = 10_000
"""The number of the large session."""
QUERIES: dict[str, Callable[[int], str]] = {
    "common words": lambda _: "error test",
    "a word of all messages, a rarer": lambda at: f"message {at % 90 + 5}",
    "a rare word": lambda at: f"w{at * 7_919 % 200_000:x}",
    "a rare and a common word": lambda at: f"w{at * 7_919 % 200_000:x} error",
    "no match": lambda at: f"nothing{at} error",
    "a sentence": lambda at: f"why does the test of module w{at:x} return an error in config",
}


def fill(store: SqlStore, number: int, messages: int) -> None:
    """Commit a session."""
    session = store.open(NAMESPACE, f"s{number}")
    for start in range(0, messages, RUN):
        run = conversation(number, start, min(RUN, messages - start))
        session = store.commit(session, [(segment(run), run)])


def processor_seconds(url: str) -> Callable[[], float]:
    """Return a function that returns this process's seconds, and those of PostgreSQL's servers."""
    if url.startswith("sqlite"):
        return time.process_time
    engine = create_engine(parse(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        servers = list(connection.execute(text(query)).scalars())
    engine.dispose()

    def now() -> float:
        # Field 1 of `schedstat`: nanoseconds on a processor.
        files = (Path(f"/proc/{pid}/schedstat") for pid in servers)
        return time.process_time() + sum(int(f.read_text().split()[0]) for f in files) / 1e9

    return now


def measured(url: str, messages: int) -> Iterator[tuple[object, ...]]:
    """Yield a row for each query and place, then for the index."""
    store = SqlStore(url, mask_secrets=False)
    for number in range(SESSIONS // 2):
        fill(store, number, MESSAGES)
    fill(store, LARGE, messages)
    for number in range(SESSIONS // 2, SESSIONS):
        fill(store, number, MESSAGES)
    if not url.startswith("sqlite"):
        with create_engine(parse(url), isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text("VACUUM ANALYZE"))
    now, chance = processor_seconds(url), random.Random(1)
    places = {
        "the session of a million": lambda: f"s{LARGE}",
        "a session before it": lambda: f"s{chance.randrange(SESSIONS // 2)}",
        "a session after it": lambda: f"s{chance.randrange(SESSIONS // 2, SESSIONS)}",
        "all sessions": lambda: None,
    }
    for where, name in places.items():
        for kind, query in QUERIES.items():
            times, found = [], 0
            for at in range(SEARCHES):
                asked, session = query(at), name()
                started = now()
                hits = store.search(NAMESPACE, asked, session, HITS, archived_only=True)
                times.append((now() - started) * 1_000)
                found += len(hits)
            median, most = f"{statistics.median(times):.1f}", f"{max(times):.1f}"
            yield where, kind, f"{found / SEARCHES:.0f}", median, most, MOST_MS
        yield ()
    times = []
    for number in range(SEARCHES):
        run = conversation(number, MESSAGES, 50)
        session = store.open(NAMESPACE, f"s{number}")
        started = now()
        store.commit(session, [(segment(run), run)])
        times.append((now() - started) * 1_000)
    median = f"{statistics.median(times):.1f}"
    yield "a session before it", "a commit of 50 messages", "", median, f"{max(times):.1f}", ""
    yield "all", "megabytes", "", f"{size_of(url) / 1e6:,.0f}", "", ""
    store.close()


def main() -> None:
    given = options(__doc__, messages=1_000_000, database=DATABASES)
    columns = ("where", "query", "hits", "ms, median", "most", "at most")
    for name, new_url in databases([given.database] if given.database else DATABASES):
        show(f"{given.messages:,} messages, {name}", columns, measured(new_url(), given.messages))


if __name__ == "__main__":
    main()
