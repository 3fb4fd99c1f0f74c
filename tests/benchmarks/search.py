"""Measure processor time of searches in a million messages, of a commit, and the bytes.

    python -m tests.benchmarks.search [--messages 1000000] [--database sqlite]

The store has one session of that many archived messages, and 100 sessions of 100 messages: half
written before it, half after it. The large session's rows are written in bulk, without its hashes:
only a search reads them. Each figure is the median of 20 searches for what recall asks (400 hits,
archived messages alone), this process and PostgreSQL's servers together.
"""

import random
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, insert, select, text

from praison_compressor.ledger.sql import SqlStore
from praison_compressor.ledger.sql.archive import SqlArchive, dump
from praison_compressor.ledger.sql.database import Database, parse_url
from praison_compressor.ledger.sql.index import SearchSizes
from praison_compressor.ledger.sql.schema import entries, links, messages, sessions, spans
from praison_compressor.ledger.words import STOP_WORDS, distinct_words
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
    session = store.open(NAMESPACE, f"s{number}")
    run = conversation(number)
    store.commit(session, [(segment(run), run)])


def fill_large(url: str, count: int) -> None:
    """Write the rows of the large session."""
    database = Database(url, None, accepts_plain=False, sizes=SearchSizes())
    database.write(lambda archive: _bulk(archive, count))
    if not database.is_sqlite:
        with _autocommit(url) as connection:
            connection.execute(text("VACUUM ANALYZE"))
    database.close()


@contextmanager
def _autocommit(url: str) -> Iterator[Connection]:
    """Connect to a server outside a transaction."""
    engine = create_engine(parse_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _bulk(archive: SqlArchive, count: int) -> None:
    key = archive.execute(select(sessions.c.key).where(sessions.c.id == f"s{LARGE}")).scalar()
    first = archive.execute(text("SELECT max(key) FROM compressor_messages")).scalar_one() + 1
    query = select(entries).where(entries.c.session_key == key)
    like = {**archive.execute(query).mappings().one()}
    del like["key"]
    texts = [
        (
            content,
            [w for w in distinct_words(content) if w not in STOP_WORDS],
            _pack(archive, content),
        )
        for content in long_texts()
    ]
    if not archive.is_sqlite:
        archive.execute(text("DROP INDEX compressor_search_words"))
    for start in range(0, count, RUN):
        entry = insert(entries).values({**like, "hash": secrets.token_hex()})
        entry_key = archive.execute(entry.returning(entries.c.key)).scalar_one()
        numbers = range(start, start + RUN)
        rows = [_row(archive, first, n, *texts[n % len(texts)]) for n in numbers]
        _write(archive, [{**row, "entry_key": entry_key} for row in rows])
    last = first + count - 1
    archive.execute(insert(spans).values(session_key=key, first=first, last=last))
    if not archive.is_sqlite:
        archive.execute(text("SELECT setval('compressor_messages_key_seq', :last)"), {"last": last})
        index = "CREATE INDEX compressor_search_words ON compressor_search USING GIN (words) "
        archive.execute(text(f"{index} WITH (gin_pending_list_limit = 128)"))


def _pack(archive: SqlArchive, content: str) -> bytes:
    return archive.packer.pack(dump({"role": "user", "content": content}))


def _row(
    archive: SqlArchive, first: int, number: int, content: str, held: list[str], body: bytes
) -> dict[str, Any]:
    """Return the row of a message of the large session; some name a ticket."""
    if number % TICKET == 0:
        held = [f"ticket{number}", *held]
        body = _pack(archive, f"ticket{number} {content}")
    key = first + number
    return {
        "key": key,
        "namespace": NAMESPACE,
        "ordinal": number % RUN,
        "body": body,
        "digest": b"sha256:" + secrets.token_bytes(32),
        "words": archive.index.marked(held, key // archive.index.band_keys),
    }


def _write(archive: SqlArchive, rows: list[dict[str, Any]]) -> None:
    """Insert messages, links and words, on PostgreSQL by COPY."""
    if archive.is_sqlite:
        columns = ("key", "namespace", "digest", "body")
        archive.execute(insert(messages), [{name: r[name] for name in columns} for r in rows])
        archive.execute(
            insert(links),
            [
                {"entry_key": r["entry_key"], "ordinal": r["ordinal"], "message_key": r["key"]}
                for r in rows
            ],
        )
        add = text("INSERT INTO compressor_search(rowid, words) VALUES (:key, :words)")
        archive.execute(add, [{"key": r["key"], "words": " ".join(r["words"])} for r in rows])
        return
    cursor = archive.execute(select(1)).connection.connection.cursor()
    for copy, values in (
        ("messages (key, namespace, digest, body)", ("key", "namespace", "digest", "body")),
        ("links (entry_key, ordinal, message_key)", ("entry_key", "ordinal", "key")),
    ):
        with cursor.copy(f"COPY compressor_{copy} FROM STDIN") as stream:
            for row in rows:
                stream.write_row([row[name] for name in values])
    with cursor.copy("COPY compressor_search (message_key, words) FROM STDIN") as stream:
        for row in rows:
            stream.write_row([row["key"], " ".join(f"'{word}'" for word in row["words"])])


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
    for number in (*range(SESSIONS // 2), LARGE):
        fill(store, number)
    fill_large(url, count)
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
