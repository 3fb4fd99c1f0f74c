"""A voice conversation of 200 turns: what it bills, what it remembers, what the sound waits for.

    python -m tests.benchmarks.realtime [--turns 200] [--runs 3]

The strict local server runs in a process of its own and stamps every event; the clock is the
machine's monotonic one, so an event's latency is the time from its stamp to the agent's callback.
The same script is run with the memory off and on, alternately: what it adds is the difference.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from praison_compressor.praisonai.realtime import RealtimeAgent
from tests.benchmarks.common import options, show
from tests.helpers.realtime_caller import Caller, archived, model, oracle, value_of
from tests.helpers.realtime_server import Event, Kept, RealtimeServer, Reply

LOW, HIGH = 20, 60
PACE_SECONDS = 0.004
PLANTED = 20
CHATTY = "All right, go on, I am listening to every word of it as ever. " * 3


def chatty(items: list[Kept]) -> Reply:
    """Answer as the tests' model, at an ordinary length."""
    reply = model(items)
    return [("say", CHATTY)] if reply == [("say", "All right, go on.")] else reply


@dataclass
class Run:
    """One conversation's figures."""

    latencies: list[float] = field(default_factory=list)
    """Seconds from the server's stamp to the callback, of every audio event."""
    bills: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Items in the server's conversation after each turn."""
    known: int = 0
    lost: int = 0
    folds: int = 0
    refusals: int = 0


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
    """Run the script once."""
    run = Run()

    def stamp(event: Event) -> None:
        if event["type"] == "response.output_audio.delta":
            run.latencies.append(time.perf_counter() - event["sent_at"])

    async with Books() as books:
        agent = RealtimeAgent(url=books.url, verbose=False, summarizer=oracle, **marks)
        agent.on_event(stamp)
        async with Caller(agent) as caller:
            caller.transcribed = bool(marks)
            for turn in range(turns):
                await caller.script(range(turn, turn + 1))
                run.sizes.append(len((await books.read())["ids"]))
            for number in range(PLANTED):
                fact = f"fact-{number} is {value_of(f'fact-{number}')}"
                run.known += (await caller.turn(f"What is fact-{number}")) == fact
            await agent.settled()
            seen = await books.read()
            run.bills, run.refusals = seen["bills"], seen["refusals"]
            kept = {*archived(agent), *agent.items}
            run.lost = len({i for i in caller.seen if not i.startswith("mem_")} - kept)
            run.folds = len(agent.store.open("default", agent.session_id).entries)
    return run


def quantile(values: list[float], share: float) -> float:
    """Return a quantile in milliseconds."""
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


COLUMNS = (
    *("memory", "input tokens", "last response", "items, highest", "lowest after a fold"),
    *(f"facts of {PLANTED}", "items lost", "folds", "refused", "audio events", "p50 ms", "p99 ms"),
)


def row(memory: str, runs: list[Run]) -> tuple[object, ...]:
    """Return the last run's figures, and the times of all."""
    run = runs[-1]
    lows = [after for before, after in itertools.pairwise(run.sizes) if after < before]
    bills = run.bills[:-PLANTED]
    sizes = sum(bills), bills[-1], max(run.sizes), min(lows, default=0)
    lost = run.lost if memory == "on" else 0
    latencies = [latency for each in runs for latency in each.latencies]
    times = (f"{quantile(latencies, share):.2f}" for share in (0.5, 0.99))
    return memory, *sizes, run.known, lost, run.folds, run.refusals, len(latencies), *times


async def runs(turns: int, count: int) -> tuple[list[Run], list[Run]]:
    """Run with the memory off and on, in turns, so that the machine is as busy for both."""
    off, on = [], []
    for _ in range(count):
        off.append(await converse(turns, {}))
        on.append(await converse(turns, {"max_history_items": LOW, "trigger_items": HIGH}))
    return off, on


def main() -> None:
    given = options(__doc__, turns=200, runs=3, serve=False)
    if given.serve:
        asyncio.run(serve())
        return
    off, on = asyncio.run(runs(given.turns, given.runs))
    title = "a scripted voice conversation with tools and barge-ins"
    show(title, COLUMNS, [row("off", off), row("on", on)])
    pairs = zip(off, on, strict=True)
    added = [quantile(b.latencies, 0.99) - quantile(a.latencies, 0.99) for a, b in pairs]
    middle = statistics.median(added)
    print(f"added at p99, median of {len(added)} pairs of runs: {middle:+.2f} ms (promised: 5)")


if __name__ == "__main__":
    main()
