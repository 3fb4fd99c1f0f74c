"""`Pipeline`: carry out a request in the steps look -> plan -> write -> commit -> result.

Each step returns the next step's argument: a view, a plan, texts, the view after them, a result.
The mode of the request names its last step. After a lost race the request looks again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..concurrency import run
from ..config import CompressorConfig
from ..errors import BudgetTooSmall, LedgerConflict
from ..events import Event, Hook
from ..ledger.segments import Session, Usage
from ..ledger.stores import Store
from ..messages.secrets import masks_secrets
from ..summaries.protocol import Summarizer, Written
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.jobs import Plan
from ..view.masks import shorten
from ..view.plan import is_due
from ..view.view import View
from .background import Background, leased
from .choices import Draft, names_of, new_references, resolved
from .clock import cooled
from .preview import Preview, preview_of
from .projection import Projector, outline_of
from .request import Key, Mode, Request
from .result import CompressResult, committed, result_of, usage_of
from .sessions import Sessions, last_turn_of
from .writing import Recorded, Writing, asked, begun, is_asked_about

logger = logging.getLogger(__name__)

MOST_CONFLICTS = 8
"""Most commit conflicts in one call; with a damaged tip every commit conflicts."""

SOFT_RATIO = 0.85
"""Share of the trigger; the background prepares a summary above it."""

FIXED, NO_GAIN, PRICE, VETO = "fixed part", "no gain", "price", "veto"
"""Reasons of a skipped compression."""

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
        self.projector = Projector(config, store, tokens, lambda key: sessions.of(key).draft)
        self.writer = SummaryWriter(config, summarizer, tokens, emit, on_disk=masks_secrets(store))
        self._writing = Writing(self.writer, self.projector.texts, tokens)
        self._store = store
        self._tokens = tokens
        self._emit = emit
        self._hook = hook

    # -------------------------------------------------------------- look and plan

    def start(self, request: Request, session: Session) -> CompressResult | Draft:
        """Return the result, or the plan to `carry_out` if the caller must wait.

        Raises:
            InvalidMessages: not a list of chat messages.
            BudgetTooSmall: what cannot be dropped exceeds the limit.
            LedgerError: the store cannot be read or written.
        """
        view = self.projector.look(request, session)
        # Signed thinking is only valid behind the messages that it was written behind: a text must
        # not come while a turn goes on.
        if request.mode is Mode.BACKGROUND and not view.signed:
            return self._at_once(request, view)
        if request.mode is Mode.FALLBACK:
            return self._sent(request, self._planned(request, view))
        plan = self._plan(request, view)
        if plan is not None and not is_asked_about(_key(view)):
            return self._drafted(request, view, plan)
        # Inside the hook, waiting would deadlock.
        return self._sent(request, view) if plan is None else self._vetoed(request, view, plan)

    def _drafted(self, request: Request, view: View, plan: Plan) -> Draft:
        """Return the plan to carry out, with the texts that a preview showed."""
        shown = self.sessions.of(request.key).draft
        texts = shown.texts if shown is not None and shown.plan is plan else ()
        return Draft(request, view, plan, texts)

    def _plan(self, request: Request, view: View) -> Plan | None:
        """Return the plan; log once if one is due but impossible."""
        budget, plan = request.budget_for(view.session), self.projector.plan(request, view)
        fixed, name = view.fixed(), request.key[1]
        is_stuck = fixed > budget.trigger and not (plan and plan.excerpts)
        if is_stuck and self._skip(request, view, FIXED, ""):
            logger.warning(
                "session %s: what cannot be dropped takes %d tokens, compression begins at %d: "
                "views stay above it; raise context_window or trigger_ratio, or send fewer tools",
                *(name, fixed, budget.trigger),
            )
        if plan is None and not is_stuck and is_due(view, budget):
            self._log_unmet(request, view)
        return plan

    def _log_unmet(self, request: Request, view: View) -> None:
        """Emit and log once, until another compression, why a due plan is missing."""
        if not self.sessions.is_first(request.key, "unmet", view.session.tip):
            return
        waits = self.projector.plan(replace(request, pace=None), view) is not None
        self._skip(request, view, PRICE if waits else NO_GAIN, view.session.tip)
        why = "costs more than it saves yet" if waits else "would free too little"
        logger.info("session %s: compressing it now %s", request.key[1], why)

    def _sent(self, request: Request, view: View) -> CompressResult:
        """Return the result of a view; remember the view for the next turn."""
        result = result_of(request, view, self._tokens)
        turn = last_turn_of(request, view, result, self._tokens)
        if turn is not None:
            self.sessions.of(request.key).last_turn = turn
        return result

    def _skip(self, request: Request, view: View, reason: str, epoch: str) -> bool:
        """Emit "skipped" once per reason and epoch; return whether it was emitted."""
        if not self.sessions.is_first(request.key, reason, epoch):
            return False
        numbers = {"tokens": view.size(), "trigger": request.budget.trigger}
        self._emit(Event("skipped", view.session.id, {"reason": reason, **numbers}))
        return True

    # -------------------------------------------------------------- write and commit

    async def carry_out(self, draft: Draft) -> CompressResult:
        """Write and commit a compression, or take a faster writer's segments.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
            LedgerError: the store cannot be read or written.
        """
        request, view, key, paid, lost = draft.request, draft.view, _key(draft.view), Usage(), 0
        due: Draft | None = draft
        while due is not None:
            others = self.sessions.enter(key)
            if others is not None:
                await asyncio.wrap_future(others)
                view, due = await asyncio.to_thread(self._seen, request, view)
                continue
            try:
                async with leased(self._store, view.session):
                    # Another writer may have committed between our look and our lease.
                    session = await asyncio.to_thread(self.projector.open, request)
                    if not session.is_as(view.session):
                        view, due = await asyncio.to_thread(self._seen, request, view)
                    if due is None:
                        break
                    result, paid = await self._committed(due, paid)
            finally:
                self.sessions.leave(key)
            if result is not None:
                return result
            lost += 1
            if lost >= MOST_CONFLICTS:
                raise LedgerConflict(f"session {view.session.id}: its tip moved {lost} times")
            view, due = await asyncio.to_thread(self._seen, request, view)
        return replace(self._sent(request, view), usage=paid)

    def _seen(self, request: Request, view: View) -> tuple[View, Draft | None]:
        """Return the view by the newest ledger, and the compression due."""
        view = self.projector.again(view, self.projector.open(request))
        plan = self.projector.plan(request, view)
        return view, None if plan is None else self._drafted(request, view, plan)

    async def _committed(self, draft: Draft, paid: Usage) -> tuple[CompressResult | None, Usage]:
        """Write and commit; return the result, or None after a lost race.

        Return the cost of this call's texts too; `paid` is that of the races lost before.
        """
        request, view, plan = draft.request, draft.view, draft.plan
        event, texts = begun(request, view, plan), draft.texts
        said = await asked(self._hook, event, _key(view))
        if said is False:
            found = await asyncio.to_thread(self._vetoed, request, view, plan)
            return replace(found, usage=paid), paid
        request, started = request.instructed(said) if said else request, time.monotonic()
        self._emit(event)
        try:
            unarchived = await asyncio.to_thread(self.projector.with_room, view, plan)
            texts = texts or await self._writing.write(request, view, plan, unarchived)
            if texts:  # the ledger has the whole cost
                texts = (replace(texts[0], usage=texts[0].usage + paid), *texts[1:])
                paid = usage_of(texts)
            entries = await asyncio.to_thread(
                self._writing.segments, request, view, plan, texts, unarchived
            )
            after = await asyncio.to_thread(self._commit, view, entries)
        except BaseException as error:
            self._emit(Event("abandoned", view.session.id, {"error": type(error).__name__}))
            if isinstance(error, LedgerConflict):
                return None, paid
            raise
        result = replace(
            result_of(request, after, self._tokens, texts),
            usage=paid,
            newly_masked=sum(segment.kind in ("mask", "excerpt") for segment, _ in entries),
            newly_summarized=len(plan.summarized),
        )
        self._emit(committed(request, view, result, time.monotonic() - started))
        return result, paid

    def _commit(self, view: View, entries: Sequence[Recorded]) -> View:
        """Append the segments; return the view after them.

        Raises:
            LedgerConflict: another writer committed meanwhile.
        """
        known = self.sessions.of(_key(view))
        known.draft = None
        after = view.adding(segment for segment, _ in entries)
        session = self._store.commit(view.session, entries, outline_of(after))
        known.placeholder = None
        self.projector.trim()
        return self.projector.again(view, session)

    # -------------------------------------------------------------- preview

    def preview(self, request: Request, session: Session, *, is_written: bool) -> Preview:
        """Return the compression that the next commit of the request takes.

        A model is asked for the summaries only if they are to be written.
        """
        view, known = self.projector.look(request, session), self.sessions.of(request.key)
        plan = self.projector.plan(request, view)
        if known.draft is not None:  # paid for and not taken
            self.sessions.owe(request.key, usage_of(known.draft.texts))
        last, known.draft, new = known.draft, None, []
        texts: tuple[Written, ...] = ()
        if plan is not None:
            if plan.jobs and (is_written or not request.has_model):
                texts = run(self._writing.write(request, view, plan, frozenset()))
            new = self._writing.segments(request, view, plan, texts, frozenset())
            asked = resolved(request, view, last)
            names = {**new_references(view, plan), **names_of(request, asked, view)}
            known.draft = Draft(asked, view, plan, texts, names)
        return preview_of(request, view, plan, [segment for segment, _ in new], self._tokens)

    # -------------------------------------------------------------- without a commit

    def _with_texts(self, request: Request, view: View, plan: Plan | None) -> View:
        """Return the view after the plan, with texts without a model."""
        if plan is None:
            return view
        texts = self._writing.static(request, view, plan)
        entries = self._writing.segments(request, view, plan, texts, None)
        return view.adding(segment for segment, _ in entries)

    def _planned(self, request: Request, view: View) -> View:
        """Return the view after the compression due, recorded nowhere.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
        """
        return self._with_texts(request, view, self.projector.plan(request, view))

    def _vetoed(self, request: Request, view: View, plan: Plan) -> CompressResult:
        """Return the view without the refused compression.

        A view above the window is made to fit by texts without a model.
        """
        self._skip(request, view, VETO, view.session.tip)
        due = plan if view.size() > request.budget.limit else None
        return replace(self._sent(request, self._with_texts(request, view, due)), vetoed=True)

    # -------------------------------------------------------------- in the background

    def _at_once(self, request: Request, view: View) -> CompressResult:
        """Return a view without waiting; begin a due summary in the background."""
        sent, plan, size = self._filled(request, view), None, view.size()
        # Up to the window the whole is sent until the text is ready: nothing is lost, and the
        # provider's cache stays warm.
        fits = size <= request.budget.limit
        if sent is None and not (fits and self.background.busy(_key(view))):
            plan = self._plan(request, view)
            if plan is not None and not plan.jobs:
                return self._shortened(request, view, plan)
        if size > request.trigger_for(view.session, SOFT_RATIO):
            self.prepare(request, view)
        if sent is None and plan is not None and not fits:
            sent = self._held(request, view, plan)
        return self._sent(request, sent or view)

    def prepare(self, request: Request, view: View) -> bool:
        """Begin a summary in the background; return whether it was begun."""
        return self.background.start(_key(view), functools.partial(self._prepare, request, view))

    def _shortened(self, request: Request, view: View, plan: Plan) -> CompressResult:
        """Commit masks and excerpts unless a summary of the session is written.

        The summary would lose the race to them, and its price with it.
        """
        done = None
        if self.sessions.enter(_key(view)) is None:
            try:
                done, _ = run(self._committed(Draft(request, view, plan), Usage()))
            finally:
                self.sessions.leave(_key(view))
        return done or self._sent(request, self._with_texts(request, view, plan))

    async def _prepare(self, request: Request, view: View) -> None:
        """Write a summary before the view reaches the trigger."""
        request = request.at(int(request.budget.trigger * SOFT_RATIO))
        request = replace(request, mode=Mode.COMMIT)
        view, due = await asyncio.to_thread(self._seen, request, view)
        if due is not None:
            if due.plan.jobs:  # a turn that needs the text earlier gets a static text
                await asyncio.to_thread(self._held, request, view, due.plan)
            done = await self.carry_out(due)
            self.sessions.owe(request.key, done.usage)

    def _filled(self, request: Request, view: View) -> View | None:
        """Return the view with the placeholder, or None if missing, unneeded or outgrown."""
        found, limit = self.sessions.of(request.key).placeholder, request.budget.limit
        if found is None or not view.session.is_as(found.session) or view.size() <= limit:
            return None
        standing = {id(segment) for _, _, segment in found.standing}
        texts = found.segments[len(found.session.entries) :]
        after = view.adding(self.projector.recounted(s) for s in texts if id(s) in standing)
        if after.size() <= limit:
            return after
        with contextlib.suppress(BudgetTooSmall):
            more = self.projector.plan(request, after)
            if more is not None:
                return self._held(request, after, more)
        return None

    def _held(self, request: Request, view: View, plan: Plan) -> View:
        """Return the view with static texts; hold it for the next turns."""
        after = self._with_texts(request, view, plan)
        self.sessions.of(request.key).placeholder = after
        return after

    def idle(self, request: Request, now: float) -> bool:
        """Begin a summary above the cold trigger; return whether begun.

        Without messages take the session's last ones, from memory or the store.
        """
        session, known = self.projector.open(request), self.sessions.of(request.key)
        known.account.look(self._store, lambda: session, now)
        request = cooled(request, self.sessions.seconds_since(request.key, session, now))
        silence = f"{session.tip} {max(known.account.requested, session.updated)}"
        # One look in each silence is enough.
        if request.cold_trigger is None or not self.sessions.is_first(request.key, "idle", silence):
            return False
        if not request.messages:
            last = known.last_turn
            is_newest = last is not None and session.is_as(last.session)
            found = last.known if last and is_newest else self._store.transcript(session)
            request = replace(request, messages=found)
        view = self.projector.look(request, session)
        return view.size() > request.trigger_for(session) and self.prepare(request, view)

    # -------------------------------------------------------------- whatever fails

    def best(self, request: Request, session: Session) -> CompressResult:
        """Return a view without a model and without a commit.

        Messages that may not be dropped are shortened if they do not fit.
        """
        view = self.projector.look(request, session)
        try:
            return self._sent(request, self._planned(request, view))
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller logs it once
        limit, count = request.budget.limit, self._tokens.messages
        kept = [m for m, may_go in zip(view.own, view.allowed, strict=True) if not may_go]
        shorter = dict(
            zip(map(id, kept), shorten(kept, int(limit * SHORTENED_SHARE), count), strict=True)
        )
        messages = [shorter.get(id(message), message) for message in view.own]
        try:
            short = self.projector.look(replace(request, messages=messages), session)
            fit = self._sent(request, self._planned(request, short))
        except BudgetTooSmall:
            bare = replace(request, messages=shorten(kept, limit, count))
            fit = self._sent(request, replace(self.projector.look(bare, session), segments=()))
        # A message cut in its middle is marked, as a masked output is.
        status = "summarized" if fit.segments else "masked"
        return replace(fit, tokens_before=view.given_tokens, context_status=status)


def _key(view: View) -> Key:
    """Return namespace and stable id, the key of a session."""
    return view.session.namespace, view.session.id
