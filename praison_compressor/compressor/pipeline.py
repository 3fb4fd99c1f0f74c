"""`Pipeline`: look, decide, write, commit and return the result.

Each step returns the next step's argument: a view, a decision, texts, a session, a result. The mode
of the request names its last step.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable
from dataclasses import replace

from ..concurrency import run
from ..config import CompressorConfig
from ..errors import BudgetTooSmall, LedgerConflict
from ..events import Event, Hook
from ..ledger.segments import Session
from ..ledger.stores import Store
from ..messages.secrets import masks_secrets
from ..summaries.protocol import SegmentText, Summarizer
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.masks import shorten_messages
from ..view.view import View
from .background import Background
from .choices import new_references, requested_references, resolve_choices
from .commit import Committer, is_inside_hook
from .decision import (
    FIXED,
    NO_GAIN,
    PRICE,
    SOFT_RATIO,
    Decision,
    decide,
    is_cold,
    quiet_limit,
    trigger_of,
)
from .plan_texts import PlanTexts
from .preview import Preview, preview_of
from .projection import Projector
from .request import Mode, Request
from .result import CompressResult
from .session_state import Sessions

logger = logging.getLogger(__name__)

SHORTENED_SHARE = 0.75
"""Share of the window for shortened messages that may not be dropped; a summary and a tail get the
rest."""


class Pipeline:
    """Carries out the requests of one compressor; thread-safe."""

    def __init__(
        self,
        config: CompressorConfig,
        summarizer: Summarizer | None,
        store: Store,
        tokens: TokenCounter,
        sessions: Sessions,
        emit: Callable[[Event], None],
        hook: Hook | None,
    ) -> None:
        self.sessions = sessions
        self.background = Background()
        self.projector = Projector(config, store, tokens)
        self.writer = SummaryWriter(config, summarizer, tokens, emit, on_disk=masks_secrets(store))
        self._texts = PlanTexts(self.writer, self.projector.texts, tokens)
        self.committer = Committer(store, tokens, sessions, self.projector, self._texts, emit, hook)
        self._store = store
        self._tokens = tokens

    # -------------------------------------------------------------- look and decide

    def look(self, request: Request, session: Session | None = None) -> View:
        """Return the view of the request's messages by the newest ledger."""
        session = self.projector.open(request) if session is None else session
        return self.projector.look(request, session, self.sessions.of(session.key).previewed)

    def start(self, request: Request, session: Session) -> CompressResult | Decision:
        """Return the result, or the decision that the caller carries out."""
        view = self.look(request, session)
        # Signed thinking is only valid behind the messages that it was written behind: a text must
        # not come while a turn goes on.
        if request.mode is Mode.BACKGROUND and not view.signed:
            return self._answer_now(request, view)
        if request.mode is Mode.FALLBACK:
            return self._without_commit(request, view)
        decision = self.committer.decide(request, view)
        self._report_missing(decision)
        if not decision.compresses:
            return self.committer.finish(request, view)
        # Inside the hook, waiting would deadlock.
        is_inside = is_inside_hook(view.session.key)
        return self.committer.refuse(decision) if is_inside else decision

    def _report_missing(self, decision: Decision) -> None:
        """Report once why a due compression is missing."""
        request, view, reason = decision.request, decision.view, decision.reason
        if reason not in (FIXED, NO_GAIN, PRICE):
            return
        name, epoch = view.session.id, "" if reason == FIXED else view.session.tip
        is_new = self.committer.skip(request, view, reason, epoch)
        if is_new and reason == FIXED:
            logger.warning(
                "session %s: what cannot be dropped takes %d tokens, compression begins at %d: "
                "views stay above it; raise context_window or trigger_ratio, or send fewer tools",
                *(name, view.fixed_tokens(), request.budget.trigger),
            )
        elif is_new:
            why = "costs more than it saves yet" if reason == PRICE else "would free too little"
            logger.info("session %s: compressing it now %s", name, why)

    def _without_commit(self, request: Request, view: View) -> CompressResult:
        """Return the view after the compression due, recorded nowhere."""
        decision = decide(request, view, self.projector.texts)
        return self.committer.finish(request, self._texts.apply_without_model(decision))

    def verbatim_result(self, request: Request, session: Session) -> CompressResult:
        """Return the result with every message verbatim."""
        view = self.projector.look(request, replace(session, entries=()))
        return self.committer.finish(request, view)

    # -------------------------------------------------------------- preview

    def preview(self, request: Request, session: Session, *, is_written: bool) -> Preview:
        """Return the compression that the next commit of the request takes.

        A model is asked for summaries only if they are to be written, and for none twice.
        """
        view, last = self.look(request, session), self.sessions.of(session.key).previewed
        decision = decide(request, view, self.projector.texts)
        jobs, texts, shown = decision.plan.jobs, tuple[SegmentText, ...](), None
        paid = (self._texts.find_paid(decision, job, last) for job in jobs if job.by_model)
        if jobs and (is_written or not request.has_model or all(paid)):
            texts = run(self._texts.write(decision, frozenset(), last))
        if decision.compresses:
            asked = resolve_choices(request, view, {} if last is None else last.names_in(view))
            names = {
                **new_references(view, decision.plan),
                **requested_references(request, asked, view),
            }
            shown = replace(decision, request=asked, texts=texts, references=names)
        self.sessions.show(session.key, shown, texts)
        new = self._texts.make_segments(decision, texts, frozenset())
        return preview_of(decision, [segment for segment, _ in new], self._tokens)

    # -------------------------------------------------------------- in the background

    def _answer_now(self, request: Request, view: View) -> CompressResult:
        """Return a view without waiting; begin a due summary in the background."""
        sent, decision, size = self._with_placeholder(request, view), None, view.size()
        # Up to the window the whole is sent until the text is ready: nothing is lost, and the
        # provider's cache stays warm.
        fits, is_busy = size <= request.budget.limit, self.background.is_busy(view.session.key)
        if sent is None and not (fits and is_busy):
            decision = self.committer.decide(request, view)
            self._report_missing(decision)
            if decision.compresses and not decision.plan.jobs:
                return self._commit_masks(decision)
        if size > quiet_limit(request, view.session, is_busy=is_busy):
            self.prepare(request, view)
        if decision is not None and decision.compresses and not fits:
            sent = self._hold_placeholder(decision)
        return self.committer.finish(request, sent or view)

    def prepare(self, request: Request, view: View) -> bool:
        """Begin a summary in the background; return whether it was begun."""
        work = functools.partial(self._prepare, request, view)
        return self.background.start(view.session.key, work)

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
        return self.committer.finish(decision.request, self._texts.apply_without_model(decision))

    async def _prepare(self, request: Request, view: View) -> None:
        """Write a summary before the view reaches the trigger."""
        soft = replace(request.budget, trigger=int(request.budget.trigger * SOFT_RATIO))
        request = replace(request, budget=soft, mode=Mode.COMMIT)
        due = await asyncio.to_thread(self.committer.decide_again, request, view)
        if not due.compresses:
            return
        if due.plan.jobs:  # a turn that needs the text earlier gets a static text
            await asyncio.to_thread(self._hold_placeholder, due)
        done = await self.committer.carry_out(due)
        self.sessions.owe(view.session.key, done.usage)

    def _with_placeholder(self, request: Request, view: View) -> View | None:
        """Return the view with the placeholder, if needed and large enough."""
        found = self.sessions.of(view.session.key).placeholder
        limit = request.budget.limit
        if (
            found is None
            or not view.session.is_unchanged_since(found.session)
            or view.size() <= limit
        ):
            return None
        standing = {id(segment) for _, _, segment in found.all_tiles}
        texts = found.segments[len(found.session.entries) :]
        after = view.with_segments(self.projector.recount(s) for s in texts if id(s) in standing)
        if after.size() <= limit:
            return after
        with contextlib.suppress(BudgetTooSmall):
            more = decide(request, after, self.projector.texts)
            if more.compresses:
                return self._hold_placeholder(more)
        return None

    def _hold_placeholder(self, decision: Decision) -> View:
        """Return the view with static texts; hold it for the next turns."""
        after = self._texts.apply_without_model(decision)
        self.sessions.of(after.session.key).placeholder = after
        return after

    def idle(self, request: Request, now: float) -> bool:
        """Begin a summary above the cold trigger; return whether begun.

        Without messages take the session's last ones, from memory or the store.
        """
        session = self.projector.open(request)
        last = self.sessions.last_request(session, self._store, now)
        if not is_cold(request, last, now):
            return False
        # One look in each silence is enough.
        is_new = self.sessions.report_once(session.key, "idle", f"{session.tip} {last}")
        if not is_new:
            return False
        request = replace(request, is_cold=True)
        if not request.messages:
            turn = self.sessions.of(session.key).last_turn
            is_newest = turn is not None and session.is_unchanged_since(turn.session)
            found = turn.known if turn and is_newest else self._store.transcript(session)
            request = replace(request, messages=found)
        view = self.look(request, session)
        return view.size() > trigger_of(request, session) and self.prepare(request, view)

    # -------------------------------------------------------------- whatever fails

    def best(self, request: Request, session: Session) -> CompressResult:
        """Return a view without a model and without a commit.

        Messages that may not be dropped are shortened if they do not fit.
        """
        view = self.look(request, session)
        try:
            return self._without_commit(request, view)
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller logs it once
        limit, count = request.budget.limit, self._tokens.messages
        kept = [
            m for m, may_go in zip(view.own_messages, view.replaceable, strict=True) if not may_go
        ]
        shorter = dict(
            zip(
                map(id, kept),
                shorten_messages(kept, int(limit * SHORTENED_SHARE), count),
                strict=True,
            )
        )
        messages = [shorter.get(id(message), message) for message in view.own_messages]
        try:
            cut = replace(request, messages=messages)
            short = self.projector.look(cut, session)
            after = self._texts.apply_without_model(decide(request, short, self.projector.texts))
        except BudgetTooSmall:
            cut = replace(request, messages=shorten_messages(kept, limit, count))
            after = replace(self.projector.look(cut, session), segments=())
        after = replace(after, given_tokens=view.given_tokens)
        result = self.committer.finish(request, after)
        # Messages cut in their middle are masked, as outputs are.
        return result if result.segments else replace(result, context_status="masked")
