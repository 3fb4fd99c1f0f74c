"""`Committer`: ask the hook, write texts, commit segments, return the result.

One compression of a session at a time, in all processes. After a lost race the request looks and
decides again.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from ..concurrency import begin
from ..errors import LedgerConflict
from ..events import Event, Hook
from ..ledger.segments import Session, Usage
from ..ledger.stores import Store
from ..tokens.counter import TokenCounter
from ..view.view import View
from .background import hold_lease
from .decision import Decision, decide
from .plan_texts import PlanTexts, RecordedSegment
from .projection import Projector, outline_of
from .request import Request, SessionKey
from .result import CompressResult, add_cost, result_of, usage_of
from .session_state import Sessions, last_turn_of

logger = logging.getLogger(__name__)

MOST_CONFLICTS = 8
"""Most commit conflicts in one call; with a damaged tip every commit conflicts."""

VETO = "veto"
"""Reason of a compression that a hook refused."""


@dataclass(frozen=True)
class Committer:
    """Carries out decisions of one compressor; thread-safe."""

    store: Store
    tokens: TokenCounter
    sessions: Sessions
    projector: Projector
    texts: PlanTexts
    emit: Callable[[Event], None]
    hook: Hook | None

    async def carry_out(self, decision: Decision) -> CompressResult:
        """Write and commit a compression, or take a faster writer's segments."""
        request, due, lost = decision.request, decision, 0
        key = decision.view.session.key
        while due.compresses:
            others = self.sessions.enter(key)
            if others is not None:
                await asyncio.wrap_future(others)
                due = await asyncio.to_thread(self.decide_again, request, due.view)
                continue
            try:
                async with hold_lease(self.store, due.view.session):
                    # Another writer may have committed between our look and our lease.
                    session = await asyncio.to_thread(self.projector.open, request)
                    if not session.is_unchanged_since(due.view.session):
                        due = await asyncio.to_thread(self.decide_again, request, due.view)
                    if not due.compresses:
                        break
                    return await self.commit(due)
            except LedgerConflict:
                lost += 1
                if lost >= MOST_CONFLICTS:
                    why = f"session {due.view.session.id}: its tip moved {lost} times"
                    raise LedgerConflict(why) from None
            finally:
                self.sessions.leave(key)
            due = await asyncio.to_thread(self.decide_again, request, due.view)
        return self.finish(request, due.view)

    def decide(self, request: Request, view: View) -> Decision:
        """Return the decision about the view."""
        previewed = self.sessions.of(view.session.key).previewed
        return decide(request, view, self.projector.texts, previewed)

    def decide_again(self, request: Request, view: View) -> Decision:
        """Return the decision about the view by the newest ledger."""
        return self.decide(request, self.projector.look_again(view, self.projector.open(request)))

    async def commit(self, decision: Decision) -> CompressResult:
        """Ask the hook, write, commit; return the result, or raise LedgerConflict."""
        view, event = decision.view, started_event(decision)
        said = await ask_hook(self.hook, event, view.session.key)
        if said is False:
            return await asyncio.to_thread(self.refuse, decision)
        if said:
            decision = replace(decision, request=decision.request.with_instructions(said))
        key, started = view.session.key, time.monotonic()
        texts, owed = decision.texts, Usage()
        self.emit(event)
        try:
            unarchived = await asyncio.to_thread(self.projector.make_room, view, decision.plan)
            texts = texts or await self.texts.write(decision, unarchived)
            owed = self.sessions.take_owed(key) if texts else owed
            # With the cost of failed attempts before, so that the ledger has the whole cost.
            charged = add_cost(owed, texts)
            entries = await asyncio.to_thread(
                self.texts.make_segments, decision, charged, unarchived
            )
            session = await asyncio.to_thread(self._append, view, entries)
        except BaseException as error:
            self.emit(Event("abandoned", view.session.id, {"error": type(error).__name__}))
            # A preview keeps its texts for the next try, so their cost is not owed.
            self.sessions.owe(key, owed if decision.texts else owed + usage_of(texts))
            raise
        self.sessions.commit(key, texts)
        after = self.projector.look_again(view, session)
        result = result_of(decision.request, after, self.tokens, before=view.session, texts=charged)
        self.emit(committed_event(view, result, time.monotonic() - started))
        return result

    def _append(self, view: View, entries: Sequence[RecordedSegment]) -> Session:
        """Append the segments; return the session after them."""
        after = view.with_segments(segment for segment, _ in entries)
        session = self.store.commit(view.session, entries, outline_of(after))
        self.projector.trim()
        return session

    # -------------------------------------------------------------- without a commit

    def finish(self, request: Request, view: View) -> CompressResult:
        """Return a view's result; remember the view for the next turn."""
        result = result_of(request, view, self.tokens)
        turn = last_turn_of(request, view, result, self.tokens)
        if turn is not None:
            self.sessions.of(view.session.key).last_turn = turn
        return result

    def refuse(self, decision: Decision) -> CompressResult:
        """Return the view without the refused compression.

        A view above the limit is shortened without a model.
        """
        request, view = decision.request, decision.view
        self.skip(request, view, VETO, view.session.tip)
        if view.size() > request.budget.limit:
            view = self.texts.apply_without_model(decision)
        return replace(self.finish(request, view), vetoed=True)

    def skip(self, request: Request, view: View, reason: str, epoch: str) -> bool:
        """Emit "skipped" once per reason and epoch; return whether it was emitted."""
        is_new = self.sessions.report_once(view.session.key, reason, epoch)
        if is_new:
            numbers = {"tokens": view.size(), "trigger": request.budget.trigger}
            self.emit(Event("skipped", view.session.id, {"reason": reason, **numbers}))
        return is_new


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
        said = await asyncio.wrap_future(begin(lambda: hook(event)))
        said = await said if inspect.isawaitable(said) else said
    except (Exception, SystemExit):
        logger.exception("session %s: the hook before a compression failed", event.session_id)
        return None
    finally:
        _asked_session.reset(token)
    if said is None or said is False or isinstance(said, str):
        return said
    logger.warning("the hook before a compression gave %r: expected None, False or text", said)
    return None
