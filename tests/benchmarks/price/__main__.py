"""Replay recorded sessions on a priced prompt cache: what each way of compressing costs in all.

    python -m tests.benchmarks.price [--sessions 6] [--window 32000] [--corpus FILE]

Each request of a session is sent after a pause: 5 seconds after a tool's result, and after the
user's message the pace of the column (lognormal: median 2 minutes, sigma 1.5). The simulated cache
holds the last request for the provider's time to live; its prefix, by whole messages from 1,024
tokens on, costs the price of a cache read, the rest that of a cache write. Summaries are written by
the agent's own model. The answers of the agent cost the same in every row and are left out.

"hindsight" knows all pauses and messages to come: the cheapest moments for summaries by dynamic
programming, where a summary leaves what ours leaves and has the same length; once at the marks that
ours goes by (above the trigger, or above the mark for a cold cache), once at any moment above that
mark. The host as it is asks no model: it keeps five messages and 150 characters of the first ten.
LangChain's middleware has no trigger by default; 85 % is that of its deep agents. To reach: ours
at most 1.10 of hindsight's, and below every way that keeps a summary, in each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.common import options, recorded, show

from .hindsight import cheapest, course_of
from .prices import PACES, Provider, Session, dollars, providers
from .ways import budget_of, host, langchain, ours, plain

WITHIN = 1.10  # of hindsight's money, to reach


def sessions(path: Path, number: int, window: int) -> list[Session]:
    """Return the largest sessions that the window does not hold, by their tokens."""
    found = [
        Session(each["id"], each["messages"])
        for each in recorded(path)
        if sum(m["role"] == "user" for m in each["messages"]) > 1
    ]
    sized = [(one.size(range(len(one.messages))), one) for one in found]
    long = [one for size, one in sorted(sized, key=lambda x: -x[0]) if size > window]
    return long[:number]


AT_MARKS, ANYWHERE = "hindsight at our marks", "hindsight at any moment"
FORGETS = "host as it is"
ROWS = (
    FORGETS,
    "host repaired",
    "LangChain's middleware",
    "plain 80 % trigger",
    "ours without the clock",
    "ours",
    AT_MARKS,
    ANYWHERE,
)
"""The ways, and two schedules that know what comes."""


def money(session: Session, window: int, cells: Sequence[tuple[Provider, str]]) -> Iterator[Row]:
    """Yield each row's dollars for a session, by cell."""
    quiet = ours(session, window, [0.0] * len(session.requests), None)
    still = {
        FORGETS: host(session, window, repaired=False),
        "host repaired": host(session, window, repaired=True),
        "LangChain's middleware": langchain(session, window),
        "plain 80 % trigger": plain(session, window),
        "ours without the clock": quiet,
    }
    for at, pace in cells:
        pauses = session.pauses(pace)
        for name, run in still.items():
            yield Row(name, at.name, pace, dollars(session, run, pauses, at))
        mine = ours(session, window, pauses, at)
        yield Row("ours", at.name, pace, dollars(session, mine, pauses, at))
        course = course_of(session, budget_of(window), pauses, at, quiet)
        for name in (AT_MARKS, ANYWHERE):
            yield Row(name, at.name, pace, cheapest(course, at, at_marks=name == AT_MARKS))


class Row(NamedTuple):
    """The money of one way at one provider and pace."""

    name: str
    provider: str
    pace: str
    dollars: float


def table(rows: Sequence[Row], provider: str) -> Iterator[list[object]]:
    """Yield a provider's table: money, and its ratio to hindsight's."""
    sums: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.provider == provider:
            sums[row.name, row.pace] = sums.get((row.name, row.pace), 0.0) + row.dollars
    for name in ROWS:
        cells = (f"{sums[name, p]:.3f} ({sums[name, p] / sums[AT_MARKS, p]:.2f})" for p in PACES)
        yield [name, *cells]
    yield []
    others = ROWS[ROWS.index(FORGETS) + 1 : ROWS.index("ours")]
    for name in (AT_MARKS, ANYWHERE):
        within = (sums["ours", pace] <= WITHIN * sums[name, pace] for pace in PACES)
        yield [f"ours <= {WITHIN} x {name}", *within]
    least = (all(sums["ours", pace] <= sums[name, pace] for name in others) for pace in PACES)
    yield ["ours below every way that keeps a summary", *least]


def main() -> None:
    corpus = "../shared/corpus/visible.jsonl"
    given = options(__doc__, sessions=6, window=32_000, corpus=corpus)
    cells = [(at, pace) for at in providers() for pace in PACES]
    chosen = sessions(Path(given.corpus), given.sessions, given.window)
    rows = [row for one in chosen for row in money(one, given.window, cells)]
    requests = sum(len(one.requests) for one in chosen)
    for at in providers():
        title = (
            f"{at.name}, {at.model}, cache of {at.seconds:g} s: dollars for {len(chosen)} "
            f"sessions, {requests:,} requests, window {given.window:,} (ratio to hindsight)"
        )
        show(title, ("", *PACES), table(rows, at.name))


if __name__ == "__main__":
    main()
