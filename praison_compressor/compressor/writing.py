"""Write: the texts that a plan asks for, by a model or without one."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from ..config import Event, Hook
from ..ledger.segments import Usage
from ..summaries.prompts import rendering
from ..summaries.protocol import Brief, Prefix, Written
from ..summaries.threads import begin
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.frame import prose_of
from ..view.jobs import Job, view_tokens
from ..view.plan import Plan
from .call import Look

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Draft:
    """A plan and the texts for its jobs, in their order."""

    plan: Plan
    texts: Sequence[Written]
    recorded: bool = True
    """Whether it is to be committed: only then do its references lead anywhere."""


@dataclass(frozen=True)
class Writing:
    """Has plans written, with a model's money or without; thread-safe."""

    writer: SummaryWriter
    tokens: TokenCounter

    async def write(self, look: Look, plan: Plan, spent: Sequence[Usage] = ()) -> Draft:
        """The plan's texts by a model where one is worth its call; `spent`, on texts that came to
        nothing, is on their bill too."""
        call, name = look.call, look.session.id
        coming = [
            self.writer.write(brief, model=call.model, session_id=name, force=call.force)
            for brief in briefs_for(look, plan)
        ]
        texts = await asyncio.gather(*coming)
        if texts:
            texts[0] = replace(texts[0], usage=sum(spent, texts[0].usage))
        return await asyncio.to_thread(self._refitted, look, Draft(plan, texts))

    def static(self, look: Look, plan: Plan, *, recorded: bool = False) -> Draft:
        """The plan's texts without a model, with references where they are to be recorded."""
        texts = [self.writer.static(brief) for brief in briefs_for(look, plan, recorded=recorded)]
        return self._refitted(look, Draft(plan, texts, recorded=recorded))

    def _refitted(self, look: Look, draft: Draft) -> Draft:
        """Return the draft; static where its texts are too long."""
        if not draft.plan.jobs or self._size(look, draft) <= look.budget.limit:
            return draft
        briefs = briefs_for(look, draft.plan, recorded=draft.recorded)
        paid = zip(map(self.writer.static, briefs), draft.texts, strict=True)
        return replace(draft, texts=[replace(text, usage=old.usage) for text, old in paid])

    def _size(self, look: Look, draft: Draft) -> int:
        """Tokens of the view with these texts in it."""
        gone = sum(view_tokens(look.layout, job.start, job.end) for job in draft.plan.jobs)
        texts = sum(self.tokens.message(text.message) for text in draft.texts)
        return look.layout.size() - gone + texts


# -------------------------------------------------------------- the hook before it


def begun(look: Look, plan: Plan) -> Event:
    """The event of a compression that is about to be written, in numbers."""
    call = look.call
    numbers = {
        "tokens": look.layout.size(),
        "messages": len(look.layout.tokens),
        "trigger": call.budget.trigger,
        "target": call.budget.target,
        "limit": call.budget.limit,
        "to_summarize": sum(job.end - job.start for job in plan.jobs),
        "to_mask": len(plan.masks + plan.excerpts),
        "forced": call.force,
    }
    return Event("started", look.session.id, numbers)


_asking: ContextVar[tuple[str, str] | None] = ContextVar("praison_compressor_hook", default=None)


def is_asked_about(key: tuple[str, str]) -> bool:
    """Whether this runs in a hook that is asked about a compression of that session."""
    return _asking.get() == key


async def asked(
    hook: Hook | None, event: Event, key: tuple[str, str]
) -> str | Literal[False] | None:
    """What the hook says of a compression; None where it fails, for then it has refused nothing."""
    if hook is None:
        return None
    token = _asking.set(key)
    try:
        # In a thread, for it may block: of an async one only the making of its coroutine is.
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


# -------------------------------------------------------------- briefs


PROSE_SHARE = 1 / 3
"""Of a summary's room, asked of the model at most. A weak model writes twice what it is asked for:
a third is left then for the facts that its text lacks."""


def briefs_for(look: Look, plan: Plan, *, recorded: bool = True) -> list[Brief]:
    """What each of the plan's jobs is written from, in their order."""
    # The number that the segment will have in the session's ledger once it is committed.
    first = len(look.layout.segments) + 1
    messages = look.layout.transcript.messages
    outside = (*messages[: look.layout.head_end], *messages[plan.tail_start :])
    visible = "\n".join(rendering(outside))
    names = [f"s{n}" if recorded else "" for n in range(first, first + len(plan.jobs))]
    return [_brief(look, job, name, visible) for job, name in zip(plan.jobs, names, strict=True)]


def _references(look: Look, start: int, end: int, name: str) -> tuple[str, ...]:
    """By which the archive reads each message of a run: their places as they came.

    One that was made up in repair leads to the message before it; one that the archive had no room
    for leads nowhere.
    """
    origins = look.layout.transcript.origins[start:end]
    places = {o: n for n, o in enumerate(sorted(o for o in origins if o is not None), 1)}
    found, last, place = [], -1, 1
    for origin in origins:
        if origin is not None:
            last, place = origin, places[origin]
        found.append("" if last in look.dropped else f"{name}.{place}")
    return tuple(found)


def _brief(look: Look, job: Job, reference: str, visible: str) -> Brief:
    call = look.call
    layout, messages = look.layout, look.layout.transcript.messages
    # A static text is written anew from the originals; only a model's prose is carried on.
    carried = [segment for segment in job.folds if segment.method == "model"]
    covered = {i for t in layout.tiles if t.segment in carried for i in range(t.start, t.end)}
    kept = [segment for segment in layout.summaries() if segment not in job.folds]
    # A fold carries more than one segment did.
    prose = call.budget.prose_for(job.source_tokens) * (2 if carried else 1)
    return Brief(
        messages=messages[job.start : job.end],
        shown=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
        room=job.room if not job.by_model else job.most,
        quotes=job.facts,
        prose=max(1, min(prose, int(job.room * PROSE_SHARE))),
        by_model=job.by_model,
        folded=tuple(filter(None, map(prose_of, job.folds))),
        earlier=tuple(filter(None, map(prose_of, kept))),
        visible=visible,
        reference=reference,
        references=_references(look, job.start, job.end, reference)
        if reference and call.config.recall
        else (),
        instructions=call.config.summary_instructions,
        prefix=_prefix(look, job),
    )


def _prefix(look: Look, job: Job) -> Prefix | None:
    """What the agent's last request began with; None where a summary cannot be asked on it.

    What has no tools from the caller may have some. The originals of a static summary are to be
    read again, and are not in the view.
    """
    call = look.call
    if not call.config.summarize_on_prefix or call.tools is None:
        return None
    if any(segment.method != "model" for segment in job.folds):
        return None
    before = look.layout.view(end=job.start)
    own = look.layout.view(job.start, job.end)
    return Prefix((*before, *own), own[0], call.tools, rolled=bool(job.folds))
