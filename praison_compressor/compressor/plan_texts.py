"""`PlanTexts`: write a plan's texts and make their segments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..ledger.segments import Segment, SegmentKind, Session, undone_hashes
from ..messages import Message
from ..summaries.prompts import render_messages
from ..summaries.protocol import Brief, SegmentText
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.frame import prose_of
from ..view.jobs import Job
from ..view.renderer import ResultRenderer
from ..view.view import View
from .choices import new_keeps
from .decision import Decision


@dataclass(frozen=True)
class PlanTexts:
    """Write the texts of plans and make their segments; thread-safe."""

    writer: SummaryWriter
    renderer: ResultRenderer
    tokens: TokenCounter

    async def write(
        self, decision: Decision, previewed: Decision | None = None
    ) -> tuple[SegmentText, ...]:
        """Return the texts of the jobs; those with prose ask a model.

        A text of the preview, or of an undone compression, is not paid for again.
        """
        briefs = await asyncio.to_thread(briefs_for, decision)
        model = decision.request.auxiliary_model
        name = decision.view.session.id
        if decision.request.force:
            self.writer.end_cooldowns(name)

        async def write_job(job: Job, brief: Brief) -> SegmentText:
            paid = self.find_paid(decision, job, previewed)
            return paid or await self.writer.write(brief, model=model, session_id=name)

        return tuple(await asyncio.gather(*map(write_job, decision.plan.jobs, briefs)))

    def find_paid(
        self, decision: Decision, job: Job, previewed: Decision | None
    ) -> SegmentText | None:
        """Return a paid text of the same run and instructions, or None."""
        run = decision.view.digests[job.start : job.end]
        most = job.room + job.spare
        shown = [] if previewed is None else _previewed_texts(previewed)
        # An undone text may name messages that the archive dropped since.
        undone = [] if decision.unarchived else _undone_texts(decision.view.session)
        for replaced, instructions, text in (*shown, *undone):
            is_same = replaced == run and instructions == decision.request.instructions_digest
            if is_same and self.tokens.message(text.message) <= most:
                return text
        return None

    def apply_without_model(self, decision: Decision) -> View:
        """Return the view after the plan, with static texts without references."""
        unnamed = replace(decision, is_archived=False)
        texts = list(map(self.writer.write_static, briefs_for(unnamed)))
        segments = self.make_segments(unnamed, texts)
        return decision.view.with_segments(segment for segment, _ in segments)

    def make_segments(
        self, decision: Decision, texts: Sequence[SegmentText]
    ) -> list[tuple[Segment, Sequence[Message]]]:
        """Return (segment, originals) for each text, mask, excerpt and newly kept step.

        Without `texts` the summaries are blank.
        """
        jobs = decision.plan.jobs
        texts = texts or [SegmentText({}, "unwritten")] * len(jobs)
        segments = [
            self._segment(decision, "summary", (job.start, job.end), text)
            for job, text in zip(jobs, texts, strict=True)
        ]
        for kind, index, line in self._render_lines(decision):
            run = index, index + 1
            segments.append(self._segment(decision, kind, run, SegmentText(line, "static")))
        for step in new_keeps(decision.view):
            text = SegmentText({"role": "user", "content": "[kept by the user]"}, "keep")
            segments.append(self._segment(decision, "keep", (step.start, step.stop), text))
        return segments

    def _render_lines(self, decision: Decision) -> Iterator[tuple[SegmentKind, int, Message]]:
        """Yield kind, index and text of each mask and excerpt."""
        view, plan = decision.view, decision.plan
        first = len(view.segments) + len(plan.jobs) + 1
        origins = view.transcript.origins
        references = dict[int, str]()
        for number, index in enumerate(sorted([*plan.masks, *plan.excerpted]), first):
            is_readable = decision.is_archived and origins[index] not in decision.unarchived
            references[index] = f"s{number}.1" if is_readable else ""
        if not references:
            return
        masks = {index: references[index] for index in plan.masks}
        excerpts = {index: references[index] for index in plan.excerpted}
        budget = decision.request.budget
        lines = self.renderer.render_excerpts(view, budget.most_result_tokens, excerpts)
        lines |= self.renderer.render_masks(view, budget, masks)
        for index in references:  # in their order
            if index in lines:
                yield ("mask" if index in masks else "excerpt"), index, lines[index]

    def _segment(
        self, decision: Decision, kind: SegmentKind, run: tuple[int, int], text: SegmentText
    ) -> tuple[Segment, Sequence[Message]]:
        view, request = decision.view, decision.request
        segment = Segment(
            kind=kind,
            run=view.digests[slice(*run)],
            rendered=text.message,
            tokens=self.tokens.message(text.message),
            source_tokens=view.original_tokens(*run),
            method=text.method,
            model=text.model,
            usage=text.usage,
            created=time.time(),
            transcript_length=len(view.unrepaired_messages),
            limit=0 if kind == "keep" else request.budget.window_limit,
            instructions_digest=request.instructions_digest if text.method == "model" else "",
        )
        return segment, view.originals(*run)


# -------------------------------------------------------------- texts that were paid for

PaidText = tuple[tuple[str, ...], str, SegmentText]
"""Run, digest of the instructions, and text."""


def _previewed_texts(previewed: Decision) -> Iterator[PaidText]:
    """Yield the texts by a model that a preview wrote."""
    for job, text in zip(previewed.plan.jobs, previewed.texts, strict=False):
        if text.method == "model":
            run = previewed.view.digests[job.start : job.end]
            yield run, previewed.request.instructions_digest, text


def _undone_texts(session: Session) -> Iterator[PaidText]:
    """Yield a model's texts that were undone, newest first."""
    undone = undone_hashes(session.entries)
    for entry in reversed(session.entries):
        segment = entry.segment
        if entry.hash in undone and (segment.kind, segment.method) == ("summary", "model"):
            text = SegmentText(segment.rendered, "model", segment.model)
            yield segment.run, segment.instructions_digest, text


