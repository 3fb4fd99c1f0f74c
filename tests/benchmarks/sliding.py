"""A host that keeps only the newest messages: what a conversation costs, and what its cache keeps.

    python -m tests.benchmarks.sliding [--turns 150] [--window 8000|32000|128000] [--way NAME]

One conversation through a real agent, once with the whole list, and once each as a host drops its
front: the last 100 or 40 messages, by a host that says nothing or by the host's own bots; the last
100 with a host compaction in between, which puts the host's summary in the place of all but 20.
To reach: at most 1.2 times the calls of the whole list, and a median of .85 of each request's
prefix outside compressions.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from praisonai_bot.bots._session import BotSessionManager

from praison_compressor.testing import Summarizer, Worker
from tests.benchmarks.common import options, show, words
from tests.helpers import hosting

WINDOWS = (8_000, 32_000, 128_000)
QUESTION_WORDS, ANSWER_WORDS = 110, 110
MOST_CALLS, LEAST_PREFIX = 1.2, 0.85

Turn = Callable[[Any, str, int], None]
"""Sends the prompt of a turn to an agent, and drops what the host drops."""


def kept(most: int | None, compaction: int | None = None) -> Turn:
    """A host that keeps the newest messages; at one turn it compacts."""

    def turn(made: Any, prompt: str, number: int) -> None:
        made.chat(prompt)
        history = made.chat_history
        if number == compaction:
            summary = {
                "role": "user",
                "content": "[Summary by the host] Ledgers were looked after.",
            }
            history = [summary, *history[-20:]]
        made.chat_history = history[-most:] if most else history

    return turn


def by_bots(most: int) -> Turn:
    """The host's bots, which keep each conversation's newest messages."""
    manager = BotSessionManager(platform="telegram", max_history=most)
    return lambda made, prompt, number: asyncio.run(manager.chat(made, "ann", prompt)) and None


def ways(turns: int) -> dict[str, Turn]:
    """What hosts do with the front of a list."""
    return {
        "whole": kept(None),
        "last 100": kept(100),
        "last 40": kept(40),
        "last 100, bots": by_bots(100),
        "last 40, bots": by_bots(40),
        "last 100, compacted": kept(100, turns // 2),
    }


def conversation(turns: int) -> list[str]:
    """The questions, each of words of its own."""
    chance = random.Random(3)
    return [f"L-{n:03d}: {words(chance, QUESTION_WORDS)}" for n in range(turns)]


def answering() -> Callable[[Any], str]:
    """Answers in words of their own."""
    return lambda asked: f"Noted. {words(random.Random(asked.number), ANSWER_WORDS)}"


def figures(turn: Turn, prompts: Sequence[str], window: int) -> tuple[int, list[float], int, int]:
    """Calls of the summarizer; prefix shares; requests refused or over the window; input tokens."""
    with hosting.by_itself(Worker(answer=answering()), window) as provider:
        provider.route("aux", Summarizer(r"L-\d+"))
        provider.set_window(window)
        made = hosting.agent(
            provider, hosting.OPENAI, hosting.context(provider, context_window=window)
        )
        for number, prompt in enumerate(prompts):
            turn(made, prompt, number)
        sent = hosting.of_agent(provider)
        bad = sum(record.status != 200 or record.over_window for record in sent)
        tokens = sum(record.prompt_tokens for record in provider.requests)
        shares = hosting.prefix_shares(provider.requests)
        return len(provider.for_model("aux")), shares, bad, tokens


def rows(given: Any) -> Iterator[Sequence[object]]:
    """A line for each window and way."""
    prompts = conversation(given.turns)
    for window in [given.window] if given.window else WINDOWS:
        whole = 0
        for name, turn in ways(given.turns).items():
            if given.way and name not in ("whole", given.way):
                continue
            calls, shares, bad, tokens = figures(turn, prompts, window)
            whole = calls if name == "whole" else whole
            median = statistics.median(shares)
            holds = calls <= MOST_CALLS * whole and median >= LEAST_PREFIX
            low = sum(share < LEAST_PREFIX for share in shares)
            yield (
                window,
                name,
                calls,
                f"{MOST_CALLS * whole:.1f}",
                f"{median:.3f}",
                low,
                bad,
                tokens,
                holds,
            )
        yield ()


def main() -> None:
    given = options(__doc__, turns=150, window=int, way=str)
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    columns = (
        "window",
        "list",
        "calls",
        "at most",
        "prefix",
        f"< {LEAST_PREFIX}",
        "refused",
        "tokens",
        "holds",
    )
    show("a host that drops the front", columns, itertools.chain(rows(given)))


if __name__ == "__main__":
    main()
