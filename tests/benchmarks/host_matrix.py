"""Every path of the host, every way to call an agent, plain and in a long tool loop.

    python -m tests.benchmarks.host_matrix [--unpatched] [--turns 24] [--calls 60]

For each cell: the agent's requests, those refused, those over the window, orphaned or unanswered
calls, the median share of the previous request's bytes with which the next one begins (outside
compressions), and the summarizer's calls. `--unpatched` asks the host for its own `summarize`.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor.messages import check
from praison_compressor.praisonai import uninstall
from praison_compressor.testing import LocalProvider, Summarizer, Worker
from tests.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    agent,
    at_home,
    context,
    look_up,
    numbered,
    of_agent,
    reused,
    turn,
)

COLUMNS = ("requests", "answered", "refused", "over", "pairs", "reuse", "summaries")
LONG = ExecutionConfig(max_iter=500, max_tool_calls_per_turn=5_000)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unpatched", action="store_true")
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--calls", type=int, default=60)
    asked = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    print(f"{'path':18} {'mode':15} {'shape':6} " + " ".join(f"{name:>9}" for name in COLUMNS))
    for path in EVERY_PATH:
        for mode in MODES:
            for shape in ("plain", "tools"):
                cells = cell(path, mode, shape, asked)
                print(
                    f"{path:18} {mode:15} {shape:6} " + " ".join(f"{value:>9}" for value in cells),
                    flush=True,
                )


def cell(path: str, mode: str, shape: str, asked: Any) -> tuple[Any, ...]:
    """The figures of one cell."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        LocalProvider() as provider,
        at_home(patch, Path(folder), provider),
    ):
        provider.route("aux", Summarizer(r"L-\d+"))
        prompts = [turn(n) for n in range(asked.turns if shape == "plain" else 2)]
        return figures(provider, path, answers(provider, path, mode, shape, asked, prompts))


def answers(
    provider: LocalProvider, path: str, mode: str, shape: str, asked: Any, prompts: list[str]
) -> int:
    """Let an agent answer; how many answers came."""
    # The host's OpenAI streams run one round of tools in a turn.
    one_round = path == OPENAI and mode in ("stream", "iter_stream")
    rounds, parallel = (1, asked.calls) if one_round else (asked.calls, 1)
    plain = shape == "plain"
    provider.answer_with(
        Worker(0 if plain else rounds, parallel=parallel, arguments=numbered, answer="Noted. " * 12)
    )
    if asked.unpatched:
        uninstall()
    ours = None if asked.unpatched else context(provider)
    theirs = "summarize" if asked.unpatched else ours
    made = agent(provider, path, theirs, tools=None if plain else [look_up], execution=LONG)
    try:
        said = MODES[mode](made, prompts)
    except Exception:
        return 0
    return sum(bool(answer and answer.strip()) for answer in said)


def figures(provider: LocalProvider, path: str, answered: int) -> tuple[Any, ...]:
    """What the provider saw."""
    sent, summaries = of_agent(provider), provider.for_model("aux")
    asked_before = {record.number + 1 for record in summaries}
    shares = [reused(a, b) for a, b in pairwise(sent) if b.number not in asked_before]
    broken = sum(bool(check(record.messages)) for record in sent if path == OPENAI)
    return (
        len(sent),
        answered,
        sum(record.status != 200 for record in sent),
        len(provider.over_window),
        broken,
        f"{100 * statistics.median(shares):.1f} %" if shares else "-",
        len(summaries),
    )


if __name__ == "__main__":
    main()