# -------------------------------------------------------------- briefs


def briefs_for(decision: Decision) -> list[Brief]:
    """Return the brief of each of the plan's jobs, in order."""
    view, plan = decision.view, decision.plan
    if not plan.jobs:
        return []
    messages = view.transcript.messages
    outside = (*messages[: view.head_end], *messages[plan.tail_start :])
    pinned = () if view.pinned is None else (view.pinned.message,)
    visible = "\n".join(render_messages((*pinned, *outside)))
    # The segment's number in the ledger after the commit.
    first = len(view.segments) + 1
    return [_brief(decision, job, n, visible) for n, job in enumerate(plan.jobs, first)]


def _brief(decision: Decision, job: Job, number: int, visible: str) -> Brief:
    view, config = decision.view, decision.request.config
    messages = view.transcript.messages
    # Only a model's prose is carried on; quotes are made again from the originals.
    carried = [segment for segment in job.folds if segment.method == "model"]
    covered = {i for t in view.tiles if t.segment in carried for i in range(t.start, t.end)}
    stays = [segment for segment in view.summaries() if segment not in job.folds]
    reference = f"s{number}" if decision.is_archived else ""
    # Without recall tools, omit references; they cost a third.
    references = _references(decision, job, reference) if reference and config.recall else ()
    return Brief(
        messages=messages[job.start : job.end],
        model_messages=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
        room_tokens=job.room,
        spare_tokens=job.spare,
        prose_tokens=job.prose,
        quotes_tokens=job.quotes,
        reference=reference,
        references=references,
        folded=tuple(filter(None, map(prose_of, job.folds))),
        earlier=tuple(filter(None, map(prose_of, stays))),
        visible=visible,
        instructions=config.summary_instructions,
    )


def _references(decision: Decision, job: Job, name: str) -> tuple[str, ...]:
    """Return the reference of each message of a run.

    An inserted message has the reference of the message before it. A message without room in the
    archive has "".
    """
    transcript = decision.view.transcript
    run = range(job.start, job.end)
    numbers = {origin: number for number, origin in enumerate(transcript.origins_of(run), 1)}
    references, last, number = [], -1, 1
    for origin in transcript.origins[job.start : job.end]:
        if origin is not None:
            last, number = origin, numbers[origin]
        references.append("" if last in decision.unarchived else f"{name}.{number}")
    return tuple(references)
