"""Measure what a lookup and a commit cost as the store grows: milliseconds.

    python -m tests.benchmarks.store                           100 sessions against 1,000
    python -m tests.benchmarks.store --sessions 10000          ... 10,000 (1,000,000 messages)

Every session archives 100 messages and records a tail of 20 beside them. Times are medians over
random sessions that the process has not read before, taken in turns from a small and a large store;
"quiet turn" is the second open. Limit: a ratio near 1. Searches: `tests.benchmarks.search`.
"""

import functools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from praison_compressor import open_store
from praison_compressor.messages import Message
from tests.benchmarks.common import DATABASES, databases, options, show
from tests.helpers.talks import NAMESPACE, segment

MESSAGES = 100
TAIL = 20
SAMPLE = 40
# Enough different words that an index has something to hold, and some that are everywhere.
COMMON = "the file test error function return value module build and run with config path".split()


def conversation(number: int, start: int = 0, count: int = MESSAGES) -> list[Message]:
    """Return messages of an agent's size and vocabulary, no two alike."""
    texts = long_texts()
    return [
        {
            "role": "user" if place % 2 else "assistant",
            "content": f"session {number} message {place}: "
            + texts[(number * 37 + place * 11) % len(texts)],
        }
        for place in range(start, start + count)
    ]


def tail(number: int) -> list[Message]:
    """Return the messages after the last segment."""
    return conversation(number, MESSAGES, TAIL)


@functools.cache
def long_texts() -> list[str]:
    """Return texts of common words and of words that hardly any other has."""
    chance = random.Random(1)
    texts = []
    for _ in range(2_003):
        length = chance.choice((10, 40, 150))
        rare = [f"w{word:x}" for word in chance.choices(range(200_000), k=length // 3)]
        texts.append(" ".join(chance.choices(COMMON, k=length - len(rare)) + rare))
    return texts


def fill(url: str, sessions: int) -> None:
    """Commit sessions of two segments each."""
    store = open_store(url)
    for number in range(sessions):
        messages = conversation(number)
        half = MESSAGES // 2
        session = store.open(NAMESPACE, f"s{number}")
        for place, run in enumerate((messages[:half], messages[half:])):
            skeleton = (*range(place + 1), *tail(number))
            session = store.commit(session, [(segment(run, "A summary. " * 60), run)], skeleton)
    store.close()


class Probe:
    """One operation after another on random sessions of a store, each timed."""

    def __init__(self, url: str, sessions: int) -> None:
        self.sessions = sessions
        self.times: dict[str, list[float]] = {}
        self._chance = random.Random(sessions)
        self._store = open_store(url)
        self._store.check()

    def once(self) -> None:
        """Time every operation on one session that this process has not read."""
        number = self._chance.randrange(self.sessions)
        store, name = self._store, f"s{number}"
        session = self._timed("open", lambda: store.open(NAMESPACE, name))
        self._timed("quiet turn", lambda: store.open(NAMESPACE, name))
        self._timed("originals", lambda: store.originals(session, session.entries[0]))
        run = [
            {"role": "user", "content": f"{time.time_ns()} {message['content']}"}
            for message in conversation(number)[:50]
        ]
        skeleton = (*range(len(session.entries) + 1), *tail(number))
        self._timed("commit", lambda: store.commit(session, [(segment(run), run)], skeleton))

    def _timed(self, name: str, work: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        done = work()
        self.times.setdefault(name, []).append((time.perf_counter() - started) * 1000)
        return done


def growth(new_url: Callable[[], str], sizes: tuple[int, int]) -> Iterator[tuple[object, ...]]:
    """Yield the times at both sizes, taken in turns: the machine is as busy for both."""
    urls = [new_url() for _ in sizes]
    for url, size in zip(urls, sizes, strict=True):
        fill(url, size)
    probes = [Probe(url, size) for url, size in zip(urls, sizes, strict=True)]
    for _ in range(SAMPLE):
        for probe in probes:
            probe.once()
    small, large = probes
    for name, times in small.times.items():
        first, second = statistics.median(times), statistics.median(large.times[name])
        yield f"{name}, ms", f"{first:.2f}", f"{second:.2f}", f"{second / first:.2f}"


def main() -> None:
    args = options(__doc__, small=100, sessions=1_000, database=DATABASES)
    sizes = (args.small, args.sessions)
    columns = ("", *(f"{size:,} sessions" for size in sizes), "ratio")
    for name, new_url in databases(args.database):
        show(name, columns, growth(new_url, sizes))


if __name__ == "__main__":
    main()
