"""What each job of a plan is written from, and what a finished plan adds to the ledger.

With it the ledger alone gives back a session: head and tail as they came, and in the place of
every segment its archived originals. It names no summary, so that none is ever baked in.

How long a text gets is known only when it is written: where all that a stretch knows fits in less
than its room, the steps nearest to the tail are cheaper kept whole than left out. A model's prose
stays as it is, and no model is asked again; the facts beside it are read anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..errors import BudgetTooSmall, SummaryError
from ..ledger.segments import Outline, Segment
from ..messages import Message
from ..messages.digests import Originals
from ..summaries.prompts import rendering
from ..summaries.protocol import Brief, Prefix, Written, billed
from ..summaries.static import carried_on, without_added
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.frame import unframe
from ..view.layout import Layout
from ..view.plan import Job, Plan, view_tokens
from .call import CompressCall, Look
from .projection import Projector

__all__ = [
    "briefs_for",
    "mask_segment",
    "outline_of",
    "segments_of",
    "widened",
]


# -------------------------------------------------------------- briefs


PROSE_SHARE = 1 / 3
"""Of a summary's room, asked of the model at most. A model may write twice what it is asked for,
and a weak one does: a third is left then for the facts that its text lacks. With a half a model of
1.5 billion weights took all, and its text held 11 of 35 facts of which a static one holds 29."""


def briefs_for(call: CompressCall, look: Look, todo: Plan) -> list[Brief]:
    """A brief for each of the plan's jobs, in their order."""
    # The number that the segment will have in the session's ledger once it is committed.
    first = len(look.layout.segments) + 1
    return [
        replace(_brief(call, look, job, todo), reference=f"s{n}", recall=call.config.recall)
        for n, job in enumerate(todo.jobs, first)
    ]


def _brief(call: CompressCall, look: Look, job: Job, todo: Plan) -> Brief:
    layout, messages = look.layout, look.layout.transcript.messages
    # A static text is written anew from the originals; only a model's prose is carried on.
    carried = [segment for segment in job.folds if segment.method == "model"]
    prose_of = (carried_on(unframe(segment.rendered), segment.method) for segment in job.folds)
    covered = {i for t in layout.tiles if t.segment in carried for i in range(t.start, t.end)}
    found = [t.segment for t in layout.tiles if t.segment is not None]
    kept = [segment for segment in found if segment not in job.folds]
    outside = [*range(layout.head_end), *range(todo.tail_start, len(messages))]
    # A fold carries more than one segment did.
    prose = call.budget.prose_for(job.source_tokens) * (2 if carried else 1)
    return Brief(
        messages=messages[job.start : job.end],
        shown=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
        room=job.room,
        most=job.most,
        tokens=job.source_tokens,
        facts=job.facts,
        words=job.words,
        prose=max(1, min(prose, int(job.room * PROSE_SHARE))),
        by_model=job.by_model,
        folded=tuple(filter(None, prose_of)),
        # The facts beside an earlier text stand in the view; read anew with each stretch they would
        # cost more than all the summaries do.
        earlier=tuple(without_added(unframe(segment.rendered)) for segment in kept),
        visible="\n".join(rendering([messages[i] for i in outside])),
        originals=messages,
        tools=call.tools or (),
        prefix=_prefix(call, look, job),
    )


def _prefix(call: CompressCall, look: Look, job: Job) -> Prefix | None:
    """What the agent's last request began with; None where a summary cannot be asked on it.

    What has no tools from the caller may have some. The originals of a static summary are to be
    read again, and are not in the view.
    """
    if not call.config.summarize_on_prefix or call.tools is None:
        return None
    if any(segment.method != "model" for segment in job.folds):
        return None
    before = look.layout.view(end=job.start)
    range_ = look.layout.view(start=job.start, end=job.end)
    return Prefix((*before, *range_), range_[0], call.tools, rolled=bool(job.folds))


# -------------------------------------------------------------- outline


Run = tuple[int, int]
"""How many messages of the caller's list, and the number of the segment that holds them."""


def outline_of(raw: Sequence[Message], layout: Layout) -> Outline:
    """The outline of `raw`, as `layout` (read from it) lays its ledger's segments along it."""
    runs = _runs(layout)
    found: list[Message | int] = []
    place = 0
    while place < len(raw):
        length, number = runs.get(place, (1, None))
        found.append(raw[place] if number is None else number)
        place += length
    return tuple(found)


