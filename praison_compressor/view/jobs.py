"""`Plan` and `Job`: what a compression does, and the runs of the middle that it may replace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

from ..ledger.segments import Segment
from .view import View

SMALLEST_SUMMARY = 80
"""Tokens of a framed summary with one line of text: below it a summary says nothing."""

MAJOR_SHARE = 0.5
"""Share of the largest run below which another run stays as it is while there is room
(tests/view/test_keeping.py)."""

PROSE_SHARE = 1 / 3
"""Of a summary's room, asked of the model at most. A weak model writes twice what it is asked for:
a third is left for quotes then (tests/benchmarks/oracle.py)."""


@dataclass(frozen=True)
class Job:
    """A run of the middle that one new summary replaces."""

    start: int
    end: int
    room: int
    """Tokens of the framed message, at most."""
    quotes: int
    """Tokens of quotes beside a model's prose, at most."""
    spare: int = 0
    """Tokens beyond the room that a prose longer than asked may take."""
    prose: int = 0
    """Tokens of prose asked of the model; 0: no model is asked for this run."""
    folds: tuple[Segment, ...] = ()
    """Summaries that the new one replaces; their prose is carried on."""

    @property
    def by_model(self) -> bool:
        """Whether a model is asked."""
        return self.prose > 0


# -------------------------------------------------------------- runs


@dataclass(frozen=True)
class Way:
    """Which runs a compression replaces."""

    folds: bool
    """Runs that older summaries replace already, too."""
    small: bool
    """Runs that are small beside another, too, and a run that is one summary alone."""


BESIDE, FOLD, ALL = Way(False, False), Way(True, False), Way(True, True)

Run = tuple[int, int]


def runs_of(view: View, tail_start: int, way: Way) -> list[Run]:
    """Return the runs between head and tail to replace, as index pairs."""
    alone = {(tile.start, tile.end) for tile in view.tiles}
    sizes = {
        run: size
        for run in _open_runs(view, tail_start, way.folds)
        if (size := view.shown(*run)) >= 2 * SMALLEST_SUMMARY and (way.small or run not in alone)
    }
    least = 0 if way.small else MAJOR_SHARE * max(sizes.values(), default=0)
    return [run for run, size in sizes.items() if size >= least]


def _open_runs(view: View, tail_start: int, folds: bool) -> Iterator[Run]:
    shut = view.kept if folds else view.kept | view.covered
    inside = range(view.head_end, tail_start)
    for is_open, run in groupby(inside, lambda i: view.allowed[i] and i not in shut):
        if is_open:
            found = list(run)
            yield found[0], found[-1] + 1


def size_without(view: View, runs: Iterable[Run]) -> int:
    """Return the tokens of the view without these runs."""
    return view.size() - sum(view.shown(start, end) for start, end in runs)


# -------------------------------------------------------------- jobs


def main_run(view: View, runs: Sequence[Run]) -> int:
    """Return the place of the run that a model is asked for: the largest, of equal ones the newest.

    One compression is one call of the model; what was done last is where the agent goes on.
    """
    return max(range(len(runs)), key=lambda n: (view.source(*runs[n]), n), default=0)


def jobs_for(
    view: View,
    runs: Sequence[Run],
    needs: Sequence[int],
    prose: int,
    room: int,
    quotes: int,
    spare: int,
) -> tuple[Job, ...]:
    """Return a job for each run, which share `room` tokens by what their quotes need.

    `prose` goes to the main run; beside it stand `quotes` at most. Prose that is longer than asked
    may take `spare` tokens more.
    """
    main = main_run(view, runs)
    rooms = _shares(view, runs, needs, prose, room)
    return tuple(
        replace(_job(view, run, own, prose if n == main else 0, quotes), spare=spare)
        for n, (run, own) in enumerate(zip(runs, rooms, strict=True))
    )


def _job(view: View, run: Run, room: int, prose: int, quotes: int) -> Job:
    own, folds = min(room, view.shown(*run) - 1), _within(view, run)
    # A fold's prose carries more than one segment's did.
    asked = prose * (2 if any(segment.method == "model" for segment in folds) else 1)
    asked = max(1, min(asked, int(own * PROSE_SHARE))) if prose else 0
    return Job(*run, room=own, quotes=min(own, quotes), prose=asked, folds=folds)


def _within(view: View, run: Run) -> tuple[Segment, ...]:
    return tuple(s for start, end, s in view.tiles if run[0] <= start and end <= run[1])


def _shares(
    view: View, runs: Sequence[Run], needs: Sequence[int], prose: int, room: int
) -> list[int]:
    """Share the room: what says something at all, the prose, what quotes need, the rest by size."""
    sizes, main = [view.source(*run) for run in runs], main_run(view, runs)
    given = [SMALLEST_SUMMARY for _ in runs]
    proses = [prose if n == main else 0 for n in range(len(runs))]
    for wanted in (proses, needs, sizes):
        left, whole = max(0, room - sum(given)), max(1, sum(wanted))
        spare = left if wanted is sizes else min(left, sum(wanted))
        given = [have + spare * want // whole for have, want in zip(given, wanted, strict=True)]
    return given


# -------------------------------------------------------------- plans


@dataclass(frozen=True)
class Plan:
    """What to shorten, to mask and to summarize, and where the tail starts."""

    tail_start: int
    expected: int
    """Tokens of the view afterwards, at most."""
    jobs: tuple[Job, ...] = ()
    """Summaries to write."""
    masks: tuple[int, ...] = ()
    """Tool results to replace by one line each; then there are no jobs."""
    excerpts: tuple[int, ...] = ()
    """Tool results that are too large, to replace by their first and last lines."""

    @property
    def summarized(self) -> frozenset[int]:
        """The messages that the new summaries replace."""
        return frozenset(index for job in self.jobs for index in range(job.start, job.end))

    @property
    def excerpted(self) -> tuple[int, ...]:
        """The excerpts that neither a mask nor a summary of the plan hides."""
        hidden = self.summarized.union(self.masks)
        return tuple(index for index in self.excerpts if index not in hidden)


class Measures(Protocol):
    """What replaces messages, as it will be rendered: a plan needs the sizes."""

    def excerpts(self, view: View, most: int | None) -> Mapping[int, Segment]:
        """Return the shortened form of each result that takes more than `most` tokens."""

    def masks(self, view: View, *, by_model: bool) -> Mapping[int, int]:
        """Return the tokens of each output that may be masked, once it is."""

    def quotes(self, view: View, run: Run, room: int, *, by_model: bool) -> int:
        """Return the tokens that the quotes of a run take of `room`."""
