"""`Committer`: commit a decision, or report why a due compression is skipped.

It holds the session's lease, asks the hook, writes the texts, commits the segments and returns the
result.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from ..concurrency import renew_after_fork, start_thread
from ..errors import LedgerError
from ..events import Event, Hook
from ..ledger.segments import Session, Usage
from ..ledger.stores import BoundedStore, Store
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..view.view import View
from .choices import new_keeps, new_references
from .decision import FIXED, SKIP_WORDS, Decision
from .plan_texts import PlanTexts
from .projection import Projector, skeleton_of
from .request import CompressResult, SessionKey, add_cost, result_of, usage_of
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
        result = result_of(decision.request, after, self.tokens, before=view.session, texts=texts)
        self.emit(committed_event(view, result, time.monotonic() - started))
        return result

    async def _write(self, decision: Decision) -> tuple[Session, Sequence[SegmentText]]:
        """Write the texts and append their segments; return session and texts.

        The unreported cost of earlier texts is added to the first text, so that the ledger has the
        whole cost.
        """
        key = decision.view.session.key
        dropped = await asyncio.to_thread(self.dropped_messages, decision)
        # A previewed text may refer to a message that the archive would drop by now.
        shown = decision.texts if dropped <= (decision.dropped or frozenset()) else ()
        decision = replace(decision, dropped=dropped)
        texts = shown or await self.plan_texts.write(decision)
        unreported = self.sessions.take_unreported_usage(key) if texts else Usage()
        charged = add_cost(unreported, texts)
        try:
            session = await asyncio.to_thread(self._append, replace(decision, texts=charged))
        except BaseException:
            # The preview still holds its own texts and their cost for the next try.
            cost = Usage() if shown else usage_of(texts)
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
        """Return the messages that the archive would drop at the commit.

        The numbers are indices of the caller's list.
        """
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
        """Report once why a compression is skipped, or cannot reach the trigger.

        No compression reaches the trigger if the fixed messages alone exceed it. FIXED is reported
        once in a session, any other reason once in an epoch.
        """
        view, reason, session = decision.view, decision.reason, decision.view.session
        trigger = decision.request.budget.trigger
        epoch = "" if reason == FIXED else session.tip
        if reason in SKIP_WORDS and self.sessions.report_once(session.key, reason, epoch):
            numbers = {"tokens": view.size(), "trigger": trigger}
            self.emit(Event("skipped", session.id, {"reason": reason, **numbers}))
            logger.info("session %s is not compressed: %s", session.id, SKIP_WORDS[reason])
        fixed = view.fixed_tokens()
        # An excerpt makes a fixed message smaller.
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


# -------------------------------------------------------------- the lease of a session

LEASE_SECONDS = 6.0
"""A crashed holder's lease ends after this time; a live holder renews it every quarter."""

LEASE_PATIENCE_SECONDS = 600.0
"""Longest wait for a lease. A hung holder may renew forever, so the compression then starts without
the lease; the commit decides the race."""

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.1, 1.0
"""The pause grows, so that hundreds of waiting processes do not overload a small store."""


class _Lease:
    """One holder's claim to write a session's summary, renewed until its release."""

    def __init__(self, store: Store, session: Session, seconds: float) -> None:
        self._store = store
        self._session = session
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._over = threading.Event()
        # A renewal still on its way must not outlive the release.
        self._lock = renew_after_fork(threading.Lock())

    def claim(self) -> bool:
        with self._lock:
            is_over = self._over.is_set()
            return not is_over and self._store.claim(self._session, self._holder, self._seconds)

    def renew(self) -> None:
        while not self._over.wait(self._seconds / 4):
            with contextlib.suppress(LedgerError):  # the commit decides the race
                self.claim()

    def release(self) -> None:
        with self._lock:
            self._over.set()
            try:
                self._store.release(self._session, self._holder)
            except LedgerError as error:  # the work under the lease is done
                logger.info("a lease could not be released, it ends by itself: %s", error)


@contextlib.asynccontextmanager
async def hold_lease(
    store: Store,
    session: Session,
    *,
    seconds: float = LEASE_SECONDS,
    patience_seconds: float = LEASE_PATIENCE_SECONDS,
) -> AsyncIterator[None]:
    """Hold the session's lease across processes; `SessionStates.enter` serves one process."""
    lease = _Lease(store, session, seconds)
    try:
        if await _wait_for(lease, patience_seconds):
            # In a separate thread: a busy loop or a full executor must not lose the lease.
            with contextlib.suppress(RuntimeError):  # the interpreter exits
                start_thread(lease.renew)
        else:
            logger.warning("session %s: its lease was never released", session.id)
        yield
    finally:
        try:
            # In a separate thread: a second cancellation would remove a release that is queued in
            # the executor.
            released = start_thread(lease.release)
        except RuntimeError:  # the interpreter exits: no thread can be started
            lease.release()
        else:
            await asyncio.wrap_future(released)


async def _wait_for(lease: _Lease, patience_seconds: float) -> bool:
    """Claim the lease; return False if another holder outlasts the patience."""
    end = time.monotonic() + patience_seconds
    pause = POLL_SECONDS
    while not await asyncio.to_thread(lease.claim):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, LONGEST_POLL_SECONDS)
    return True
