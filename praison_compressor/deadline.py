"""Waiting for somebody else's work, however it behaves: it can neither hang us nor end us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from .errors import SummarizerUnavailable

__all__ = ["within"]

CLEANING_UP = 2.0
"""Seconds that work has to end when it is cancelled: to hang up, to give a connection back."""
T = TypeVar("T")


async def within(work: Awaitable[T], seconds: float | None) -> T:
    """What the work gives, if it is done in time (None: whenever); else, or where we are cancelled,
    it is too.

    Raises:
        TimeoutError: it was not done in time.
        SummarizerUnavailable: it was cancelled, but not by us, or tried to end more than itself.
    """
    task = asyncio.ensure_future(_contained(work))
    # Nobody asks any more how work ended that was given up.
    task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        given_up = task.cancel()
        if given_up:
            # Not `wait_for`: it waits for as long as cancelled work likes to go on.
            await asyncio.wait({task}, timeout=CLEANING_UP)
    if given_up:
        raise TimeoutError
    if task.cancelled():
        raise SummarizerUnavailable("the summarizer was cancelled, and not by us")
    done = task.result()
    if isinstance(done, _Ended):
        words = f"{type(done.error).__name__}: {done.error}"
        raise SummarizerUnavailable(words) from done.error
    return done


@dataclass(frozen=True)
class _Ended:
    error: BaseException


async def _contained(work: Awaitable[T]) -> T | _Ended:
    """The work; its SystemExit would end the loop that runs us, its GeneratorExit the caller."""
    try:
        return await work
    except (Exception, asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return _Ended(error)  # not raised: who closes this coroutine throws GeneratorExit too
