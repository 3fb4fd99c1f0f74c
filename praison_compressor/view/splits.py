"""`SummaryPlanner`: choose the tail's start and the runs that summaries replace.

The tail first gets its share of the target. Then the quotes are measured, and the tail grows by the
tokens that the summaries do not need.
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
    SMALLEST_SUMMARY_TOKENS,
    Budget,
    Plan,
    Scope,
    TextTokens,
    jobs_for,
    replaceable_runs,
    size_without,
)
from .renderer import ResultRenderer
from .view import Run, View

LARGE_TAIL_TOKENS = CompressorConfig.protect_last_n_tokens
"""If `protect_last_n_tokens` is at least this many tokens, the tail gets its whole share."""

STEP_EXCESS_RATIO = 1.25
"""Upper bound of a tail in whole steps, as a ratio to the tail's share
(tests/compressor/test_tails.py)."""

TURN_START_SHARE = 0.05
"""To start with a turn, a tail loses at most this share of its tokens
(tests/view/test_plan.py)."""

LEAST_TEXT_TOKENS = 225
"""Three times a frame's tokens. If a text gets fewer tokens, older summaries and small runs are
replaced too (tests/view/test_plan.py)."""

LEAST_TEXT_SHARE = 0.1
"""All texts together need this share of (goal - head). With a smaller share, the user's words of a
long middle do not fit (tests/benchmarks/rounds.py --corpus; tests/view/test_plan.py)."""

MOST_LENGTHENINGS = 2


def choose_cut(view: View, tail_tokens: int, least_tokens: int = 0) -> int:
    """Return the start of a tail of at most `tail_tokens`.

    The tail starts with a turn if the tail then keeps `least_tokens` and loses at most
    `TURN_START_SHARE`.
    """
    step = view.longest_tail(tail_tokens)
    users = set(view.transcript.users)
    least = max(least_tokens, view.tail_tokens(step) * (1 - TURN_START_SHARE))
    turns = (start for start in view.starts if start >= step and start in users)
    return next((start for start in turns if view.tail_tokens(start) >= least), step)


class Split(NamedTuple):
    """A tail's start, and the runs before it that texts replace."""

    goal: int
    """Upper bound of the view's tokens after the compression."""
    tail_start: int
    scope: Scope
    runs: tuple[Run, ...]
    kept_tokens: int
    """Tokens of the view without the runs."""

    @property
    def least_tokens(self) -> int:
        """The tokens of the view with the smallest texts."""
        return self.kept_tokens + SMALLEST_SUMMARY_TOKENS * len(self.runs)

    @property
    def free_tokens(self) -> int:
        """The tokens that the goal leaves for texts."""
        return self.goal - self.kept_tokens

    def fits(self, text_tokens: int = 0) -> bool:
        """Return whether texts of `text_tokens` fit the goal."""
        return (
            bool(self.runs) and max(self.least_tokens, self.kept_tokens + text_tokens) <= self.goal
        )


