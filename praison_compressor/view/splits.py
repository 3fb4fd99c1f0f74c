"""`SummaryPlanner`: choose the tail's start, the runs before it, their room.

Texts get room for prose and quotes; the tail gets the newest messages that are asked for and fit
beside the texts. The quotes are measured: what they do not need goes to the tail.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from ..concurrency import computed_once
from ..config import CompressorConfig
from .budget import (
    ALL,
    FOLD_LARGE,
    NEW,
    NEW_LARGE,
    PROSE_SHARE,
    SMALLEST_SUMMARY,
    Budget,
    Plan,
    Rooms,
    Scope,
    jobs_for,
    replaceable_runs,
    size_without,
)
from .renderer import ResultRenderer
from .view import Run, View

# -------------------------------------------------------------- the tail


LARGE_TAIL = CompressorConfig.protect_last_n_tokens
"""If `protect_last_n_tokens` is at least this, the tail asks for its whole share of the target less
the head."""

TURN_START_COST = 0.2
"""Share of the tail that a cut on a turn start may cost (tests/compressor/test_tails.py)."""


def choose_cut(view: View, room: int, floor: int) -> int:
    """Return the tail's start: a step, or a near turn start.

    A turn start never brings the tail below `floor` tokens.
    """
    step = view.longest_tail(room)
    users = set(view.transcript.users)
    least = max(floor, view.tail_tokens(step) * (1 - TURN_START_COST))
    turns = (start for start in view.starts if start >= step and start in users)
    return next((start for start in turns if view.tail_tokens(start) >= least), step)


LEAST_FOLD = 250
"""Least tokens of a fold: in a tiny room the usual fifth would hold the frame and no text
(tests/benchmarks/exam, sessions 6 and 7)."""

MOST_MEASURES = 3
"""Times that quotes are measured at most, while the middle becomes shorter."""

LEAST_FILLED = 0.95
"""Share of its room that a tail keeps when its cut moves to a turn start
(tests/compressor/test_tails.py)."""


# -------------------------------------------------------------- summaries


class Split(NamedTuple):
    """A tail's start, the runs before it, and the tokens of both."""

    tail_start: int
    scope: Scope
    kept_tokens: int
    """Tokens of the view outside the runs to replace."""
    text_tokens: int
    """Tokens for the texts."""
    runs: tuple[Run, ...]
    """The runs that texts replace."""
    goal: int = 0
    """Tokens that the view is planned for."""

    @property
    def size(self) -> int:
        """Tokens of the view with its texts."""
        return self.kept_tokens + self.text_tokens

    def fits(self, goal: int) -> bool:
        """Return whether texts make the view as small as the goal."""
        return bool(self.runs) and self.size <= goal


