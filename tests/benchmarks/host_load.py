"""Twenty agents at once on one event loop: how late the loop is, and whether memory stays flat.

    python -m tests.benchmarks.host_load [--turns 15] [--agents 20]

20 agents x 15 turns x 7 tool calls: 300 turns, 2,100 calls, beside the same without us in a window
that takes everything; each in a process of its own, since the second would find the first one's
memory. The provider runs in the same process, so both rows carry its share. Memory is what is
resident after a collection and after freed memory went back to the system, at four points: what
grows with the turns is what is kept of them, in the agents' histories and in the ledger's archive.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import importlib
import logging
import multiprocessing
import resource
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from praison_compressor.praisonai import install, uninstall
from praison_compressor.testing import LocalProvider, Summarizer, Worker
from tests.benchmarks.session import WINDOW, _look_up, environment
from tests.helpers.hosting import OPENAI, agent, context, numbered, turn

CALLS = 7
PARTS = 3
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


class Row(NamedTuple):
    """What one system did."""

    delays: list[float]
    requests: int
    refused: int
    seconds: float
    memory: list[float]
    """MB before the first turn that counts, and after each part of them."""
    archived: float
    """MB of text in the ledgers, originals and all."""


async def play(agents: list[Any], numbers: range) -> list[float]:
    """All agents, each its turns one after the other."""

    async def one(made: Any) -> None:
        for number in numbers:
            await made.achat(turn(number))

    async with lateness() as found:
        await asyncio.gather(*(one(made) for made in agents))
    return found


def run(count: int, turns: int, *, ours: bool) -> Row:
    """One system, alone in this process."""
    logging.disable(logging.ERROR)
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
                for number in range(count)
            ]
            importlib.import_module("litellm")  # 165 MB at the first summary, whoever asks
            return asyncio.run(_measured(provider, agents, turns))
        finally:
            uninstall()


async def _measured(provider: LocalProvider, agents: list[Any], turns: int) -> Row:
    await play(agents, range(1))
    provider.forget()  # its record of every request is not ours
    delays: list[float] = []
    memory, sent, refused, seconds = [megabytes()], 0, 0, 0.0
    for part in range(PARTS):
        begun = time.perf_counter()
        delays += await play(
            agents, range(1 + part * turns // PARTS, 1 + (part + 1) * turns // PARTS)
        )
        seconds += time.perf_counter() - begun
        sent, refused = sent + len(provider.requests), refused + len(provider.refused)
        provider.forget()
        memory.append(megabytes())
    return Row(delays, sent, refused, seconds, memory, sum(map(_archived, agents)))


def _archived(made: Any) -> float:
    compressor = getattr(made, "context_compressor", None)
    if compressor is None:
        return 0.0
    session = compressor.ledger.open(compressor.config.namespace, compressor.session_id)
    texts = (str(message) for entry in session.entries for message in entry.originals or ())
    return sum(map(len, texts)) / 2**20


def megabytes() -> float:
    """The process's resident memory, without what is only not given back yet."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--agents", type=int, default=20)
    asked = parser.parse_args()
    table = Table(
        "system", "turns", "requests", "refused", "seconds", "late p50", "p99 ms", "max",
        "MB after each third", "archived MB",
    )  # fmt: skip
    apart = multiprocessing.get_context("spawn")
    for ours in (True, False):
        with ProcessPoolExecutor(1, mp_context=apart) as process:
            row = process.submit(run, asked.agents, asked.turns, ours=ours).result()
        ranked = sorted(row.delays)
        table.add_row(
            "ours" if ours else "without us",
            str(asked.agents * asked.turns),
            str(row.requests),
            str(row.refused),
            f"{row.seconds:.1f}",
            f"{ranked[len(ranked) // 2]:.1f}",
            f"{ranked[int(len(ranked) * 0.99)]:.1f}",
            f"{ranked[-1]:.1f}",
            " ".join(f"{each:.0f}" for each in row.memory),
            f"{row.archived:.1f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
