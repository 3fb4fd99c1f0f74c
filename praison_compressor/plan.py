"""Pure: from a transcript, the tiles found in its ledger and a budget to a plan, or None.

    view = head + summaries + tail

The tail is chosen first, between steps and on a turn start where that costs little; what lies
between head and tail and is not yet represented becomes jobs, one segment each. Nothing here
calls a model, reads a clock or writes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .budget import Budget
from .errors import BudgetTooSmall
from .laying import Tile
from .layout import Layout
from .ledger import Segment

__all__ = ["SMALLEST_SUMMARY", "Job", "Plan", "fixed_tokens", "is_due", "plan", "view_tokens"]

SMALLEST_SUMMARY = 80
"""Tokens below which a framed summary says nothing."""

TIGHT_TAIL = 0.25
"""Share of a tight target that the tail takes at most: what it leaves buys the summary depth
(tests/benchmarks/retention.py)."""

TAIL_FLOOR = 0.25
"""Share of a tight target below which no turn start is worth moving the cut."""

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
        for attempt in _attempts(layout, budget, goal, by_model):
            if attempt.jobs and attempt.expected <= goal:
                return _if_it_pays(replace(attempt, is_short=goal > target), size, budget)
            least = min(least, attempt.expected)
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


def _attempts(layout: Layout, budget: Budget, target: int, by_model: bool) -> Iterator[Plan]:
    """From the plan that keeps most to the one that keeps only what cannot be dropped."""
    summaries = sum(tile.segment.tokens for tile in layout.tiles if tile.segment is not None)
    full = max(budget.tail, _turn_tokens(layout, budget.recent_turns))
    wanted = budget.prose_for(layout.size()) + budget.facts
    most = max(target, _between(budget, 0.5))
    facts = target if budget.exact else budget.facts
    prose = budget.prose_for(layout.size()) if by_model else 0
    attempt = functools.partial(_attempt, layout, target=target, most=most, prose=prose)
    tight = min(full, int(target * TIGHT_TAIL) + budget.spare_tail)
    # Before summaries are written again the newest tokens give way.
    tails = ((full, None), (tight, WORTH_A_FRAME))[: 2 if summaries else 1]
    # A fold may fill its share, and prose twice what was asked: the next summary must still stand
    # beside it, or each is a fold.
    if summaries <= budget.fold + max(wanted, 2 * budget.prose_for(layout.size())):
        for tail, minor in tails:
            yield attempt(tail, wanted, facts, fold=False, minor=minor)
    # A fold stands for all that came before it, so its facts may take what summaries may.
    folded = wanted - budget.facts + max(budget.facts, budget.fold)
    for tail, minor in tails:
        yield attempt(tail, folded, max(facts, budget.fold), fold=True, minor=minor)
    for tail, minor in ((tight, WORTH_A_FRAME), (0, WORTH_A_FRAME), (0, 0)):
        yield attempt(tail, None, target, fold=True, minor=minor)


def _turn_tokens(layout: Layout, turns: int) -> int:
    users = layout.transcript.users
    if not turns or not users:
        return 0
    return layout.span(users[max(0, len(users) - turns)], len(layout.tokens))


def _attempt(
    layout: Layout,
    tail: int,
    wanted: int | None,
    facts: int,
    *,
    fold: bool,
    target: int,
    most: int,
    prose: int,
    minor: int | None = None,
) -> Plan:
    """One plan with a tail of at most `tail` tokens; `wanted` None: all that `target` leaves.

    A stretch that is small beside another is left as it is below `minor` tokens; None: always.
    """
    tail_start = _cut(layout, tail, int(target * TAIL_FLOOR) if wanted is None else 0)
    spans = _spans(layout, tail_start, fold=fold, refold=wanted is None)
    spans = _worthwhile(layout, spans, minor)
    kept = layout.size() - sum(view_tokens(layout, start, end) for start, end in spans)
    room = max(0, target - kept)
    jobs = tuple(_jobs(layout, spans, room, max(0, most - kept), facts, prose))
    least = SMALLEST_SUMMARY * len(spans)
    taken = max(least, room) if wanted is None else max(least, wanted)
    return Plan(jobs, tail_start, kept + taken)


def _cut(layout: Layout, room: int, floor: int) -> int:
    """Where the tail starts: a step boundary, a turn start where that costs little."""
    last_tile_end = max((t.end for t in layout.tiles if t.segment is not None), default=0)
    earliest = max(layout.head_end, last_tile_end)
    starts = [step.start for step in layout.transcript.steps if step.start >= earliest]
    if not starts:
        return len(layout.tokens)
    cut, used = starts[-1], layout.span(starts[-1], len(layout.tokens))
    tail_sizes = {cut: used}
    for start in reversed(starts[:-1]):
        used += layout.span(start, cut)
        if used > room:
            break
        cut = start
        tail_sizes[cut] = used
    least = max(floor, tail_sizes[cut] * (1 - TURN_START_COST))
    users = set(layout.transcript.users)
    turns = [start for start, size in tail_sizes.items() if start in users and size >= least]
    return min(turns, default=cut)


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
