"""Many at once on one compressor, forks and spawns, and an interpreter that ends in the middle."""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.ledger.segments import verify
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import Message, check
from tests.helpers.transcripts import session

SMALL = CompressorConfig(model="gpt-4o", context_window=4_000, protect_last_n_tokens=500)
AT_ONCE = 64


class Model:
    """Counts its calls; answers after a moment, so that others arrive meanwhile."""

    def __init__(self) -> None:
        self.calls = 0
        self._lock = threading.Lock()

    async def __call__(self, messages: list[Message]) -> str:
        with self._lock:
            self.calls += 1
        await asyncio.sleep(0.01)
        return "## Done\nThe modules so far are in order."


def test_64_threads_on_one_session_pay_once_and_see_one_view() -> None:
    """One flight: 63 wait for it and take what it wrote."""
    model = Model()
    ours = ContextCompressor(SMALL, summarizer=model)
    messages = session(12)
    barrier = threading.Barrier(AT_ONCE)

    def turn(_: int) -> list[Message]:
        barrier.wait()
        return ours.compress_sync(messages, session_id="s").messages

    with ThreadPoolExecutor(AT_ONCE) as pool:
        views = list(pool.map(turn, range(AT_ONCE)))
    assert model.calls == 1
    assert views == [views[0]] * AT_ONCE
    verify(ours.store.open("default", "s").entries)


def test_64_threads_on_64_sessions_do_not_mix() -> None:
    """Each session has its own ledger, its own bill and its own words."""
    model = Model()
    ours = ContextCompressor(SMALL, summarizer=model)

    def turn(number: int) -> tuple[list[Message], list[Message]]:
        messages = session(12)
        messages[1] = {**messages[1], "content": f"the task of session {number}"}
        view = ours.compress_sync(messages, session_id=f"s{number}").messages
        return ours.verbatim(view, session_id=f"s{number}"), messages

    with ThreadPoolExecutor(AT_ONCE) as pool:
        pairs = list(pool.map(turn, range(AT_ONCE)))
    assert [back == given for back, given in pairs] == [True] * AT_ONCE
    assert model.calls == AT_ONCE


async def test_64_tasks_of_which_some_are_cancelled() -> None:
    """Whoever is cancelled frees the others; whoever stays gets the one view.

    Cancelled while the model writes, so that some of them wait for it and one of them may be the
    one who asked: then another asks, once.
    """
    asked, released = asyncio.Event(), asyncio.Event()
    calls: list[int] = []

    async def writes(request: list[Message]) -> str:
        calls.append(len(request))
        asked.set()
        await released.wait()
        return "## Done\nThe modules so far are in order."

    ours = ContextCompressor(SMALL, summarizer=writes)
    messages = session(12)
    tasks = [asyncio.create_task(ours.compress(messages, session_id="s")) for _ in range(AT_ONCE)]
    await asyncio.wait_for(asked.wait(), 60)
    await asyncio.sleep(0.5)  # the others arrive meanwhile
    for task in tasks[::3]:
        task.cancel()
    await asyncio.sleep(0)
    released.set()
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    views = [r.messages for r in done if not isinstance(r, BaseException)]
    stayed = [r for n, r in enumerate(done) if n % 3 and isinstance(r, BaseException)]
    assert stayed == []
    assert len(views) >= AT_ONCE - len(tasks[::3])
    assert views == [views[0]] * len(views)
    assert len(calls) <= 2
    verify(ours.store.open("default", "s").entries)


async def test_sync_calls_inside_a_running_loop_do_not_stop_it() -> None:
    """From the loop's own thread and from its helpers, at the same time."""
    ours = ContextCompressor(SMALL, summarizer=Model())
    messages = session(12)
    inside = ours.compress_sync(messages, session_id="s")
    helped = await asyncio.gather(
        *(asyncio.to_thread(ours.compress_sync, messages, session_id="s") for _ in range(8))
    )
    assert [result.messages for result in helped] == [inside.messages] * 8


# ---------------------------------------------------------------- processes


def _turn(path: str, number: int, ours: ContextCompressor | None = None) -> None:
    """What a child does: one turn on the shared session; its exit code tells."""
    here = ours or ContextCompressor(SMALL, store=open_store(path))
    view = here.compress_sync(session(12 + number), session_id="shared").messages
    here.close()
    raise SystemExit(0 if check(view) == [] and len(view) < 80 else 3)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_share_one_ledger(tmp_path: Path, method: Any) -> None:
    """Forked after the store was used, or started anew: each gets its view, the chain verifies."""
    path = str(tmp_path / "ledger.db")
    ours = ContextCompressor(SMALL, store=open_store(path))
    ours.compress_sync(session(12), session_id="shared")
    context = multiprocessing.get_context(method)
    inherited = ours if method == "fork" else None
    children = [context.Process(target=_turn, args=(path, n, inherited)) for n in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0, 0]
    verify(ours.store.open("default", "shared").entries)
    ours.close()


ENDING = """
import asyncio, sys
from praison_compressor import CompressorConfig, ContextCompressor
from tests.helpers.transcripts import session

async def never(messages):
    print("asked", flush=True)
    await asyncio.sleep(3600)

config = CompressorConfig(model="gpt-4o", context_window=4000, protect_last_n_tokens=500,
                          background=True)
ours = ContextCompressor(config, summarizer=never)
view = ours.compress_sync(session(12)).messages
import time; time.sleep(0.5)
print(len(view), flush=True)
"""


def test_the_interpreter_ends_during_a_background_summary() -> None:
    """It neither waits for the model nor complains."""
    command = [sys.executable, "-W", "error", "-c", ENDING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("asked")
    assert "Traceback" not in done.stderr
    assert "was never awaited" not in done.stderr
