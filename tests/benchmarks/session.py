"""Sixty user turns past the window, real agents, beside the host without us.

    python -m tests.benchmarks.session [--turns 60]

Counts requests and what the provider refused, calls of the summarizer beside the most that the
growth of the conversation allows, and how much of the previous request's non-system bytes the
next one begins with, outside compressions. The host does not send a turn's tool loop again in the
next turn: there a turn's first request is compared with the first of the turn before, and with the
last one in a column of its own.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from typing import Any

from praison_compressor import CompressorConfig, TokenCounter
from praison_compressor.testing import Recorded, Worker
from praison_compressor.view.budget import Budget
from tests.benchmarks.common import options, show
from tests.benchmarks.host_matrix import at_work, is_dropped
from tests.helpers.hosting import LITELLM, OPENAI, WINDOW, chat, look_up, numbered, reused, turn

WORKERS = {
    "plain": Worker(answer="The ledger is in order; nothing is open. " * 4),
    "3 calls a turn": Worker(calls=3, tool="look_up", arguments=numbered, answer="In order. " * 9),
}
COLUMNS = (
    *("path", "work", "system", "requests", "refused", "over window", "summaries", "at most"),
    *("prefix kept, mean", "least", "of a loop's last"),
)


def run(path: str, shape: str, turns: int, hosts: Any) -> list[Recorded]:
    """One conversation; every request that reached the provider."""
    tools = [look_up] if "calls" in shape else []
    with at_work(path, WORKERS[shape], tools, hosts) as (provider, made):
        chat(made, [turn(number) for number in range(turns)])
        return list(provider.requests)


def prefix_shares(requests: list[Recorded]) -> list[float]:
    """For each request of the agent but after a compression, the share of the one before it.

    A turn's first request is compared with the first of the turn before where that had a tool
    loop, all of which the host leaves out from then on, whoever compresses.
    """
    shares, first = [], None
    for before, after in itertools.pairwise(r for r in requests if r.model != "aux"):
        first = before if before.messages[-1]["role"] == "user" else first
        one = first if is_dropped(before, after) else before
        if one is not None and not _is_compressed(requests, one, after):
            shares.append(reused(one, after))
    return shares


def boundary_shares(requests: list[Recorded]) -> list[float]:
    """Of the last request of each tool loop, the share with which the next turn begins."""
    pairs = list(itertools.pairwise(r for r in requests if r.model != "aux"))
    return [reused(before, after) for before, after in pairs if is_dropped(before, after)]


def _is_compressed(requests: list[Recorded], before: Recorded, after: Recorded) -> bool:
    return any(r.model == "aux" and before.number < r.number < after.number for r in requests)


def allowed_calls(requests: list[Recorded]) -> int:
    """One call for each (trigger - target) tokens that the conversation grew by."""
    counter = TokenCounter("gpt-4o-mini")
    budget = Budget.of(CompressorConfig(), WINDOW)
    seen: dict[str, int] = {}
    for request in requests:
        for message in request.messages if request.model != "aux" and not request.refused else ():
            seen.setdefault(json.dumps(message, sort_keys=True), counter.message(message))
    return sum(seen.values()) // (budget.trigger - budget.target)


def rows(turns: int) -> Iterator[tuple[object, ...]]:
    """Each path and shape, ours and the host as shipped."""
    from praisonaiagents.context.models import OptimizerStrategy

    shipped = {"strategy": OptimizerStrategy.SUMMARIZE, "llm_summarize": True}
    for path, shape, hosts in itertools.product((OPENAI, LITELLM), WORKERS, (None, shipped)):
        requests = run(path, shape, turns, hosts)
        shares, last = prefix_shares(requests) or [0.0], boundary_shares(requests)
        yield (
            path,
            f"{turns} {shape}",
            "host as shipped" if hosts else "ours",
            sum(r.model != "aux" for r in requests),
            sum(r.refused for r in requests),
            sum(r.over_window for r in requests),
            sum(r.model == "aux" for r in requests),
            "" if hosts else allowed_calls(requests),
            f"{sum(shares) / len(shares):.1%}",
            f"{min(shares):.1%}",
            f"{sum(last) / len(last):.1%}" if last else "",
        )


def main() -> None:
    given = options(__doc__, turns=60)
    logging.disable(logging.WARNING)
    show("real agents past their window", COLUMNS, rows(given.turns))


if __name__ == "__main__":
    main()
