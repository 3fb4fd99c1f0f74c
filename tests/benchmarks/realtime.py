"""A voice conversation of 200 turns: what it bills, what it remembers, what the sound waits for.

    python -m tests.benchmarks.realtime [--turns 200] [--runs 3]

The strict local server runs in a process of its own and stamps every event; the clock is the
machine's monotonic one, so an event's latency is the time from its stamp to the agent's callback.
The same script is run with the memory off and on, alternately: what it adds is the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.helpers.realtime_caller import Caller, archived, model, oracle, value_of
from tests.helpers.realtime_server import Event, Kept, RealtimeServer, Reply

LOW, HIGH = 20, 60
PACE_SECONDS = 0.004
PLANTED = 20
CHATTY = "All right, go on, I am listening to every word of it as ever. " * 3


def chatty(items: list[Kept]) -> Reply:
    """The test's model with answers of an ordinary length."""
    reply = model(items)
    return [("say", CHATTY)] if reply == [("say", "All right, go on.")] else reply


@dataclass
class Run:
    """One conversation's figures."""

    memory: str
    latencies: list[float] = field(default_factory=list)
    """Seconds from the server's stamp to the callback, of every audio event."""
    bills: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Items in the server's conversation after each turn."""
    known: int = 0
    lost: int = 0
    folds: int = 0
    refusals: int = 0
    seconds: float = 0.0


async def serve() -> None:
    """Run the server; every line that comes asks for its books."""
    async with RealtimeServer(chatty, delta_seconds=PACE_SECONDS) as server:
        print(server.url, flush=True)
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while await reader.readline():
            books = {"bills": server.bills, "ids": server.ids, "refusals": len(server.refusals)}
            print(json.dumps(books), flush=True)


class Books:
    """The server in its own process, and what it wrote down."""

    async def __aenter__(self) -> Books:
        command = [sys.executable, "-m", "tests.benchmarks.realtime", "--serve"]
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=2**24
        )
        self.url = (await self._line()).strip()
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def read(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        found: dict[str, Any] = json.loads(await self._line())
        return found

    async def _line(self) -> str:
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode()


async def converse(turns: int, marks: dict[str, int]) -> Run:
    """The script, once."""
    run = Run("on" if marks else "off")

    def stamp(event: Event) -> None:
        if event["type"] == "response.output_audio.delta":
            run.latencies.append(time.perf_counter() - event["sent_at"])

    async with Books() as books:
        agent = RealtimeAgent(url=books.url, verbose=False, summarizer=oracle, **marks)
        agent.on_event(stamp)
        began = time.perf_counter()
        async with Caller(agent) as caller:
            caller.transcribed = bool(marks)
            for turn in range(turns):
                await caller.script(range(turn, turn + 1))
                run.sizes.append(len((await books.read())["ids"]))
            run.seconds = time.perf_counter() - began
            for number in range(PLANTED):
                fact = f"fact-{number} is {value_of(f'fact-{number}')}"
                run.known += (await caller.turn(f"What is fact-{number}")) == fact
            await agent.settled()
            told = await books.read()
            run.bills, run.refusals = told["bills"], told["refusals"]
            kept = {*archived(agent), *agent.items}
            run.lost = len({i for i in caller.seen if not i.startswith("mem_")} - kept)
            run.folds = len(agent.store.open("default", agent.session_id).entries)
    return run


def quantile(values: list[float], share: float) -> float:
    """Milliseconds."""
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def runs(turns: int, count: int) -> list[Run]:
    """Off and on, alternately, so that the machine's moods meet both."""
    found = []
    for _ in range(count):
        for marks in ({}, {"max_history_items": LOW, "trigger_items": HIGH}):
            found.append(await converse(turns, marks))
    return found


def show(found: list[Run]) -> None:
    """Print the table."""
    table = Table(
        "memory",
        "input tokens",
        "last response",
        "items, highest",
        "lowest after a fold",
        f"facts of {PLANTED}",
        "items lost",
        "folds",
        "refused",
        "audio events",
        "p50 ms",
        "p99 ms",
        title="a scripted voice conversation with tools and barge-ins",
    )
    for name in ("off", "on"):
        same = [run for run in found if run.memory == name]
        latencies = [latency for run in same for latency in run.latencies]
        table.add_row(name, *map(str, figures(same[-1])), *times(latencies))
    Console(width=160).print(table)
    off, on = (
        [quantile(run.latencies, 0.99) for run in found if run.memory == name]
        for name in ("off", "on")
    )
    added = statistics.median(b - a for a, b in zip(off, on, strict=True))
    print(f"added at p99, median of {len(on)} pairs of runs: {added:+.2f} ms (promised: 5)")


def figures(run: Run) -> tuple[int, ...]:
    """What the table says of a run, but for times."""
    pairs = zip(run.sizes, run.sizes[1:], strict=False)
    lows = [after for before, after in pairs if after < before]
    lost = run.lost if run.memory == "on" else 0
    last = run.bills[-PLANTED - 1]
    billed = sum(run.bills[:-PLANTED])
    lowest = min(lows, default=0)
    return billed, last, max(run.sizes), lowest, run.known, lost, run.folds, run.refusals


def times(latencies: list[float]) -> tuple[str, ...]:
    """How many, the middle, and the slowest hundredth."""
    middle, slow = quantile(latencies, 0.5), quantile(latencies, 0.99)
    return f"{len(latencies)}", f"{middle:.2f}", f"{slow:.2f}"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return
    show(asyncio.run(runs(given.turns, given.runs)))


if __name__ == "__main__":
    main()
