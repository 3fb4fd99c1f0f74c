"""`Plan`, `Job`: what a compression replaces, and its texts' room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..ledger.segments import Segment
from .tiles import Run
from .view import View

SMALLEST_SUMMARY = 80
"""Tokens of a framed summary with one line of text: below it a summary says nothing."""

MAJOR_SHARE = 0.5
"""Runs below this share of the largest stay unchanged while there is room
(tests/view/test_keeping.py)."""

PROSE_SHARE = 1 / 3
"""Largest share of a summary's room requested as prose. A weak model writes twice the requested
length; a third is then still left for quotes (tests/benchmarks/oracle.py)."""


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
    def asks_model(self) -> bool:
        """Whether a model is asked."""
        return self.prose > 0


@dataclass(frozen=True)
class Plan:
    """What to shorten, mask and summarize, and where the tail starts."""

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
        """The excerpts that no mask or summary of the plan hides."""
        hidden = self.summarized.union(self.masks)
        return tuple(index for index in self.excerpts if index not in hidden)


class Scope(NamedTuple):
    """Which runs a compression replaces."""

    include_folds: bool
    """Include runs that summaries already replace."""
    include_small: bool
    """Include runs much smaller than another, and a run of only one summary."""


NEW_LARGE, NEW = (
    Scope(include_folds=False, include_small=False),
    Scope(include_folds=False, include_small=True),
)
FOLD_LARGE, ALL = (
    Scope(include_folds=True, include_small=False),
    Scope(include_folds=True, include_small=True),
)


def replaceable_runs(view: View, tail_start: int, scope: Scope) -> list[Run]:
    """Return the runs between head and tail to replace, as index pairs."""
    alone = {(tile.start, tile.end) for tile in view.tiles}
    sizes: dict[Run, int] = {}
    for start, end in view.open_runs if scope.include_folds else view.new_runs:
        run = (start, min(end, tail_start))
        if start < tail_start and (scope.include_small or run not in alone):
            sizes[run] = view.shown_tokens(*run)
    least = 0 if scope.include_small else MAJOR_SHARE * max(sizes.values(), default=0)
    least = max(least, 2 * SMALLEST_SUMMARY)
    return [run for run, size in sizes.items() if size >= least]


def size_without(view: View, runs: Sequence[Run]) -> int:
    """Return the view's tokens without these runs, with their bridges."""
    bridges = sum(view.needs_bridge(start) for start, _ in runs)
    bridge_tokens = bridges * view.bridge.tokens if view.bridge is not None else 0
    return view.size() - sum(view.shown_tokens(*run) for run in runs) + bridge_tokens


class Rooms(NamedTuple):
    """Tokens for the texts of a plan."""

    all: int
    """All texts together."""
    prose: int
    """Asked of the model."""
    quotes: int
    """Quotes beside a prose, at most."""
    spare: int = 0
    """Beyond a text's room, for prose longer than asked."""


def jobs_for(
    view: View, runs: Sequence[Run], needs: Sequence[int], rooms: Rooms
) -> tuple[Job, ...]:
    """Return the jobs of runs, which share the room by need.

    Only the largest run gets prose, the newest of equal ones: one compression asks a model for
    one summary.
    """
    sizes = [view.original_tokens(*run) for run in runs]
    main = max(range(len(runs)), key=lambda n: (sizes[n], n), default=0)
    proses = [rooms.prose if n == main else 0 for n in range(len(runs))]
    shares = _share_room(proses, needs, sizes, rooms.all)
    planned = zip(runs, shares, proses, strict=True)
    return tuple(_job_for(view, run, share, prose, rooms) for run, share, prose in planned)


def _job_for(view: View, run: Run, share: int, prose: int, rooms: Rooms) -> Job:
    """Return a run's job; without `prose` no model is asked."""
    room = min(share, view.shown_tokens(*run) - 1)
    folds = view.summaries_in(run)
    # A fold's prose carries more than one segment's did.
    prose *= 2 if any(segment.method == "model" for segment in folds) else 1
    prose = max(1, min(prose, int(room * PROSE_SHARE))) if prose else 0
    return Job(*run, room, min(room, rooms.quotes), rooms.spare, prose, folds)


def _share_room(
    proses: Sequence[int], needs: Sequence[int], sizes: Sequence[int], room: int
) -> list[int]:
    """Share the room: minimum, then prose, then quotes, then by size."""
    shares = [SMALLEST_SUMMARY for _ in sizes]
    for wanted in (proses, needs, sizes):
        left, whole = max(0, room - sum(shares)), max(1, sum(wanted))
        spare = left if wanted is sizes else min(left, sum(wanted))
        shares = [own + spare * want // whole for own, want in zip(shares, wanted, strict=True)]
    return shares
