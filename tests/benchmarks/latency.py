"""Measure the time and memory of compression: cold start, turns that wait, quiet turns.

    python -m tests.benchmarks.latency [--summarizer-seconds 20] [--samples 20] [--rounds 15]

A cold start is one compression by a new compressor, with everything but the model: reading,
counting, planning, the request, judging the answer, quotes and the archive. Its unit is one
tokenization of the same messages. Each is the best of several runs; turns that wait have
percentiles.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message
from tests.benchmarks.common import best, options, published, show, transcript

MODEL = "gpt-4o"
WINDOW = 128_000
COLD, WAIT = 2.0, 50
"""Limits: a cold start in tokenizations, and p99 of turns that wait in milliseconds."""

SUMMARY = "## Done\n" + "\n".join(
    f"- src/f{n}.py: read, mended and tested; the report about it is in order." for n in range(40)
)
"""An answer of the length asked for, about this conversation."""
Row = tuple[object, ...]
"""The measure, its figure, the limit, and whether the figure is within."""


def compressor(window: int = WINDOW, wait: float = 0, **given: Any) -> Any:
    """Return a compressor whose model answers after `wait` seconds."""

    async def model(messages: list[Message]) -> str:
        await asyncio.sleep(wait)
        return SUMMARY

    config = CompressorConfig(model=MODEL, context_window=window, **given)
    return ContextCompressor(config, summarizer=model, tokens=TokenCounter(MODEL))


def encoded(messages: list[Message]) -> Callable[[], None]:
    """Return a function that tokenizes every text once, by tiktoken."""
    encode = published("o200k_base").encode_ordinary

    def run() -> None:
        for message in messages:
            for value in message.values():
                encode(value if isinstance(value, str) else str(value or ""))

    return run


# ---------------------------------------------------------------- one turn


class Quiet:
    """Quiet turns of a transcript that was read before: one message is new in each."""

    def __init__(self, turns: int) -> None:
        self.messages = transcript(turns)
        self._ours = compressor(window=100_000_000)
        self._ours.compress_sync(self.messages)
        self._new = ({"role": "user", "content": f"one new message {n}"} for n in range(10**6))

    def ours(self) -> float:
        """Return the milliseconds of a turn; the agent's own list grows by one message."""
        return best(self._turn, 9)

    def host(self) -> float:
        """Return the milliseconds of the host's own estimate."""
        from praisonaiagents.context.tokens import estimate_messages_tokens

        return best(lambda: estimate_messages_tokens(self.messages), 3)

    def _turn(self) -> None:
        self.messages.append(next(self._new))
        self._ours.compress_sync(self.messages, extends=False)
        self.messages.pop()


def quiet(rounds: int) -> Iterator[Row]:
    """Yield quiet turns; both sizes are measured in each round, since a machine's speed varies."""
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
    # The best of each is the work itself; slower ones waited for memory.
    one, ten, host_one, host_ten = (min(each) for each in zip(*times, strict=True))
    figure = f"{ten / one:.1f} x (median {growth:.1f})"
    what = f"... of ten times the messages, best of {rounds}"
    yield what, figure, "<= 10 x", ten <= 10 * one
    yield "... host's estimate of them", f"{host_ten / host_one:.1f} x", "", ""


def first(messages: list[Message]) -> float:
    """Return the milliseconds of a first compression."""
    ours = compressor(tool_policies={"*": "summarize"})
    gc.collect()
    start = time.perf_counter()
    result = ours.compress_sync(messages)
    took = time.perf_counter() - start
    assert result.summary_method == "model"
    return 1e3 * took


def cold(messages: list[Message], rounds: int) -> Iterator[Row]:
    """Yield the best cold start beside the best tokenization, taken in turn.

    The first round is left out: it reads price tables and vocabularies.
    """
    tokenize = encoded(messages)
    found = [(best(tokenize, 1), first(messages)) for _ in range(rounds + 1)][1:]
    floor, took = (min(each) for each in zip(*found, strict=True))
    median = statistics.median(took / floor for floor, took in found)
    yield f"one tokenization of {len(messages):,} messages, by tiktoken", f"{floor:.0f} ms", "", ""
    figure = f"{took / floor:.2f} x, {took:.0f} ms (median {median:.2f} x)"
    what = f"cold start with everything but the model, best of {rounds}"
    yield what, figure, f"<= {COLD} x", took <= COLD * floor


def held(turns: int) -> tuple[float, float]:
    """Return the bytes held after a quiet turn, and the bytes of the transcript's text."""
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
    """Yield the memory of a conversation, and of one ten times as long."""
    (small, text), (large, more) = held(500), held(5_000)
    figure = f"{small / text:.2f} x, then {large / more:.2f} x the text"
    yield "memory, 2,000 and 20,000 messages", figure, "linear", large <= 11 * small


# ---------------------------------------------------------------- waiting


def waits(samples: int, seconds: float, policies: dict[str, str]) -> list[float]:
    """Return the milliseconds of turns above the trigger while the summarizer is at work."""
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
    """Yield turns while a summary is written, without and with masks."""
    for policies, name in (({"*": "summarize"}, "no masks"), ({}, "old outputs masked")):
        took = sorted(waits(samples, seconds, policies))
        p99 = statistics.quantiles(took, n=100)[98]
        what = f"{len(took)} turns above the trigger, {name}, summarizer {seconds:g} s"
        figure = f"p50 {statistics.median(took):.1f} ms, p99 {p99:.1f} ms"
        yield what, figure, f"<= {WAIT} ms", p99 <= WAIT


def main() -> None:
    given = options(__doc__, summarizer_seconds=20.0, samples=20, rounds=15)

    def rows() -> Iterator[Row]:
        # First, while the process is small: a collection of all that the rest makes takes long.
        yield from waiting(given.samples, given.summarizer_seconds)
        yield from cold(transcript(500), given.rounds)
        yield from quiet(given.rounds)
        yield from memory()

    show("Time and memory", ("measure", "figure", "to reach", "reached"), rows())


if __name__ == "__main__":
    main()
