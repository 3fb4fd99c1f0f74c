"""How soon a provider of summaries sees that a turn was cancelled, and what is left behind.

    python -m tests.benchmarks.cancelling [--turns 200]

Each turn of a real agent asks for a summary that would take ten minutes, and is cancelled when the
provider has the request. Milliseconds until the turn is over, and until the provider sees its
caller gone (limit: 1,000); threads and open files of the process before and after all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

from praison_compressor.testing import LocalProvider, Summarizer, Worker
from tests.helpers.hosting import PATHS, agent, at_home, context, turn


class Left(NamedTuple):
    """What the process holds."""

    threads: int
    files: int

    @classmethod
    def now(cls) -> Left:
        """After a collection."""
        gc.collect()
        return cls(threading.active_count(), len(os.listdir("/proc/self/fd")))


class Cancelled(NamedTuple):
    """Milliseconds from the cancellation."""

    over: float
    seen: float


async def one(provider: LocalProvider, made: Any, number: int) -> Cancelled:
    """One turn, cancelled while its summary is being written."""
    provider.forget()
    asking = asyncio.create_task(made.achat(turn(number)))
    while not provider.for_model("aux"):
        assert not asking.done(), "the turn asked for no summary"
        await asyncio.sleep(0.001)
    record = provider.for_model("aux")[0]
    begun = time.perf_counter()
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    over = time.perf_counter()
    while not record.cancelled:
        await asyncio.sleep(0.001)
    return Cancelled((over - begun) * 1e3, (time.perf_counter() - begun) * 1e3)


async def filled(provider: LocalProvider, made: Any) -> int:
    """Turns until one would ask for a summary; returns how many."""
    for number in range(100):
        asking = asyncio.create_task(made.achat(turn(number)))
        while not asking.done():
            await asyncio.sleep(0.001)
            if provider.for_model("aux"):
                asking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asking
                return number
    raise RuntimeError("no summary was asked for")


def run(path: str, turns: int) -> tuple[list[Cancelled], Left, Left, int]:
    """The delays, what the process holds before and after, and warnings of things left open."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        LocalProvider(Worker(answer="Noted. " * 12)) as provider,
        at_home(patch, Path(folder), provider),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", ResourceWarning)
        provider.route("aux", Summarizer(r"L-\d+", delay_seconds=600.0))
        made = agent(provider, path, context(provider, timeout_seconds=900.0))

        async def all_of_them() -> tuple[list[Cancelled], Left, Left]:
            first = await filled(provider, made)
            for number in range(5):  # clients, pools and threads of the process
                await one(provider, made, first + number)
            before = Left.now()
            found = [await one(provider, made, first + 5 + number) for number in range(turns)]
            await asyncio.sleep(1.0)
            return found, before, Left.now()

        found, before, after = asyncio.run(all_of_them())
        gc.collect()
        opened = [each for each in caught if issubclass(each.category, ResourceWarning)]
        return found, before, after, len(opened)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=200)
    turns = parser.parse_args().turns
    logging.disable(logging.ERROR)
    table = Table(
        "path", "cancelled", "over p50 ms", "p99", "seen p50 ms", "p99", "max", "threads", "files",
        "unclosed",
    )  # fmt: skip
    for path in PATHS:
        found, before, after, opened = run(path, turns)
        over, seen = (sorted(kind) for kind in zip(*found, strict=True))
        last = int(len(found) * 0.99)
        table.add_row(
            path,
            str(len(found)),
            *(f"{each:.1f}" for each in (over[len(over) // 2], over[last])),
            *(f"{each:.1f}" for each in (seen[len(seen) // 2], seen[last], seen[-1])),
            f"{before.threads} -> {after.threads}",
            f"{before.files} -> {after.files}",
            str(opened),
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