@dataclass(frozen=True)
class SummaryPlanner:
    """Plans the summaries of one view."""

    view: View
    budget: Budget
    renderer: ResultRenderer

    def plan(self) -> Plan | None:
        """Return the plan, or None if nothing is gained.

        Raises:
            BudgetTooSmall: no plan comes down to the limit.
        """
        split = self.split()
        if split is None:
            return None
        return reject_small_gain(self._measure_plan(split), self.view.size(), self.budget)

    def split(self) -> Split | None:
        """Take the first goal that any split fits; return its mildest split.

        The goals are the target, the mean of target and limit, and the limit. Return None if no
        split fits the target and the view is within the limit.

        Raises:
            BudgetTooSmall: no cut comes down to the limit.
        """
        target, limit = self.budget.target, self.budget.limit
        tried = []
        for goal in (target, (target + limit) // 2, limit):
            split = self._mildest_split(goal)
            if split.fits(goal):
                return split._replace(goal=goal)
            if self.view.size() <= limit:
                return None
            tried.append(split)
        nearest = min(tried, key=lambda split: split.size)
        # A split tried for a lower goal may be smaller than the mildest one for the limit.
        if nearest.fits(limit):
            return nearest._replace(goal=limit)
        needed = nearest.size if nearest.runs else self.view.size()
        raise self.budget.too_small(self.view, needed)

    def least_size(self) -> int:
        """Return the tokens of the smallest view with summaries."""
        last = self.view.starts[-1] if self.view.starts else len(self.view.tokens)
        return self._split_at(last, ALL, 0).size

    def _mildest_split(self, goal: int) -> Split:
        """Return the mildest split with a full tail, else the longest tail.

        The mildest split replaces the fewest kinds of runs. If no split fits the goal, return the
        smallest.
        """
        full_tail = min(self._requested_tail, self._tail_room(goal))
        full_start = self.view.longest_tail(full_tail)
        # A fold may fill its share, with prose of twice the request. The next summary must fit
        # beside it, or every summary would fold. In a tiny room the next one would not fit, so fold
        # there too.
        next_summary = max(self._prose + self.budget.quote_tokens, 2 * self._prose)
        must_fold = (
            self._old_tokens > self.budget.fold_tokens + next_summary
            or self._text_room(goal, NEW, self.budget.quote_tokens) < SMALLEST_SUMMARY
        )
        scopes: tuple[Scope, ...] = (FOLD_LARGE, ALL)
        if self._old_tokens and not must_fold:
            scopes = (NEW_LARGE, NEW, *scopes)
        splits = [self._longest_split(goal, s, self._reserved_room(goal, s)) for s in scopes]
        with_room = [s for s in splits if s.fits(goal) and self._has_room(goal, s.scope)]
        for split in with_room:
            if split.tail_start <= full_start:
                return split
        if with_room:
            return min(with_room, key=lambda split: split.tail_start)
        splits.append(self._longest_split(goal, ALL, 0))  # the texts get the rest
        fitting = [split for split in splits if split.fits(goal)]
        if not fitting:
            return min(splits, key=lambda split: split.size)
        return min(fitting, key=lambda split: split.tail_start)

    def _longest_split(self, goal: int, scope: Scope, reserve: int) -> Split:
        """Return the split with the longest requested tail that fits."""
        view, starts = self.view, self.view.starts
        if not starts:
            return self._split_at(len(view.tokens), scope, 0)
        first = bisect_left(
            starts, True, key=lambda start: self._split_at(start, scope, reserve).fits(goal)
        )
        fitting = view.tail_tokens(starts[min(first, len(starts) - 1)])
        share, asked = self._tail_room(goal), self._requested_tail
        start = choose_cut(view, min(asked, fitting), share if asked >= share else 0)
        return self._split_at(start, scope, reserve)

    def _split_at(self, start: int, scope: Scope, texts: int) -> Split:
        runs = tuple(replaceable_runs(self.view, start, scope))
        texts = max(SMALLEST_SUMMARY * len(runs), texts)
        return Split(start, scope, size_without(self.view, runs), texts, runs)

    # ---------------------------------------------------------- rooms, in tokens

    @computed_once
    def _requested_tail(self) -> int:
        users = self.view.transcript.users
        turns = self.budget.recent_turns
        recent = self.view.tail_tokens(users[-turns:][0]) if turns and users else 0
        least = self._tail_room(self.budget.target) if self.budget.tail_tokens >= LARGE_TAIL else 0
        return max(self.budget.tail_tokens, recent, least)

    def _tail_room(self, goal: int) -> int:
        """Return the tail's share of the goal, in whole steps."""
        share = int(self._room_beside_head(goal) * self.budget.tail_share)
        starts, size = self.view.starts, self.view.tail_tokens
        end = bisect_left(starts, True, key=lambda start: size(start) < share)
        return size(starts[end - 1]) if end else share

    def _room_beside_head(self, goal: int) -> int:
        return max(0, goal - self.view.span_tokens(0, self.view.head_end))

    def _room_beside_tail(self, room: int, goal: int) -> int:
        """Return the room less the tail's share.

        A step larger than that share takes no more than the share.
        """
        return max(room - self._tail_room(goal), int(room * (1 - self.budget.tail_share)))

    @computed_once
    def _old_tokens(self) -> int:
        return sum(segment.tokens for segment in self.view.summaries())

    @computed_once
    def _prose(self) -> int:
        return self.budget.prose_for(self.view.size())

    @computed_once
    def _least_quotes(self) -> int:
        """Return the tokens that quote the beginning of each user message."""
        view = self.view
        users = [n for n in view.transcript.users if view.replaceable[n] and n not in view.covered]
        return self.budget.user_quote_tokens * len(users)

    def _quote_room(self, scope: Scope, quotes: int) -> int:
        """Return the tokens for quotes; a fold may fill `budget.fold_tokens`."""
        folds = scope.include_folds and self._old_tokens and self.budget.user_quote_tokens
        folded = self.budget.fold_tokens - self._prose if folds else 0
        return max(quotes, self._least_quotes, folded)

    def _text_room(self, goal: int, scope: Scope, quotes: int) -> int:
        """Return the tokens that one text needs beside head and tail.

        Beside older summaries it is less, so that a fold and two more texts fit together
        (tests/view/test_folds.py).
        """
        beside = self._room_beside_head(goal)
        most = self._room_beside_tail(beside, goal)
        if self._old_tokens and scope.include_folds:
            most = min(most, max(beside // 5, LEAST_FOLD))
        elif self._old_tokens:
            most = beside // 10
        return min(self._prose + self._quote_room(scope, quotes), most)

    def _reserved_room(self, goal: int, scope: Scope) -> int:
        """Return the tokens for texts beside a tail of the newest step."""
        if not self.view.starts:
            return 0
        last = self.view.starts[-1]
        # Texts and tail share what is left.
        left = goal - size_without(self.view, replaceable_runs(self.view, last, scope))
        most = min(self._room_beside_tail(left + self.view.tail_tokens(last), goal), left)
        return max(0, min(self._text_room(goal, scope, self.budget.most_quote_tokens), most))

    def _has_room(self, goal: int, scope: Scope) -> bool:
        """Return whether the texts have half of the room they need.

        Small runs that stay beside a tail may leave next to nothing for a summary of hundreds of
        messages (tests/compressor/test_tails.py).
        """
        least = self._text_room(goal, scope, self.budget.quote_tokens)
        return not self.view.starts or 2 * self._reserved_room(goal, scope) >= least

    # ---------------------------------------------------------- measured quotes

    def _measure_plan(self, split: Split) -> Plan:
        """Return the plan; give the room that quotes leave to the tail."""
        goal = split.goal
        quotes = self._quote_room(split.scope, self.budget.most_quote_tokens)
        most = self._prose + quotes  # Larger texts would be folded soon.
        room = min(most, goal - split.kept_tokens)
        prose = min(self._prose, int(room * PROSE_SHARE)) if self.budget.has_model else 0
        needs = list[int]()
        measure = self.renderer.measure_quotes
        for _ in range(MOST_MEASURES):
            needs = [measure(self.view, run, room, self.budget) for run in split.runs]
            start = split.tail_start
            split = self._lengthen_tail(split, prose, min(most - prose, sum(needs)))
            room = min(most, goal - split.kept_tokens)
            if split.tail_start == start:
                break
        # Where quotes have only a minimum (`user_quote_tokens`), they take what the prose leaves.
        quotes = room if self.budget.user_quote_tokens else quotes
        # A model's text may also take half of the free tokens below the trigger.
        spare = max(0, self.budget.trigger - goal) // 2
        jobs = jobs_for(self.view, split.runs, needs, Rooms(room, prose, quotes, spare))
        expected = split.kept_tokens + min(room, max(split.text_tokens, prose))
        return Plan(split.tail_start, expected, jobs)

    def _lengthen_tail(self, split: Split, prose: int, quotes: int) -> Split:
        """Return the split with a longer tail if its texts need less.

        A shorter middle needs fewer tokens for quotes, in proportion to its size.
        """
        view = self.view

        def shorten_middle(start: int) -> Split:
            shorter = self._split_at(start, split.scope, 0)
            texts = prose + quotes * self._source_tokens(shorter) // self._source_tokens(split)
            return shorter._replace(text_tokens=max(shorter.text_tokens, texts), goal=split.goal)

        older = [start for start in view.starts if start < split.tail_start]
        older = [start for start in older if view.tail_tokens(start) <= self._requested_tail]
        longest = bisect_left(older, True, key=lambda start: shorten_middle(start).fits(split.goal))
        if longest == len(older):
            return split._replace(text_tokens=prose + quotes)
        room = view.tail_tokens(older[longest])
        floor = max(view.tail_tokens(split.tail_start) + 1, int(room * LEAST_FILLED))
        longer = shorten_middle(choose_cut(view, room, floor))
        is_longer = len(longer.runs) == len(split.runs) and longer.fits(split.goal)
        return longer if is_longer else split._replace(text_tokens=prose + quotes)

    def _source_tokens(self, split: Split) -> int:
        return sum(self.view.original_tokens(*run) for run in split.runs)


def reject_small_gain(plan: Plan, size: int, budget: Budget) -> Plan | None:
    """Return the plan, or None if it frees too little."""
    is_enough = size - plan.expected >= budget.min_gain * size
    return plan if is_enough or size > budget.limit else None
