"""`PlanTexts`: write a plan's texts and make their segments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..ledger.segments import Segment, SegmentKind, undone_hashes
from ..messages import Message
from ..summaries.prompts import render_messages
from ..summaries.protocol import Brief, SegmentText
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.budget import Job
from ..view.frame import prose_of
from ..view.renderer import ResultRenderer
from ..view.view import View
from .choices import new_keeps, new_references
from .decision import Decision, RememberedPreview


@dataclass(frozen=True)
class PlanTexts:
    """Write the texts of plans and make their segments; thread-safe."""

    writer: SummaryWriter
    renderer: ResultRenderer
    tokens: TokenCounter

    async def write(
        self, decision: Decision, previewed: RememberedPreview | None = None
    ) -> tuple[SegmentText, ...]:
        """Return each job's text; ask a model for jobs with prose.

        A text of the preview or of an undone compression is used again.
        """
        briefs = await asyncio.to_thread(briefs_for, decision)
        model = decision.request.auxiliary_model
        session_id = decision.view.session.id
        if decision.request.force:
            self.writer.breaker.end_cooldowns(session_id)

        async def write_job(job: Job, brief: Brief) -> SegmentText:
            paid = self.find_paid(decision, job, previewed)
            return paid or await self.writer.write(brief, model=model, session_id=session_id)

        return tuple(await asyncio.gather(*map(write_job, decision.plan.jobs, briefs)))

    def find_paid(
        self, decision: Decision, job: Job, previewed: RememberedPreview | None
    ) -> SegmentText | None:
        """Return an earlier text of the same run and instructions, or None."""
        run = decision.view.digests[job.start : job.end]
        most = job.text_tokens + job.spare_tokens
        for replaced, instructions, text in _paid_texts(decision, previewed):
            is_same = replaced == run and instructions == decision.request.instructions_digest
            if is_same and self.tokens.message(text.message) <= most:
                return text
        return None

    def apply_without_model(self, decision: Decision) -> View:
        """Return the view after the plan, with static texts and no references."""
        unarchived = replace(decision, dropped=None)
        texts = tuple(map(self.writer.write_static, briefs_for(unarchived)))
        segments = self.make_segments(replace(unarchived, texts=texts))
        return decision.view.with_segments(segment for segment, _ in segments)

    def make_segments(self, decision: Decision) -> list[tuple[Segment, Sequence[Message]]]:
        """Return (segment, originals) for each text, mask, excerpt and newly kept step.

        Unwritten summaries are blank. A "keep" segment records a kept step in the ledger: later
        views keep the step too.
        """
        jobs = decision.plan.jobs
        texts = decision.texts or [SegmentText({}, "unwritten")] * len(jobs)
        segments = [
            self._segment(decision, "summary", (job.start, job.end), text)
            for job, text in zip(jobs, texts, strict=True)
        ]
        for kind, index, line in self._render_lines(decision):
            run = index, index + 1
            segments.append(self._segment(decision, kind, run, SegmentText(line, "static")))
        for step in new_keeps(decision.view):
            text = SegmentText({"role": "user", "content": "[kept by the user]"}, "fixed")
            segments.append(self._segment(decision, "keep", (step.start, step.stop), text))
        return segments

    def _render_lines(self, decision: Decision) -> Iterator[tuple[SegmentKind, int, Message]]:
        """Yield kind, index and text of each mask and excerpt."""
        view, plan = decision.view, decision.plan
        if not (plan.masks or plan.excerpted):
            return
        named = readable_references(decision)
        masks = {index: named.get(index, "") for index in plan.masks}
        excerpts = {index: named.get(index, "") for index in plan.excerpted}
        budget = decision.request.budget
        lines = self.renderer.render_excerpts(view, budget.most_result_tokens, excerpts)
        lines |= self.renderer.render_masks(view, budget, masks)
        for index in sorted({*masks, *excerpts} & lines.keys()):
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


def _paid_texts(decision: Decision, previewed: RememberedPreview | None) -> Iterator[PaidText]:
    """Yield the texts of models: the preview's, then undone texts, newest first."""
    dropped, entries = decision.dropped or frozenset(), decision.view.session.entries
    if previewed is not None and dropped <= (previewed.decision.dropped or frozenset()):
        earlier = previewed.decision
        for job, text in zip(earlier.plan.jobs, earlier.texts, strict=False):
            if text.method == "model":
                run = earlier.view.digests[job.start : job.end]
                yield run, earlier.request.instructions_digest, text
    if dropped:
        return
    undone = undone_hashes(entries)
    for entry in reversed(entries):
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
    # The first new segment's number in the ledger after the commit.
    first = len(view.segments) + 1
    # Without recall tools, omit references: they take a third of a summary.
    named = readable_references(decision) if decision.request.config.recall else {}
    return [_brief(decision, job, n, visible, named) for n, job in enumerate(plan.jobs, first)]


def _brief(
    decision: Decision, job: Job, number: int, visible: str, named: Mapping[int, str]
) -> Brief:
    view, config = decision.view, decision.request.config
    messages = view.transcript.messages
    # Only a model's prose is carried on; quotes are made again from the originals.
    carried = [segment for segment in job.folds if segment.method == "model"]
    covered = {i for t in view.tiles if t.segment in carried for i in range(t.start, t.end)}
    stays = [segment for segment in view.summaries() if segment not in job.folds]
    is_archived = decision.dropped is not None
    return Brief(
        messages=messages[job.start : job.end],
        model_messages=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
        text_tokens=job.text_tokens,
        spare_tokens=job.spare_tokens,
        prose_tokens=job.prose_tokens,
        quote_tokens=job.quote_tokens,
        reference=f"s{number}" if is_archived else "",
        references=_references_of(job, named) if is_archived and named else (),
        folded=tuple(filter(None, map(prose_of, job.folds))),
        earlier=tuple(filter(None, map(prose_of, stays))),
        visible=visible,
        instructions=config.summary_instructions,
    )


def readable_references(decision: Decision) -> dict[int, str]:
    """Return index -> reference of each archived message; "" if unreadable."""
    dropped, origins = decision.dropped, decision.view.transcript.origins
    references = new_references(decision.view, decision.plan)
    return {
        index: "" if dropped is None or origins[index] in dropped else reference
        for reference, index in references.items()
    }


def _references_of(job: Job, named: Mapping[int, str]) -> tuple[str, ...]:
    references: list[str] = []
    for index in range(job.start, job.end):
        # A message that repair inserted gets the reference of the previous message.
        references.append(named[index] if index in named else references[-1])
    return tuple(references)
