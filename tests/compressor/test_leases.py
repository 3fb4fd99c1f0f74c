"""Leases: waited for, renewed, given back, and never waited for without end."""

import asyncio
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from praison_compressor import MemoryStore, Store, open_store
from praison_compressor.compressor.lease import hold_lease
from praison_compressor.ledger.segments import Session
from tests.helpers.talks import NAMESPACE

WAIT = 30.0  # seconds: a bound on waiting for another thread, not a measure of anything
HOLDER = """
import asyncio, sys
from praison_compressor.compressor.lease import hold_lease
from praison_compressor import open_store

async def hold():
    store = open_store(sys.argv[1])
    async with hold_lease(store, store.open("tests", "s"), seconds=2.0):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(hold())
"""


async def taken(store: Store) -> bool:
    """Take the lease and give it back."""
    async with hold_lease(store, store.open(NAMESPACE, "s")):
        return True


def test_a_killed_process_keeps_its_lease_for_seconds_only(tmp_path):
    """A process keeps its lease for seconds after it was killed."""
    url = str(tmp_path / "ledger.db")
    command = [sys.executable, "-c", HOLDER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        store = open_store(url)
        session = store.open(NAMESPACE, "s")
        assert not store.claim(session, "another", 60)
        holder.kill()
    # Not a measure of time: without an end to the lease this would wait for ever.
    assert asyncio.run(asyncio.wait_for(taken(store), WAIT))
    store.close()


def test_a_holder_that_is_cancelled_twice_gives_its_lease_back():
    """A holder cancelled twice gives its lease back, though no thread of the executor is free."""

    async def hold(store: MemoryStore, held: asyncio.Event) -> None:
        async with hold_lease(store, store.open(NAMESPACE, "s")):
            held.set()
            await asyncio.sleep(600)

    async def cancelled(store: MemoryStore) -> bool:
        loop, held, free = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        holder = asyncio.create_task(hold(store, held))
        await held.wait()
        busy = loop.run_in_executor(None, free.wait)
        for _ in range(2):
            holder.cancel()
            await asyncio.sleep(0.01)
        await asyncio.wait({holder})
        free.set()
        await busy
        return await asyncio.wait_for(taken(store), WAIT)

    assert asyncio.run(cancelled(MemoryStore()))


class Noting(MemoryStore):
    """A store that notes each claim; `renewed` is set by the third."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[str] = []
        self.renewed = threading.Event()

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        self.claims.append(holder)
        if len(self.claims) == 3:
            self.renewed.set()
        return super().claim(session, holder, seconds)


def test_a_lease_is_renewed_while_it_is_held():
    """A lease lasts exactly as long as its work, even if the work blocks the loop."""
    store = Noting()
    session = store.open(NAMESPACE, "s")

    async def hold() -> bool:
        async with hold_lease(store, session, seconds=0.2):
            return store.renewed.wait(WAIT)

    assert asyncio.run(hold())
    assert len({*store.claims}) == 1
    assert store.claim(session, "another", 60)


class Taken(MemoryStore):
    """A store whose lease another holds for good."""

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        return False


def test_a_lease_that_never_comes_is_given_up(caplog):
    """After its patience the work starts without the lease, with one log line."""
    store = Taken()

    async def work() -> str:
        async with hold_lease(store, store.open(NAMESPACE, "s"), patience_seconds=0):
            return "done"

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(asyncio.wait_for(work(), WAIT)) == "done"
    assert [r.getMessage() for r in caplog.records] == ["session s: its lease was never released"]
