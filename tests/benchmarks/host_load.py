"""Twenty agents at once on one event loop: how late the loop is, and whether memory stays flat.

    python -m tests.benchmarks.host_load [--turns 15]

20 agents x 15 turns x 7 tool calls: 300 turns, 2,100 calls, beside the same without us in a window
that takes everything. The provider runs in the same process, so both rows carry its share.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib
import resource
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor.praisonai import install, uninstall
from praison_compressor.testing import LocalProvider, Summarizer, Worker

from ..hosting import OPENAI, agent, context, numbered, turn
from .session import WINDOW, _look_up, environment

AGENTS = 20
CALLS = 7
TICK_SECONDS = 0.005


@contextlib.asynccontextmanager
async def lateness() -> AsyncIterator[list[float]]:
    """How much later than asked a sleeping task wakes, in milliseconds."""
    found: list[float] = []

    async def tick() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            found.append((time.perf_counter() - begun - TICK_SECONDS) * 1e3)

    task = asyncio.create_task(tick())
    try:
        yield found
    finally:
        task.cancel()


async def play(agents: list[Any], turns: int) -> list[float]:
    """All agents, each its turns one after the other."""

    async def one(made: Any) -> None:
        for number in range(turns):
            await made.achat(turn(number))

    async with lateness() as found:
        await asyncio.gather(*(one(made) for made in agents))
    return found


def run(turns: int, *, ours: bool) -> tuple[list[float], int, int, float, float]:
    """Delays, requests, refusals, seconds, and by how many MB the process grew."""
    worker = Worker(calls=CALLS, tool="look_up", arguments=numbered, answer="In order. " * 9)
    window = WINDOW if ours else 10_000_000
    with LocalProvider(worker, window=window) as provider, environment(provider):
        provider.set_window(128_000, "aux")
        provider.route("aux", Summarizer(r"L-\d{3}"))
        install() if ours else uninstall()
        try:
            agents = [
                agent(
                    provider,
                    OPENAI,
                    context(provider) if ours else None,
                    name=f"Ada {number}",
                    tools=[_look_up],
                )
                for number in range(AGENTS)
            ]
            importlib.import_module("litellm")  # 165 MB at the first summary, whoever asks
            asyncio.run(play(agents, 1))
            provider.forget()
            before = megabytes()
            begun = time.perf_counter()
            delays = asyncio.run(play(agents, turns))
            seconds = time.perf_counter() - begun
            sent, refused = len(provider.requests), len(provider.refused)
            provider.forget()  # its record of every request is not ours
            grown = megabytes() - before
        finally:
            uninstall()
        return delays, sent, refused, seconds, grown


def megabytes() -> float:
    """The process's resident memory after a collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=15)
    turns = parser.parse_args().turns
    table = Table(
        "system", "turns", "requests", "refused", "seconds", "late p50", "p99 ms", "max", "grown MB"
    )
    for ours in (True, False):
        delays, requests, refused, seconds, grown = run(turns, ours=ours)
        ranked = sorted(delays)
        table.add_row(
            "ours" if ours else "without us",
            str(AGENTS * turns),
            str(requests),
            str(refused),
            f"{seconds:.1f}",
            f"{ranked[len(ranked) // 2]:.1f}",
            f"{ranked[int(len(ranked) * 0.99)]:.1f}",
            f"{ranked[-1]:.1f}",
            f"{grown:.0f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
