"""Count refused requests and kept prefixes on every path and mode of the host, ours beside it.

    python -m tests.benchmarks.host_matrix [--path P] [--mode M] [--shape S] [--turns N] [--calls N]
                                           [--compaction on|off] [--alone]

`--compaction` sets the host's `ExecutionConfig.context_compaction`; `--alone` leaves the host's own
agent out. Each cell is two agents: ours, and one with the host's own `summarize`, which knows the
same window and reserve. Columns: the agent's requests; turns answered; requests refused; over the
window; calls without their result and results without their call; the mean and the least share of a
request's non-system bytes with which the next one begins, compressions left out; the summarizer's
calls. A `+` marks turns that the host began again and again until let through.
"""

import contextlib
import itertools
import statistics
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from praisonaiagents import Agent, ExecutionConfig

from praison_compressor import uninstall
from praison_compressor.testing import LocalProvider, Worker
from tests.benchmarks.common import faults, options, show, silence_host
from tests.helpers import hosting
from tests.helpers.hosting import EVERY_PATH, MODES, OPENAI, WINDOW, of_agent

MOST = 400  # requests of a cell, which needs 122 at most
LONG = {"max_iter": 500, "max_tool_calls_per_turn": 5_000}
PLAIN, LOOP, PARALLEL = SHAPES = ("plain", "loop", "parallel")
COLUMNS = ("requests", "answers", "refused", "over", "unpaired", "prefix", "least", "summaries")


class Talk(NamedTuple):
    """Turns of a talk; rounds in each turn; calls in each round."""

    turns: int
    rounds: int
    parallel: int


def talk(path: str, mode: str, shape: str, asked: Any) -> Talk:
    """Return the work of a cell."""
    if shape == PLAIN:
        return Talk(asked.turns, 0, 1)
    # The host's OpenAI streams run one round of tools in a turn, and keep it in the history.
    one_round = path == OPENAI and mode in ("stream", "iter_stream")
    if shape == LOOP:
        return Talk(asked.calls // 2, 1, 1) if one_round else Talk(2, asked.calls, 1)
    return Talk(6, 1, 6) if one_round else Talk(2, asked.calls // 6, 6)


def cell(path: str, mode: str, work: Talk, compaction: str, *, ours: bool) -> tuple[object, ...]:
    """Return the values of `COLUMNS` for one agent."""
    behaviour: Any = {"parallel": work.parallel, "arguments": hosting.numbered}
    behaviour["answer"] = "Noted. " * 12
    settings = {**LONG, "context_compaction": compaction == "on"} if compaction else LONG
    with hosting.by_itself(Worker(work.rounds, **behaviour), WINDOW, hosting.LEDGERS) as provider:
        if not ours:
            uninstall()
        made = hosting.agent(
            provider,
            path,
            hosting.context(provider) if ours else _hosts_own(),
            tools=[hosting.look_up] if work.rounds else None,
            execution=ExecutionConfig(**settings),
        )
        with _ended_at(provider, MOST):
            answers = _answers(made, mode, work.turns)
        sent = of_agent(provider)
        shares = [100 * share for share in hosting.prefix_shares([r for r in sent if r.messages])]
        return (
            f"{len(sent)}{'+' if len(sent) >= MOST else ''}",
            f"{answers}/{work.turns}",
            *faults(sent),
            f"{statistics.mean(shares):.1f}" if shares else "-",
            f"{min(shares):.1f}" if shares else "-",
            len(provider.for_model("aux")),
        )


def _hosts_own() -> dict[str, Any]:
    """Return the host's SUMMARIZE with the reserve that ours has."""
    from praisonaiagents.context.models import OptimizerStrategy

    strategy = OptimizerStrategy.SUMMARIZE
    return {"strategy": strategy, "llm_summarize": True, "output_reserve": WINDOW // 4}


@contextlib.contextmanager
def _ended_at(provider: LocalProvider, most: int) -> Iterator[None]:
    """Let everything fit after `most` requests: the host alone repeats a refused turn."""
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


def _answers(made: Agent, mode: str, turns: int) -> int:
    """Count answered turns; each is asked for by itself, so that none ends the others."""
    answered = 0
    for number in range(turns):
        with contextlib.suppress(Exception):
            (said,) = MODES[mode](made, [hosting.turn(number)])
            answered += bool(said and said.strip())
    return answered


def rows(args: Any) -> Iterator[tuple[str, ...]]:
    """Yield a line for each cell."""
    for path, mode, shape in itertools.product(args.path, args.mode, args.shape):
        work = talk(path, mode, shape, args)
        who = (True,) if args.alone else (True, False)
        both = [cell(path, mode, work, args.compaction, ours=ours) for ours in who]
        figures = zip(*both, strict=True)
        yield (path, mode, shape, *(" / ".join(map(str, each)) for each in figures))


def main() -> None:
    chosen = {"path": EVERY_PATH, "mode": tuple(MODES), "shape": SHAPES}
    args = options(__doc__, **chosen, turns=24, calls=60, compaction="", alone=False)
    silence_host()
    title = "ours" if args.alone else "ours / host"
    show(title, ("path", "mode", "shape", *COLUMNS), rows(args))


if __name__ == "__main__":
    main()
