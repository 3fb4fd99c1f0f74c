"""`Pipeline`: look, decide, commit and return the result.

Each step returns the next step's argument: a session, a view, a decision, a result. What later
turns need is written to `SessionStates`. The request's mode says what is recorded, and who waits
for the model.

A compression that loses the race to another writer's commit is decided again. After
`MOST_CONFLICTS` lost races `LedgerConflict` is raised. In the background mode a commit of masks
alone is not tried again: the view is sent without a commit.
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
from ..view.masks import shorten_messages
from ..view.view import View
from .background import Background
from .commit import Committer, is_inside_hook
from .decision import (
    FITS,
    SOFT_RATIO,
    VETO,
    Decision,
    RememberedPreview,
    decide,
    quiet_limit,
    trigger_of,
)
from .plan_texts import PlanTexts
from .preview import ContextUse, Preview, context_use_of, preview_of
from .projection import Projector, last_turn_of
from .request import CompressResult, Mode, Request, result_of
from .session_state import Billing, SessionStates
from .stored_sessions import StoredSessions

logger = logging.getLogger(__name__)

MOST_CONFLICTS = 8
"""Most commit conflicts in one call; with a damaged tip every commit conflicts."""

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
    plan_texts: PlanTexts
    committer: Committer
    background: Background
    billing: Billing

    # -------------------------------------------------------------- compress

    async def compress(self, request: Request) -> CompressResult:
        """Return the request's result; block other threads only."""
        session, result, due = await asyncio.to_thread(self._answer, request)
        if due is not None:
            result = await self._carry_out(due)
        return self._add_bill_and_tools(request, session, result)

    def compress_sync(self, request: Request) -> CompressResult:
        """Return the request's result, inside an event loop too."""
        session, result, due = self._answer(request)
        if due is not None:
            result = run(self._carry_out(due))
        return self._add_bill_and_tools(request, session, result)

    def _answer(self, request: Request) -> tuple[Session, CompressResult, Decision | None]:
        """Return session, result without waiting, and the compression to wait for."""
        session = self.projector.open(request)
        if request.is_recorded:
            request = replace(request, is_cold=self.billing.is_cold(request, session))
            self.billing.begin(request, session)
        limit = quiet_limit(request, session, is_busy=self.background.is_busy(session.key))
        state = self.sessions.state(session.key)
        quiet = state.extend_last_turn(request, session, limit, self.tokens)
        if quiet is None:
            return session, *self._answer_in_full(self._with_prices(request, session), session)
        turn, result = quiet
        if request.is_recorded:
            self.sessions.remember_turn(turn)
        return session, result, None

    def _answer_in_full(
        self, request: Request, session: Session
    ) -> tuple[CompressResult, Decision | None]:
        """Read all messages; return the result and the compression to wait for."""
        view, previewed = self._look(request, session)
        # Signed thinking is valid only behind its own prefix: no text may replace a part of that
        # prefix while a turn runs.
        if request.mode is Mode.BACKGROUND and not view.signed_tokens:
            return self._answer_now(request, view), None
        decision = decide(request, view, self.projector.renderer, previewed)
        if request.mode is Mode.READ_ONLY:
            return self._apply_unrecorded(decision), None
        self.committer.report_skip(decision)
        if not decision.is_compression:
            return self._remember_view(request, view), None
        if is_inside_hook(session.key):  # waiting would deadlock
            return self._refuse(decision), None
        return result_of(request, view, self.tokens), decision

    async def _carry_out(self, due: Decision) -> CompressResult:
        """Commit a compression; after another writer's commit decide again."""
        for _ in range(MOST_CONFLICTS):
            try:
                async with self.committer.hold(due.view.session):
                    due = await asyncio.to_thread(self._refresh, due)
                    if not due.is_compression:
                        return self._remember_view(due.request, due.view)
                    return await self._commit(due)
            except LedgerConflict:
                logger.debug("session %s: another writer was faster", due.request.key[1])
        raise LedgerConflict(f"session {due.request.key[1]}: its tip moved {MOST_CONFLICTS} times")

    async def _commit(self, due: Decision) -> CompressResult:
        """Return the commit's result, or a result without it if refused."""
        result = await self.committer.commit(due)
        if result is None:
            return await asyncio.to_thread(self._refuse, due)
        return result

    def _refuse(self, due: Decision) -> CompressResult:
        """Return the result without the refused compression.

        A view above the limit is shortened without a model.
        """
        self.committer.report_skip(replace(due, reason=VETO))
        fits = due.view.size() <= due.request.budget.limit
        shown = due.view if fits else self.plan_texts.apply_without_model(due)
        return replace(self._remember_view(due.request, shown), vetoed=True)

    def _remember_view(self, request: Request, view: View) -> CompressResult:
        """Remember the view for the next turn; return its result."""
        result = result_of(request, view, self.tokens)
        turn = last_turn_of(request, view, result, self.tokens)
        if turn is not None:
            self.sessions.remember_turn(turn)
        return result

    def _add_bill_and_tools(
        self, request: Request, session: Session, result: CompressResult
    ) -> CompressResult:
        """Return the result with bill and recall tools, if it has any."""
        if request.is_recorded:
            result = self.billing.charge_result(session, result)
        if not (result.segments or result.masked or request.config.recall):
            return result
        return replace(result, recall_tools=self.stored.recall_tools(session.id))

    # -------------------------------------------------------------- look and decide

    def _look(self, request: Request, session: Session) -> tuple[View, RememberedPreview | None]:
        """Return the request's view by the session's ledger, and the newest preview."""
        previewed = self.sessions.state(session.key).previewed
        return self.projector.look(request, session, previewed), previewed

    def _refresh(self, decision: Decision) -> Decision:
        """Return the decision; after another writer's commit, a new one."""
        request, view = decision.request, decision.view
        session = self.projector.open(request)
        if session.is_unchanged_since(view.session):
            return decision
        newest = self.projector.look_again(view, session)
        previewed = self.sessions.state(session.key).previewed
        return decide(request, newest, self.projector.renderer, previewed)

    def _with_prices(self, request: Request, session: Session) -> Request:
        """Return the request with prices and the pace of its session."""
        costs = self.sessions.state(session.key).costs(request)
        return replace(request, budget=replace(request.budget, costs=costs))

    # -------------------------------------------------------------- without a commit

    def context_use(self, request: Request) -> ContextUse:
        """Return the window's tokens by part."""
        view, _ = self._look(request, self.projector.open(request))
        return context_use_of(request, view, self.tokens)

    def _apply_unrecorded(self, decision: Decision) -> CompressResult:
        """Return the view after the compression due, recorded nowhere."""
        view = self.plan_texts.apply_without_model(decision)
        return result_of(decision.request, view, self.tokens)

    def verbatim_result(self, request: Request) -> CompressResult:
        """Return the result with every message verbatim."""
        session = replace(self.projector.open(request), entries=())
        return result_of(request, self.projector.look(request, session), self.tokens)

    def preview(self, request: Request, *, write: bool) -> Preview:
        """Return the compression that the next commit of the request takes.

        With `write` a model is asked for the summaries that it has not written yet.
        """
        session = self.projector.open(request)
        request = replace(request, is_cold=self.billing.is_cold(request, session))
        request = self._with_prices(request, session)
        view, previewed = self._look(request, session)
        decision = decide(request, view, self.projector.renderer)
        decision = replace(decision, dropped=self.committer.dropped_messages(decision))
        jobs = decision.plan.jobs
        by_model = [job for job in jobs if job.asks_model]
        find_paid = self.plan_texts.find_paid
        # Texts are shown if a model may be asked, or if all of a model's texts were paid before.
        if jobs and (write or all(find_paid(decision, job, previewed) for job in by_model)):
            texts = run(self.plan_texts.write(decision, previewed))
            decision = replace(decision, texts=texts)
        shown = RememberedPreview.of(decision, previewed) if decision.is_compression else None
        self.sessions.remember_preview(session.key, shown, decision.texts)
        new = self.plan_texts.make_segments(decision)
        return preview_of(decision, [segment for segment, _ in new], self.tokens)

    # -------------------------------------------------------------- in the background

    def _answer_now(self, request: Request, view: View) -> CompressResult:
        """Return a result without waiting; begin a due summary in the background."""
        is_busy = self.background.is_busy(view.session.key)
        decision = self._choose_now(request, view, is_busy=is_busy)
        self.committer.report_skip(decision)
        shown = decision.view
        if decision.is_compression and shown is view and not decision.plan.jobs:
            return self._commit_masks(decision)
        if decision.is_compression and view.size() > request.budget.limit:
            shown = self._hold_placeholder(decision)
        if view.size() > quiet_limit(request, view.session, is_busy=is_busy):
            early = functools.partial(self._write_early, request, view)
            self.background.start(view.session.key, early)
        return self._remember_view(request, shown)

    def _choose_now(self, request: Request, view: View, *, is_busy: bool) -> Decision:
        """Return the decision about the view, with the placeholder if needed."""
        limit = request.budget.limit
        # Up to the window the whole is sent until the text is ready: nothing is lost, and the
        # provider's cache stays warm.
        if is_busy and view.size() <= limit:
            return Decision.without(request, view, FITS)
        covered = view if view.size() <= limit else self._with_placeholder(view)
        if covered is not view:  # new messages may have outgrown it
            if covered.size() <= limit:
                return Decision.without(request, covered, FITS)
            with contextlib.suppress(BudgetTooSmall):
                more = decide(request, covered, self.projector.renderer)
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
        """Return the view with masks and excerpts; commit them if no other worker commits.

        While another worker writes a summary, a commit of masks would make it lose its paid text.
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
        """Write a summary before the view reaches the trigger."""
        soft = replace(request.budget, trigger=int(request.budget.trigger * SOFT_RATIO))
        early = replace(request, budget=soft, mode=Mode.COMMIT)
        due = await asyncio.to_thread(decide, early, view, self.projector.renderer)
        if not due.is_compression:
            return
        if due.plan.jobs:  # a turn that needs the text earlier gets a static text
            await asyncio.to_thread(self._hold_placeholder, due)
        done = await self._carry_out(due)
        self.sessions.add_unreported_usage(view.session.key, done.usage)

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
        if not self.sessions.begin_silence(session.key, silence):
            return False
        last_turn = self.sessions.state(session.key).last_turn
        messages = request.messages or self.stored.newest_messages(session, last_turn)
        cold = replace(request, is_cold=True, messages=messages)
        view, _ = self._look(cold, session)
        early = functools.partial(self._write_early, cold, view)
        is_above = view.size() > trigger_of(cold, session)
        return is_above and self.background.start(session.key, early)

    # -------------------------------------------------------------- after a failure

    def best(self, request: Request, logged: Exception | None) -> CompressResult:
        """Return a view without a model or a commit.

        A ledger that cannot be read is left out. The failure `logged` is not logged again.
        """
        key = self.sessions.stable_key(request.key)
        try:
            result = self._best(request, self.projector.open(request))
            self.sessions.record_ledger(key, is_readable=True)
            return result
        except LedgerError as error:
            # Log once until the ledger can be read again: a turn comes every few seconds.
            is_new = self.sessions.record_ledger(key, is_readable=False)
            is_unlogged = is_new and str(error) != str(logged)
            level = logging.WARNING if is_unlogged else logging.DEBUG
            logger.log(level, "session %s: without the ledger for now: %s", key[1], error)
            nothing = Session(*request.key, tip=request.key[1], parent=request.parent_id)
            return self._best(request, nothing)

    def _best(self, request: Request, session: Session) -> CompressResult:
        """Return a view; shorten fixed messages that do not fit."""
        view, _ = self._look(request, session)
        try:
            return self._apply_unrecorded(decide(request, view, self.projector.renderer))
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller logs it once
        short = replace(self._shorten(request, view), given_tokens=view.given_tokens)
        return result_of(request, short, self.tokens, is_shortened=True)

    def _shorten(self, request: Request, view: View) -> View:
        """Return the view with shorter fixed messages, or with them alone."""
        limit = request.budget.limit
        count = self.tokens.messages
        pairs = zip(view.caller_messages, view.replaceable, strict=True)
        kept = [message for message, replaceable in pairs if not replaceable]
        cut = shorten_messages(kept, int(limit * SHORTENED_SHARE), count)
        shorter = dict(zip(map(id, kept), cut, strict=True))
        messages = [shorter.get(id(message), message) for message in view.caller_messages]
        with contextlib.suppress(BudgetTooSmall):
            shorter_request = replace(request, messages=messages)
            short = self.projector.look(shorter_request, view.session)
            decision = decide(shorter_request, short, self.projector.renderer)
            return self.plan_texts.apply_without_model(decision)
        alone = replace(request, messages=shorten_messages(kept, limit, count))
        return replace(self.projector.look(alone, view.session), segments=())
