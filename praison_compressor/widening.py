"""What summaries leave of the target: more of the newest words verbatim.

How long a text gets is known only when it is written: where all that a stretch knows fits in less
than its room, the steps nearest to the tail are cheaper kept whole than left out. A model's prose
stays as it is, and no model is asked again; the facts beside it are read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .brief import Written, billed
from .briefs import briefs_for
from .call import Call, Look
from .errors import BudgetTooSmall, SummaryError
from .messages import Message
from .plan import Plan, view_tokens
from .writer import SummaryWriter

__all__ = ["widened"]

WIDENINGS = 3
LEFT_OVER = 0.02
"""Share of the target that is not worth another round."""


def widened(
    call: Call,
    look: Look,
    todo: Plan,
    written: Sequence[Written],
    *,
    decide: Callable[[Call, Look], Plan | None],
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
