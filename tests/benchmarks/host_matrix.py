"""Every path of the host, every way to call an agent, three shapes of work; the host alone beside.

    python -m tests.benchmarks.host_matrix [--path P] [--mode M] [--shape S] [--turns N] [--calls N]

Each cell is two agents: ours, and one with the host's own `summarize`, which knows the same window
and reserve. For both: the agent's requests; turns answered; requests refused; over the window;
calls without their result and results without their call; the mean and the least share of a
request's non-system bytes with which the next one begins; the summarizer's calls. Left out of the
shares: a request after a compression, and the first of a turn after a tool loop, which the host
does not send again. A `+` marks turns that the host began again and again until let through.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import logging
import statistics
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from praisonaiagents import ExecutionConfig

from praison_compressor import uninstall
from praison_compressor.testing import LocalProvider, Recorded, Summarizer, Worker
from tests.benchmarks.wires import unpaired
from tests.helpers.hosting import (
    EVERY_PATH,
    MODES,
    OPENAI,
    WINDOW,
    agent,
    at_home,
    context,
    look_up,
    numbered,
    of_agent,
    reused,
    turn,
)
from tests.helpers.provider import strict_provider

MOST = 400  # requests of a cell, which needs 122 at most
LONG = ExecutionConfig(max_iter=500, max_tool_calls_per_turn=5_000)
PLAIN, LOOP, PARALLEL = SHAPES = ("plain", "loop", "parallel")
COLUMNS = ("requests", "answers", "refused", "over", "unpaired", "prefix", "least", "summaries")


class Talk(NamedTuple):
    """How many turns, and in each of them how many rounds of how many calls."""

    turns: int
    rounds: int
    parallel: int


class Cell(NamedTuple):
    """The figures of one agent."""

    requests: str
    answers: str
    refused: int
    over: int
    unpaired: int
    prefix: str
    least: str
    summaries: int


def talk(path: str, mode: str, shape: str, asked: Any) -> Talk:
    """The work of a cell."""
    if shape == PLAIN:
        return Talk(asked.turns, 0, 1)
    # The host's OpenAI streams run one round of tools in a turn, and keep it in the history.
    one_round = path == OPENAI and mode in ("stream", "iter_stream")
    if shape == LOOP:
        return Talk(asked.calls // 2, 1, 1) if one_round else Talk(2, asked.calls, 1)
    return Talk(6, 1, 6) if one_round else Talk(2, asked.calls // 6, 6)


def cell(path: str, mode: str, work: Talk, *, ours: bool) -> Cell:
    """One agent at its work."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        strict_provider() as provider,
        at_home(patch, Path(folder), provider),
    ):
        provider.route("aux", Summarizer(r"L-\d+"))
        provider.answer_with(
            Worker(work.rounds, parallel=work.parallel, arguments=numbered, answer="Noted. " * 12)
        )
        asked_for = context(provider) if ours else _hosts_own()
        if not ours:
            uninstall()
        made = agent(
            provider, path, asked_for, tools=[look_up] if work.rounds else None, execution=LONG
        )
        compressed_before: list[int] = []
        if ours:
            made.context_compressor.subscribe(
                lambda event: (
                    event.name == "committed" and compressed_before.append(len(provider.requests))
                )
            )
        with _ended_at(provider, MOST):
            answers = _answers(made, mode, work.turns)
        return _figures(provider, f"{answers}/{work.turns}", compressed_before)


@contextlib.contextmanager
def _ended_at(provider: LocalProvider, most: int) -> Iterator[None]:
    """Let everything fit after so many requests: the host alone begins a refused turn again."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            if len(provider.requests) >= most:
                provider.set_window(10**9)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _hosts_own() -> dict[str, Any]:
    """The host's SUMMARIZE, told the window and the reserve that ours has."""
    import litellm
    from praisonaiagents.context.models import OptimizerStrategy

    for name in ("gpt-4o-mini", "openai/gpt-local", "gpt-local", "openai/gpt-4o-mini"):
        known = litellm.model_cost.get(name, {})
        litellm.model_cost[name] = {**known, "max_input_tokens": WINDOW}
    for name in ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"):
        known = litellm.model_cost.get(name, {})
        litellm.model_cost[name] = {**known, "max_input_tokens": WINDOW}
    return {
        "strategy": OptimizerStrategy.SUMMARIZE,
        "llm_summarize": True,
        "output_reserve": WINDOW // 4,
    }


def _answers(made: Any, mode: str, turns: int) -> int:
    """How many turns had an answer; each is asked for by itself, so that none ends the others."""
    answered = 0
    for number in range(turns):
        try:
            (said,) = MODES[mode](made, [turn(number)])
        except Exception:
            continue
        answered += bool(said and said.strip())
    return answered


def _figures(provider: LocalProvider, answers: str, compressed_before: list[int]) -> Cell:
    sent = of_agent(provider)
    shares = [
        reused(before, after)
        for before, after in itertools.pairwise(sent)
        if not any(before.number <= count < after.number for count in compressed_before)
        and not _is_a_new_turn(before, after)
    ]
    return Cell(
        requests=f"{len(sent)}{'+' if len(sent) >= MOST else ''}",
        answers=answers,
        refused=sum(record.status != 200 for record in sent),
        over=sum(record.over_window for record in sent),
        unpaired=sum(unpaired(record.protocol, record.body) for record in sent),
        prefix=f"{100 * statistics.mean(shares):.1f}" if shares else "-",
        least=f"{100 * min(shares):.1f}" if shares else "-",
        summaries=len(provider.for_model("aux")),
    )


def _is_a_new_turn(before: Recorded, after: Recorded) -> bool:
    return before.messages[-1]["role"] == "tool" and after.messages[-1]["role"] == "user"


def main() -> None:
    """Print the table, a line as soon as its cell is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", choices=EVERY_PATH)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--calls", type=int, default=60)
    asked = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    print(f"{'':44}" + "".join(f"{name:>17}" for name in COLUMNS))
    print(f"{'path':18}{'mode':16}{'shape':10}" + f"{'ours / host':>17}" * len(COLUMNS))
    for path, mode, shape in itertools.product(
        [asked.path] if asked.path else EVERY_PATH,
        [asked.mode] if asked.mode else MODES,
        [asked.shape] if asked.shape else SHAPES,
    ):
        work = talk(path, mode, shape, asked)
        with contextlib.redirect_stdout(io.StringIO()):  # the host prints its errors
            both = [cell(path, mode, work, ours=ours) for ours in (True, False)]
        figures = "".join(f"{f'{ours} / {theirs}':>17}" for ours, theirs in zip(*both, strict=True))
        print(f"{path:18}{mode:16}{shape:10}{figures}", flush=True)


if __name__ == "__main__":
    main()
