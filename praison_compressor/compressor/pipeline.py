"""`Pipeline`: look, decide, commit and return the result.

Each step returns the next step's argument: a session, a view, a decision, a result. `SessionStates`
remembers what later turns need. The request's mode says what is recorded, and who waits for the
model. If another writer commits first, the request is decided again.

If the store fails, `compress` raises LedgerError. An agent's turn then gets `fallback_view`: the
messages if they fit, else a view with static texts. That view is not recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from dataclasses import dataclass, replace

from ..concurrency import run
from ..errors import BudgetTooSmall, LedgerConflict, LedgerError
from ..ledger.segments import Session
from ..tokens.counter import TokenCounter
from ..view.masks import shorten_fixed, shorten_messages
from ..view.view import View
from .background import Background
from .billing import Billing
from .commit import Committer, is_inside_hook
from .decision import (
    SOFT_RATIO,
    Decision,
    RememberedPreview,
    decide,
    quiet_limit,
    trigger_of,
)
from .lease import hold_session
from .plan_texts import PlanTexts
from .preview import ContextUse, Preview, context_use_of, preview_of
from .projection import Projector, last_turn_of
from .request import Request
from .result import CompressResult, result_of
from .session_states import SessionStates
from .stored_sessions import StoredSessions

logger = logging.getLogger(__name__)

MOST_CONFLICTS = 8
"""Upper bound of the tries of one commit: with a damaged tip every try conflicts."""

SHORTENED_SHARE = 0.75
"""Share of the limit for shortened fixed messages. Summary and tail get the other tokens."""


@dataclass(eq=False)
class Pipeline:
    """Carry out the requests of one compressor; thread-safe."""

    tokens: TokenCounter
    sessions: SessionStates
    projector: Projector
    stored: StoredSessions
    plan_texts: PlanTexts
    committer: Committer
    background: Background
    billing: Billing

    # -------------------------------------------------------------- compress

    async def compress(self, request: Request) -> CompressResult:
        """Return the request's result; read and count in other threads."""
        session, answer = await asyncio.to_thread(self._answer, request)
        result = await self._carry_out(answer) if isinstance(answer, Decision) else answer
        return self._add_bill_and_tools(request, session, result)

    def compress_sync(self, request: Request) -> CompressResult:
        """Return the request's result, also from inside an event loop."""
        session, answer = self._answer(request)
        result = run(self._carry_out(answer)) if isinstance(answer, Decision) else answer
        return self._add_bill_and_tools(request, session, result)

    def _answer(self, request: Request) -> tuple[Session, CompressResult | Decision]:
        """Return the session, with the result or the compression that is due."""
        session = self.projector.open(request)
        if request.is_recorded:
            request = replace(request, is_cold=self.billing.is_cold(request, session))
            self.billing.begin(request, session)
        limit = quiet_limit(request, session, is_busy=self.background.is_busy(session.key))
        state = self.sessions.state(session.key)
        quiet = state.extend_last_turn(request, session, limit, self.tokens)
        if quiet is None:
            return session, self._answer_in_full(self._with_prices(request, session), session)
        turn, result = quiet
        if request.is_recorded:
            self.sessions.remember_turn(turn)
        return session, result

    def _answer_in_full(self, request: Request, session: Session) -> CompressResult | Decision:
        """Read all messages; return the result or the compression that is due."""
        previewed = self.sessions.state(session.key).previewed
        view = self.projector.look(request, session, previewed)
        # Signed thinking is valid only after an unchanged prefix: the background must not change
        # the prefix while a turn runs.
        if request.mode == "background" and not view.signed_tokens:
            return self._answer_now(request, view)
        decision = decide(request, view, self.projector.renderer, previewed)
        if request.mode == "read only":
            return self._apply_unrecorded(decision)
        self.committer.report_skip(decision)
        if not decision.is_compression:
            return self._remember_view(request, view)
        if is_inside_hook(session.key):  # waiting would deadlock
            return self._refuse(decision)
        return decision

    async def _carry_out(self, due: Decision) -> CompressResult:
        """Commit a compression; after another writer's commit, decide again."""
        for _ in range(MOST_CONFLICTS):
            try:
                async with hold_session(self.sessions, self.stored.store, due.view.session):
                    due = await asyncio.to_thread(self._refresh, due)
                    if not due.is_compression:
                        return self._remember_view(due.request, due.view)
                    return await self._commit(due)
            except LedgerConflict:
                logger.debug("session %s: another writer was faster", due.request.key[1])
        raise LedgerConflict(
            f"session {due.request.key[1]}: another writer's commit came first {MOST_CONFLICTS} "
            "times; call again"
        )

    async def _commit(self, due: Decision) -> CompressResult:
        result = await self.committer.commit(due)
        if result is None:
            return await asyncio.to_thread(self._refuse, due)
        return result

    def _refuse(self, due: Decision) -> CompressResult:
        """Return the result without the compression that the hook refused."""
        self.committer.report_skip(replace(due, reason="veto"))
        fits = due.view.size() <= due.request.budget.limit
        sent_view = due.view if fits else self.plan_texts.apply_without_model(due)
        return replace(self._remember_view(due.request, sent_view), vetoed=True)

    def _remember_view(self, request: Request, view: View) -> CompressResult:
        result = result_of(request, view, self.tokens)
        turn = last_turn_of(request, view, result, self.tokens)
        if turn is not None:
            self.sessions.remember_turn(turn)
        return result

    def _add_bill_and_tools(
        self, request: Request, session: Session, result: CompressResult
    ) -> CompressResult:
        if request.is_recorded:
            result = self.billing.charge_result(session, result)
        if not (result.segments or result.masked or request.config.recall):
            return result
        return replace(result, recall_tools=self.stored.recall_tools(session.id))

    # -------------------------------------------------------------- look and decide

    def _look(self, request: Request, session: Session) -> View:
        previewed = self.sessions.state(session.key).previewed
        return self.projector.look(request, session, previewed)

    def _refresh(self, decision: Decision) -> Decision:
        """Return the decision; after another writer's commit, a new decision."""
        request, view = decision.request, decision.view
        session = self.projector.open(request)
        if session.is_unchanged_since(view.session):
            return decision
        newest = self.projector.look_again(view, session)
        previewed = self.sessions.state(session.key).previewed
        return decide(request, newest, self.projector.renderer, previewed)

    def _with_prices(self, request: Request, session: Session) -> Request:
        costs = self.sessions.state(session.key).costs(request)
        return replace(request, budget=replace(request.budget, costs=costs))

    # -------------------------------------------------------------- without a commit

    def context_use(self, request: Request) -> ContextUse:
        """Return the window's tokens by part."""
        view = self._look(request, self.projector.open(request))
        return context_use_of(request, view, self.tokens)

    def _apply_unrecorded(self, decision: Decision) -> CompressResult:
        """Return the decision's result with static texts; record nothing."""
        view = self.plan_texts.apply_without_model(decision)
        return result_of(decision.request, view, self.tokens)

    def verbatim_result(self, request: Request) -> CompressResult:
        """Return the result with every message verbatim."""
        session = replace(self.projector.open(request), entries=())
        return result_of(request, self.projector.look(request, session), self.tokens)

    def preview(self, request: Request, *, write: bool) -> Preview:
        """Return what the request's next commit would do.

        With `write` a model writes the missing summaries.
        """
        session = self.projector.open(request)
        request = replace(request, is_cold=self.billing.is_cold(request, session))
        request = self._with_prices(request, session)
        previewed = self.sessions.state(session.key).previewed
        view = self.projector.look(request, session, previewed)
        decision = decide(request, view, self.projector.renderer)
        decision = replace(decision, dropped=self.committer.dropped_messages(decision))
        jobs = decision.plan.jobs
        by_model = [job for job in jobs if job.asks_model]
        find_paid = self.plan_texts.find_paid
        # Texts are shown if a model may be asked, or if all texts of models were paid for before.
        if jobs and (write or all(find_paid(decision, job, previewed) for job in by_model)):
            texts = run(self.plan_texts.write(decision, previewed))
            decision = replace(decision, texts=texts)
        newest = RememberedPreview.of(decision, previewed) if decision.is_compression else None
        self.sessions.remember_preview(session.key, newest, decision.texts)
        new = self.plan_texts.make_segments(decision)
        return preview_of(decision, [segment for segment, _ in new], self.tokens)

    # -------------------------------------------------------------- in the background

    def _answer_now(self, request: Request, view: View) -> CompressResult:
        """Return a result without waiting; begin a due summary in the background."""
        is_busy = self.background.is_busy(view.session.key)
        decision = self._choose_now(request, view, is_busy=is_busy)
        self.committer.report_skip(decision)
        sent_view = decision.view
        if decision.is_compression and sent_view is view and not decision.plan.jobs:
            return self._commit_masks(decision)
        if decision.is_compression and view.size() > request.budget.limit:
            sent_view = self._hold_placeholder(decision)
        if view.size() > quiet_limit(request, view.session, is_busy=is_busy):
            early = functools.partial(self._write_early, request, view)
            self.background.start(view.session.key, early)
        return self._remember_view(request, sent_view)

    def _choose_now(self, request: Request, view: View, *, is_busy: bool) -> Decision:
        """Return the decision; its view has the placeholder if that is needed."""
        limit = request.budget.limit
        # While a summary is written, messages that fit are sent: the provider's cache stays warm.
        if is_busy and view.size() <= limit:
            return Decision.without(request, view, "fits")
        held = view if view.size() <= limit else self._with_placeholder(view)
        if held is not view:
            if held.size() <= limit:
                return Decision.without(request, held, "fits")
            with contextlib.suppress(BudgetTooSmall):
                more = decide(request, held, self.projector.renderer)
                if more.is_compression:
                    return more
        return decide(request, view, self.projector.renderer)

    def _with_placeholder(self, view: View) -> View:
        """Return the view with the placeholder's texts, unless they are outdated."""
        placeholder = self.sessions.state(view.session.key).placeholder
        if placeholder is None or not view.session.is_unchanged_since(placeholder.session):
            return view
        shown_ids = {id(tile.segment) for tile in placeholder.all_tiles}
        unrecorded = placeholder.segments[len(placeholder.session.entries) :]
        texts = [segment for segment in unrecorded if id(segment) in shown_ids]
        return view.with_segments(map(self.projector.recount, texts))

    def _commit_masks(self, decision: Decision) -> CompressResult:
        """Return the view with masks and excerpts; commit them if possible.

        While another worker writes a summary, masks are not committed: the commit would make that
        worker lose its paid text.
        """
        key = decision.view.session.key
        if self.sessions.enter(key) is not None:
            return self._apply_unrecorded(decision)
        try:
            return run(self._commit(decision))
        except LedgerConflict:
            return self._apply_unrecorded(decision)
        finally:
            self.sessions.leave(key)

    async def _write_early(self, request: Request, view: View) -> None:
        soft = replace(request.budget, trigger=int(request.budget.trigger * SOFT_RATIO))
        early = replace(request, budget=soft, mode="commit")
        due = await asyncio.to_thread(decide, early, view, self.projector.renderer)
        if not due.is_compression:
            return
        if due.plan.jobs:  # a turn before the model's text gets a static text
            await asyncio.to_thread(self._hold_placeholder, due)
        done = await self._carry_out(due)
        self.sessions.add_unreported_usage(view.session.key, done.usage)

    def _hold_placeholder(self, decision: Decision) -> View:
        view = self.plan_texts.apply_without_model(decision)
        self.sessions.hold_placeholder(view)
        return view

    def summarize_if_cold(self, request: Request) -> bool:
        """Begin a summary if the cache is cold; return whether it began."""
        session = self.projector.open(request)
        if not self.billing.is_cold(request, session):
            return False
        silence = f"{session.tip} {self.billing.last_request(session)}"
        if not self.sessions.begin_silence(session.key, silence):
            return False
        last_turn = self.sessions.state(session.key).last_turn
        messages = request.messages or self.stored.newest_messages(session, last_turn)
        cold = replace(request, is_cold=True, messages=messages)
        view = self._look(cold, session)
        early = functools.partial(self._write_early, cold, view)
        is_above = view.size() > trigger_of(cold, session)
        return is_above and self.background.start(session.key, early)

    # -------------------------------------------------------------- after a failure

    def fallback_view(self, request: Request, logged: Exception | None) -> CompressResult:
        """Return a view without a model or a commit.

        If the ledger cannot be read, the view has none of its segments. The failure `logged` is not
        logged again.
        """
        key = self.sessions.stable_key(request.key)
        try:
            result = self._fallback_view(request, self.projector.open(request))
            self.sessions.record_ledger(key, is_readable=True)
            return result
        except LedgerError as error:
            # Warn once until the ledger can be read again.
            is_new = self.sessions.record_ledger(key, is_readable=False)
            is_unlogged = is_new and str(error) != str(logged)
            level = logging.WARNING if is_unlogged else logging.DEBUG
            logger.log(level, "session %s: without the ledger for now: %s", key[1], error)
            nothing = Session(*request.key, tip=request.key[1], parent=request.parent_id)
            return self._fallback_view(request, nothing)

    def _fallback_view(self, request: Request, session: Session) -> CompressResult:
        view = self._look(request, session)
        try:
            return self._apply_unrecorded(decide(request, view, self.projector.renderer))
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # no warning: every request logs this
        short = replace(self._shorten(request, view), given_tokens=view.given_tokens)
        return result_of(request, short, self.tokens, is_shortened=True)

    def _shorten(self, request: Request, view: View) -> View:
        """Return the view with shortened fixed messages, or only these messages."""
        limit, count = request.budget.limit, self.tokens.messages
        most = int(limit * SHORTENED_SHARE)
        messages = shorten_fixed(view.caller_messages, view.replaceable, most, count)
        with contextlib.suppress(BudgetTooSmall):
            shorter_request = replace(request, messages=messages)
            short = self.projector.look(shorter_request, view.session)
            decision = decide(shorter_request, short, self.projector.renderer)
            return self.plan_texts.apply_without_model(decision)
        fixed = [view.caller_messages[index] for index in view.fixed()]
        alone = replace(request, messages=shorten_messages(fixed, limit, count))
        return replace(self.projector.look(alone, view.session), segments=())
