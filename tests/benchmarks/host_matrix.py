"""Every path of the host, every way to call an agent, three shapes of work; the host alone beside.

    python -m tests.benchmarks.host_matrix [--path P] [--mode M] [--shape S] [--turns N] [--calls N]
                                           [--compaction on|off] [--alone]

`--compaction` sets the host's `ExecutionConfig.context_compaction`; `--alone` leaves the host's own
agent out. Each cell is two agents: ours, and one with the host's own `summarize`, which knows the
same window and reserve. For both: the agent's requests; turns answered; requests refused; over the
window; calls without their result and results without their call; the mean and the least share of a
request's non-system bytes with which the next one begins; the summarizer's calls. Left out of the
shares: a request after a compression, and a turn's first one without the tool loop of the turn
before, which the host does not send again. A `+` marks turns that the host began again and again
until let through.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import statistics
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from praisonaiagents import Agent, ExecutionConfig

from praison_compressor import Event, uninstall
from praison_compressor.testing import LocalProvider, Recorded, Summarizer, Worker
from tests.benchmarks.common import options, show
from tests.helpers import hosting
from tests.helpers.hosting import EVERY_PATH, MODES, OPENAI, WINDOW, of_agent

MOST = 400  # requests of a cell, which needs 122 at most
LONG = {"max_iter": 500, "max_tool_calls_per_turn": 5_000}
COMPACTION: dict[str | None, dict[str, bool]] = {
    None: {},
    "on": {"context_compaction": True},
    "off": {"context_compaction": False},
}
PLAIN, LOOP, PARALLEL = SHAPES = ("plain", "loop", "parallel")
COLUMNS = ("requests", "answers", "refused", "over", "unpaired", "prefix", "least", "summaries")


class Talk(NamedTuple):
    """How many turns, and in each of them how many rounds of how many calls."""

    turns: int
    rounds: int
    parallel: int


def talk(path: str, mode: str, shape: str, asked: Any) -> Talk:
    """The work of a cell."""
    if shape == PLAIN:
        return Talk(asked.turns, 0, 1)
    # The host's OpenAI streams run one round of tools in a turn, and keep it in the history.
    one_round = path == OPENAI and mode in ("stream", "iter_stream")
    if shape == LOOP:
        return Talk(asked.calls // 2, 1, 1) if one_round else Talk(2, asked.calls, 1)
    return Talk(6, 1, 6) if one_round else Talk(2, asked.calls // 6, 6)


@contextlib.contextmanager
def at_work(
    path: str, worker: Worker, tools: list[Any], hosts: Any = None, compaction: str | None = None
) -> Iterator[tuple[LocalProvider, Agent]]:
    """A provider and an agent: ours, or, told by `hosts` what to do, of the host alone."""
    with hosting.by_itself(worker, WINDOW) as provider:
        provider.route("aux", Summarizer(r"L-\d+"))
        if hosts:
            uninstall()
        asked = hosts or hosting.context(provider)
        settings = ExecutionConfig(**LONG, **COMPACTION[compaction])
        made = hosting.agent(provider, path, asked, tools=tools or None, execution=settings)
        yield provider, made


def cell(
    path: str, mode: str, work: Talk, compaction: str | None, *, ours: bool
) -> tuple[object, ...]:
    """The figures of one agent at its work."""
    worker = Worker(
        work.rounds, parallel=work.parallel, arguments=hosting.numbered, answer="Noted. " * 12
    )
    compressed_before: list[int] = []
    tools = [hosting.look_up] if work.rounds else []
    with at_work(path, worker, tools, None if ours else _hosts_own(), compaction) as (
        provider,
        made,
    ):
        if ours:

            def hear(event: Event) -> None:
                if event.name == "committed":
                    compressed_before.append(len(provider.requests))

            made.context_compressor.subscribe(hear)
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
    """The host's SUMMARIZE with the reserve that ours has."""
    from praisonaiagents.context.models import OptimizerStrategy

    strategy = OptimizerStrategy.SUMMARIZE
    return {"strategy": strategy, "llm_summarize": True, "output_reserve": WINDOW // 4}


def _answers(made: Agent, mode: str, turns: int) -> int:
    """How many turns had an answer; each is asked for by itself, so that none ends the others."""
    answered = 0
    for number in range(turns):
        with contextlib.suppress(Exception):
            (said,) = MODES[mode](made, [hosting.turn(number)])
            answered += bool(said and said.strip())
    return answered


def _figures(
    provider: LocalProvider, answers: str, compressed_before: list[int]
) -> tuple[object, ...]:
    """The values of `COLUMNS`."""
    sent = of_agent(provider)
    shares = [
        100 * hosting.reused(before, after)
        for before, after in itertools.pairwise(sent)
        if before.messages
        and after.messages  # none where what was sent is no request at all
        and not any(before.number <= count < after.number for count in compressed_before)
        and not hosting.is_dropped(before, after)
    ]
    return (
        f"{len(sent)}{'+' if len(sent) >= MOST else ''}",
        answers,
        sum(record.status != 200 for record in sent),
        sum(record.over_window for record in sent),
        sum(map(unpaired, sent)),
        f"{statistics.mean(shares):.1f}" if shares else "-",
        f"{min(shares):.1f}" if shares else "-",
        len(provider.for_model("aux")),
    )


def unpaired(record: Recorded) -> int:
    """How many results have no call before them, and how many calls no result after them."""
    waiting: list[str] = []
    orphans = 0
    for is_call, id in _calls_and_results(record.body.get("messages", record.body.get("input"))):
        if is_call:
            waiting.append(id)
        elif id in waiting:
            waiting.remove(id)
        else:
            orphans += 1
    return orphans + len(waiting)


def _calls_and_results(body: Any) -> Iterator[tuple[bool, str]]:
    """Ids in their order, of calls and of results, on any of the three wires."""
    if isinstance(body, list):
        for part in body:
            yield from _calls_and_results(part)
    if not isinstance(body, dict):
        return
    kind = body.get("type")
    result = body.get("tool_call_id") or body.get("tool_use_id")
    if result or kind == "function_call_output":
        yield False, result or body["call_id"]
    elif kind in ("function", "tool_use", "function_call"):
        yield True, body.get("call_id") or body["id"]
    else:
        yield from _calls_and_results(body.get("tool_calls"))
        yield from _calls_and_results(body.get("content"))


def main() -> None:
    sizes = {"turns": 24, "calls": 60}
    more: dict[str, Any] = {"compaction": ("on", "off"), "alone": False}
    given = options(__doc__, path=EVERY_PATH, mode=tuple(MODES), shape=SHAPES, **sizes, **more)
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")

    def rows() -> Iterator[tuple[str, ...]]:
        for path, mode, shape in itertools.product(
            [given.path] if given.path else EVERY_PATH,
            [given.mode] if given.mode else MODES,
            [given.shape] if given.shape else SHAPES,
        ):
            work = talk(path, mode, shape, given)
            with contextlib.redirect_stdout(io.StringIO()):  # the host prints its errors
                both = [
                    cell(path, mode, work, given.compaction, ours=ours)
                    for ours in ((True,) if given.alone else (True, False))
                ]
            figures = zip(*both, strict=True)
            yield (path, mode, shape, *(" / ".join(map(str, each)) for each in figures))

    show("ours" if given.alone else "ours / host", ("path", "mode", "shape", *COLUMNS), rows())


if __name__ == "__main__":
    main()
