"""Sixty user turns past the window, real agents, beside the host without us.

    python -m tests.benchmarks.session

Counts requests and what the provider refused, calls of the summarizer beside the most that the
growth of the conversation allows, and how much of the previous request's non-system bytes the
next one begins with, outside compressions. The host does not send a turn's tool loop again in the
next turn: there a turn's first request is compared with the first of the turn before, and with the
last one in a column of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor import CompressorConfig, TokenCounter, install, uninstall
from praison_compressor.testing import LocalProvider, Recorded, Summarizer, Worker
from praison_compressor.view.budget import Budget
from tests.helpers.hosting import LITELLM, OPENAI, agent, chat, context, numbered, turn

TURNS = 60
WINDOW = 6_000
WORKERS = {
    "plain": Worker(answer="The ledger is in order; nothing is open. " * 4),
    "3 calls a turn": Worker(calls=3, tool="look_up", arguments=numbered, answer="In order. " * 9),
}


@contextmanager
def environment(provider: LocalProvider) -> Iterator[None]:
    """The host finds the provider in its environment, and an empty home."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as home:
        given = {
            "HOME": home,
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_BASE": provider.base_url,
            "OPENAI_API_KEY": "sk-of-the-agent",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "PRAISONAI_AUTO_APPROVE": "true",
            "PRAISONAI_TELEMETRY_DISABLED": "true",
        }
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        os.chdir(home)
        try:
            yield
        finally:
            os.chdir(here)
            for name, value in before.items():
                os.environ.pop(name, None)
                os.environ.update({name: value} if value is not None else {})


def run(path: str, shape: str, *, ours: bool) -> list[Recorded]:
    """One conversation; every request that reached the provider."""
    worker = WORKERS[shape]
    with LocalProvider(worker, window=WINDOW) as provider, environment(provider):
        provider.set_window(128_000, "aux")
        provider.route("aux", Summarizer(r"L-\d{3}"))
        install() if ours else uninstall()
        asked: Any = context(provider) if ours else _shipped()
        tools = [_look_up] if "calls" in shape else None
        made = agent(provider, path, asked, tools=tools)
        try:
            chat(made, [turn(number) for number in range(TURNS)])
        finally:
            uninstall()
        return list(provider.requests)


def _shipped() -> Any:
    from praisonaiagents.context.models import OptimizerStrategy

    return {"strategy": OptimizerStrategy.SUMMARIZE, "llm_summarize": True}


def _look_up(topic: str, part: int) -> str:
    """Look a topic up.

    Args:
        topic: what to look up
        part: which part of it
    """
    from tests.helpers.hosting import look_up

    return look_up(topic, part)


_look_up.__name__ = "look_up"


def body(request: Recorded) -> str:
    """The request's messages without the system's, as bytes on the wire."""
    messages = [m for m in request.messages if m.get("role") not in ("system", "developer")]
    return json.dumps(messages, ensure_ascii=False)[1:-1]


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
            shares.append(_share(one, after))
    return shares


def boundary_shares(requests: list[Recorded]) -> list[float]:
    """Of the last request of each tool loop, the share with which the next turn begins."""
    pairs = list(itertools.pairwise(r for r in requests if r.model != "aux"))
    return [_share(before, after) for before, after in pairs if is_dropped(before, after)]


def is_dropped(before: Recorded, after: Recorded) -> bool:
    """Whether a tool loop has ended between two requests."""
    return before.messages[-1]["role"] == "tool" and after.messages[-1]["role"] == "user"


def _is_compressed(requests: list[Recorded], before: Recorded, after: Recorded) -> bool:
    return any(r.model == "aux" and before.number < r.number < after.number for r in requests)


def _share(before: Recorded, after: Recorded) -> float:
    old, new = body(before), body(after)
    return _common(old, new) / max(1, len(old))


def _common(old: str, new: str) -> int:
    """How many characters two texts have in common from the beginning."""
    pairs = zip(old, new, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def allowed_calls(requests: list[Recorded], path: str) -> int:
    """One call for each (trigger - target) tokens that the conversation grew by."""
    counter = TokenCounter("gpt-4o-mini")
    budget = Budget.of(CompressorConfig(), WINDOW)
    main = [r for r in requests if r.model != "aux" and not r.refused]
    seen: dict[str, int] = {}
    for request in main:
        for message in request.messages:
            seen.setdefault(json.dumps(message, sort_keys=True), counter.message(message))
    grown = sum(seen.values())
    return grown // (budget.trigger - budget.target)


def main() -> None:
    """Print the table."""
    table = Table(
        "path",
        "turns",
        "system",
        "requests",
        "refused",
        "over window",
        "summaries",
        "at most",
        "prefix kept, mean",
        "least",
        "of a loop's last",
    )
    for path, shape in itertools.product((OPENAI, LITELLM), WORKERS):
        for ours in (True, False):
            requests = run(path, shape, ours=ours)
            shares = prefix_shares(requests) or [0.0]
            last = boundary_shares(requests)
            table.add_row(
                path,
                f"{TURNS} {shape}",
                "ours" if ours else "host as shipped",
                str(sum(r.model != "aux" for r in requests)),
                str(sum(r.refused for r in requests)),
                str(sum(r.over_window for r in requests)),
                str(sum(r.model == "aux" for r in requests)),
                str(allowed_calls(requests, path)) if ours else "",
                f"{sum(shares) / len(shares):.1%}",
                f"{min(shares):.1%}",
                f"{sum(last) / len(last):.1%}" if last else "",
            )
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
