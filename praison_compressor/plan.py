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

from .config import CompressorConfig
from .errors import BudgetTooSmall
from .ledger import Segment, Tile, lay
from .messages import ORPHAN_OPENS, Message, Transcript, text_of

__all__ = ["Budget", "Job", "Layout", "Plan", "arrange", "lay_masks", "plan", "users_of"]

SMALLEST_SUMMARY = 80
"""Tokens below which a framed summary says nothing."""

TIGHT_TAIL = 0.25
"""Share of a tight target that the tail takes at most: what it leaves buys the summary depth
(tests/benchmarks/retention.py)."""

TAIL_FLOOR = 0.25
"""Share of a tight target below which no turn start is worth moving the cut."""

TURN_START_COST = 0.2
"""Share of the tail that a cut on a turn start may cost."""


LEAST_FACTS = 3_000
"""Tokens of facts where an eighth of the target allows it: how many files and rules a session has
does not shrink with the window. Half of `fold_ratio`, so that not every summary is a fold."""

MAJOR_SHARE = 0.5
"""Share of the largest stretch below which another one is not worth a call of its own."""

WORTH_A_FRAME = 5 * SMALLEST_SUMMARY
"""Tokens below which a small stretch says more by itself than in a frame."""


@dataclass(frozen=True)
class Budget:
    """Tokens, all of them; what each is for."""

    limit: int
    """A view above it is refused by the provider: window - reserve - overhead."""
    trigger: int
    target: int
    tail: int
    head: int
    prose: int | None
    """Asked of the model; None: 5 % of the segment, 750 to 8,000."""
    facts: int
    fold: int
    """All summaries together; above it the oldest are folded."""
    min_gain: float = 0.05
    recent_turns: int = 0
    mask_recent: int = 0
    """Newest tokens whose tool outputs are not masked."""
    exact: bool = False
    """The target is a size asked for: facts may fill what the prose leaves of it."""

    @classmethod
    def of(cls, config: CompressorConfig, window: int, overhead: int = 0) -> Budget:
        """The budget for a window, by the ratios of the configuration.

        Raises:
            BudgetTooSmall: reserve and overhead leave nothing.
        """
        reserve = config.output_reserve
        if reserve is None:
            reserve = min(8_000, window // 4)
        usable = window - reserve - overhead
        if usable <= 0:
            raise BudgetTooSmall(reserve + overhead, window, "output_reserve and tool schemas")
        floor = min(config.token_floor, usable)
        trigger = max(int(usable * config.trigger_ratio), floor)
        return cls._with_target(config, usable, trigger, int(trigger * config.target_ratio))

    @classmethod
    def exactly(cls, config: CompressorConfig, target: int) -> Budget:
        """A view of at most `target` tokens: replaces window, reserve, trigger and target."""
        return replace(cls._with_target(config, target, target, target), exact=True)

    @classmethod
    def _with_target(
        cls, config: CompressorConfig, limit: int, trigger: int, target: int
    ) -> Budget:
        head, facts = config.head_tokens, config.facts_budget_tokens
        return cls(
            limit=limit,
            trigger=trigger,
            target=target,
            tail=config.protect_last_n_tokens,
            head=limit // 10 if head is None else head,
            prose=config.summary_target_tokens,
            facts=_facts_room(target) if facts is None else facts,
            fold=int(target * config.fold_ratio),
            min_gain=config.min_gain_ratio,
            recent_turns=config.keep_recent_turns or 0,
            mask_recent=min(target // 2, config.protect_last_n_tokens)
            if config.mask_keep_recent_tokens is None
            else config.mask_keep_recent_tokens,
        )

    def prose_for(self, source_tokens: int) -> int:
        """Tokens to ask of the model for a segment of that size."""
        if self.prose is not None:
            return self.prose
        return min(8_000, max(750, source_tokens // 20))


def _facts_room(target: int) -> int:
    """A tenth of the target; what is certain needs room in a small window too."""
    return max(target // 10, min(LEAST_FACTS, target // 8))


@dataclass(frozen=True)
class Layout:
    """A transcript with its counts and the segments found along it."""

    transcript: Transcript
    digests: tuple[str, ...]
    tokens: tuple[int, ...]
    head_tokens: int
    """Room that the first exchange was given."""
    head_end: int
    """The first exchange ends before this index; everything before it stays verbatim."""
    allowed: tuple[bool, ...]
    """Which messages may be represented by a segment."""
    tiles: tuple[Tile, ...]
    replaced: dict[int, Segment]
    """Messages outside the summaries that a recorded mask stands for."""
    kept: frozenset[int] = frozenset()
    """Messages that a policy keeps out of every summary."""

    def size(self) -> int:
        """Tokens of the view."""
        return sum(map(self.tile_tokens, self.tiles))

    def tile_tokens(self, tile: Tile) -> int:
        """Tokens that the tile takes in the view."""
        if tile.segment is not None:
            return tile.segment.tokens
        return self.span(tile.start, tile.end)

    def span(self, start: int, end: int) -> int:
        """Tokens of a stretch of messages as they stand outside summaries."""
        return sum(self.message_tokens(i) for i in range(start, end))

    def message_tokens(self, index: int) -> int:
        """Tokens of one message as it stands outside summaries."""
        found = self.replaced.get(index)
        return self.tokens[index] if found is None else found.tokens

    def source(self, start: int, end: int) -> int:
        """Tokens of the original messages of a stretch."""
        return sum(self.tokens[start:end])

    def masked(self) -> int:
        """How many messages stand in the view as a mask."""
        gaps = (tile for tile in self.tiles if tile.segment is None)
        return sum(tile.start <= index < tile.end for tile in gaps for index in self.replaced)

    def view(self) -> list[Message]:
        """The messages to send."""
        return [message for tile in self.tiles for message in self._of(tile)]

    def _of(self, tile: Tile) -> Iterator[Message]:
        if tile.segment is not None:
            # A copy: a host that marks or edits what it sends must not edit the ledger.
            yield dict(tile.segment.rendered)
            return
        for index in range(tile.start, tile.end):
            found = self.replaced.get(index)
            yield self.transcript.messages[index] if found is None else dict(found.rendered)


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
    """False: a small stretch beside a larger one, not worth a call of its own."""
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


# ---------------------------------------------------------------- laying out


def arrange(
    transcript: Transcript,
    digests: Sequence[str],
    tokens: Sequence[int],
    segments: Sequence[Segment],
    head_tokens: int,
) -> Layout:
    """Lay what the ledger has along the transcript."""
    allowed = _allowed(transcript, tokens, head_tokens)
    tiles = lay(digests, segments, allowed)
    return Layout(
        transcript=transcript,
        digests=tuple(digests),
        tokens=tuple(tokens),
        head_tokens=head_tokens,
        head_end=_head_end(transcript, tokens, allowed, tiles, head_tokens),
        allowed=tuple(allowed),
        tiles=tuple(tiles),
        replaced=lay_masks(digests, segments, allowed),
    )


def lay_masks(
    digests: Sequence[str], segments: Sequence[Segment], allowed: Sequence[bool]
) -> dict[int, Segment]:
    """Lay recorded masks along a transcript by position; each is used once.

    A later result of the same words and id (ids come again) is another one: the agent asked for
    it anew and must see it.
    """
    waiting: dict[str, list[Segment]] = {}
    for segment in segments:
        if segment.kind == "mask":
            waiting.setdefault(segment.run[0], []).append(segment)
    if not waiting:
        return {}
    return {
        index: waiting[found].pop(0)
        for index, found in enumerate(digests)
        if allowed[index] and waiting.get(found)
    }


def _allowed(transcript: Transcript, tokens: Sequence[int], head_tokens: int) -> list[bool]:
    """Leading system messages, the task, the newest user message and the newest step stay."""
    count = len(transcript.messages)
    allowed = [index >= transcript.leading for index in range(count)]
    users = users_of(transcript.messages)
    if users:
        # A greeting before the task belongs to the first exchange where it fits.
        greeting = range(transcript.leading, users[0])
        fits = sum(tokens[i] for i in greeting) <= head_tokens
        for index in [users[0], users[-1], *(greeting if fits else ())]:
            allowed[index] = False
    if transcript.steps:
        for index in transcript.steps[-1]:
            allowed[index] = False
    return allowed


def users_of(messages: Sequence[Message]) -> list[int]:
    """The indices of the user's messages."""
    return [
        index
        for index, message in enumerate(messages)
        if message.get("role") == "user" and not text_of(message).startswith(ORPHAN_OPENS)
    ]


def _head_end(
    transcript: Transcript,
    tokens: Sequence[int],
    allowed: Sequence[bool],
    tiles: Sequence[Tile],
    head_tokens: int,
) -> int:
    """System, task and, where it fits, the first step after the task."""
    end = 0
    while end < len(allowed) and not allowed[end]:
        end += 1
    if end == transcript.leading or any(tile.segment and tile.start == end for tile in tiles):
        return end
    room = head_tokens - sum(tokens[transcript.leading : end])
    first = next((step for step in transcript.steps if step.start == end), range(end, end))
    return first.stop if sum(tokens[i] for i in first) <= room else end


# ---------------------------------------------------------------- planning


def plan(
    layout: Layout, budget: Budget, *, force: bool = False, masks: Mapping[int, int] | None = None
) -> Plan | None:
    """What to do so that the view fits, or None while it does or nothing is gained.

    `masks` are the tool results that may become one line, with the tokens of that line: where
    this is enough, nothing is summarized.

    Raises:
        BudgetTooSmall: what cannot be dropped exceeds the limit.
    """
    size = layout.size()
    if size <= budget.trigger and not force:
        return None
    kept = layout.source(0, len(layout.tokens)) - sum(
        tokens for tokens, ok in zip(layout.tokens, layout.allowed, strict=True) if ok
    )
    if kept > budget.limit:
        raise BudgetTooSmall(kept, budget.limit)
    target = min(budget.target, int(size * 0.6)) if size <= budget.trigger else budget.target
    target = min(budget.limit, max(target, kept + SMALLEST_SUMMARY))
    masked = _mask_plan(layout, budget, masks or {})
    enough = target if force else _most(budget, target)
    if masked is not None and masked.expected <= enough and _if_it_pays(masked, size, budget):
        return masked
    # Where what cannot be dropped leaves no room under the target, the limit is what counts.
    least = size
    for goal in (target, budget.limit):
        for attempt in _attempts(layout, budget, goal):
            if attempt.jobs and attempt.expected <= goal:
                return _if_it_pays(attempt, size, budget)
            least = min(least, attempt.expected)
        if size <= budget.limit:
            return None
    raise BudgetTooSmall(least, budget.limit)


def _most(budget: Budget, target: int) -> int:
    """Above the target but as far below the trigger: good enough where it saves a call."""
    return max(target, (budget.target + budget.trigger) // 2)


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


def _if_it_pays(found: Plan, size: int, budget: Budget) -> Plan | None:
    pays = size - found.expected >= budget.min_gain * size
    return found if pays or size > budget.limit else None


def _attempts(layout: Layout, budget: Budget, target: int) -> Iterator[Plan]:
    """From the plan that keeps most to the one that keeps only what cannot be dropped."""
    summaries = sum(tile.segment.tokens for tile in layout.tiles if tile.segment is not None)
    full = max(budget.tail, _turn_tokens(layout, budget.recent_turns))
    wanted = budget.prose_for(layout.size()) + budget.facts
    most = _most(budget, target)
    facts = target if budget.exact else budget.facts
    attempt = functools.partial(_attempt, layout, target=target, most=most)
    if summaries + wanted <= budget.fold or not summaries:
        yield attempt(full, wanted, facts, fold=False)
    # A fold stands for all that came before it, so its facts may take what summaries may.
    folded = wanted - budget.facts + max(budget.facts, budget.fold)
    yield attempt(full, folded, max(facts, budget.fold), fold=True)
    tight = min(full, int(target * TIGHT_TAIL))
    for tail, minor in ((tight, WORTH_A_FRAME), (0, WORTH_A_FRAME), (0, 0)):
        yield attempt(tail, None, target, fold=True, minor=minor)


def _turn_tokens(layout: Layout, turns: int) -> int:
    users = users_of(layout.transcript.messages)
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
    minor: int | None = None,
) -> Plan:
    """One plan with a tail of at most `tail` tokens; `wanted` None: all that `target` leaves.

    A stretch that is small beside another is left as it is below `minor` tokens; None: always.
    """
    tail_start = _cut(layout, tail, int(target * TAIL_FLOOR) if wanted is None else 0)
    spans = _spans(layout, tail_start, fold=fold, refold=wanted is None)
    spans = _worthwhile(layout, spans, minor)
    kept = layout.size() - sum(_view_tokens(layout, start, end) for start, end in spans)
    room = max(0, target - kept)
    jobs = tuple(_jobs(layout, spans, room, max(0, most - kept), facts))
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
    users = set(users_of(layout.transcript.messages))
    turns = [start for start, size in tail_sizes.items() if start in users and size >= least]
    return min(turns, default=cut)


def _spans(layout: Layout, tail_start: int, *, fold: bool, refold: bool) -> list[tuple[int, int]]:
    """The stretches of the middle to represent anew.

    With `fold` those of old segments too, with `refold` even one segment alone, to shrink it.
    """
    return [
        (start, end)
        for start, end in _open_stretches(layout, tail_start, fold)
        if _view_tokens(layout, start, end) >= 2 * SMALLEST_SUMMARY
        and (refold or not _is_one_segment(layout, start, end))
    ]


def _worthwhile(
    layout: Layout, spans: Sequence[tuple[int, int]], minor: int | None
) -> list[tuple[int, int]]:
    sizes = [_view_tokens(layout, start, end) for start, end in spans]
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


def _view_tokens(layout: Layout, start: int, end: int) -> int:
    """Tokens that the stretch takes in the present view."""
    total = 0
    for tile in layout.tiles:
        if tile.segment is not None:
            total += tile.segment.tokens if start <= tile.start and tile.end <= end else 0
        else:
            total += layout.span(max(start, tile.start), max(start, min(end, tile.end)))
    return total


def _jobs(
    layout: Layout, spans: Sequence[tuple[int, int]], room: int, most: int, facts: int
) -> Iterator[Job]:
    """A job for each span: the least that says something for each, the rest shared by size."""
    sizes = [layout.source(start, end) for start, end in spans]
    for (start, end), size in zip(spans, sizes, strict=True):
        present = _view_tokens(layout, start, end)
        share = functools.partial(_share, of=size, among=sum(sizes), jobs=len(spans))
        yield Job(
            start,
            end,
            room=min(share(room), present - 1),
            most=min(share(most), present - 1),
            facts=facts * size // max(1, sum(sizes)),
            source_tokens=size,
            by_model=size >= MAJOR_SHARE * max(sizes),
            folds=_inside(layout.tiles, start, end),
        )


def _share(room: int, *, of: int, among: int, jobs: int) -> int:
    spare = max(0, room - SMALLEST_SUMMARY * jobs)
    return SMALLEST_SUMMARY + spare * of // max(1, among)


def _inside(tiles: Iterable[Tile], start: int, end: int) -> tuple[Segment, ...]:
    return tuple(
        tile.segment
        for tile in tiles
        if tile.segment is not None and start <= tile.start and tile.end <= end
    )
