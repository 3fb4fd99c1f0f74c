"""Count model calls and views of processes that send the same conversations.

    python -m tests.benchmarks.races                 8 processes, 32 sessions, both databases

The model is a function that takes a while and writes a line for every call. Each process sends the
same growing conversations through a compressor of its own. One segment must cost one call, every
process must end with the same view, and nobody may wait for ever.
"""

import asyncio
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, open_store
from praison_compressor.messages import Message
from tests.benchmarks.common import databases, options, show
from tests.helpers.talks import NAMESPACE
from tests.helpers.transcripts import coding_turns

TURNS = 4


@dataclass(frozen=True)
class Race:
    """The outcome of a race."""

    calls: int
    segments: int
    sessions: int
    views: int
    """Different views of one conversation at its end, at most: 1 where all agree."""
    faults: list[str]


def race(url: str, processes: int, sessions: int, directory: Path) -> Race:
    """Let the processes send the same conversations, each in another order."""
    calls = directory / "calls.txt"
    calls.write_text("")
    open_store(url).check()
    jobs = [(url, str(calls), number, sessions) for number in range(processes)]
    context = multiprocessing.get_context("fork")
    with context.Pool(processes) as pool:
        ends = pool.starmap_async(_converse, jobs).get(timeout=280)
    store = open_store(url)
    entries = [
        entry
        for info in store.sessions(NAMESPACE)
        for entry in store.open(NAMESPACE, info.id).entries
        if entry.segment.method == "model"
    ]
    views = max(len({end[name] for end in ends}) for name in ends[0])
    return Race(
        calls=len(calls.read_text().splitlines()),
        segments=len(entries),
        sessions=len(store.sessions(NAMESPACE)),
        views=views,
        faults=[str(fault) for fault in store.verify()],
    )


def _converse(url: str, calls: str, number: int, sessions: int) -> dict[str, str]:
    """Send every conversation, turn by turn; return each last view."""
    compressor = ContextCompressor(
        CompressorConfig(context_window=5_000, protect_last_n_tokens=800, namespace=NAMESPACE),
        summarizer=_model(Path(calls)),
        store=open_store(url),
    )
    names = [f"s{(number + n) % sessions}" for n in range(sessions)]
    return asyncio.run(_turns(compressor, names))


async def _turns(compressor: ContextCompressor, names: Sequence[str]) -> dict[str, str]:
    views: dict[str, str] = {}
    for turn in range(2, 2 + TURNS):
        done = await asyncio.gather(
            *(compressor.compress(_conversation(name, 2 * turn), session_id=name) for name in names)
        )
        views = {name: str(one.messages) for name, one in zip(names, done, strict=True)}
    return views


def _conversation(name: str, turns: int) -> list[Message]:
    first, *rest = coding_turns(turns, steps=2, words=60)
    return [first, {"role": "user", "content": f"We are in {name}."}, *rest]


def _model(calls: Path) -> Callable[..., Any]:
    async def model(messages: Sequence[Message]) -> str:
        # One write of a few bytes at the end of a file is whole beside other writers.
        with calls.open("a") as log:
            log.write(f"{os.getpid()} {len(messages)}\n")
        await asyncio.sleep(0.05)
        return "## Done\nThe modules up to here are in order; their ports stay as they are."

    return model


COLUMNS = ("database", "processes", "calls", "segments", "sessions", "views", "faults")


def main() -> None:
    args = options(__doc__, processes=8, sessions=32)

    def rows() -> Iterator[tuple[object, ...]]:
        for name, new_url in databases():
            for sessions in (1, args.sessions):
                with tempfile.TemporaryDirectory() as folder:
                    outcome = race(new_url(), args.processes, sessions, Path(folder))
                counts = (outcome.calls, outcome.segments, outcome.sessions, outcome.views)
                yield name, args.processes, *counts, len(outcome.faults)

    show("processes that send the same conversations", COLUMNS, rows())


if __name__ == "__main__":
    main()
