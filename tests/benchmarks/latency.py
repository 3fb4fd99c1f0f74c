"""What compression costs in time: quiet turns, a cold start, growth, memory, waits, imports.

    python -m tests.benchmarks.latency [--summarizer-seconds 20] [--samples 20] [--file FILE.jsonl]

Best of several runs where the work itself is meant, percentiles where waiting is. Cold start is
everything but facts, model and imports: their time is measured in the same run and taken off.
With `--file` also that of the first conversations in a file, 400,000 tokens of them in one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from rich.console import Console
from rich.table import Table

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message
from praison_compressor.summaries import retries, writer
from praison_compressor.summaries import static as finder
from tests.benchmarks.facts import transcript as recorded
from tests.benchmarks.tokens import best, published, transcript

MODEL = "gpt-4o"
WINDOW = 128_000
FACTS = (
    (finder, "extract"),
    (writer, "coverage"),
    (writer, "repair"),
    (writer, "static_summary"),
    (retries, "is_about"),
    (writer, "ungrounded"),
)
"""Where the functions of the facts are called from; the last two look the model's own up."""


SUMMARY = "## Done\n" + "\n".join(
    f"- src/f{n}.py: read, mended and tested; the report about it is in order." for n in range(40)
)
"""As long as was asked for, and of this conversation: looked at in full before it is taken."""
NAMELESS = "## Done\n" + "".join(
    f"- Item {n} was read, mended and tested; the report about it is in order.\n" for n in range(40)
)
"""The same of any conversation."""


async def at_once(messages: list[Message]) -> str:
    return SUMMARY


async def nameless(messages: list[Message]) -> str:
    return NAMELESS


def compressor(
    summarizer: Any = at_once,
    window: int = WINDOW,
    tokens: TokenCounter | None = None,
    **options: Any,
) -> Any:
    config = CompressorConfig(model=MODEL, context_window=window, **options)
    return ContextCompressor(config, summarizer=summarizer, tokens=tokens)


def encoded(messages: list[Message]) -> Callable[[], None]:
    """One exact tokenization of every text by tiktoken: the floor of whoever counts with it."""
    encode = published("o200k_base").encode_ordinary

    def run() -> None:
        for message in messages:
            for value in message.values():
                encode(value if isinstance(value, str) else str(value or ""))

    return run


# ---------------------------------------------------------------- one turn


class Quiet:
    """Quiet turns of a transcript that was laid out before: one message is new in each."""

    def __init__(self, turns: int) -> None:
        self.messages = transcript(turns)
        self._ours = compressor(window=100_000_000)
        self._ours.compress_sync(self.messages)
        self._new = ({"role": "user", "content": f"one new message {n}"} for n in range(10**6))

    def ours(self) -> float:
        """Milliseconds of a turn; the agent's own list grows by one, as an agent's does."""
        return best(self._turn, 9)

    def host(self) -> float:
        """Milliseconds of the host's own estimate."""
        from praisonaiagents.context.tokens import estimate_messages_tokens

        return best(lambda: estimate_messages_tokens(self.messages), 3)

    def _turn(self) -> None:
        self.messages.append(next(self._new))
        self._ours.compress_sync(self.messages, extends=False)
        self.messages.pop()


def told_quiet(report: Report, rounds: int) -> list[Message]:
    """The quiet turn's rows, and its transcript. Sizes in turns, because a machine's mood moves."""
    small, large = Quiet(500), Quiet(5_000)
    times = [(small.ours(), large.ours(), small.host(), large.host()) for _ in range(rounds)]
    growths = [ten / one for one, ten, *_ in times]
    ours, host = (statistics.median(each[n] for each in times) for n in (0, 2))
    recount = statistics.median(best(encoded(small.messages), 1) for _ in range(5))
    tokens = TokenCounter(MODEL).messages(small.messages)
    what = f"quiet turn, {len(small.messages):,} messages, {tokens:,} tokens"
    report.add(what, f"{ours:.2f} ms")
    report.add("... host's estimate", f"{host:.2f} ms", ">= ours", ours <= host)
    report.add("... exact recount", f"{recount / ours:.0f} x ours", ">= 50 x", recount >= 50 * ours)
    # The best of each is the work; the others are what else the machine's memory was asked for.
    one, ten, host_one, host_ten = (min(each) for each in zip(*times, strict=True))
    figure = f"{ten / one:.1f} x (median {statistics.median(growths):.1f})"
    what = f"... of ten times the messages, best of {rounds}"
    report.add(what, figure, "<= 10 x", ten <= 10 * one)
    report.add("... host's estimate of them", f"{host_ten / host_one:.1f} x")
    return small.messages


@contextmanager
def timed(places: Sequence[tuple[ModuleType, str]]) -> Iterator[list[float]]:
    """How long the functions of these names in these modules take, called as always."""
    spent: list[float] = []
    before = [(module, name, getattr(module, name)) for module, name in places]

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **keywords)
            finally:
                spent.append(time.perf_counter() - start)

        return call

    try:
        for module, name, function in before:
            setattr(module, name, wrap(function))
        yield spent
    finally:
        for module, name, function in before:
            setattr(module, name, function)


class Cold(NamedTuple):
    """Milliseconds of the first compression of a transcript: without facts, and facts alone."""

    without_facts: float
    facts: float


