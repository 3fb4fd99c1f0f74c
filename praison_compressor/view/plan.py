"""Pure: from a layout and a budget to a plan (what to mask, what to summarize, where the tail
starts), or None.

    view = head + summaries + tail

The summaries are given what they need, half of the target less the head at most; the tail is the
longest that was asked for and fits beside them, between steps and on a turn start where that costs
little. What lies between head and tail and is not yet represented becomes jobs, one segment each.
Nothing here calls a model, reads a clock or writes.

Pure. A policy is a wish, the window is not; what is still wanted most is the newest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from ..config import CompressorConfig
from ..errors import BudgetTooSmall
from ..ledger.segments import Segment
from .budget import Budget
from .layout import Layout, Tile

__all__ = [
    "SMALLEST_SUMMARY",
    "Job",
    "Plan",
    "fixed_tokens",
    "is_due",
    "plan",
    "planned",
    "view_tokens",
    "with_longer_tail",
]


# -------------------------------------------------------------- plan


SMALLEST_SUMMARY = 80
"""Tokens below which a framed summary says nothing."""


TAIL_SHARE = 0.5
"""Of the target less the head: as much the summaries leave to a tail that asks for it."""


PLENTY = CompressorConfig.protect_last_n_tokens
"""Who asks for as many newest tokens as are kept by default has that share in any window."""


EXACT_TAIL_SHARE = 0.25
"""Of a size asked for, where not all that the tail asks for fits: what it leaves buys the summary
depth (tests/benchmarks/retention.py)."""


TURN_START_COST = 0.2
"""Share of the tail that a cut on a turn start may cost."""


MASK_WORTH = 0.75
"""Tokens that masks must free for each that the provider reads anew because of them
(tests/benchmarks/economy.py)."""


MASK_REACH = 0.5
"""Of the way from the target up to the trigger: where masks that are worth it may end. To take them
wherever they get under the trigger costs a tenth to a third more tokens in all, because the
prefix is given up for them again and again (tests/benchmarks/economy.py)."""


CROWDED = 0.75
"""Share of the trigger that what cannot be dropped may take. Above it the marks move up: else every
few turns would be a compression that frees little."""


CROWDED_TARGET = 0.3
"""Of the room between what cannot be dropped and a trigger that moved up: what a compression may
leave there. A summary needs some, the turns to come the rest."""


MAJOR_SHARE = 0.5
"""Share of the largest stretch below which another one stays as it is while there is room."""


MOST_SAID = 1_000
"""Tokens of one user's message that are the user's words rather than material."""


WORTH_A_FRAME = 5 * SMALLEST_SUMMARY
"""Tokens below which a small stretch says more by itself than in a frame."""


WAYS = ((False, None), (False, WORTH_A_FRAME), (True, None), (True, WORTH_A_FRAME), (True, 0))
"""To make a view smaller, the mildest first: whether old summaries are folded into the new one, and
from what size on a stretch is replaced that is small beside another (None: it stays)."""


@dataclass(frozen=True)
class Job:
    """A run of the middle that gets one new segment."""

    start: int
    end: int
    room: int
    """Tokens that the rendered summary may take so that the view comes down to the target."""
    most: int
    """Tokens that it may take when a model's text is longer than asked: better than none."""
    facts: int
    """Tokens of facts beside a model's prose."""
    source_tokens: int
    by_model: bool = True
    """False: another stretch is the larger one, and a compression is one call of the model."""
    folds: tuple[Segment, ...] = ()
    """Segments that it replaces; their texts are carried on."""
    words: int = 0
    """Tokens that the facts may take where the user's words fill them."""


@dataclass(frozen=True)
class Plan:
    """What to do: the segments to write or the outputs to mask, and where the tail starts."""

    jobs: tuple[Job, ...]
    tail_start: int
    expected: int
    """Tokens of the view afterwards, at most."""
    masks: tuple[int, ...] = ()
    """Tool results to replace by one line each; then there are no jobs."""
    is_short: bool = False
    """It comes under the limit, and not down to the target."""


