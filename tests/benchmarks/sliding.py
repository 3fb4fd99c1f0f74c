"""Count summaries, and measure kept prefixes, behind a host that keeps the newest messages.

    python -m tests.benchmarks.sliding [--turns 150] [--window 8000|32000|128000] [--way NAME]

One conversation through a real agent, once with the whole list, and once each as a host drops its
front: the last 100 or 40 messages; the last 100 with a host compaction in between, which puts the
host's summary in the place of all but 20.
To reach: at most 1.2 times the calls of the whole list, and a median of .85 of each request's
prefix outside compressions.
"""

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from praison_compressor.testing import Asked, Worker
from tests.benchmarks.common import faults, options, show, silence_host, words
from tests.helpers import hosting

WINDOWS = (8_000, 32_000, 128_000)
MOST_CALLS, LEAST_PREFIX = 1.2, 0.85
COLUMNS = ["window", "list", "calls", "at most", "prefix", f"< {LEAST_PREFIX}", "faults", "tokens"]
COLUMNS += ["holds"]

Turn = Callable[[Any, str, int], None]
"""Sends the prompt of a turn to an agent, and drops what the host drops."""


def keep_newest(most: int = 0, compaction: int | None = None) -> Turn:
    """Return a host that keeps the newest messages (0: all); at one turn it compacts."""
    summary = {"role": "user", "content": "[Summary by the host] Ledgers were looked after."}

    def turn(made: Any, prompt: str, number: int) -> None:
        made.chat(prompt)
        history = made.chat_history
        if number == compaction:
            history = [summary, *history[-20:]]
        made.chat_history = history[-most:]

    return turn


def ways(turns: int) -> dict[str, Turn]:
    """Return what hosts do with the front of a list."""
    return {
        "whole": keep_newest(),
        "last 100": keep_newest(100),
        "last 40": keep_newest(40),
        "last 100, compacted": keep_newest(100, turns // 2),
    }


def answer(asked: Asked) -> str:
    """Answer in words that no other answer has."""
    return f"Noted. {words(random.Random(asked.number), 110)}"


def figures(turn: Turn, prompts: Sequence[str], window: int) -> tuple[int, list[float], int, int]:
    """Return the summarizer's calls, prefix shares, faulty requests and input tokens."""
    with hosting.by_itself(Worker(answer=answer), window, hosting.LEDGERS) as provider:
        ours = hosting.context(provider, context_window=window)
        made = hosting.agent(provider, hosting.OPENAI, ours)
        for number, prompt in enumerate(prompts):
            turn(made, prompt, number)
        tokens = sum(record.prompt_tokens for record in provider.requests)
        shares = hosting.prefix_shares(provider.requests)
        bad = sum(faults(hosting.of_agent(provider)))
        return len(provider.for_model("aux")), shares, bad, tokens


def rows(args: Any) -> Iterator[Sequence[object]]:
    """Yield a line for each window and way."""
    chance = random.Random(3)
    prompts = [f"L-{n:03d}: {words(chance, 110)}" for n in range(args.turns)]
    for window in [args.window] if args.window else WINDOWS:
        whole = 0
        for name, turn in ways(args.turns).items():
            if args.way and name not in ("whole", args.way):
                continue
            calls, shares, bad, tokens = figures(turn, prompts, window)
            whole = calls if name == "whole" else whole
            median = statistics.median(shares)
            holds = calls <= MOST_CALLS * whole and median >= LEAST_PREFIX
            low = sum(share < LEAST_PREFIX for share in shares)
            most = f"{MOST_CALLS * whole:.1f}"
            yield (window, name, calls, most, f"{median:.3f}", low, bad, tokens, holds)
        yield ()


def main() -> None:
    args = options(__doc__, turns=150, window=int, way=str)
    silence_host()
    show("a host that drops the front", COLUMNS, rows(args))


if __name__ == "__main__":
    main()
