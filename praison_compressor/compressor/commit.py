"""`Committer`: commit a decision, or report why a compression is skipped.

A commit asks the hook, writes the texts and appends their segments.
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

from ..concurrency import start_thread
from ..events import Event, Hook
from ..ledger.segments import Session, Usage
from ..ledger.stores import BoundedStore, Store
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..view.view import View
from .choices import new_keeps, new_references
from .decision import SKIP_WORDS, Decision
from .plan_texts import PlanTexts
from .projection import Projector, skeleton_of
from .request import SessionKey
from .result import CompressResult, add_cost, result_of, usage_of
from .session_states import SessionStates

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

    async def commit(self, decision: Decision) -> CompressResult | None:
        """Commit a decision; return its result, or None if the hook refuses.

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
        result = result_of(
            decision.request, after, self.tokens, session_before=view.session, texts=texts
        )
        self.emit(committed_event(view, result, time.monotonic() - started))
        return result

    async def _write(self, decision: Decision) -> tuple[Session, Sequence[SegmentText]]:
        """Write the texts and append their segments; return session and texts.

        The first text also carries the unreported cost, so that the ledger has the whole cost.
        """
        key = decision.view.session.key
        dropped = await asyncio.to_thread(self.dropped_messages, decision)
        # Previewed texts are not used if the archive now drops more messages: the texts may
        # reference these messages.
        reused_texts = decision.texts if dropped <= (decision.dropped or frozenset()) else ()
        decision = replace(decision, dropped=dropped)
        texts = reused_texts or await self.plan_texts.write(decision)
        unreported = self.sessions.take_unreported_usage(key) if texts else Usage()
        charged = add_cost(unreported, texts)
        try:
            session = await asyncio.to_thread(self._append, replace(decision, texts=charged))
        except BaseException:
            # If previewed texts were used, the preview keeps the texts and their cost for the next
            # try.
            cost = Usage() if reused_texts else usage_of(texts)
            self.sessions.add_unreported_usage(key, unreported + cost)
            raise
        self.sessions.end_preview_and_placeholder(key, texts)
        return session, charged

    def _append(self, decision: Decision) -> Session:
        view = decision.view
        entries = self.plan_texts.make_segments(decision)
        after = view.with_segments(segment for segment, _ in entries)
        return self.store.commit(view.session, entries, skeleton_of(after))

    def dropped_messages(self, decision: Decision) -> frozenset[int]:
        """Return the caller's indices of messages that the archive would drop."""
        if not isinstance(self.store, BoundedStore):
            return frozenset()
        view = decision.view
        kept = (index for step in new_keeps(view) for index in step)
        indices = (*new_references(view, decision.plan).values(), *kept)
        origins = [o for index in indices if (o := view.transcript.origins[index]) is not None]
        originals = view.unrepaired_messages.at(origins)
        digests = originals.content_digests()
        sizes = dict(zip(digests, originals.sizes(), strict=True))
        dropped = self.store.would_drop(view.session.namespace, sizes)
        return frozenset(o for o, d in zip(origins, digests, strict=True) if d in dropped)

    # -------------------------------------------------------------- skips

    def report_skip(self, decision: Decision) -> None:
        """Report once why a compression is skipped or cannot reach the trigger.

        "fixed part" is reported once in a session, every other reason once in an epoch.
        """
        view, reason, session = decision.view, decision.reason, decision.view.session
        trigger = decision.request.budget.trigger
        epoch = "" if reason == "fixed part" else session.tip
        if reason in SKIP_WORDS and self.sessions.report_once(session.key, reason, epoch):
            numbers = {"tokens": view.size(), "trigger": trigger}
            self.emit(Event("skipped", session.id, {"reason": reason, **numbers}))
            logger.info("session %s is not compressed: %s", session.id, SKIP_WORDS[reason])
        fixed = view.fixed_tokens()
        # A plan with excerpts is no reason to warn: an excerpt makes a fixed message smaller.
        is_warning = fixed > trigger and not decision.plan.excerpts
        if is_warning and self.sessions.report_once(session.key, "trigger", ""):
            logger.warning(
                "session %s: fixed messages take %d tokens, above the trigger of %d: no compression"
                " can reach it; raise context_window or trigger_ratio, or send fewer tools",
                session.id,
                fixed,
                trigger,
            )


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


def committed_event(view: View, result: CompressResult, seconds: float) -> Event:
    """Return the event of a compression that was recorded."""
    return Event(
        "committed",
        view.session.id,
        {
            "tokens_before": view.size(),
            "tokens_after": result.tokens_after,
            "method": result.summary_method,
            "status": result.context_status,
            "model": next((text.model for text in result.written if text.model), None),
            "masked": result.masked,
            "secrets": result.redacted_secrets,
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
        # A hook may block, so a thread calls it. The coroutine of an async hook runs here.
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
