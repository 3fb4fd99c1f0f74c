"""Plan a compression: which outputs are masked, what is summarized, where the tail starts.

    view = head + summaries + tail

Pure: from a layout and a budget to a plan, or None; no model, no clock, no write. `plan` decides in
this order. A view that fits needs nothing. Where one line each for old tool outputs is enough, that
is the plan. Else summaries are given what they need, half of the target less the head at most, and
the tail is the longest that was asked for and fits beside them. What lies between head and tail and
is not yet represented becomes jobs, one segment each; three ways to choose them are tried, the
mildest first. Messages that a policy keeps yield where the window would burst, the oldest first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from ..config import CompressorConfig
from ..errors import BudgetTooSmall
from .budget import Budget
from .jobs import SMALLEST_SUMMARY, Job, jobs_for, size_without, spans_of, view_tokens
from .layout import Layout, largest_fixed


@dataclass(frozen=True)
class Plan:
    """What to do: the segments to write or the outputs to mask, and where the tail starts."""

    jobs: tuple[Job, ...]
    tail_start: int
    expected: int
    """Tokens of the view afterwards, at most."""
    masks: tuple[int, ...] = ()
    """Tool results to replace by one line each; then there are no jobs."""
    excerpts: tuple[int, ...] = ()
    """Tool results that are too large, to replace by their ends; what else is due is planned
    after them."""
    is_short: bool = False
    """It comes under the limit, and not down to the target."""

    def comes_down_to(self, goal: int) -> bool:
        """Whether summaries make the view as small as that."""
        return bool(self.jobs) and self.expected <= goal


def plan(
    layout: Layout,
    budget: Budget,
    *,
    force: bool = False,
    masks: Mapping[int, int] | None = None,
    by_model: bool = False,
) -> Plan | None:
    """What to do so that the view fits, or None while it does or nothing is gained.

    `masks` are the tool results that may become one line, with the tokens of that line: where
    this is enough, nothing is summarized. `by_model` says that a model is there to write: its
    prose needs room that is not the smaller stretches' to share.

    Raises:
        BudgetTooSmall: what cannot be dropped exceeds the limit.
    """
    if not layout.kept:
        return _plan(layout, budget, force, masks or {}, by_model)
    covered = layout.covered()
    steps = (step for step in layout.transcript.steps if step.start in layout.kept)
    kept = [step for step in steps if covered.isdisjoint(step)]

    def without(oldest: int) -> Plan | None:
        left = replace(layout, kept=frozenset(chain.from_iterable(kept[oldest:])))
        return _plan(left, budget, force, masks or {}, by_model)

    def is_enough(oldest: int) -> bool:
        with suppress(BudgetTooSmall):
            found = without(oldest)
            return found is None or not found.is_short
        return False

    # Of what a policy keeps so many yield that the view comes down to its target: were it only to
    # the limit, each of the next turns would be a compression of its own. The more yield, the
    # lower it comes: the fewest that are enough are found by halves.
    return without(bisect_left(range(len(kept)), True, key=is_enough))


def _plan(
    layout: Layout, budget: Budget, force: bool, masks: Mapping[int, int], by_model: bool
) -> Plan | None:
    size, fixed = layout.size(), fixed_tokens(layout)
    if fixed > budget.limit:
        raise BudgetTooSmall(fixed, budget.limit, culprit=largest_fixed(layout))
    budget = _above(budget, fixed)
    if size <= budget.trigger and not force:
        return None
    target = min(budget.target, int(size * 0.6)) if size <= budget.trigger else budget.target
    target = min(budget.limit, max(target, fixed + SMALLEST_SUMMARY))
    masked = _mask_plan(layout, budget, target, force, masks)
    if masked is not None:
        return masked
    # Where what cannot be dropped leaves no room under the target, the limit is what counts: half
    # the way down from it where that can be, else each of the next turns would be a compression.
    least = size
    for goal in (target, (target + budget.limit) // 2, budget.limit):
        found = _summary_plan(layout, budget, goal, by_model)
        if found.comes_down_to(goal):
            return _if_it_pays(replace(found, is_short=goal > target), size, budget)
        least = min(least, found.expected)
        if size <= budget.limit:
            return None
    raise BudgetTooSmall(least, budget.limit, culprit=largest_fixed(layout))


def _if_it_pays(found: Plan, size: int, budget: Budget) -> Plan | None:
    pays = size - found.expected >= budget.min_gain * size
    return found if pays or size > budget.limit else None


# -------------------------------------------------------------- marks


CROWDED = 0.75
"""Share of the trigger that what cannot be dropped may take. Above it the marks move up: else every
few turns would be a compression that frees little."""

CROWDED_TARGET = 0.3
"""Of the room between what cannot be dropped and a trigger that moved up: what a compression may
leave there. A summary needs some, the turns to come the rest."""


def fixed_tokens(layout: Layout) -> int:
    """Tokens of what cannot be dropped."""
    return sum(layout.message_tokens(i) for i, may_go in enumerate(layout.allowed) if not may_go)


def is_due(layout: Layout, budget: Budget) -> bool:
    """Whether the view is above the mark at which it is compressed, where that gains anything."""
    return layout.size() > _above(budget, fixed_tokens(layout)).trigger


def _above(budget: Budget, fixed: int) -> Budget:
    """The marks, higher where what cannot be dropped takes most of the trigger."""
    if fixed <= CROWDED * budget.trigger:
        return budget
    room = min(int((1 - CROWDED) * budget.trigger), (budget.limit - fixed) // 2)
    trigger = max(budget.trigger, fixed + room)
    target = max(budget.target, fixed + int((trigger - fixed) * CROWDED_TARGET))
    return replace(budget, trigger=trigger, target=target)


# -------------------------------------------------------------- masks


MASK_WORTH = 0.75
"""Tokens that masks must free for each that the provider reads anew because of them
(tests/benchmarks/economy.py)."""

MASK_REACH = 0.5
"""Of the way from the target up to the trigger: where masks that are worth it may end. Higher up
the prefix is given up for them again and again (tests/benchmarks/economy.py)."""


def _between(budget: Budget, share: float) -> int:
    """That share of the way from the target up to the trigger."""
    return budget.target + int(share * (budget.trigger - budget.target))


def _mask_plan(
    layout: Layout, budget: Budget, target: int, force: bool, masks: Mapping[int, int]
) -> Plan | None:
    """Every old output that may be masked becomes one line, at once and for good.

    None where that is not enough. Down to the target it is, and no model is asked. Short of it, it
    is where the masks free so much that what follows the first of them may be read anew for it: the
    provider's cache ends there. Else a summary frees more for the same price, and lasts longer.
    """
    recent = _cut(layout, budget.mask_recent, 0)
    covered = layout.covered()
    gains = {
        index: layout.message_tokens(index) - tokens
        for index, tokens in masks.items()
        if layout.head_end <= index < recent
        and layout.allowed[index]
        and index not in covered
        and tokens < layout.message_tokens(index)
    }
    if not gains:
        return None
    size, gain = layout.size(), sum(gains.values())
    found = Plan((), recent, size - gain, tuple(gains))
    enough = target if force else max(target, _between(budget, MASK_REACH))
    again = found.expected - view_tokens(layout, 0, found.masks[0])
    is_worth = found.expected <= target or gain >= MASK_WORTH * again
    return _if_it_pays(found, size, budget) if found.expected <= enough and is_worth else None


# -------------------------------------------------------------- the tail


TAIL_SHARE = 0.5
"""Of the target less the head: as much the summaries leave to a tail that asks for it."""

PLENTY = CompressorConfig.protect_last_n_tokens
"""Who asks for as many newest tokens as are kept by default has that share in any window."""

EXACT_TAIL_SHARE = 0.25
"""Of a size asked for, where not all that the tail asks for fits: what it leaves buys the summary
depth (tests/benchmarks/retention.py)."""

TURN_START_COST = 0.2
"""Share of the tail that a cut on a turn start may cost."""


def _tail_sizes(
    layout: Layout, budget: Budget, goal: int, by_model: bool = False
) -> tuple[int, int, bool]:
    """Tokens that the tail asks for, its share, and whether an exact goal has no room for all."""
    asked = max(budget.tail, _turn_tokens(layout, budget.recent_turns))
    half = int(max(0, goal - layout.span(0, layout.head_end)) * TAIL_SHARE)
    if not budget.exact:
        share = _whole_steps(layout, half)
        return max(asked, share) if budget.tail >= PLENTY else asked, share, False
    share = int(goal * EXACT_TAIL_SHARE)
    # Beside a head that takes most of the size, a quarter of it would leave a model too little
    # room for a text that is worth its call.
    share = min(share, half) if by_model else share
    spans = spans_of(layout, _cut(layout, asked, 0), fold=True, thorough=False)
    texts = budget.prose_for(layout.size()) + budget.facts
    return asked, share, size_without(layout, spans) + texts > goal


def _turn_tokens(layout: Layout, turns: int) -> int:
    users = layout.transcript.users
    if not turns or not users:
        return 0
    return layout.span(users[max(0, len(users) - turns)], len(layout.tokens))


def _starts(layout: Layout) -> list[int]:
    """Where a tail may start: at the steps after the head and the last summary."""
    earliest = max([layout.head_end, *(tile.end for tile in layout.tiles)])
    return [step.start for step in layout.transcript.steps if step.start >= earliest]


def _oldest(layout: Layout, room: int) -> int:
    """The start of the longest tail of whole steps within `room`; of the newest step at least."""
    starts = _starts(layout)
    fits = (start for start in starts if layout.span(start, len(layout.tokens)) <= room)
    return next(fits, starts[-1] if starts else len(layout.tokens))


def _whole_steps(layout: Layout, tokens: int) -> int:
    """Tokens of the shortest tail of whole steps that has as many; the same where none has."""
    sizes = (layout.span(start, len(layout.tokens)) for start in reversed(_starts(layout)))
    return next((size for size in sizes if size >= tokens), tokens)


def _cut(layout: Layout, room: int, floor: int) -> int:
    """Where the tail starts: a step boundary, a turn start where that costs little."""
    cut, end = _oldest(layout, room), len(layout.tokens)
    least = max(floor, layout.span(cut, end) * (1 - TURN_START_COST))
    users = set(layout.transcript.users)
    turns = (start for start in _starts(layout) if start >= cut and start in users)
    return next((start for start in turns if layout.span(start, end) >= least), cut)


def with_longer_tail(
    layout: Layout, budget: Budget, plan: Plan, spare: int, written: int
) -> Plan | None:
    """The plan with the steps before its tail kept whole, as many as `spare` tokens take.

    None where not one fits, or where the tail has all that it asks for. `written` are the tokens
    of the last job's text, which keeps that room.
    """
    job = plan.jobs[-1]
    asked, _, _ = _tail_sizes(layout, budget, budget.target)
    tail = layout.span(plan.tail_start, len(layout.tokens))
    room = min(asked, tail + spare)
    # A tail that has what it asks for keeps its cut; another gains a step, on a turn start or not.
    end = _cut(layout, room, tail + 1 if room < asked else 0)
    if not job.start < end < job.end:
        return None
    room = written + spare - layout.span(end, job.end)
    source = layout.source(job.start, end)
    shorter = replace(job, end=end, room=room, most=room, words=room, source_tokens=source)
    return replace(plan, jobs=(*plan.jobs[:-1], shorter), tail_start=end)


def with_shorter_tail(layout: Layout, plan: Plan, over: int) -> Plan | None:
    """The plan without the oldest steps of its tail, so that a text too long by `over` tokens fits.

    What goes gets a small text of its own, without a model. None where too little may go.
    """
    job, least = plan.jobs[-1], SMALLEST_SUMMARY
    for end in _ends_to_give(layout, plan):
        if layout.span(job.end, end) - least >= over:
            source = layout.source(job.end, end)
            small = Job(job.end, end, least, least, least, source, by_model=False)
            return replace(plan, jobs=(*plan.jobs, small), tail_start=end)
    return None


def tail_to_give(layout: Layout, plan: Plan) -> int:
    """Tokens of the tail that make room for a model's text before it is refused as too long."""
    most = max(_ends_to_give(layout, plan), default=plan.tail_start)
    return max(0, layout.span(plan.tail_start, most) - SMALLEST_SUMMARY)


