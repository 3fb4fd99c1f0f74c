"""What each job of a plan is written from: its messages, what stands beside it, its room."""

from __future__ import annotations

from dataclasses import replace

from .brief import Brief
from .call import Call, Look
from .plan import Job, Plan
from .prefix import Prefix
from .prompts import rendering, unframe
from .static import carried_on, without_added

__all__ = ["briefs_for"]

PROSE_SHARE = 1 / 3
"""Of a summary's room, asked of the model at most. A model may write twice what it is asked for,
and a weak one does: a third is left then for the facts that its text lacks. With a half a model of
1.5 billion weights took all, and its text held 11 of 35 facts of which a static one holds 29."""


def briefs_for(call: Call, look: Look, todo: Plan) -> list[Brief]:
    """A brief for each of the plan's jobs, in their order."""
    # The number that the segment will have in the session's ledger once it is committed.
    first = len(look.layout.segments) + 1
    return [
        replace(_brief(call, look, job, todo), reference=f"s{n}", recall=call.config.recall)
        for n, job in enumerate(todo.jobs, first)
    ]


def _brief(call: Call, look: Look, job: Job, todo: Plan) -> Brief:
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


def _prefix(call: Call, look: Look, job: Job) -> Prefix | None:
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
