"""What compression costs in time: quiet turns, a cold start, growth, memory and waits.

    python -m tests.benchmarks.latency [--summarizer-seconds 20] [--samples 20] [--rounds 15]

Best of several runs where the work itself is meant, percentiles where waiting is. Cold start is
everything but the model; the time of its quotes is measured in the same run.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message
from praison_compressor.summaries import retries, writer
from tests.benchmarks.common import best, options, published, show, transcript

MODEL = "gpt-4o"
WINDOW = 128_000
QUOTES = ((writer, "read_quotes"), (retries, "accept"))
"""Where the quotes are read, and the model's answer judged."""

SUMMARY = "## Done\n" + "\n".join(
    f"- src/f{n}.py: read, mended and tested; the report about it is in order." for n in range(40)
)
"""As long as was asked for, and of this conversation: looked at in full before it is taken."""
Row = tuple[object, ...]
"""What, the figure, what is to reach, whether it is."""


def compressor(window: int = WINDOW, wait: float = 0, **given: Any) -> Any:
    """Ours, with a model that answers after so many seconds."""

    async def model(messages: list[Message]) -> str:
        await asyncio.sleep(wait)
        return SUMMARY

    config = CompressorConfig(model=MODEL, context_window=window, **given)
    return ContextCompressor(config, summarizer=model, tokens=TokenCounter(MODEL))


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


def quiet(rounds: int) -> Iterator[Row]:
    """Quiet turns. Sizes in turns, because a machine's mood moves."""
    small, large = Quiet(500), Quiet(5_000)
    times = [(small.ours(), large.ours(), small.host(), large.host()) for _ in range(rounds)]
    growth = statistics.median(ten / one for one, ten, *_ in times)
    ours, host = (statistics.median(each[n] for each in times) for n in (0, 2))
    recount = statistics.median(best(encoded(small.messages), 1) for _ in range(5))
    tokens = TokenCounter(MODEL).messages(small.messages)
    what = f"quiet turn, {len(small.messages):,} messages, {tokens:,} tokens"
    yield what, f"{ours:.2f} ms", "", ""
    yield "... host's estimate", f"{host:.2f} ms", ">= ours", ours <= host
    yield "... exact recount", f"{recount / ours:.0f} x ours", ">= 50 x", recount >= 50 * ours
    # The best of each is the work; the others are what else the machine's memory was asked for.
    one, ten, host_one, host_ten = (min(each) for each in zip(*times, strict=True))
    figure = f"{ten / one:.1f} x (median {growth:.1f})"
    what = f"... of ten times the messages, best of {rounds}"
    yield what, figure, "<= 10 x", ten <= 10 * one
    yield "... host's estimate of them", f"{host_ten / host_one:.1f} x", "", ""


@contextmanager
def timed_quotes() -> Iterator[list[float]]:
    """Time the reading of quotes and the judging of answers."""
    spent: list[float] = []

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **keywords)
            finally:
                spent.append(time.perf_counter() - start)

        return call

    with ExitStack() as stack:
        for module, name in QUOTES:
            stack.enter_context(patch.object(module, name, wrap(getattr(module, name))))
        yield spent


def first(messages: list[Message]) -> tuple[float, float]:
    """Return milliseconds of a first compression without its quotes, and of the quotes."""
    ours = compressor(tool_policies={"*": "summarize"})
    gc.collect()
    with timed_quotes() as spent:
        start = time.perf_counter()
        result = ours.compress_sync(messages)
        whole = time.perf_counter() - start
    assert result.summary_method == "model"
    return 1e3 * (whole - sum(spent)), 1e3 * sum(spent)


def cold(messages: list[Message], rounds: int) -> Iterator[Row]:
    """The cold start, beside a tokenization of the same moment, because a machine that is fast now
    is slow in a second. The first round, which reads price tables and vocabularies, is not told.
    """
    tokenize = encoded(messages)
    found = [(best(tokenize, 1), *first(messages)) for _ in range(rounds + 1)][1:]
    floor, without, quotes = (statistics.median(each) for each in zip(*found, strict=True))
    ratios = sorted(rest / floor for floor, rest, _ in found)
    ratio, aside = statistics.median(ratios), rounds // 7
    what = f"one exact tokenization of {len(messages):,} messages, by tiktoken"
    yield what, f"{floor:.0f} ms", "", ""
    figure = f"{ratio:.2f} x ({ratios[aside]:.2f} to {ratios[-1 - aside]:.2f})"
    yield f"cold start, median of {rounds}", figure, "<= 1.5 x", ratio <= 1.5
    yield "... without its quotes; its quotes", f"{without:.0f} ms; {quotes:.0f} ms", "", ""


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


def memory() -> Iterator[Row]:
    """What is held of a conversation, and of one ten times as long."""
    (small, text), (large, more) = held(500), held(5_000)
    figure = f"{small / text:.2f} x, then {large / more:.2f} x the text"
    yield "memory, 2,000 and 20,000 messages", figure, "linear", large <= 11 * small


# ---------------------------------------------------------------- waiting


def waits(samples: int, seconds: float, policies: dict[str, str]) -> list[float]:
    """Milliseconds of turns above the trigger while the summarizer takes its time."""
    messages = transcript(560)
    found = []
    for _ in range(samples):
        ours = compressor(wait=seconds, background=True, tool_policies=policies)
        sizes = [ours.tokens.message(message) for message in messages]
        end = next(n for n in range(len(sizes)) if sum(sizes[:n]) > 95_000)
        for last in range(end - 20, end + 20):
            request = messages[:last]
            start = time.perf_counter()
            ours.compress_sync(request)
            if sum(sizes[:last]) > 96_000:
                found.append(1e3 * (time.perf_counter() - start))
            time.sleep(0.02)  # an agent's turn: the background gets its share
        ours.close()
    return found


def waiting(samples: int, seconds: float) -> Iterator[Row]:
    """Turns that wait for nothing: for a summary alone, and with outputs masked."""
    for policies, name in (({"*": "summarize"}, "no masks"), ({}, "old outputs masked")):
        took = sorted(waits(samples, seconds, policies))
        p99 = statistics.quantiles(took, n=100)[98]
        what = f"{len(took)} turns above the trigger, {name}, summarizer {seconds:g} s"
        figure = f"p50 {statistics.median(took):.1f} ms, p99 {p99:.1f} ms"
        yield what, figure, "<= 50 ms", p99 <= 50


def main() -> None:
    given = options(__doc__, summarizer_seconds=20.0, samples=20, rounds=15)

    def rows() -> Iterator[Row]:
        # First, while the process is small: a collection of all that the rest makes takes long.
        yield from waiting(given.samples, given.summarizer_seconds)
        yield from quiet(given.rounds)
        yield from cold(transcript(500), given.rounds)
        yield from memory()

    show("Time and memory", ("measure", "figure", "to reach", "reached"), rows())


if __name__ == "__main__":
    main()