def plan(
    layout: Layout,
    budget: Budget,
    *,
    force: bool = False,
    masks: Mapping[int, int] | None = None,
    by_model: bool = False,
) -> Plan | None:
    """`_plan`; where the window would burst, with fewer messages kept."""
    return planned(
        layout,
        lambda layout: _plan(layout, budget, force=force, masks=masks, by_model=by_model),
    )


def _plan(
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
    size = layout.size()
    if size <= budget.trigger and not force:
        return None
    kept = fixed_tokens(layout)
    if kept > budget.limit:
        raise BudgetTooSmall(kept, budget.limit)
    budget = _above(budget, kept)
    if size <= budget.trigger and not force:
        return None
    target = min(budget.target, int(size * 0.6)) if size <= budget.trigger else budget.target
    target = min(budget.limit, max(target, kept + SMALLEST_SUMMARY))
    masked = _mask_plan(layout, budget, masks or {})
    enough = target if force else max(target, _between(budget, MASK_REACH))
    if masked is not None and masked.expected <= enough:
        # Down to the target they suffice, and no model is asked; short of it a summary may be
        # cheaper in the end, because it lasts longer.
        suffices = masked.expected <= target or _is_worth(masked, layout)
        if suffices and _if_it_pays(masked, size, budget):
            return masked
    # Where what cannot be dropped leaves no room under the target, the limit is what counts.
    least = size
    for goal in (target, budget.limit):
        found = _best(layout, budget, goal, by_model)
        if found.jobs and found.expected <= goal:
            return _if_it_pays(replace(found, is_short=goal > target), size, budget)
        least = min(least, found.expected)
        if size <= budget.limit:
            return None
    raise BudgetTooSmall(least, budget.limit)


def fixed_tokens(layout: Layout) -> int:
    """Tokens of what cannot be dropped."""
    pairs = zip(layout.tokens, layout.allowed, strict=True)
    return sum(tokens for tokens, may_go in pairs if not may_go)


def is_due(layout: Layout, budget: Budget) -> bool:
    """Whether the view is above the mark at which it is compressed, where that gains anything."""
    return layout.size() > _above(budget, fixed_tokens(layout)).trigger


def _above(budget: Budget, kept: int) -> Budget:
    """The marks, higher where what cannot be dropped takes most of the trigger."""
    if kept <= CROWDED * budget.trigger:
        return budget
    room = min(int((1 - CROWDED) * budget.trigger), (budget.limit - kept) // 2)
    trigger = max(budget.trigger, kept + room)
    target = max(budget.target, kept + int((trigger - kept) * CROWDED_TARGET))
    return replace(budget, trigger=trigger, target=target)


def _between(budget: Budget, share: float) -> int:
    """That share of the way from the target up to the trigger."""
    return budget.target + int(share * (budget.trigger - budget.target))


def _mask_plan(layout: Layout, budget: Budget, masks: Mapping[int, int]) -> Plan | None:
    """Every old output that may be masked becomes one line, at once and for good."""
    recent = _cut(layout, budget.mask_recent, 0)
    covered = {i for t in layout.tiles if t.segment is not None for i in range(t.start, t.end)}
    chosen = {
        index: tokens
        for index, tokens in masks.items()
        if layout.head_end <= index < recent
        and layout.allowed[index]
        and index not in covered
        and tokens < layout.message_tokens(index)
    }
    if not chosen:
        return None
    gain = sum(layout.message_tokens(index) - tokens for index, tokens in chosen.items())
    return Plan((), recent, layout.size() - gain, tuple(chosen))


def _is_worth(masked: Plan, layout: Layout) -> bool:
    """Whether the masks free so much that what follows the first of them may be read anew for it:
    the provider's cache ends there. Else a summary frees more for the same price."""
    first = masked.masks[0]
    again = masked.expected - view_tokens(layout, 0, first)
    return layout.size() - masked.expected >= MASK_WORTH * again


def _if_it_pays(found: Plan, size: int, budget: Budget) -> Plan | None:
    pays = size - found.expected >= budget.min_gain * size
    return found if pays or size > budget.limit else None


def _best(layout: Layout, budget: Budget, goal: int, by_model: bool) -> Plan:
    """The mildest way down to the goal that leaves the tail its share; else what leaves it most."""
    asked, share, is_tight = _tail_sizes(layout, budget, goal)
    enough = _oldest(layout, min(asked, share))
    old = sum(tile.segment.tokens for tile in layout.tiles if tile.segment is not None)
    prose = budget.prose_for(layout.size())
    # A fold may fill its share, and prose twice what was asked: the next summary must still stand
    # beside it, or each is a fold.
    beside = budget.fold + max(prose + budget.facts, 2 * prose)
    found: list[Plan] = []
    for fold, minor in WAYS:
        if (fold or 0 < old <= beside) and not (is_tight and minor is None):
            way = _Way(layout, budget, goal, prose, old, by_model, fold, minor)
            found.append(way.longest(asked, share))
            if found[-1].tail_start <= enough and _is_good(found[-1], goal):
                return found[-1]
    fitting = [made for made in found if _is_good(made, goal)]
    if fitting:
        return min(fitting, key=lambda made: made.tail_start)
    return min(found, key=lambda made: made.expected)


def _is_good(made: Plan, goal: int) -> bool:
    return bool(made.jobs) and made.expected <= goal


def _asked(layout: Layout, budget: Budget) -> int:
    """Tokens that the tail asks for, where a size is asked for or a number of its own is given."""
    return max(budget.tail, _turn_tokens(layout, budget.recent_turns))


def _tail_sizes(layout: Layout, budget: Budget, goal: int) -> tuple[int, int, bool]:
    """Tokens that the tail asks for, its share, and whether an exact goal has no room for all."""
    asked = _asked(layout, budget)
    if not budget.exact:
        share = int(max(0, goal - layout.span(0, layout.head_end)) * TAIL_SHARE)
        return max(asked, share) if budget.tail >= PLENTY else asked, share, False
    share = int(goal * EXACT_TAIL_SHARE)
    spans = _spans(layout, _cut(layout, asked, 0), fold=True, refold=False)
    gone = sum(view_tokens(layout, start, end) for start, end in spans)
    texts = budget.prose_for(layout.size()) + budget.facts
    is_tight = layout.size() - gone + texts > goal
    return min(asked, share) if is_tight else asked, share, is_tight


def _turn_tokens(layout: Layout, turns: int) -> int:
    users = layout.transcript.users
    if not turns or not users:
        return 0
    return layout.span(users[max(0, len(users) - turns)], len(layout.tokens))


@dataclass(frozen=True)
class _Way:
    """One way to come down to a goal: with a place for the cut it makes a plan."""

    layout: Layout
    budget: Budget
    goal: int
    prose: int
    """Tokens to ask of a model."""
    old: int
    """Tokens of the summaries that are there."""
    by_model: bool
    fold: bool
    minor: int | None

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

    def _reserve(self, newest: int) -> int:
        """Tokens that the tail leaves to what is written: half of what is free at most, and where
        there are summaries so little that a fold and two more can stand beside each other."""
        budget, wanted = self.budget, self.prose + self._facts()
        if budget.exact:
            return wanted if self._is_mild() else 0
        tail = self.layout.span(newest, len(self.layout.tokens))
        free = self.goal - self._kept(self._spans(newest)) + tail
        beside = self.goal - self.layout.span(0, self.layout.head_end)
        most = beside // ((5 if self.fold else 10) if self.old else 2)
        return max(0, min(wanted, free // 2, most))

    def _is_mild(self) -> bool:
        """Whether old summaries, or small stretches, stay as they are."""
        return not self.fold or self.minor is None

    def _facts(self) -> int:
        """Tokens of facts: a fold stands for all before it, so it may take what summaries may."""
        return max(self.budget.facts, self.budget.fold if self.fold and self.old else 0)

    def _at(self, tail_start: int, reserve: int) -> Plan:
        layout, spans = self.layout, self._spans(tail_start)
        kept = self._kept(spans)
        room = max(0, self.goal - kept)
        most = max(self.goal, _between(self.budget, 0.5)) - kept
        if self.budget.exact:
            facts, taken = self.goal, reserve if self._is_mild() else room
        else:
            facts, taken = self._facts(), reserve
        prose = self.prose if self.by_model else 0
        jobs = tuple(_jobs(layout, spans, room, max(0, most), facts, prose))
        return Plan(jobs, tail_start, kept + max(SMALLEST_SUMMARY * len(spans), taken))

    def _spans(self, tail_start: int) -> list[tuple[int, int]]:
        refold = self.minor is not None
        spans = _spans(self.layout, tail_start, fold=self.fold, refold=refold)
        return _worthwhile(self.layout, spans, self.minor)

    def _kept(self, spans: Iterable[tuple[int, int]]) -> int:
        """Tokens of the view without these stretches."""
        gone = sum(view_tokens(self.layout, start, end) for start, end in spans)
        return self.layout.size() - gone


def _starts(layout: Layout) -> list[int]:
    """Where a tail may start: at the steps after the head and the last summary."""
    last_tile_end = max((t.end for t in layout.tiles if t.segment is not None), default=0)
    earliest = max(layout.head_end, last_tile_end)
    return [step.start for step in layout.transcript.steps if step.start >= earliest]


def _oldest(layout: Layout, room: int) -> int:
    """The start of the longest tail of whole steps within `room`; of the newest step at least."""
    starts = _starts(layout)
    fits = (start for start in starts if layout.span(start, len(layout.tokens)) <= room)
    return next(fits, starts[-1] if starts else len(layout.tokens))


def _cut(layout: Layout, room: int, floor: int) -> int:
    """Where the tail starts: a step boundary, a turn start where that costs little."""
    cut, end = _oldest(layout, room), len(layout.tokens)
    least = max(floor, layout.span(cut, end) * (1 - TURN_START_COST))
    users = set(layout.transcript.users)
    turns = (start for start in _starts(layout) if start >= cut and start in users)
    return next((start for start in turns if layout.span(start, end) >= least), cut)


def _spans(layout: Layout, tail_start: int, *, fold: bool, refold: bool) -> list[tuple[int, int]]:
    """The stretches of the middle to represent anew.

    With `fold` those of old segments too, with `refold` even one segment alone, to shrink it.
    """
    return [
        (start, end)
        for start, end in _open_stretches(layout, tail_start, fold)
        if view_tokens(layout, start, end) >= 2 * SMALLEST_SUMMARY
        and (refold or not _is_one_segment(layout, start, end))
    ]


def _worthwhile(
    layout: Layout, spans: Sequence[tuple[int, int]], minor: int | None
) -> list[tuple[int, int]]:
    sizes = [view_tokens(layout, start, end) for start, end in spans]
    least = MAJOR_SHARE * max(sizes, default=0)
    return [
        span
        for span, size in zip(spans, sizes, strict=True)
        if size >= least or (minor is not None and size >= minor)
    ]


def _is_one_segment(layout: Layout, start: int, end: int) -> bool:
    return any(t.segment and (t.start, t.end) == (start, end) for t in layout.tiles)


def _open_stretches(layout: Layout, tail_start: int, fold: bool) -> Iterator[tuple[int, int]]:
    """Runs of messages between head and tail that may be represented, gaps only unless `fold`."""
    is_open = [ok and index not in layout.kept for index, ok in enumerate(layout.allowed)]
    for tile in layout.tiles:
        if tile.segment is not None and not fold:
            is_open[tile.start : tile.end] = [False] * (tile.end - tile.start)
    start: int | None = None
    for index in range(layout.head_end, tail_start + 1):
        inside = index < tail_start and is_open[index]
        if inside and start is None:
            start = index
        elif not inside and start is not None:
            yield start, index
            start = None


def view_tokens(layout: Layout, start: int, end: int) -> int:
    """Tokens that the stretch takes in the present view."""
    total = 0
    for tile in layout.tiles:
        if tile.segment is not None:
            total += tile.segment.tokens if start <= tile.start and tile.end <= end else 0
        else:
            total += layout.span(max(start, tile.start), max(start, min(end, tile.end)))
    return total


def _jobs(
    layout: Layout, spans: Sequence[tuple[int, int]], room: int, most: int, facts: int, prose: int
) -> Iterator[Job]:
    """A job for each span: the least that says something, a model's prose and the user's words
    first, the rest by size."""
    sizes = [layout.source(start, end) for start, end in spans]
    # Of equal ones the newest: what was done last is where the agent goes on.
    told = max(range(len(sizes)), key=lambda n: (sizes[n], n), default=0)
    proses = [prose if number == told else 0 for number in range(len(sizes))]
    users = layout.transcript.users
    said = [_said(layout, users, start, end) for start, end in spans]
    rooms, mosts = _shares(room, sizes, proses, said), _shares(most, sizes, proses, said)
    for number, (start, end) in enumerate(spans):
        present = view_tokens(layout, start, end)
        yield Job(
            start,
            end,
            room=min(rooms[number], present - 1),
            most=min(mosts[number], present - 1),
            facts=facts * sizes[number] // max(1, sum(sizes)),
            words=min(rooms[number], present - 1),
            source_tokens=sizes[number],
            by_model=number == told,
            folds=_inside(layout.tiles, start, end),
        )


def _said(layout: Layout, users: Iterable[int], start: int, end: int) -> int:
    """Tokens of what the user said in a stretch: it is kept verbatim."""
    return sum(min(layout.tokens[i], MOST_SAID) for i in users if start <= i < end)


def _shares(
    room: int, sizes: Sequence[int], proses: Sequence[int], said: Sequence[int]
) -> list[int]:
    """What each gets of the room: half of it goes by the user's words at most."""
    given = [SMALLEST_SUMMARY for _ in sizes]
    left = room - sum(given)
    for wanted, most in ((proses, left), (said, (left - sum(proses)) // 2), (sizes, left)):
        spare = max(0, min(most, room - sum(given)))
        if wanted is not sizes:
            spare = min(spare, sum(wanted))
        whole = max(1, sum(wanted))
        given = [have + spare * want // whole for have, want in zip(given, wanted, strict=True)]
    return given


def _inside(tiles: Iterable[Tile], start: int, end: int) -> tuple[Segment, ...]:
    return tuple(
        tile.segment
        for tile in tiles
        if tile.segment is not None and start <= tile.start and tile.end <= end
    )


# -------------------------------------------------------------- refitting


def with_longer_tail(
    layout: Layout, budget: Budget, plan: Plan, spare: int, written: int
) -> Plan | None:
    """The plan with the steps before its tail kept whole, as many as `spare` tokens take.

    None where not one fits, or where the tail has all that it asks for. `written` are the tokens
    of the last job's text, which keeps that room.
    """
    job = plan.jobs[-1]
    asked = (
        _asked(layout, budget) if budget.exact else _tail_sizes(layout, budget, budget.target)[0]
    )
    tail = layout.span(plan.tail_start, len(layout.tokens))
    end = _cut(layout, min(asked, tail + spare), 0)
    if not job.start < end < job.end:
        return None
    room = written + spare - layout.span(end, job.end)
    source = layout.source(job.start, end)
    shorter = replace(job, end=end, room=room, most=room, words=room, source_tokens=source)
    return replace(plan, jobs=(*plan.jobs[:-1], shorter), tail_start=end)


# -------------------------------------------------------------- keeping


Decide = Callable[[Layout], "Plan | None"]


def planned(layout: Layout, decide: Decide) -> Plan | None:
    """What `decide` says of the layout; where the window would burst, with fewer messages kept.

    So many yield that the view comes down to its target: were it only to the limit, each of the
    next turns would be a compression of its own.

    Raises:
        BudgetTooSmall: what cannot be dropped exceeds the limit.
    """
    if not layout.kept:
        return decide(layout)
    steps = _kept_steps(layout)

    def without(oldest: int) -> Layout:
        return replace(layout, kept=frozenset(chain.from_iterable(steps[oldest:])))

    def is_enough(oldest: int) -> bool:
        with suppress(BudgetTooSmall):
            found = decide(without(oldest))
            return found is None or not found.is_short
        return False

    # The more yield, the lower the view comes: the fewest that are enough are found by halves.
    fewest = 0 if is_enough(0) else bisect_left(range(1, len(steps)), True, key=is_enough) + 1
    return decide(without(fewest))


def _kept_steps(layout: Layout) -> list[range]:
    """The steps that are kept, the oldest first; none that a summary stands for already."""
    gone = {i for t in layout.tiles if t.segment is not None for i in range(t.start, t.end)}
    return [
        step
        for step in layout.transcript.steps
        if step.start in layout.kept and gone.isdisjoint(step)
    ]
