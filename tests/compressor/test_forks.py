"""A forked child and its parent wait for none of each other's threads."""

import asyncio
import functools
import multiprocessing
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import praison_compressor
from tests.helpers.compressing import Gate, compressor
from tests.helpers.transcripts import coding_turns

WAIT = 30.0


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[None]:
    """Work in another thread, which the caller lets end."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(WAIT)
    assert not thread.is_alive()


def in_child(work: Callable[[], object]) -> int | None:
    """Run work in a forked child; return its exit code, None if it hung."""
    child = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    child.start()
    child.join(WAIT)
    if child.is_alive():
        child.kill()
        child.join()
        return None
    return child.exitcode


async def slow(messages: Any) -> str:
    await asyncio.sleep(random.uniform(0, 0.02))
    return "## Done\nThe modules up to here are in order; their ports stay as they are."


def test_children_of_a_compressor_at_work_end(store):
    """Forked at random moments while summaries are written: each gets its views."""
    engines = [
        compressor(slow, store=store, context_window=8_000, background=background)
        for background in (False, True)
    ]
    rounds, over = [0, 0], threading.Event()

    def send(worker: int, name: str) -> None:
        for turns in (8, 16):
            engines[worker].compress_sync(coding_turns(turns, words=20), session_id=name)
        assert engines[worker].wait_for_summaries(WAIT)

    def work(worker: int) -> None:
        while not over.is_set():
            send(worker, f"s{worker}-{rounds[worker]}")
            rounds[worker] += 1

    def in_both(number: int) -> None:
        for worker in (0, 1):
            send(worker, f"s{worker}-{rounds[worker]}")
            send(worker, f"child-{number}")

    in_both(-1)  # what is read once from disk is
    codes = []
    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(work, worker) for worker in (0, 1)]
        for number in range(3):
            time.sleep(random.uniform(0, 0.1))
            codes.append(in_child(functools.partial(in_both, number)))
        over.set()
    assert [each.result() for each in working] == [None, None]
    assert codes == [0, 0, 0]
    assert getattr(store, "verify", list)() == []


@pytest.mark.parametrize("background", [False, True])
def test_a_child_waits_for_no_summary_of_its_parent(background):
    """A child does not wait for its parent's summary."""
    gate = Gate()
    ours = compressor(gate, background=background)

    def turn() -> None:
        gate.open.set()
        assert ours.wait_for_summaries(0)
        ours.compress_sync(coding_turns(20), session_id="s")
        assert ours.wait_for_summaries(WAIT)
        assert ours.compress_sync(coding_turns(20), session_id="s").summary_method == "reused"

    with beside(lambda: ours.compress_sync(coding_turns(20), session_id="s")):
        assert gate.asked.wait(WAIT)
        assert in_child(turn) == 0
        assert ours.store.open("default", "s").entries == ()  # the parent's own is still written
        gate.open.set()
    assert ours.wait_for_summaries(WAIT)
    assert len(ours.store.open("default", "s").entries) == 1


def test_every_lock_of_the_package_is_one_that_a_fork_renews():
    """Every lock of the package is made by `renew_after_fork`."""
    root = Path(praison_compressor.__file__).parent
    texts = {
        path.relative_to(root): path.read_text()
        for path in root.rglob("*.py")
        if path.name != "concurrency.py" and "testing" not in path.parts
    }
    bare = re.compile(
        r"(?<!renew_after_fork\()threading\.(R?Lock|Condition)\(|@(functools\.)?cached_"
    )
    assert [path for path, text in texts.items() if bare.search(text)] == []


def test_a_fork_waits_until_no_thread_is_in_the_database(sql_store):
    """A fork waits for the end of a database transaction: SQLite's locks would stay held."""
    sql_store.check()
    inside, ended = threading.Event(), threading.Event()
    late = threading.Timer(0.5, lambda: ended.set())

    def change(note: str) -> str:
        inside.set()
        ended.wait(WAIT)
        return note

    def first() -> None:
        assert ended.is_set()
        sql_store.open("default", "s")

    session = sql_store.open("default", "s")
    with beside(lambda: sql_store.change_note(session, change)):
        assert inside.wait(WAIT)
        late.start()
        assert in_child(first) == 0
    sql_store.open("default", "s")


def test_a_child_has_no_lease_of_its_parent():
    """In a forked child nobody holds a lease of the memory store."""
    store = praison_compressor.MemoryStore()
    session = store.open("default", "s")
    assert store.claim(session, "parent", 60)

    def work() -> None:
        os._exit(0 if store.claim(session, "child", 60) else 1)

    assert in_child(work) == 0
    assert not store.claim(session, "another", 60)
