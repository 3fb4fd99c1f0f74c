"""What the store costs as it grows: time of a lookup, a search and a commit, and bytes.

    python -m tests.benchmarks.store                           100 sessions against 1,000
    python -m tests.benchmarks.store --sessions 10000          ... 10,000 (1,000,000 messages)
    python -m tests.benchmarks.store --corpus FILE.jsonl       bytes on recorded sessions
    python -m tests.benchmarks.store --roundtrip FILE.jsonl    compressed in stages, restored

Every session archives 100 messages and records a tail of 20 beside them. Times are medians over
random sessions that the process has not read before, taken in turns from a small and a large store;
"quiet turn" is the second open.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor
from praison_compressor.ledger.sql.database import parse
from praison_compressor.ledger.sql.store import SqlStore, open_store
from tests.benchmarks.copying import multiply
from tests.helpers.stores import Postgres
from tests.helpers.talks import NAMESPACE, segment

Message = dict[str, Any]
MESSAGES = 100
TAIL = 20
SAMPLE = 40
COMMITTED = 1_000  # sessions beyond which a store is filled with copies
# Enough different words that an index has something to hold, and some that are everywhere.
COMMON = "the file test error function return value module build and run with config path".split()


def conversation(number: int, start: int = 0, count: int = MESSAGES) -> list[Message]:
    """Messages of a size and vocabulary like an agent's, no two alike."""
    texts = _texts()
    return [
        {
            "role": "user" if place % 2 else "assistant",
            "content": f"session {number} message {place}: "
            + texts[(number * 37 + place * 11) % len(texts)],
        }
        for place in range(start, start + count)
    ]


def tail(number: int) -> list[Message]:
    """What stands behind the last segment."""
    return conversation(number, MESSAGES, TAIL)