def _ends_to_give(layout: Layout, plan: Plan) -> Iterator[int]:
    """Where a shorter tail may begin: it keeps half of what it has, and all that cannot be dropped.

    None where no stretch right before the tail is written anew.
    """
    if not plan.jobs or plan.jobs[-1].end != plan.tail_start:
        return
    whole = layout.span(plan.tail_start, len(layout.tokens))
    for step in layout.transcript.steps:
        if step.start >= plan.tail_start:
            if not all(layout.allowed[step.start : step.stop]):
                return
            if layout.span(plan.tail_start, step.stop) > whole // 2:
                return
            yield step.stop


# -------------------------------------------------------------- summaries


WAYS = ((False, False), (True, False), (True, True))
"""To make a view smaller, the mildest first: whether old summaries are folded into the new one, and
whether a stretch is replaced too that is small beside another, or is one summary alone."""


def _summary_plan(layout: Layout, budget: Budget, goal: int, by_model: bool) -> Plan:
    """The mildest way down to the goal that leaves the tail its share; else what leaves it most.

    Where no way comes down to it, the one that comes nearest.
    """
    asked, share, is_tight = _tail_sizes(layout, budget, goal, by_model)
    if is_tight:
        asked = min(asked, share)
    enough = _oldest(layout, min(asked, share))
    found: list[Plan] = []
    for fold, thorough in WAYS:
        way = _Way(layout, budget, goal, by_model, fold, thorough)
        if (fold or way.leaves_summaries()) and (thorough or not is_tight):
            found.append(way.longest(asked, share))
            if found[-1].tail_start <= enough and found[-1].comes_down_to(goal) and way.has_room():
                return found[-1]
    fitting = [made for made in found if made.comes_down_to(goal)]
    return min(fitting or found, key=lambda m: m.tail_start if fitting else m.expected)


