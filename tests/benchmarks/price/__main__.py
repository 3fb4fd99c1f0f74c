"""Replay recorded sessions on a priced prompt cache: what each way of compressing costs in all.

    python -m tests.benchmarks.price --corpus FILE [--sessions 6] [--window 32000]

Each request of a session is sent after a pause: 5 seconds after a tool's result, and after the
user's message the pace of the column (lognormal: median 2 minutes, sigma 1.5). The simulated cache
holds the last request for the provider's time to live; its prefix, by whole messages from 1,024
tokens on, costs the price of a cache read, the rest that of a cache write. Summaries are written by
the agent's own model. The answers of the agent cost the same in every row and are left out.

"in view" is the mean of a request's tokens. "lost" is what the last request has lost of the
transcript: tokens that stand in no view, that no summarizer read, and that no archive gives back.
Only rows that lose nothing are comparable in money. The host as it is asks no model and keeps five
messages and 150 characters of the first ten; what it has lost costs nothing. LangChain's middleware
has no trigger by default; 85 % is that of its deep agents, and its summarizer reads 4,000 tokens.

"hindsight" knows all pauses and messages to come: the cheapest moments for summaries by dynamic
programming, each summary as long as ours. At our depth it leaves what ours leaves; at any depth it
may compress a small view to half of our target. Beside that stands ours with as low marks, and
beside the host ours without a model, with less in view and nothing lost. To reach, in each column:
ours at most 1.10 of hindsight's at our depth, with low marks at most 1.10 of hindsight's at any
depth; ours below every other; ours without a model below the host.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.common import options, read_sessions, show

from .hindsight import cheapest, course_of
from .prices import PACES, TOOL_SECONDS, Provider, Run, Session, dollars, providers
from .ways import budget_of, host, langchain, ours, plain

WITHIN = 1.10  # of hindsight's money, to reach


def sessions(path: Path, number: int, window: int) -> list[Session]:
    """Return the largest sessions that the window does not hold, by their tokens."""
    found = [
        Session(each["id"], each["messages"])
        for each in read_sessions(path)
        if sum(m["role"] == "user" for m in each["messages"]) > 1
    ]
    sized = [(one.size(range(len(one.messages))), one) for one in found]
    long = [one for size, one in sorted(sized, key=lambda x: -x[0]) if size > window]
    return long[:number]


HOST, OURS = "host as it is", "ours"
LOW, STATIC = "ours, marks .6 and .4", "ours, marks .5 and .3, no model"
SAME, ANY = "hindsight at our depth", "hindsight at any depth"
WAYS: Mapping[str, Mapping[str, Any]] = {
    OURS: {},
    LOW: {"trigger_ratio": 0.6, "target_ratio": 0.4},
    STATIC: {"trigger_ratio": 0.5, "target_ratio": 0.3, "has_model": False},
}
"""Options of ours."""


class Row(NamedTuple):
    """One way at one provider and pace; tokens of all its requests, and lost ones."""

    name: str
    provider: str
    pace: str
    dollars: float
    requests: int = 0
    sent: int = 0
    lost: int = 0


def money(session: Session, window: int, cells: Sequence[tuple[Provider, str]]) -> Iterator[Row]:
    """Yield each row of a session, by cell."""
    quiet = ours(session, window, [0.0] * len(session.requests), None)
    still = {
        HOST: host(session, window, repaired=False),
        "host repaired": host(session, window, repaired=True),
        "LangChain's middleware": langchain(session, window),
        "plain 80 % trigger": plain(session, window),
        "ours without the clock": quiet,
    }

    @cache
    def run(name: str, at: Provider, cold: tuple[bool, ...]) -> Run:
        pauses = [2 * at.seconds if is_cold else TOOL_SECONDS for is_cold in cold]
        return ours(session, window, pauses, at, **WAYS[name])

    for at, pace in cells:
        pauses = session.pauses(pace)
        cold = tuple(pause > at.seconds for pause in pauses)
        for name, found in (still | {name: run(name, at, cold) for name in WAYS}).items():
            sent, count = sum(map(session.size, found.requests)), len(found.requests)
            paid = dollars(session, found, pauses, at)
            yield Row(name, at.name, pace, paid, count, sent, session.lost(found))
        course = course_of(session, budget_of(window), pauses, at, quiet)
        for name in (SAME, ANY):
            yield Row(name, at.name, pace, cheapest(course, at, at_any_depth=name == ANY))


def table(rows: Sequence[Row], provider: str) -> Iterator[list[object]]:
    """Yield a provider's table: money, and its ratio to hindsight's at our depth."""
    of = [row for row in rows if row.provider == provider]
    names = list(dict.fromkeys(row.name for row in of))
    sums = dict.fromkeys(itertools.product(names, PACES), 0.0)
    for row in of:
        sums[row.name, row.pace] += row.dollars
    for name in names:
        own = [row for row in of if row.name == name]
        cells = (f"{sums[name, p]:.3f} ({sums[name, p] / sums[SAME, p]:.2f})" for p in PACES)
        count, sent = sum(row.requests for row in own), sum(row.sent for row in own)
        lost = sum(row.lost for row in own) // len(PACES)
        yield [name, *cells, *((f"{sent // count:,}", f"{lost:,}") if count else ("", ""))]
    yield []
    others = names[1 : names.index(OURS)]
    least = {p: min(sums[other, p] for other in others) for p in PACES}
    for title, reached in (
        (f"{OURS} <= {WITHIN} x {SAME}", lambda p: sums[OURS, p] <= WITHIN * sums[SAME, p]),
        (f"{LOW} <= {WITHIN} x {ANY}", lambda p: sums[LOW, p] <= WITHIN * sums[ANY, p]),
        (f"{OURS} below all but the host as it is", lambda p: sums[OURS, p] <= least[p]),
        (f"{STATIC} below the host as it is", lambda p: sums[STATIC, p] <= sums[HOST, p]),
    ):
        yield [title, *map(reached, PACES), "", ""]


def main() -> None:
    args = options(__doc__, required=["corpus"], corpus=Path, sessions=6, window=32_000)
    cells = [(at, pace) for at in providers() for pace in PACES]
    chosen = sessions(args.corpus, args.sessions, args.window)
    rows = [row for one in chosen for row in money(one, args.window, cells)]
    requests = sum(len(one.requests) for one in chosen)
    for at in providers():
        title = (
            f"{at.name}, {at.model}, cache of {at.seconds:g} s: dollars for {len(chosen)} "
            f"sessions, {requests:,} requests, window {args.window:,} (ratio to hindsight)"
        )
        show(title, ("", *PACES, "in view", "lost"), table(rows, at.name))


if __name__ == "__main__":
    main()
