"""Measure the time of compression: cold start, turns that wait, quiet turns.

    python -m tests.benchmarks.latency [--summarizer-seconds 20] [--samples 20] [--rounds 15]

A cold start is one compression by a new compressor, with everything but the model: reading,
counting, planning, the request, judging the answer, quotes and the archive. Its unit is one
tokenization of the same messages. Each is the best of several runs; turns that wait have
percentiles.
"""

import asyncio
import gc
import itertools
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import tiktoken
from tiktoken_ext import openai_public

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import Message
from praison_compressor.tokens.models import litellm_folder
from tests.benchmarks.common import options, show, words
from tests.helpers.transcripts import step

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


def compressor(window: int = WINDOW, wait: float = 0, **settings: Any) -> Any:
    """Return a compressor whose model answers after `wait` seconds."""

    async def model(messages: list[Message]) -> str:
        await asyncio.sleep(wait)
        return SUMMARY

    config = CompressorConfig(model=MODEL, context_window=window, **settings)
    return ContextCompressor(config, summarizer=model, tokens=TokenCounter(MODEL))


def transcript(turns: int) -> list[Message]:
    """Return four messages a turn: a question, a call, its result, an answer."""
    chance = random.Random(1)
    messages: list[Message] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": words(chance, 60)})
        messages += step(f"call_{turn}", words(chance, 130), path=f"src/f{turn}.py")
        messages.append({"role": "assistant", "content": words(chance, 60)})
    return messages


def best(function: Callable[[], Any], runs: int) -> float:
    """Return the milliseconds of the fastest run: the work itself."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def encoded(messages: list[Message]) -> Callable[[], None]:
    """Return a function that tokenizes every text once, by tiktoken."""
    folder = litellm_folder()
    assert folder is not None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder / "litellm_core_utils" / "tokenizers")
    encode = tiktoken.Encoding(**openai_public.o200k_base()).encode_ordinary

    def run() -> None:
        for message in messages:
            for value in message.values():
                encode(value if isinstance(value, str) else str(value or ""))

    return run


# ---------------------------------------------------------------- one turn


def quiet_turn(turns: int) -> Callable[[], float]:
    """Return a function that returns the milliseconds of a turn with one new message."""
    messages, ours = transcript(turns), compressor(window=100_000_000)
    ours.compress_sync(messages)
    numbers = itertools.count()

    def turn() -> None:
        messages.append({"role": "user", "content": f"one new message {next(numbers)}"})
        ours.compress_sync(messages, extends=False)
        messages.pop()

    return lambda: best(turn, 9)


def quiet(rounds: int) -> Iterator[Row]:
    """Yield quiet turns; both sizes are measured in each round, since a machine's speed varies."""
    small, large = quiet_turn(500), quiet_turn(5_000)
    times = [(small(), large()) for _ in range(rounds)]
    recount = statistics.median(best(encoded(transcript(500)), 1) for _ in range(5))
    ours = statistics.median(one for one, _ in times)
    figure = f"{ours:.2f} ms, a recount {recount / ours:.0f} x"
    yield "quiet turn, 2,000 messages", figure, ">= 50 x", recount >= 50 * ours
    # The best of each is the work itself; slower ones waited for memory.
    one, ten = (min(each) for each in zip(*times, strict=True))
    yield "... of ten times the messages", f"{ten / one:.1f} x", "<= 10 x", ten <= 10 * one


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
    times = [(best(tokenize, 1), first(messages)) for _ in range(rounds + 1)][1:]
    floor, took = (min(each) for each in zip(*times, strict=True))
    median = statistics.median(took / floor for floor, took in times)
    yield f"one tokenization of {len(messages):,} messages, by tiktoken", f"{floor:.0f} ms", "", ""
    figure = f"{took / floor:.2f} x, {took:.0f} ms (median {median:.2f} x)"
    what = f"cold start with everything but the model, best of {rounds}"
    yield what, figure, f"<= {COLD} x", took <= COLD * floor


# ---------------------------------------------------------------- waiting


def waits(samples: int, seconds: float, policies: dict[str, str]) -> list[float]:
    """Return the milliseconds of turns above the trigger while the summarizer is at work."""
    messages = transcript(560)
    times = []
    for _ in range(samples):
        ours = compressor(wait=seconds, background=True, tool_policies=policies)
        sizes = [ours.tokens.message(message) for message in messages]
        end = next(n for n in range(len(sizes)) if sum(sizes[:n]) > 95_000)
        for last in range(end - 20, end + 20):
            request = messages[:last]
            start = time.perf_counter()
            ours.compress_sync(request)
            if sum(sizes[:last]) > 96_000:
                times.append(1e3 * (time.perf_counter() - start))
            time.sleep(0.02)  # an agent's turn: the background gets its share
        ours.close()
    return times


def waiting(samples: int, seconds: float) -> Iterator[Row]:
    """Yield turns while a summary is written, without and with masks."""
    for policies, name in (({"*": "summarize"}, "no masks"), ({}, "old outputs masked")):
        took = sorted(waits(samples, seconds, policies))
        p99 = statistics.quantiles(took, n=100)[98]
        what = f"{len(took)} turns above the trigger, {name}, summarizer {seconds:g} s"
        figure = f"p50 {statistics.median(took):.1f} ms, p99 {p99:.1f} ms"
        yield what, figure, f"<= {WAIT} ms", p99 <= WAIT


def main() -> None:
    args = options(__doc__, summarizer_seconds=20.0, samples=20, rounds=15)

    def rows() -> Iterator[Row]:
        # First, while the process is small: a collection of all that the rest makes takes long.
        yield from waiting(args.samples, args.summarizer_seconds)
        yield from cold(transcript(500), args.rounds)
        yield from quiet(args.rounds)

    show("Time", ("measure", "figure", "to reach", "reached"), rows())


if __name__ == "__main__":
    main()
