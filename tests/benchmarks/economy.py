"""Count the calls, tokens and kept prefixes of a long session, ours beside the host's.

    python -m tests.benchmarks.economy [--turns 300] [--window 64000] [--output-words 300]

One generated session, every request of it: ours, and the host's own `SummarizeOptimizer` repaired,
with a function that really asks a model; once as it is configured (it keeps five
messages) and once keeping the number of newest messages that we keep. The summarizer is a program:
only its input counts. "in all" is the uncached input of the agent's requests and of the
summarizer's.
To reach: a tenth of the host's calls, 95 % of the prefix, a fifth of the host's uncached input at
the same tail and in all.
"""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from praison_compressor.messages import Message
from tests.benchmarks.common import options, show, words
from tests.benchmarks.price.prices import COUNTER, Run, Session, common
from tests.benchmarks.price.ways import host, ours
from tests.helpers.transcripts import step


def conversation(turns: int, output_words: int) -> list[Message]:
    """Return turns of a question, a call, its result, an answer."""
    chance = random.Random(7)
    messages: list[Message] = [{"role": "system", "content": "You are a coding agent. " * 40}]
    for turn in range(turns):
        output = words(chance, chance.randint(output_words // 2, output_words * 3 // 2))
        messages += [
            {"role": "user", "content": f"{words(chance, 25)} turn {turn}"},
            *step(f"call_{turn}", output, path=f"src/f{turn}.py"),
            {"role": "assistant", "content": words(chance, 40)},
        ]
    return messages


def runs(session: Session, window: int) -> Iterator[tuple[str, Run]]:
    """Yield every way over the session."""
    known: dict[str, Any] = {"model": "gpt-4o", "auxiliary_model": "gpt-4o"}
    pauses = [0.0] * len(session.requests)
    mine = ours(session, window, pauses, None, **known)
    yield "ours", mine
    no_masks = {**known, "tool_policies": {"*": "summarize"}}
    yield "ours, without masks", ours(session, window, pauses, None, **no_masks)
    yield "host, repaired", host(session, window, repaired=True)
    tail = sum(isinstance(key, int) for key in mine.requests[-1])
    yield f"host, repaired, keeps {tail} messages", host(session, window, repaired=True, keep=tail)


def row(session: Session, name: str, run: Run) -> list[object]:
    """Return calls, their input, the share of each prefix that stays, and uncached input."""
    shares, uncached, auxiliary = [], 0, sum(read for read, _ in run.asked)
    for before, after in itertools.pairwise([[], *run.requests]):
        cached = session.size(common(before, after))
        shares += [cached / session.size(before)] if before else []
        uncached += session.size(after) - cached
    prefix = f"{sum(shares) / len(shares):.1%}"
    return [name, len(run.asked), auxiliary, prefix, uncached, uncached + auxiliary]


def main() -> None:
    args = options(__doc__, turns=300, window=64_000, output_words=300)
    session = Session("generated", conversation(args.turns, args.output_words))
    tokens = COUNTER.messages(session.messages)
    title = (
        f"{args.turns} turns, {tokens:,} tokens, {2 * args.turns} requests, "
        f"window {args.window:,}; every message must be sent uncached once: {tokens:,}"
    )
    columns = ("", "calls", "aux. input", "prefix", "uncached", "in all")
    show(title, columns, (row(session, *each) for each in runs(session, args.window)))


if __name__ == "__main__":
    main()
