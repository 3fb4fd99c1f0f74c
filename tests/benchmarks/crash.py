"""Kill writers at random points of compress and commit, and count what is lost.

    python -m tests.benchmarks.crash                 200 kills on SQLite and on PostgreSQL
    python -m tests.benchmarks.crash --kills 20      a short run

A writer reports every epoch once its commit returned. After each kill: every reported epoch is in
the lineage, `verify()` is clean, no segment is without its originals, and the next writer goes on
with the same sessions.
"""

import contextlib
import functools
import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.compressor import lease
from praison_compressor.compressor.lease import hold_lease
from praison_compressor.ledger.sql.store import SqlStore, open_store
from tests.benchmarks.common import databases, options, show
from tests.helpers.talks import NAMESPACE, segment, talk
from tests.helpers.transcripts import coding_turns

SESSIONS = 4


@dataclass
class Outcome:
    """What a series of kills left behind."""

    kills: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    without_archive: int = 0


def commit_for_ever(url: str, seed: int, report: Connection) -> None:
    """Commit 1 to 3 segments to a few sessions; report each tip."""
    chance = random.Random(seed)
    store = open_store(url)
    while True:
        name = f"s{chance.randrange(SESSIONS)}"
        runs = [
            talk(chance.randint(1, 40), f"w{seed}x{chance.random()}")
            for _ in range(chance.randint(1, 3))
        ]
        session = store.open(NAMESPACE, name)
        skeleton = (*range(len(session.entries) + len(runs)), *talk(5, f"tail of {name}"))
        session = store.commit(session, [(segment(run), run) for run in runs], skeleton)
        report.send(session.tip)


def compress_for_ever(url: str, seed: int, report: Connection) -> None:
    """Compress a growing conversation without a model; report each epoch."""
    # A killed writer's lease is not measured.
    lease.hold_lease = functools.partial(hold_lease, seconds=0.2)
    config = CompressorConfig(
        context_window=3_000, namespace=NAMESPACE, protect_last_n_tokens=500, store_url=url
    )
    compressor = ContextCompressor(config)
    name = f"c{seed % SESSIONS}"
    messages = coding_turns(3, steps=1, words=20)
    while True:
        messages += coding_turns(2, steps=1, words=20 + seed % 7)[1:]
        messages.append({"role": "user", "content": f"and now {len(messages)}?"})
        done = compressor.compress_sync(messages, session_id=name, force=True)
        report.send(done.session_id)


def crash(url: str, kills: int, seed: int = 0, *, every: int = 1) -> Outcome:
    """Kill that many writers; `verify` after each `every`th and at the end."""
    chance = random.Random(seed)
    outcome = Outcome()
    store = open_store(url)
    store.check()
    reported: set[str] = set()
    for number in range(kills):
        reported |= _killed(url, number, chance)
        outcome.kills += 1
        if number % every == every - 1 or number == kills - 1:
            _look(store, reported, outcome)
    outcome.acknowledged = len(reported)
    store.close()
    return outcome


def _killed(url: str, number: int, chance: random.Random) -> set[str]:
    """Start a writer, kill it after its first commit; return its reports."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    target = compress_for_ever if number % 4 == 3 else commit_for_ever
    writer = context.Process(target=target, args=(url, number, sending), daemon=True)
    writer.start()
    sending.close()
    reported = set()
    if receiving.poll(60):
        reported.add(receiving.recv())
    time.sleep(chance.uniform(0, 0.06))
    writer.kill()
    writer.join()
    with contextlib.suppress(EOFError):  # the writer is dead: that was all
        while receiving.poll(0):
            reported.add(receiving.recv())
    assert writer.exitcode == -signal.SIGKILL, "the writer ended by itself"
    assert reported, "the writer never committed"
    return reported


def _look(store: SqlStore, reported: set[str], outcome: Outcome) -> None:
    outcome.faults += [str(fault) for fault in store.verify()]
    there: set[str] = set()
    for info in store.sessions(NAMESPACE):
        there |= {epoch.id for epoch in store.lineage(NAMESPACE, info.id)}
        session = store.open(NAMESPACE, info.id)
        archived = [store.originals(session, entry) for entry in session.entries]
        outcome.without_archive += sum(not kept for kept in (*archived, store.transcript(session)))
    outcome.lost += sorted(reported - there)


def main() -> None:
    args = options(__doc__, kills=200, seed=1)

    def rows() -> Iterator[tuple[object, ...]]:
        for name, new_url in databases():
            outcome = crash(new_url(), args.kills, args.seed, every=10)
            bad = ("\n".join(lines[:5]) or 0 for lines in (outcome.lost, outcome.faults))
            yield name, outcome.kills, outcome.acknowledged, *bad, outcome.without_archive

    columns = ("database", "kills", "commits", "lost", "faults", "no archive")
    show("writers killed at random points", columns, rows())


if __name__ == "__main__":
    main()