@functools.cache
def _texts() -> list[str]:
    chance = random.Random(1)
    found = []
    for _ in range(2_003):
        length = chance.choice((10, 40, 150))
        rare = [f"w{word:x}" for word in chance.choices(range(200_000), k=length // 3)]
        found.append(" ".join(chance.choices(COMMON, k=length - len(rare)) + rare))
    return found


def fill(store: SqlStore, numbers: Sequence[int]) -> int:
    """Commit a session per number; the bytes of their transcripts."""
    size = 0
    for number in numbers:
        messages = conversation(number)
        size += sum(len(json.dumps(message).encode()) for message in [*messages, *tail(number)])
        half = MESSAGES // 2
        session = store.open(NAMESPACE, f"s{number}")
        for place, run in enumerate((messages[:half], messages[half:])):
            outline = (*range(place + 1), *tail(number))
            session = store.commit(session, [(segment(run, "A summary. " * 60), run)], outline)
    return size


def filled(url: str, sessions: int) -> int:
    """Commit so many sessions; PostgreSQL copies what goes beyond the first 1,000 by itself."""
    times = sessions // COMMITTED if url.startswith("postgresql") and sessions > COMMITTED else 1
    store = open_store(url)
    size = fill(store, range(sessions // times))
    store.close()
    if times > 1:
        multiply(url, sessions // times, times)
    return size * times


class Probe:
    """One operation after another on random sessions of a store, each timed."""

    def __init__(self, url: str, sessions: int) -> None:
        self.sessions = sessions
        self.times: dict[str, list[float]] = {}
        self._chance = random.Random(sessions)
        self._store = open_store(url)
        self._store.check()

    def once(self) -> None:
        """Every operation on one session that this process has not read."""
        number = self._chance.randrange(self.sessions)
        store, name = self._store, f"s{number}"
        session = self._timed("open", lambda: store.open(NAMESPACE, name))
        self._timed("quiet turn", lambda: store.open(NAMESPACE, name))
        self._timed("originals", lambda: store.originals(session, session.entries[0]))
        self._timed("whole transcript", lambda: store.transcript(session))
        rare = f"message {(number + 45) % 90}"  # no word of every message of the session
        self._timed("search, rare word", lambda: store.search(NAMESPACE, rare, name))
        self._timed("search, common words", lambda: store.search(NAMESPACE, "error test", name))
        run = [
            {"role": "user", "content": f"{time.time_ns()} {message['content']}"}
            for message in conversation(number)[:50]
        ]
        outline = (*range(len(session.entries) + 1), *tail(number))
        self._timed("commit", lambda: store.commit(session, [(segment(run), run)], outline))

    def _timed(self, name: str, work: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        done = work()
        self.times.setdefault(name, []).append((time.perf_counter() - started) * 1000)
        return done


def size_of(url: str, directory: Path) -> int:
    """Bytes that the store takes on the disk."""
    if url.startswith("postgresql"):
        engine = create_engine(parse(url))
        query = (
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
        )
        with engine.connect() as connection:
            return int(connection.execute(text(query)).scalar_one())
    return sum(file.stat().st_size for file in directory.iterdir())


def growth(urls: Sequence[str], directories: Sequence[Path], sizes: Sequence[int]) -> None:
    """Print the times at both sizes, taken in turns so that the machine is as busy for both."""
    transcripts = []
    for url, sessions in zip(urls, sizes, strict=True):
        transcripts.append(filled(url, sessions))
    stored = [size_of(url, place) for url, place in zip(urls, directories, strict=True)]
    probes = [Probe(url, sessions) for url, sessions in zip(urls, sizes, strict=True)]
    for _ in range(SAMPLE):
        for probe in probes:
            probe.once()
    small, large = probes
    print(f"{'':<24}{sizes[0]:>10,}{sizes[1]:>12,} sessions   ratio")
    for name, times in small.times.items():
        first, second = statistics.median(times), statistics.median(large.times[name])
        print(f"{name + ', ms':<24}{first:>10.2f}{second:>12.2f} {second / first:>16.2f}")
    print(f"bytes stored per byte of transcript: {stored[1] / transcripts[1]:.2f}\n")


def corpus(url: str, directory: Path, file: Path) -> None:
    """Print what recorded sessions take, and that they come back word for word."""
    store = open_store(url)
    size = wrong = 0
    for recorded in _recorded(file):
        messages = recorded["messages"]
        size += sum(len(json.dumps(m, ensure_ascii=False).encode()) for m in messages)
        session = store.open(NAMESPACE, str(recorded["id"]))
        for start in range(0, len(messages), 40):
            run = messages[start : start + 40]
            session = store.commit(session, [(segment(run, "A summary. " * 60), run)])
        back = [m for e in session.entries for m in store.originals(session, e) or ()]
        wrong += back != messages
    faults = store.verify()
    store.close()
    print(
        f"{len(store.sessions(NAMESPACE))} recorded sessions, {size:,} bytes: "
        f"{size_of(url, directory) / size:.2f} bytes stored per byte, "
        f"{wrong} sessions came back otherwise, {len(faults)} faults\n"
    )
    store.close()


def roundtrip(url: str, file: Path) -> None:
    """Print how many recorded sessions a view restores, compressed in stages by fresh objects."""
    config = CompressorConfig(
        context_window=12_000,
        protect_last_n_tokens=3_000,
        redact_archive=False,  # with it a key that was said comes back masked
        namespace=NAMESPACE,
        store_url=url,
    )
    alone = compressed = exact = same = compressions = count = 0
    for recorded in _recorded(file):
        name, messages = str(recorded["id"]), recorded["messages"]
        for share in (0.4, 0.6, 0.8, 1.0):
            subject = ContextCompressor(config)
            stage = messages[: round(len(messages) * share)]
            try:
                done = subject.compress_sync(stage, session_id=name)
            except BudgetTooSmall as error:
                print(f"{name} at {len(stage)} messages: {error}")
            subject.save(stage, session_id=name)
            subject.store.close()
        fresh = ContextCompressor(config)
        stored = fresh.store.open(NAMESPACE, name)
        compressed += bool(stored.entries)
        alone += bool(stored.entries) and fresh.store.transcript(stored) == messages
        again = fresh.compress_sync(messages, session_id=name)
        same += again.messages == done.messages
        exact += fresh.verbatim(again.messages, session_id=name) == messages
        compressions += len(fresh.store.open(NAMESPACE, name).entries)
        count += 1
        fresh.store.close()
    faults = open_store(url).verify()
    print(
        f"{count} recorded sessions, {compressions} segments: {same} resumed with the same view, "
        f"{exact} restored message for message from their view, {alone} of the {compressed} that "
        f"were compressed from the store alone, "
        f"{len(faults)} faults\n"
    )


def _recorded(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text().split("\n"):
        if line:
            yield json.loads(line)


def main() -> None:
    """Run on both databases."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--small", type=int, default=100)
    options.add_argument("--sessions", type=int, default=1_000)
    options.add_argument("--corpus", type=Path)
    options.add_argument("--roundtrip", type=Path)
    options.add_argument("--database", choices=["sqlite", "postgresql"])
    given = options.parse_args()
    for name in [given.database] if given.database else ["sqlite", "postgresql"]:
        with tempfile.TemporaryDirectory() as temporary:
            directories = [Path(temporary) / "small", Path(temporary) / "large"]
            server = Postgres() if name == "postgresql" else None
            urls = [
                server.empty() if server else f"sqlite:///{directory / 'ledger.db'}"
                for directory in directories
            ]
            print(name)
            if given.roundtrip:
                roundtrip(urls[0], given.roundtrip)
            elif given.corpus:
                corpus(urls[0], directories[0], given.corpus)
            else:
                growth(urls, directories, (given.small, given.sessions))
            if server:
                server.close()


if __name__ == "__main__":
    main()
