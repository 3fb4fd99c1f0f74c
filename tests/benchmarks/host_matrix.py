"""Count refused requests and kept prefixes on every path and mode of the host.

    python -m tests.benchmarks.host_matrix [--path P] [--mode M] [--shape S] [--turns N] [--calls N]

Columns: the agent's requests; turns answered; requests refused; over the window; calls without
their result and results without their call; the mean and the least share of a request's non-system
bytes with which the next one begins, compressions left out; the summarizer's calls.
"""

import contextlib
import itertools
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from praisonaiagents import Agent

from praison_compressor.testing import Worker
from tests.benchmarks.common import faults, options, show, silence_host
from tests.helpers import hosting
from tests.helpers.hosting import EVERY_PATH, MODES, OPENAI, WINDOW, of_agent

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


def cell(path: str, mode: str, work: Talk) -> tuple[object, ...]:
    """Return the values of `COLUMNS`."""
    worker = Worker(
        work.rounds, parallel=work.parallel, arguments=hosting.numbered, answer="Noted. " * 12
    )
    with hosting.by_itself(worker, WINDOW, hosting.LEDGERS) as provider:
        tools = [hosting.look_up] if work.rounds else None
        ours = hosting.context(provider)
        made = hosting.agent(provider, path, ours, tools=tools, execution=hosting.LONG)
        answers = _answers(made, mode, work.turns)
        sent = of_agent(provider)
        shares = [100 * share for share in hosting.prefix_shares([r for r in sent if r.messages])]
        return (
            len(sent),
            f"{answers}/{work.turns}",
            *faults(sent),
            f"{statistics.mean(shares):.1f}" if shares else "-",
            f"{min(shares):.1f}" if shares else "-",
            len(provider.for_model("aux")),
        )


def _answers(made: Agent, mode: str, turns: int) -> int:
    """Count answered turns; each is asked for by itself, so that none ends the others."""
    answered = 0
    for number in range(turns):
        with contextlib.suppress(Exception):
            (said,) = MODES[mode](made, [hosting.turn(number)])
            answered += bool(said and said.strip())
    return answered


def rows(args: Any) -> Iterator[tuple[object, ...]]:
    """Yield a line for each cell."""
    for path, mode, shape in itertools.product(args.path, args.mode, args.shape):
        yield (path, mode, shape, *cell(path, mode, talk(path, mode, shape, args)))


def main() -> None:
    chosen = {"path": EVERY_PATH, "mode": tuple(MODES), "shape": SHAPES}
    args = options(__doc__, **chosen, turns=24, calls=60)
    silence_host()
    show("the host's paths and modes", ("path", "mode", "shape", *COLUMNS), rows(args))


if __name__ == "__main__":
    main()
