"""Measure processor time of searches in a million messages, of a commit, and the bytes.

    python -m tests.benchmarks.search [--messages 1000000] [--database sqlite]

The store has one session of that many archived messages, and 100 sessions of 100 messages: half
written before it, half after it. Each figure is the median of 20 searches for what recall asks (400
hits, archived messages alone), this process and PostgreSQL's servers together.
"""

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, text

from praison_compressor.ledger.sql.database import parse_url
from praison_compressor.ledger.sql.store import SqlStore
from tests.benchmarks.common import DATABASES, databases, options, show
from tests.benchmarks.store import COMMON, MESSAGES, conversation, long_texts
from tests.helpers.talks import NAMESPACE, segment

MOST_MS = 50
HITS = 400
SEARCHES = 20
SESSIONS = 100
RUN = 1_000
TICKET = 50
"""Each of that many messages of the large session names a ticket that no other names."""
LARGE = 10_000
"""The number of the large session."""
RARE = long_texts()[0].split()[-1]
"""A word of each 2,003rd message; these messages lack the word `error`."""
COUNTS = Counter(word for body in long_texts() for word in {*body.split()} - {*COMMON})
LESS_RARE, TIMES = COUNTS.most_common(1)[0]
"""A word of more messages than a search lists."""
QUERIES: dict[str, Callable[[int], str]] = {
    "a ticket": lambda at: f"ticket{at * TICKET}",
    "a ticket and a common word": lambda at: f"ticket{at * TICKET} error",
    "two common words": lambda _: "error test",
    "five common words": lambda _: "error test config return module",
    "a word of each 2,003rd message": lambda _: RARE,
    "the same and a common word": lambda _: f"{RARE} error",
    f"a word of each {2_003 // TIMES}th and a common one": lambda _: f"{LESS_RARE} error",
    "nothing that occurs and a common word": lambda at: f"nothing{at} error",
    "a sentence": lambda at: f"why does the test of module ticket{at * TICKET} return an error",
}


def fill(store: SqlStore, number: int) -> None:
    """Commit a small session."""
    run = conversation(number)
    store.commit(store.open(NAMESPACE, f"s{number}"), [(segment(run), run)])


def fill_large(store: SqlStore, count: int) -> None:
    """Commit the large session; some of its messages name a ticket."""
    texts = long_texts()
    session = store.open(NAMESPACE, f"s{LARGE}")
    for start in range(0, count, RUN):
        run = [
            {"role": "user", "content": f"{_name(number)} {texts[number % len(texts)]}"}
            for number in range(start, start + RUN)
        ]
        session = store.commit(session, [(segment(run), run)])


def _name(number: int) -> str:
    """Return a word that no other message has: equal messages are archived once."""
    return f"{'message' if number % TICKET else 'ticket'}{number}"


@contextmanager
def _autocommit(url: str) -> Iterator[Connection]:
    """Connect to a server outside a transaction."""
    engine = create_engine(parse_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def size_of(url: str) -> int:
    """Return the bytes that the store takes on the disk."""
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        file = Path(str(parsed.database))
        return sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))
    query = (
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
        "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
    )
    with create_engine(parsed).connect() as connection:
        return int(connection.execute(text(query)).scalar_one())


def processor_seconds(url: str) -> Callable[[], float]:
    """Return a function that returns this process's seconds, and those of PostgreSQL's servers."""
    if url.startswith("sqlite"):
        return time.process_time
    with _autocommit(url) as connection:
        query = (
            "SELECT pid FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        servers = list(connection.execute(text(query)).scalars())

    def now() -> float:
        # Field 1 of `schedstat`: nanoseconds on a processor.
        files = (Path(f"/proc/{pid}/schedstat") for pid in servers)
        return time.process_time() + sum(int(f.read_text().split()[0]) for f in files) / 1e9

    return now


def write(url: str, count: int) -> None:
    """Write the sessions."""
    store = SqlStore(url, redact_secrets=False)
    for number in range(SESSIONS // 2):
        fill(store, number)
    fill_large(store, count)
    if not url.startswith("sqlite"):
        with _autocommit(url) as connection:
            connection.execute(text("VACUUM ANALYZE"))
    for number in range(SESSIONS // 2, SESSIONS):
        fill(store, number)
    store.close()


def measure(url: str) -> Iterator[tuple[object, ...]]:
    """Yield a row for each query and place, then for a commit and the size."""
    store = SqlStore(url, redact_secrets=False)
    store.check()
    now, chance = processor_seconds(url), random.Random(1)
    places = {
        "the session of a million": lambda: f"s{LARGE}",
        "a session before it": lambda: f"s{chance.randrange(SESSIONS // 2)}",
        "a session after it": lambda: f"s{chance.randrange(SESSIONS // 2, SESSIONS)}",
        "all sessions": lambda: None,
    }
    for where, name in places.items():
        for kind, query in QUERIES.items():
            times, hit_count = [], 0
            for at in range(SEARCHES):
                asked, session = query(at), name()
                started = now()
                hits = store.search(NAMESPACE, asked, session, HITS, archived_only=True)
                times.append((now() - started) * 1_000)
                hit_count += len(hits)
            median, most = f"{statistics.median(times):.1f}", f"{max(times):.1f}"
            yield where, kind, f"{hit_count / SEARCHES:.0f}", median, most, MOST_MS
        yield ()
    times = []
    for number in range(SEARCHES):
        run = conversation(number, MESSAGES, 50)
        stored = store.open(NAMESPACE, f"s{number}")
        started = now()
        store.commit(stored, [(segment(run), run)])
        times.append((now() - started) * 1_000)
    median = f"{statistics.median(times):.1f}"
    yield "a session before it", "a commit of 50 messages", "", median, f"{max(times):.1f}", ""
    yield "all", "megabytes", "", f"{size_of(url) / 1e6:,.0f}", "", ""
    store.close()


def main() -> None:
    args = options(__doc__, messages=1_000_000, database=DATABASES)
    columns = ("where", "query", "hits", "ms, median", "most", "at most")
    for name, new_url in databases(args.database):
        url = new_url()
        write(url, args.messages)
        show(f"{args.messages:,} messages, {name}", columns, measure(url))


if __name__ == "__main__":
    main()