def cold(messages: list[Message], model: Any = at_once) -> Cold:
    """A first compression."""
    ours = compressor(model, tokens=TokenCounter(MODEL), tool_policies={"*": "summarize"})
    gc.collect()
    with timed(FACTS) as spent:
        start = time.perf_counter()
        result = ours.compress_sync(messages)
        whole = time.perf_counter() - start
    assert result.summary_method == "model"
    facts = sum(spent)
    return Cold(1e3 * (whole - facts), 1e3 * facts)


def told_cold(report: Report, messages: list[Message], model: Any = at_once) -> None:
    """The cold start's rows: beside a tokenization of the same moment, because a machine that is
    fast now is slow in a second. The first round, which reads price tables and vocabularies, is
    not told.
    """
    tokenize = encoded(messages)
    found = [(best(tokenize, 1), cold(messages, model)) for _ in range(16)][1:]
    what = f"one exact tokenization of {len(messages):,} messages, by tiktoken"
    report.add(what, f"{statistics.median(floor for floor, _ in found):.0f} ms")
    ratios = sorted(start.without_facts / floor for floor, start in found)
    ratio = statistics.median(ratios)
    figure = f"{ratio:.2f} x ({ratios[2]:.2f} to {ratios[-3]:.2f})"
    report.add(f"cold start, median of {len(found)}", figure, "<= 1.5 x", ratio <= 1.5)
    without = statistics.median(start.without_facts for _, start in found)
    facts = statistics.median(start.facts for _, start in found)
    report.add("... without its facts; its facts", f"{without:.0f} ms; {facts:.0f} ms")


def held(turns: int) -> tuple[float, float]:
    """Bytes held after a quiet turn, and bytes of the transcript's own text."""
    messages = transcript(turns)
    tracemalloc.start()
    ours = compressor(window=100_000_000)
    ours.compress_sync(messages)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    text = sum(len(str(value)) for message in messages for value in message.values())
    return kept, text


# ---------------------------------------------------------------- waiting


def waits(samples: int, seconds: float, policies: dict[str, str]) -> list[float]:
    """Milliseconds of turns above the trigger while the summarizer takes its time."""

    async def slow(messages: list[Message]) -> str:
        await asyncio.sleep(seconds)
        return await at_once(messages)

    messages = transcript(560)
    found = []
    for _ in range(samples):
        ours = compressor(slow, background=True, tool_policies=policies)
        sizes = [ours.tokens.message(message) for message in messages]
        end = next(n for n in range(len(sizes)) if sum(sizes[:n]) > 95_000)
        for last in range(end - 20, end + 20):
            request = messages[:last]
            crosses = sum(sizes[:last]) > 96_000
            start = time.perf_counter()
            ours.compress_sync(request)
            took = 1e3 * (time.perf_counter() - start)
            if crosses:
                found.append(took)
            time.sleep(0.02)  # an agent's turn: the background gets its share
        ours.close()
    return found


def told_waits(report: Report, samples: int, seconds: float) -> None:
    """The rows of turns that wait for nothing: for a summary alone, and with outputs masked."""
    for policies, name in (({"*": "summarize"}, "no masks"), ({}, "old outputs masked")):
        took = sorted(waits(samples, seconds, policies))
        p99 = statistics.quantiles(took, n=100)[98]
        what = f"{len(took)} turns above the trigger, {name}, summarizer {seconds:g} s"
        figure = f"p50 {statistics.median(took):.1f} ms, p99 {p99:.1f} ms"
        report.add(what, figure, "<= 50 ms", p99 <= 50)


def imports() -> dict[str, float]:
    """Milliseconds, best of three fresh interpreters each."""

    def fresh(line: str) -> float:
        script = f"import time; s = time.perf_counter(); {line}; print(time.perf_counter() - s)"
        runs = [subprocess.check_output([sys.executable, "-c", script]) for _ in range(3)]
        return 1e3 * min(map(float, runs))

    return {
        "import praison_compressor": fresh("import praison_compressor"),
        "... and its compressor": fresh(
            "from praison_compressor.compressor.context_compressor import ContextCompressor"
        ),
        "import litellm": fresh("import litellm"),
    }


# ---------------------------------------------------------------- the table


class Report:
    """Rows of what, figure, target, and whether it is reached."""

    def __init__(self) -> None:
        self.table = Table(title="Time and memory")
        for head in ("measure", "figure", "to reach", ""):
            self.table.add_column(head)

    def add(self, what: str, figure: str, target: str = "", held: bool | None = None) -> None:
        marks = {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}
        self.table.add_row(what, figure, target, marks[held])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--summarizer-seconds", type=float, default=20.0)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--file", type=Path, metavar="FILE.jsonl")
    given = parser.parse_args()
    report = Report()

    # First, while the process is small: a collection of all that the rest makes takes long.
    told_waits(report, given.samples, given.summarizer_seconds)
    messages = told_quiet(report, 15)
    told_cold(report, messages)
    if given.file:
        told_cold(report, recorded(given.file), nameless)

    (small, text), (large, more) = held(500), held(5_000)
    factors = f"{small / text:.2f} x, then {large / more:.2f} x the text"
    report.add("memory, 2,000 and 20,000 messages", factors, "linear", large <= 11 * small)

    starts = imports()
    litellm = starts["import litellm"]
    for name, value in starts.items():
        share = value / litellm
        target = ("<= 5 %", share <= 0.05) if name == "import praison_compressor" else ("", None)
        report.add(name, f"{value:.0f} ms = {share:.1%}", *target)
    Console(width=120).print(report.table)


if __name__ == "__main__":
    main()