@dataclass(frozen=True)
class _Way:
    """One way to come down to a goal: with a place for the cut it makes a plan."""

    layout: Layout
    budget: Budget
    goal: int
    by_model: bool
    fold: bool
    thorough: bool

    def leaves_summaries(self) -> bool:
        """Whether old summaries, if any, leave room to the next: a fold may fill its share, and
        prose twice what was asked. The next must still stand beside it, or each is a fold."""
        more = max(self._prose + self.budget.facts, 2 * self._prose)
        return 0 < self._old <= self.budget.fold + more

    def has_room(self) -> bool:
        """Whether its texts have the room that they are to have: small stretches that stay beside
        a tail may leave next to nothing for a summary of hundreds of messages."""
        starts = _starts(self.layout)
        return self.budget.exact or not starts or self._reserve(starts[-1]) >= self._due()

    def longest(self, asked: int, share: int) -> Plan:
        """The plan with the longest tail that is asked for and fits."""
        layout, starts = self.layout, _starts(self.layout)
        if not starts:
            return self._at(len(layout.tokens), 0)
        reserve = self._reserve(starts[-1])
        at = bisect_left(starts, True, key=lambda s: self._at(s, reserve).expected <= self.goal)
        fits = layout.span(starts[min(at, len(starts) - 1)], len(layout.tokens))
        floor = share if asked >= share else 0
        made = self._at(_cut(layout, min(asked, fits), floor), reserve)
        if fits <= asked or self.budget.exact:
            return made
        # More is free than was asked for: summaries that took it would soon be folded.
        jobs = (replace(job, words=min(job.words, reserve)) for job in made.jobs)
        return replace(made, jobs=tuple(jobs))

    @property
    def _prose(self) -> int:
        """Tokens to ask of a model."""
        return self.budget.prose_for(self.layout.size())

    @property
    def _old(self) -> int:
        """Tokens of the summaries that are there."""
        return sum(segment.tokens for segment in self.layout.summaries())

    def _facts(self) -> int:
        """Tokens of facts: a fold stands for all before it, so it may take what summaries may."""
        return max(self.budget.facts, self.budget.fold if self.fold and self._old else 0)

    def _reserve(self, newest: int) -> int:
        """Tokens that the tail leaves to what is written: half of what is free at most, and where
        there are summaries so little that a fold and two more can stand beside each other."""
        layout = self.layout
        if self.budget.exact:
            return 0 if self.thorough else self._prose + self._facts()
        tail = layout.span(newest, len(layout.tokens))
        spans = spans_of(layout, newest, fold=self.fold, thorough=self.thorough)
        free = self.goal - size_without(layout, spans) + tail
        return max(0, min(self._due(), free // 2))

    def _due(self) -> int:
        """Tokens that are to be written, where nothing but head and tail stands beside them."""
        beside = self.goal - self.layout.span(0, self.layout.head_end)
        most = beside // ((5 if self.fold else 10) if self._old else 2)
        return min(self._prose + self._facts(), most)

    def _at(self, tail_start: int, reserve: int) -> Plan:
        layout, budget = self.layout, self.budget
        spans = spans_of(layout, tail_start, fold=self.fold, thorough=self.thorough)
        kept = size_without(layout, spans)
        room = max(0, self.goal - kept)
        most = max(self.goal, _between(budget, 0.5)) - kept
        facts, taken = self._facts(), reserve
        if budget.exact:
            facts, taken = self.goal, room if self.thorough else reserve
        prose = self._prose if self.by_model else 0
        jobs = tuple(jobs_for(layout, spans, room, max(0, most), facts, prose))
        return Plan(jobs, tail_start, kept + max(SMALLEST_SUMMARY * len(spans), taken))