@dataclass(frozen=True)
class SummaryPlanner:
    """Plan the summaries of one view."""

    view: View
    budget: Budget
    renderer: ResultRenderer

    def plan(self) -> Plan | None:
        """Return the plan, or None if nothing is gained.

        Raises:
            BudgetTooSmall: the smallest possible view exceeds the limit.
        """
        split = self.split()
        if split is None:
            return None
        return reject_small_gain(self._plan_texts(split), self.view.size(), self.budget)

    def split(self) -> Split | None:
        """Return the split for the target, or None.

        A view above the limit must be split: if the target is too small, take a larger goal.

        Raises:
            BudgetTooSmall: the smallest possible view exceeds the limit.
        """
        target, limit, size = self.budget.target, self.budget.limit, self.view.size()
        # A view as large as the limit would be compressed again in the next turns
        # (tests/praisonai/test_sessions.py).
        for goal in (target, (target + limit) // 2, limit):
            split = self._split_within(goal)
            if split.fits():
                return split
            if size <= limit:
                return None
        raise self.budget.too_small(self.view, split.least_tokens if split.runs else size)

    def least_size(self) -> int:
        """Return the tokens of the smallest view with summaries."""
        return self._shortest_split(0).least_tokens

    # ---------------------------------------------------------- the first split

    def _split_within(self, goal: int) -> Split:
        """Return the narrowest split that leaves its texts enough tokens.

        If no split does, return the widest split. If the widest split does not fit the goal, but
        the split with the shortest tail fits, return the latter.
        """
        shortest = self._shortest_split(goal)
        start = self._share_start(shortest)
        least = int(LEAST_TEXT_SHARE * self._tokens_beside_head(goal))
        for scope in self._scopes():
            split = self._split_at(start, scope, goal)
            if split.fits(max(LEAST_TEXT_TOKENS * len(split.runs), least)):
                return split
        widest = self._split_at(start, ALL, goal)
        if shortest.fits() and not widest.fits():
            return shortest
        return widest

    def _scopes(self) -> tuple[Scope, ...]:
        """Return the scopes to try, the narrowest first."""
        # The next summary must fit beside a fold, or every summary would be a fold.
        next_summary = max(self._prose_tokens + self.budget.quote_tokens, 2 * self._prose_tokens)
        if 0 < self._old_tokens <= self.budget.fold_tokens + next_summary:
            return NEW_LARGE, NEW, FOLD_LARGE, ALL
        return FOLD_LARGE, ALL

    def _share_start(self, shortest: Split) -> int:
        tail_tokens = self.view.tail_tokens(shortest.tail_start)
        share = int((shortest.free_tokens + tail_tokens) * self.budget.tail_share)
        steps = share if self.budget.is_exact else self._in_whole_steps(share)
        tail = steps if steps <= STEP_EXCESS_RATIO * share else share
        requested = self._requested_tail
        return choose_cut(self.view, min(requested, tail), share if requested >= share else 0)

    def _shortest_split(self, goal: int) -> Split:
        starts = self.view.starts or (len(self.view.tokens),)
        return self._split_at(starts[-1], ALL, goal)

    def _split_at(self, start: int, scope: Scope, goal: int) -> Split:
        runs = tuple(replaceable_runs(self.view, start, scope))
        return Split(goal, start, scope, runs, size_without(self.view, runs))

    # ---------------------------------------------------------- tokens

    @computed_once
    def _requested_tail(self) -> int:
        view, budget = self.view, self.budget
        requested = budget.tail_tokens
        if requested >= LARGE_TAIL_TOKENS:
            share = int(self._tokens_beside_head(budget.target) * budget.tail_share)
            requested = max(requested, self._in_whole_steps(share))
        if budget.recent_turns and view.transcript.users:
            first = view.transcript.users[-budget.recent_turns :][0]
            requested = max(requested, view.tail_tokens(first))
        return requested

    def _tokens_beside_head(self, goal: int) -> int:
        return goal - self.view.span_tokens(0, self.view.head_end)

    def _in_whole_steps(self, tokens: int) -> int:
        """Return the size of the shortest tail of at least `tokens`."""
        starts, size = self.view.starts, self.view.tail_tokens
        end = bisect_left(starts, True, key=lambda start: size(start) < tokens)
        return size(starts[end - 1]) if end else tokens

    @computed_once
    def _old_tokens(self) -> int:
        return sum(segment.tokens for segment in self.view.summaries())

    @computed_once
    def _prose_tokens(self) -> int:
        return self.budget.prose_for(self.view.size())

    def _most_quote_tokens(self, scope: Scope) -> int:
        view, budget = self.view, self.budget
        if not budget.user_quote_tokens:
            return budget.most_quote_tokens
        users = [n for n in view.transcript.users if view.replaceable[n] and n not in view.covered]
        folds = scope.include_folds and self._old_tokens
        folded = budget.fold_tokens - self._prose_tokens if folds else 0
        return max(budget.most_quote_tokens, budget.user_quote_tokens * len(users), folded)

    # ---------------------------------------------------------- measured texts

    def _plan_texts(self, split: Split) -> Plan:
        """Return the plan; its tail takes the tokens that the texts leave."""
        most = self._prose_tokens + self._most_quote_tokens(split.scope)
        if self._old_tokens:
            # Later summaries must fit beside this summary.
            most = min(most, max(split.free_tokens // 2, LEAST_TEXT_TOKENS))
        texts = self._measure_texts(split)
        for _ in range(MOST_LENGTHENINGS):
            longer = self._lengthen_tail(split, texts, most)
            if longer.tail_start == split.tail_start:
                break
            split, texts = longer, self._measure_texts(longer)
        expected = split.kept_tokens + min(texts.total, texts.needed)
        jobs = jobs_for(self.view, split.runs, texts)
        return Plan(split.tail_start, max(split.least_tokens, expected), jobs)

    def _measure_texts(self, split: Split) -> TextTokens:
        view, budget = self.view, self.budget
        quotes = self._most_quote_tokens(split.scope)
        total = min(self._prose_tokens + quotes, split.free_tokens)
        measure = self.renderer.measure_quotes
        return TextTokens(
            total=total,
            prose=min(self._prose_tokens, int(total * PROSE_SHARE)) if budget.has_model else 0,
            quotes=total if budget.user_quote_tokens else quotes,
            needs=tuple(measure(view, run, total, budget) for run in split.runs),
            # Half of the tokens up to the trigger stays for the next turns.
            spare=max(0, budget.trigger - split.goal) // 2,
        )

    def _lengthen_tail(self, split: Split, texts: TextTokens, most: int) -> Split:
        """Return the split with the longest tail beside texts of `most` tokens.

        A longer tail shortens the runs, and their quotes shrink with the runs.
        """
        view, source = self.view, self._source_tokens(split)
        quotes = min(most - texts.prose, sum(texts.needs))

        def fits(start: int) -> bool:
            longer = self._split_at(start, split.scope, split.goal)
            return longer.fits(texts.prose + quotes * self._source_tokens(longer) // source)

        older = [start for start in view.starts if start < split.tail_start]
        older = [start for start in older if view.tail_tokens(start) <= self._requested_tail]
        longest = bisect_left(older, True, key=fits)
        if longest == len(older):
            return split
        present = view.tail_tokens(split.tail_start)
        start = choose_cut(view, view.tail_tokens(older[longest]), present + 1)
        return self._split_at(start, split.scope, split.goal)

    def _source_tokens(self, split: Split) -> int:
        return sum(self.view.original_tokens(*run) for run in split.runs)


def reject_small_gain(plan: Plan, size: int, budget: Budget) -> Plan | None:
    """Return the plan, or None if it frees too little."""
    is_enough = size - plan.expected >= budget.min_gain * size
    return plan if is_enough or size > budget.limit else None
