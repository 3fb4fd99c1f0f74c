"""Children forked at random moments while threads of their parent compress."""

from __future__ import annotations

import asyncio
import faulthandler
import functools
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, Store
from praison_compressor.ledger.sql import SqlStore
from tests.helpers.talks import NAMESPACE
from tests.helpers.transcripts import session

WORKERS = 2
DEADLINE = 30.0
"""Seconds after which a child hangs: it needs less than one."""


@dataclass(frozen=True)
class Forked:
    """Outcomes of the children."""

    hung: int
    failed: int
    faults: int


async def _model(messages: Sequence[dict[str, Any]]) -> str:
    await asyncio.sleep(random.uniform(0, 0.02))
    return "## Done\nThe modules up to here are in order; their ports stay as they are."


class Parent:
    """A store that two threads use, one of them compressing in the background."""

    def __init__(self, store: Store) -> None:
        options: dict[str, Any] = {"context_window": 8_000, "protect_last_n_tokens": 1_000}
        self.engines = [
            ContextCompressor(
                CompressorConfig(**options, namespace=NAMESPACE, background=background),
                summarizer=_model,
                store=store,
            )
            for background in (False, True)
        ]
        self.rounds = [0] * WORKERS
        self._over = threading.Event()

    def name(self, worker: int) -> str:
        """Return a worker's present conversation."""
        return f"s{worker}-{self.rounds[worker]}"

    def send(self, worker: int, name: str) -> None:
        """Send a conversation turn by turn."""
        ours = self.engines[worker]
        for turns in (8, 12, 16):
            ours.compress_sync(session(turns, words=20), session_id=name)
        assert ours.background.wait(DEADLINE)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the threads during the block; raise their errors at its end."""
        with ThreadPoolExecutor(WORKERS) as pool:
            working = [pool.submit(self._work, number) for number in range(WORKERS)]
            try:
                yield
            finally:
                self._over.set()
        for each in working:
            each.result()

    def _work(self, worker: int) -> None:
        while not self._over.is_set():
            self.send(worker, self.name(worker))
            self.rounds[worker] += 1


def forked(store: Store, forks: int) -> Forked:
    """Fork at random moments; each child uses the inherited compressors."""
    parent, codes = Parent(store), []
    for worker in range(WORKERS):
        parent.send(worker, "warm")  # what is read once from disk is
    with parent.at_work():
        for number in range(forks):
            time.sleep(random.uniform(0, 0.1))
            codes.append(in_child(functools.partial(_send, parent, number)))
    faults = store.verify() if isinstance(store, SqlStore) else []
    print(*faults, sep="\n", file=sys.stderr)
    failed = sum(code not in (None, 0) for code in codes)
    return Forked(hung=codes.count(None), failed=failed, faults=len(faults))


def _send(parent: Parent, number: int) -> None:
    for worker in range(WORKERS):
        parent.send(worker, parent.name(worker))
        parent.send(worker, f"child-{number}")


def in_child(work: Callable[[], object]) -> int | None:
    """Run work in a forked child; return its exit code, None if it hung."""
    child = os.fork()
    if child:
        return _ended(child)
    faulthandler.dump_traceback_later(DEADLINE - 5)
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _ended(child: int) -> int | None:
    """Return the child's exit code, None if it had to be killed."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
