"""`Writing`: write the texts of a plan, by a model or without one, and make their segments."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Literal

from ..concurrency import begin
from ..events import Event, Hook
from ..ledger.segments import Segment
from ..messages import Message
from ..summaries.prompts import rendering
from ..summaries.protocol import Brief, Written
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.frame import prose_of
from ..view.jobs import Job, Plan
from ..view.texts import Texts
from ..view.view import View
from .choices import new_keeps
from .request import Key, Request

logger = logging.getLogger(__name__)

Recorded = tuple[Segment, Sequence[Message]]
"""A segment and the original messages that it replaces."""

Unarchived = frozenset[int] | None
"""Indices, in the caller's list, of messages that the archive has no room for; None: nothing is
recorded, and no text may name a reference."""


class Writing:
    """Writes the texts of plans; thread-safe."""

    def __init__(self, writer: SummaryWriter, texts: Texts, tokens: TokenCounter) -> None:
        self._writer = writer
        self._texts = texts
        self._tokens = tokens

    async def write(
        self, request: Request, view: View, plan: Plan, unarchived: Unarchived
    ) -> tuple[Written, ...]:
        """Return the texts of the jobs; those with prose ask a model."""
        briefs = await asyncio.to_thread(briefs_for, request, view, plan, unarchived)
        coming = [
            self._writer.write(
                brief, model=request.model, session_id=view.session.id, force=request.force
            )
            for brief in briefs
        ]
        return tuple(await asyncio.gather(*coming))

    def static(self, request: Request, view: View, plan: Plan) -> list[Written]:
        """Return the texts of the plan's jobs without a model and without references."""
        return list(map(self._writer.static, briefs_for(request, view, plan, None)))

    def segments(
        self,
        request: Request,
        view: View,
        plan: Plan,
        texts: Sequence[Written],
        unarchived: Unarchived,
    ) -> list[Recorded]:
        """Return the segments of the plan and of new choices to keep.

        Each has the messages that it covers. Without `texts` the summaries are blank.
        """
        limit = request.budget.window_limit
        texts = texts or [Written({}, "unwritten")] * len(plan.jobs)
        made = [
            self._segment(view, "summary", (job.start, job.end), text, limit)
            for job, text in zip(plan.jobs, texts, strict=True)
        ]
        for kind, index, line in self._shorter(request, view, plan, unarchived):
            written = Written(line, "static")
            made.append(self._segment(view, kind, (index, index + 1), written, limit))
        for step in new_keeps(view):
            written = Written({"role": "user", "content": "[kept by the user]"}, "keep")
            made.append(self._segment(view, "keep", (step.start, step.stop), written, 0))
        return made

    def _shorter(
        self, request: Request, view: View, plan: Plan, unarchived: Unarchived
    ) -> Iterator[tuple[str, int, Message]]:
        """Yield kind, index and text of each mask and excerpt, with its reference."""
        excerpts, first = plan.excerpted, len(view.segments) + len(plan.jobs) + 1
        origins, names = view.transcript.origins, dict[int, str]()
        for number, index in enumerate(sorted([*plan.masks, *excerpts]), first):
            is_readable = unarchived is not None and origins[index] not in unarchived
            names[index] = f"s{number}.1" if is_readable else ""
        if not names:
            return
        masks = {index: names[index] for index in plan.masks}
        cuts = {index: names[index] for index in excerpts}
        lines = self._texts.shortened(view, request.budget.large, cuts)
        lines |= self._texts.masked(view, masks)
        for index in names:  # in the order of their references
            if index in lines:
                yield ("mask" if index in masks else "excerpt"), index, lines[index]

    def _segment(
        self, view: View, kind: str, run: tuple[int, int], text: Written, limit: int
    ) -> Recorded:
        segment = Segment(
            kind=kind,
            run=view.digests[slice(*run)],
            rendered=text.message,
            tokens=self._tokens.message(text.message),
            source_tokens=view.source(*run),
            method=text.method,
            model=text.model,
            usage=text.usage,
            created=time.time(),
            transcript_length=len(view.given),
            limit=limit,
        )
        return segment, view.originals(*run)


