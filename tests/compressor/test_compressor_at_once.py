"""Threads, tasks and cancelled turns: one summary is paid for, nobody waits for nothing."""

from __future__ import annotations

import asyncio

import pytest

from praison_compressor import ContextCompressor, Store
from tests.helpers.compressing import SMALL, compressor
from tests.helpers.transcripts import session

pytest_plugins = ["tests.helpers.stores"]


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


def test_reading_only_never_moves_the_tip():
    """A request that does not extend the transcript gets its view and leaves no trace."""
    ours = compressor()
    result = ours.compress_sync(session(20), session_id="s", extends=False)
    assert result.tokens_after < result.tokens_before
    assert ours.store.open("default", "s").tip == "s"
