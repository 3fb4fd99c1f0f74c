"""Work that does not end when it is cancelled."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor
from tests.helpers.transcripts import session

OPTIONS: dict[str, Any] = {"protect_last_n_tokens": 1_000, "timeout_seconds": 0.2}


async def swallows(messages: Any) -> str:
    while True:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            continue


async def swallows_everything(messages: Any) -> str:
    while True:
        try:
            await asyncio.sleep(3_600)
        except BaseException:  # as careless code has it
            continue


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("summarizer", [swallows, swallows_everything])
def test_a_summarizer_that_swallows_its_cancellation_holds_up_no_turn(summarizer: Any) -> None:
    """The static text is written after a bounded wait, from code without a loop too."""
    config = CompressorConfig(model="gpt-4o", context_window=6_000, **OPTIONS)
    began = time.monotonic()
    result = ContextCompressor(config, summarizer=summarizer).compress_sync(session(20))
    assert result.summary_method == "static"
    assert time.monotonic() - began < 20


def test_a_loop_ends_that_had_an_endless_summarizer() -> None:
    """`asyncio.run` waits for every task; the abandoned one has ended."""
    config = CompressorConfig(model="gpt-4o", context_window=6_000, **OPTIONS)
    ours = ContextCompressor(config, summarizer=swallows)
    began = time.monotonic()
    assert asyncio.run(ours.compress(session(20))).summary_method == "static"
    assert time.monotonic() - began < 20
