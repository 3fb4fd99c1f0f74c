"""`Pipeline`: look, decide, write, commit and return the result.

Each step returns the next step's argument: a view, a decision, texts, a session, a result. What
later turns need is written to `SessionStates`. The request's mode says what is recorded, and who
waits for the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from dataclasses import dataclass, field, replace

from ..concurrency import run
from ..errors import BudgetTooSmall, LedgerConflict, LedgerError
from ..ledger.segments import Session
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..view.cuts import shorten_messages
from ..view.view import View
from .background import Background
from .billing import Billing
from .commit import Committer, is_inside_hook, with_archive
from .decider import Decider
from .decision import SOFT_RATIO, Decision, quiet_limit, trigger_of
from .plan_texts import PlanTexts
from .preview import ContextUse, Preview, context_use_of, preview_of
from .projection import Projector
from .request import Mode, Request
from .result import CompressResult, result_of
from .session_state import SessionStates
from .stored_sessions import StoredSessions

logger = logging.getLogger(__name__)

SHORTENED_SHARE = 0.75
"""Share of the window for shortened messages that may not be dropped; a summary and a tail get the
rest."""


@dataclass(eq=False)
class Pipeline:
    """Carry out the requests of one compressor; thread-safe."""

    tokens: TokenCounter
    sessions: SessionStates
    projector: Projector
    stored: StoredSessions
    decider: Decider
    plan_texts: PlanTexts
    committer: Committer
    background: Background
    billing: Billing
    _is_without_ledger: bool = field(default=False, init=False)
    """Whether the last read of the ledger failed."""

    # -------------------------------------------------------------- compress

    async def compress(self, request: Request) -> CompressResult:
        """Return the request's result; block other threads only."""
        session, started = await asyncio.to_thread(self._start, request)
        if isinstance(started, Decision):
            started = await self.committer.carry_out(started)
        return self._add_bill_and_tools(request, session, started)

    def compress_sync(self, request: Request) -> CompressResult:
        """Return the request's result, inside an event loop too."""
        session, started = self._start(request)
        if isinstance(started, Decision):
            started = run(self.committer.carry_out(started))
        return self._add_bill_and_tools(request, session, started)

    def _start(self, request: Request) -> tuple[Session, CompressResult | Decision]:
        """Return the request's session, and the result or the compression due."""
        session = self.projector.open(request)
        if request.is_recorded:
            request = replace(request, is_cold=self.billing.is_cold(request, session))
            self.billing.begin(request, session)
        limit = quiet_limit(request, session, is_busy=self.background.is_busy(session.key))
        state = self.sessions.state(session.key)
        quiet = state.extend_last_turn(request, session, limit, self.tokens)
        if quiet is None:
            return session, self._start_in_full(self._with_prices(request, session), session)
        turn, result = quiet
        if request.is_recorded:
            self.sessions.remember_turn(turn)
        return session, result

    def _start_in_full(self, request: Request, session: Session) -> CompressResult | Decision:
        """Read all messages; return the result or the compression due."""
        view, previewed = self.decider.look(request, session)
        # Signed thinking is valid only behind its own prefix: no text may replace a part of that
        # prefix while a turn runs.
        if request.mode is Mode.BACKGROUND and not view.signed_tokens:
            return self._answer_now(request, view)
        if request.mode is Mode.READ_ONLY:
            return self._apply_unrecorded(self.decider.decide(request, view))
        due = self.decider.find_due(request, view, previewed)
        if due is None:
            return self.decider.remember_view(request, view)
        # Inside the hook, waiting would deadlock.
        return self.committer.refuse(due) if is_inside_hook(session.key) else due

    def _with_prices(self, request: Request, session: Session) -> Request:
        """Return the request with prices and the pace of its session."""
        costs = self.sessions.state(session.key).costs(request)
        return replace(request, budget=replace(request.budget, costs=costs))

    def _add_bill_and_tools(
        self, request: Request, session: Session, result: CompressResult
    ) -> CompressResult:
        """Return the result with bill and recall tools, if it has any."""
        if request.is_recorded:
            result = self.billing.charge_result(session, result)
        if not (result.segments or result.masked or request.config.recall):
            return result
        return replace(result, recall_tools=tuple(self.stored.recall_tools(session.id)))

    # -------------------------------------------------------------- without a commit

    def context_use(self, request: Request) -> ContextUse:
        """Return the window's tokens by part."""
        view, _ = self.decider.look(request, self.projector.open(request))
        return context_use_of(request, view, self.tokens)

    def _apply_unrecorded(self, decision: Decision) -> CompressResult:
        """Return the view after the compression due, recorded nowhere."""
        view = self.plan_texts.apply_without_model(decision)
        return result_of(decision.request, view, self.tokens)

    def verbatim_result(self, request: Request) -> CompressResult:
        """Return the result with every message verbatim."""
        session = replace(self.projector.open(request), entries=())
        return result_of(request, self.projector.look(request, session), self.tokens)

    def preview(self, request: Request, *, is_written: bool) -> Preview:
        """Return the compression that the next commit of the request takes.

        A model is asked for summaries only if they are to be written, and for none twice.
        """
        session = self.projector.open(request)
        request = replace(request, is_cold=self.billing.is_cold(request, session))
        request = self._with_prices(request, session)
        view, previewed = self.decider.look(request, session)
        decision = with_archive(self.committer.store, self.decider.decide(request, view))
        jobs = decision.plan.jobs
        asking = [job for job in jobs if job.asks_model]
        paid = (self.plan_texts.find_paid(decision, job, previewed) for job in asking)
        texts: tuple[SegmentText, ...] = ()
        if jobs and (is_written or not request.budget.has_model or all(paid)):
            texts = run(self.plan_texts.write(decision, previewed))
        shown = decision.for_preview(texts, previewed) if decision.is_compression else None
        self.sessions.remember_preview(session.key, shown, texts)
        new = self.plan_texts.make_segments(decision, texts)
        return preview_of(decision, [segment for segment, _ in new], self.tokens)

    # -------------------------------------------------------------- in the background

    def _answer_now(self, request: Request, view: View) -> CompressResult:
        """Return a view without waiting; begin a due summary in the background."""
        size = view.size()
        # Up to the window the whole is sent until the text is ready: nothing is lost, and the
        # provider's cache stays warm.
        fits = size <= request.budget.limit
        is_busy = self.background.is_busy(view.session.key)
        placeholder = self._with_placeholder(request, view)
        is_waiting = placeholder is not None or (fits and is_busy)
        due = None if is_waiting else self.decider.find_due(request, view)
        if due is not None and not due.plan.jobs:
            return self._commit_masks(due)
        if size > quiet_limit(request, view.session, is_busy=is_busy):
            self._prepare(request, view)
        if due is not None and not fits:
            placeholder = self._hold_placeholder(due)
        return self.decider.remember_view(request, placeholder or view)

    def _commit_masks(self, decision: Decision) -> CompressResult:
        """Commit masks and excerpts unless a summary of the session is written.

        The summary would lose the race to them, and its price with it.
        """
        key = decision.view.session.key
        if self.sessions.enter(key) is None:
            try:
                return run(self.committer.commit(decision))
            except LedgerConflict:
                pass  # a view without a commit is as short
            finally:
                self.sessions.leave(key)
        return self._apply_unrecorded(decision)

    def _prepare(self, request: Request, view: View) -> bool:
        """Begin a summary in the background; return whether it was begun."""
        work = functools.partial(self._write_early, request, view)
        return self.background.start(view.session.key, work)

    async def _write_early(self, request: Request, view: View) -> None:
        """Write a summary before the view reaches the trigger."""
        soft = replace(request.budget, trigger=int(request.budget.trigger * SOFT_RATIO))
        early = replace(request, budget=soft, mode=Mode.COMMIT)
        due = await asyncio.to_thread(self.decider.decide_again, early, view)
        if not due.is_compression:
            return
        if due.plan.jobs:  # a turn that needs the text earlier gets a static text
            await asyncio.to_thread(self._hold_placeholder, due)
        done = await self.committer.carry_out(due)
        self.sessions.add_unreported_usage(view.session.key, done.usage)

    def _with_placeholder(self, request: Request, view: View) -> View | None:
        """Return the view with the placeholder; None if unneeded, outdated or outgrown."""
        placeholder = self.sessions.state(view.session.key).placeholder
        limit = request.budget.limit
        if placeholder is None or view.size() <= limit:
            return None
        if not view.session.is_unchanged_since(placeholder.session):
            return None
        shown_ids = {id(tile.segment) for tile in placeholder.all_tiles}
        unrecorded = placeholder.segments[len(placeholder.session.entries) :]
        texts = [segment for segment in unrecorded if id(segment) in shown_ids]
        after = view.with_segments(map(self.projector.recount, texts))
        if after.size() <= limit:
            return after
        with contextlib.suppress(BudgetTooSmall):
            more = self.decider.decide(request, after)
            if more.is_compression:
                return self._hold_placeholder(more)
        return None

    def _hold_placeholder(self, decision: Decision) -> View:
        """Return the view with static texts; hold it for the next turns."""
        view = self.plan_texts.apply_without_model(decision)
        self.sessions.hold_placeholder(view)
        return view

    def idle(self, request: Request) -> bool:
        """Begin a summary above the cold trigger; return whether begun.

        Without messages take the session's last ones, from memory or the store.
        """
        session = self.projector.open(request)
        if not self.billing.is_cold(request, session):
            return False
        # Look once in each silence.
        silence = f"{session.tip} {self.billing.last_request(session)}"
        if not self.sessions.report_once(session.key, "idle", silence):
            return False
        last_turn = self.sessions.state(session.key).last_turn
        messages = request.messages or self.stored.newest_messages(session, last_turn)
        cold = replace(request, is_cold=True, messages=messages)
        view, _ = self.decider.look(cold, session)
        return view.size() > trigger_of(cold, session) and self._prepare(cold, view)

    # -------------------------------------------------------------- after a failure

    def best(self, request: Request, logged: Exception | None) -> CompressResult:
        """Return a view without a model, a commit or an unreadable ledger.

        The failure `logged` is not logged again.
        """
        try:
            session = self.projector.open(request)
            self._is_without_ledger = False
            return self._best(request, session)
        except LedgerError as error:
            # Log once until the ledger can be read again: a turn comes every few seconds.
            is_new = not self._is_without_ledger and str(error) != str(logged)
            self._is_without_ledger = True
            level = logging.WARNING if is_new else logging.DEBUG
            logger.log(level, "without the ledger for now: %s", error)
            nothing = Session(*request.key, tip=request.key[1], parent=request.parent_id)
            return self._best(request, nothing)

    def _best(self, request: Request, session: Session) -> CompressResult:
        """Return a view; shorten fixed messages that do not fit."""
        view, _ = self.decider.look(request, session)
        try:
            return self._apply_unrecorded(self.decider.decide(request, view))
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller logs it once
        short = replace(self._shorten(request, view), given_tokens=view.given_tokens)
        return result_of(request, short, self.tokens, is_shortened=True)

    def _shorten(self, request: Request, view: View) -> View:
        """Return the view with shorter fixed messages, or with them alone."""
        limit = request.budget.limit
        count = self.tokens.messages
        pairs = zip(view.caller_messages, view.replaceable, strict=True)
        kept = [message for message, may_go in pairs if not may_go]
        cut = shorten_messages(kept, int(limit * SHORTENED_SHARE), count)
        shorter = dict(zip(map(id, kept), cut, strict=True))
        messages = [shorter.get(id(message), message) for message in view.caller_messages]
        with contextlib.suppress(BudgetTooSmall):
            shorter_request = replace(request, messages=messages)
            short = self.projector.look(shorter_request, view.session)
            decision = self.decider.decide(shorter_request, short)
            return self.plan_texts.apply_without_model(decision)
        alone = replace(request, messages=shorten_messages(kept, limit, count))
        return replace(self.projector.look(alone, view.session), segments=())