# -------------------------------------------------------------- briefs


def briefs_for(request: Request, view: View, plan: Plan, unarchived: Unarchived) -> list[Brief]:
    """Return the brief of each of the plan's jobs, in order."""
    messages = view.transcript.messages
    outside = (*messages[: view.head_end], *messages[plan.tail_start :])
    pinned = () if view.pinned is None else (view.pinned.rendered,)
    visible = "\n".join(rendering((*pinned, *outside))) if plan.jobs else ""
    # The segment's number in the ledger after the commit.
    first = len(view.segments) + 1
    return [
        _brief(request, view, job, "" if unarchived is None else f"s{number}", visible, unarchived)
        for number, job in enumerate(plan.jobs, first)
    ]


def _brief(
    request: Request, view: View, job: Job, reference: str, visible: str, unarchived: Unarchived
) -> Brief:
    messages = view.transcript.messages
    # Only a model's prose is carried on; quotes are made again from the originals.
    carried = [segment for segment in job.folds if segment.method == "model"]
    covered = {i for t in view.tiles if t.segment in carried for i in range(t.start, t.end)}
    stays = [segment for segment in view.summaries() if segment not in job.folds]
    follows = bool(reference and request.config.recall)
    return Brief(
        messages=messages[job.start : job.end],
        shown=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
        room=job.room,
        spare=job.spare,
        prose=job.prose,
        quotes=job.quotes,
        reference=reference,
        # Without recall tools, omit references; they cost a third.
        references=_references(view, job, reference, unarchived) if follows else (),
        folded=tuple(filter(None, map(prose_of, job.folds))),
        earlier=tuple(filter(None, map(prose_of, stays))),
        visible=visible,
        instructions=request.config.summary_instructions,
    )


def _references(view: View, job: Job, name: str, unarchived: Unarchived) -> tuple[str, ...]:
    """Return the reference of each message of a run.

    An inserted message has the reference of the message before it. A message without room in the
    archive has "".
    """
    origins = view.transcript.origins[job.start : job.end]
    places = {o: n for n, o in enumerate(sorted(o for o in origins if o is not None), 1)}
    found, last, place = [], -1, 1
    for origin in origins:
        if origin is not None:
            last, place = origin, places[origin]
        found.append("" if last in (unarchived or ()) else f"{name}.{place}")
    return tuple(found)


# -------------------------------------------------------------- the hook before a compression


def begun(request: Request, view: View, plan: Plan) -> Event:
    """Return the event "started" of a planned compression."""
    numbers = {
        "tokens": view.size(),
        "messages": len(view.tokens),
        "trigger": request.budget.trigger,
        "target": request.budget.target,
        "limit": request.budget.limit,
        "to_summarize": len(plan.summarized),
        "to_mask": len(plan.masks + plan.excerpts),
        "forced": request.force,
    }
    return Event("started", view.session.id, numbers)


_asking: ContextVar[Key | None] = ContextVar("praison_compressor_hook", default=None)


def is_asked_about(key: Key) -> bool:
    """Return whether the caller runs inside the hook for that session."""
    return _asking.get() == key


async def asked(hook: Hook | None, event: Event, key: Key) -> str | Literal[False] | None:
    """Return the hook's answer; None without a hook or after its failure."""
    if hook is None:
        return None
    token = _asking.set(key)
    try:
        # A hook may block: call it in a thread. An async hook only makes its coroutine there.
        said = await asyncio.wrap_future(begin(lambda: hook(event)))
        said = await said if inspect.isawaitable(said) else said
    except (Exception, SystemExit):
        logger.exception("session %s: the hook before a compression failed", event.session_id)
        return None
    finally:
        _asking.reset(token)
    if said is None or said is False or isinstance(said, str):
        return said
    logger.warning("the hook before a compression gave %r: expected None, False or text", said)
    return None
