"""Threads, tasks and cancelled turns: one summary is paid for, nobody waits for nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from praison_compressor import ContextCompressor, Store
from tests.helpers.compressing import SMALL, Model, compressor
from tests.helpers.transcripts import session

pytest_plugins = ["tests.helpers.stores"]


def test_two_threads_pay_for_one_summary():
    """The second waits and takes the first one's segment."""
    model = Model()
    ours = compressor(model)
    messages = session(20)
    views = []
    threads = [
        threading.Thread(target=lambda: views.append(ours.compress_sync(messages).messages))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model.requests) == 1
    assert views == [views[0]] * 8


async def test_tasks_pay_for_one_summary_and_sync_works_inside_a_loop():
    """The same for tasks; `compress_sync` works where a loop is running."""
    model = Model()
    ours = compressor(model)
    messages = session(20)
    results = await asyncio.gather(*(ours.compress(messages) for _ in range(8)))
    assert len(model.requests) == 1
    assert all(result.messages == results[0].messages for result in results)
    assert compressor(model).compress_sync(messages).summary_method == "model"


async def test_two_compressors_on_one_store_pay_for_one_summary(store: Store):
    """A store in memory has leases too: the second takes the first one's segment."""
    asked = []

    async def slow(messages):
        asked.append(messages)
        await asyncio.sleep(0.3)
        return "## Done\nThe modules up to here are in order; their ports stay as they are."

    both = [ContextCompressor(SMALL, summarizer=slow, store=store) for _ in range(2)]
    one, two = await asyncio.gather(*(o.compress(session(20), session_id="s") for o in both))
    assert len(asked) == 1
    assert (one.messages, one.session_id) == (two.messages, two.session_id)


async def test_a_cancelled_turn_cancels_its_summary_and_frees_the_session():
    """The next turn is not kept waiting by one that is gone."""
    started = asyncio.Event()

    async def slow(messages):
        started.set()
        await asyncio.sleep(3_600)

    ours = compressor(slow)
    turn = asyncio.create_task(ours.compress(session(20)))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    ours._pipeline.writing.summarizer = None
    assert (await asyncio.wait_for(ours.compress(session(20)), 10)).summary_method == "static"


async def test_a_cancelled_waiter_takes_nothing_from_the_others():
    """One turn that gives up waiting leaves the summary to those who still want it."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(messages):
        begun.set()
        await go_on.wait()
        return "## Done\nall modules"

    ours = compressor(slow)
    messages = session(20)
    first = asyncio.create_task(ours.compress(messages))
    await begun.wait()
    waiting = [asyncio.create_task(ours.compress(messages)) for _ in range(2)]
    await asyncio.sleep(0.2)
    waiting[0].cancel()
    await asyncio.sleep(0.1)
    go_on.set()
    assert (await first).summary_method == "model"
    assert (await waiting[1]).summary_method == "reused"
    assert waiting[0].cancelled()


def test_reading_only_never_moves_the_tip():
    """A request that does not extend the transcript gets its view and leaves no trace."""
    ours = compressor()
    result = ours.compress_sync(session(20), session_id="s", extends=False)
    assert result.tokens_after < result.tokens_before
    assert ours.store.open("default", "s").tip == "s"