def _runs(layout: Layout) -> dict[int, Run]:
    """By the index of its first message, each stretch of the caller's list that a segment holds."""
    numbers = {id(segment): number for number, segment in enumerate(layout.segments)}
    runs: dict[int, Run] = {}
    for start, end, segment in _standing(layout):
        origins = sorted(o for o in layout.transcript.origins[start:end] if o is not None)
        # Where repair moved a result out of its place, the messages stand as they came.
        if origins and origins[-1] - origins[0] + 1 == len(origins):
            runs[origins[0]] = (len(origins), numbers[id(segment)])
    return runs


def _standing(layout: Layout) -> Iterator[tuple[int, int, Segment]]:
    for tile in layout.tiles:
        if tile.segment is not None:
            yield tile.start, tile.end, tile.segment
            continue
        for index in range(tile.start, tile.end):
            found = layout.replaced.get(index)
            if found is not None:
                yield index, index + 1, found


# -------------------------------------------------------------- recording


def segments_of(
    call: CompressCall,
    look: Look,
    todo: Plan,
    written: Sequence[Written],
    *,
    projector: Projector,
    tokens: TokenCounter,
) -> list[tuple[Segment, Sequence[Message]]]:
    """The plan's summaries and masks, each with the caller's own messages that it stands for."""
    summaries = [
        (_summary(look, job, text, tokens), _archived(look, job.start, job.end))
        for job, text in zip(todo.jobs, written, strict=True)
    ]
    chosen = set(todo.masks)
    masks = projector.masked(call, look.layout) if chosen else []
    return summaries + [
        (
            mask_segment(
                look.layout.digests[index],
                message,
                tokens=tokens.message(message),
                source_tokens=look.layout.tokens[index],
                transcript_length=len(look.raw),
            ),
            _archived(look, index, index + 1),
        )
        for index, message in masks
        if index in chosen
    ]


def _archived(look: Look, start: int, end: int) -> Sequence[Message]:
    """The caller's own messages of a run, as they came and in their order."""
    origins = look.layout.transcript.origins[start:end]
    places = sorted(o for o in origins if o is not None)
    return look.raw.at(places) if isinstance(look.raw, Originals) else [look.raw[i] for i in places]


def _summary(look: Look, job: Job, text: Written, tokens: TokenCounter) -> Segment:
    return Segment(
        kind="summary",
        run=look.layout.digests[job.start : job.end],
        rendered=text.message,
        tokens=tokens.message(text.message),
        source_tokens=job.source_tokens,
        method=text.method,
        model=text.model,
        usage=text.usage,
        created=time.time(),
        transcript_length=len(look.raw),
    )


def mask_segment(
    digest: str, line: Message, *, tokens: int, source_tokens: int, transcript_length: int
) -> Segment:
    """The segment by which `line` stands for the message of that digest."""
    return Segment(
        kind="mask",
        run=(digest,),
        rendered=line,
        tokens=tokens,
        source_tokens=source_tokens,
        method="static",
        created=time.time(),
        transcript_length=transcript_length,
    )


# -------------------------------------------------------------- widening


WIDENINGS = 3


LEFT_OVER = 0.02
"""Share of the target that is not worth another round."""


def widened(
    call: CompressCall,
    look: Look,
    todo: Plan,
    written: Sequence[Written],
    *,
    decide: Callable[[CompressCall, Look], Plan | None],
    writer: SummaryWriter,
    size: Callable[[Message], int],
) -> tuple[Plan, list[Written]]:
    """The plan and its texts, with a longer tail where its texts did not fill their room."""
    found = todo, list(written)
    for _ in range(WIDENINGS):
        if not todo.jobs:
            break
        left = call.budget.target - _size_of_view(look, todo, written, size)
        if left < 0:
            break
        found = todo, list(written)
        if left < LEFT_OVER * call.budget.target:
            break
        budget = replace(call.budget, spare_tail=call.budget.spare_tail + left)
        call = replace(call, budget=budget)
        try:
            wider = decide(call, look)
        except BudgetTooSmall:
            break
        if (
            wider is None
            or wider.tail_start >= todo.tail_start
            or [job.start for job in wider.jobs] != [job.start for job in todo.jobs]
        ):
            break
        spent = [text.usage for text in written]
        try:
            texts = [
                writer.again(brief, text, call.model)
                for brief, text in zip(briefs_for(call, look, wider), written, strict=True)
            ]
        except SummaryError:
            break
        todo, written = wider, billed(texts, spent)
    return found


def _size_of_view(
    look: Look, todo: Plan, written: Sequence[Written], size: Callable[[Message], int]
) -> int:
    gone = sum(view_tokens(look.layout, job.start, job.end) for job in todo.jobs)
    return look.layout.size() - gone + sum(size(text.message) for text in written)
