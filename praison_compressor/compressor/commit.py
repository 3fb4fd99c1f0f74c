"""`Committer`: ask the hook, write texts, commit segments, return the result."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from ..concurrency import start_thread
from ..events import Event, Hook
from ..ledger.segments import Session, Usage
from ..ledger.stores import BoundedStore, Store
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..view.jobs import Plan
from ..view.view import View
from .choices import new_keeps, new_references
from .decision import Decision
from .lease import hold_lease
from .plan_texts import Dropped, PlanTexts
from .projection import Projector, skeleton_of
from .request import SessionKey
from .result import CompressResult, add_cost, result_of, usage_of
from .session_state import SessionStates

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Committer:
    """Commit decisions of one compressor; thread-safe."""

    store: Store
    tokens: TokenCounter
    sessions: SessionStates
    projector: Projector
    plan_texts: PlanTexts
    emit: Callable[[Event], None]
    hook: Hook | None

    @contextlib.asynccontextmanager
    async def hold(self, session: Session) -> AsyncIterator[None]:
        """Let one caller at a time compress a session, in all processes."""
        while (worker := self.sessions.enter(session.key)) is not None:
            await asyncio.wrap_future(worker)
        try:
            async with hold_lease(self.store, session):
                yield
        finally:
            self.sessions.leave(session.key)

    async def commit(self, decision: Decision) -> CompressResult | None:
        """Ask the hook, write, commit; return the result, None if refused.

        Raises:
            LedgerConflict: another writer committed to the session.
        """
        view = decision.view
        event = started_event(decision)
        answer = await ask_hook(self.hook, event, view.session.key)
        if answer is False:
            return None
        asked = decision.request.with_instructions(answer) if answer else decision.request
        started = time.monotonic()
        self.emit(event)
        try:
            session, texts = await self._write(replace(decision, request=asked))
        except BaseException as error:
            self.emit(Event("abandoned", view.session.id, {"error": type(error).__name__}))
            raise
        after = self.projector.look_again(view, session)
        result = result_of(decision.request, after, self.tokens, before=view.session, texts=texts)
        self.emit(committed_event(view, result, time.monotonic() - started))
        return result

    async def _write(self, decision: Decision) -> tuple[Session, Sequence[SegmentText]]:
        """Write the texts and append their segments; return session and texts.

        The texts' cost includes failed attempts: the ledger has the whole cost.
        """
        view = decision.view
        key = view.session.key
        dropped = await asyncio.to_thread(dropped_messages, self.store, view, decision.plan)
        if not dropped <= decision.dropped:
            decision = replace(decision, texts=())  # a shown text may name one of them
        texts = decision.texts or await self.plan_texts.write(decision, dropped)
        unreported = self.sessions.take_unreported_usage(key) if texts else Usage()
        charged = add_cost(unreported, texts)
        try:
            session = await asyncio.to_thread(self._append, decision, charged, dropped)
        except BaseException:
            # A preview keeps its texts, with their cost, for the next try.
            cost = Usage() if decision.texts else usage_of(texts)
            self.sessions.add_unreported_usage(key, unreported + cost)
            raise
        self.sessions.end_preview_and_placeholder(key, texts)
        return session, charged

    def _append(
        self, decision: Decision, texts: Sequence[SegmentText], dropped: Dropped
    ) -> Session:
        view = decision.view
        entries = self.plan_texts.make_segments(decision, texts, dropped)
        after = view.with_segments(segment for segment, _ in entries)
        return self.store.commit(view.session, entries, skeleton_of(after))


def dropped_messages(store: Store, view: View, plan: Plan) -> frozenset[int]:
    """Return the messages of a plan that the archive will drop.

    The messages are indices in the caller's list. No reference may name them.
    """
    if not isinstance(store, BoundedStore):
        return frozenset()
    kept = (index for step in new_keeps(view) for index in step)
    indices = (*new_references(view, plan).values(), *kept)
    origins = [o for index in indices if (o := view.transcript.origins[index]) is not None]
    originals = view.unrepaired_messages.at(origins)
    digests = originals.content_digests()
    sizes = dict(zip(digests, originals.sizes(), strict=True))
    unkept = store.unkept(view.session.namespace, sizes)
    return frozenset(o for o, d in zip(origins, digests, strict=True) if d in unkept)


# -------------------------------------------------------------- its events


def started_event(decision: Decision) -> Event:
    """Return the event "started" of a planned compression."""
    request, view, plan = decision.request, decision.view, decision.plan
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


def committed_event(before: View, result: CompressResult, seconds: float) -> Event:
    """Return the event of a compression that was recorded."""
    return Event(
        "committed",
        before.session.id,
        {
            "tokens_before": before.size(),
            "tokens_after": result.tokens_after,
            "method": result.summary_method,
            "status": result.context_status,
            "model": next((text.model for text in result.written if text.model), None),
            "masked": result.masked,
            "secrets": result.masked_secrets,
            "epoch": result.session_id,
            "parent": result.parent_session_id,
            **vars(result.usage),
            "cost_saved": result.cost_saved,
            "seconds": seconds,
        },
    )


# -------------------------------------------------------------- the hook


_asked_session: ContextVar[SessionKey | None] = ContextVar("praison_compressor_hook", default=None)


def is_inside_hook(key: SessionKey) -> bool:
    """Return whether the caller runs inside the hook for that session."""
    return _asked_session.get() == key


async def ask_hook(hook: Hook | None, event: Event, key: SessionKey) -> str | Literal[False] | None:
    """Return the hook's answer; None without a hook or after its failure."""
    if hook is None:
        return None
    token = _asked_session.set(key)
    try:
        # A hook may block: call it in a thread. An async hook only makes its coroutine there.
        answer = await asyncio.wrap_future(start_thread(lambda: hook(event)))
        answer = await answer if inspect.isawaitable(answer) else answer
    except (Exception, SystemExit):
        logger.exception("session %s: the hook before a compression failed", event.session_id)
        return None
    finally:
        _asked_session.reset(token)
    if answer is None or answer is False or isinstance(answer, str):
        return answer
    logger.warning("the hook before a compression gave %r: expected None, False or text", answer)
    return None
