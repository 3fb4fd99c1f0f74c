"""One request on its way: project -> plan -> write -> commit -> result.

Each step hands its value on: a call, a look at the ledger, a plan, a draft, the look after it, a
result. Nothing is handed back: whoever loses a race begins again with the look.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..config import CompressorConfig, Event, Hook
from ..errors import BudgetTooSmall, LedgerConflict
from ..ledger.segments import Segment, Session, Store, Usage, in_force
from ..messages import Message, digest
from ..messages.secrets import masks_secrets
from ..summaries.protocol import Summarizer, Written
from ..summaries.threads import run
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.masks import shorten
from ..view.plan import Plan, fixed_tokens, is_due
from .background import Background, leased
from .call import CompressCall, Look, Reading
from .projection import Projector, outline_of
from .result import CompressResult, result_of
from .sessions import Placeholder, Sessions, last_turn_of
from .writing import Draft, Writing, asked, begun, is_asked_about

logger = logging.getLogger(__name__)

MOST_CONFLICTS = 8
"""Races lost in one call: a store whose tip was damaged loses them for ever."""

FIXED, NO_GAIN, VETO = "fixed part", "no gain", "veto"
"""Why a compression is skipped."""


class Planned(NamedTuple):
    """A look after which something has to be written."""

    look: Look
    plan: Plan


class Pipeline:
    """Carries requests out for one compressor; thread-safe."""

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
        on_disk = masks_secrets(store)
        self.writer = SummaryWriter(config, summarizer, tokens, emit, on_disk=on_disk)
        self.writing = Writing(self.writer, tokens)
        self._config = config
        self._store = store
        self._tokens = tokens
        self._emit = emit
        self._hook = hook

    def start(self, call: CompressCall) -> CompressResult | Planned:
        """The result, where nothing has to be waited for; else what to `compress`.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
            LedgerError: the store cannot be read or written.
        """
        if call.parent_id is not None and self.sessions.is_news(call.key, "fork", call.parent_id):
            self._tell_of_no_fork(call, call.parent_id)
        if self._config.background and call.extends and call.pays and not call.is_asked_now:
            return self._at_once(call)
        look = self.projector.look(call)
        plan = self._plan(look)
        if plan is None:
            return self._as_it_is(look)
        if not call.extends:
            return self.uncommitted(look, plan)
        if is_asked_about(look.key):  # a turn within the hook: it would wait for itself
            return self._refused(look, plan)
        return Planned(look, plan)

    async def compress(self, planned: Planned) -> CompressResult:
        """The view after what the plan asks for has been written and committed, by whomever.

        Raises:
            BudgetTooSmall: what cannot be dropped exceeds the limit.
            LedgerError: the store cannot be read or written.
        """
        look, call = planned.look, planned.look.call
        plan: Plan | None = planned.plan
        spent: list[Usage] = []
        lost = masked = 0
        while plan is not None:
            key = look.key
            flying = self.sessions.enter(key)
            if flying is not None:
                await asyncio.wrap_future(flying)
                look, plan = await asyncio.to_thread(self._seen, call)
                continue
            try:
                async with leased(self._store, look.session):
                    # Another may have finished between our look and our turn.
                    session = await asyncio.to_thread(self.projector.open, call)
                    if not session.is_as(look.session):
                        look, plan = await asyncio.to_thread(self._seen, call)
                    if plan is None:
                        break
                    done = await self._carry_out(look, plan, spent)
                    masked += done.newly_masked
                    if done.vetoed or not plan.excerpts:
                        return replace(done, newly_masked=masked)
                    call = call.after_excerpts()
            except LedgerConflict:
                lost += 1
                if lost >= MOST_CONFLICTS:
                    raise
            finally:
                self.sessions.leave(key)
            look, plan = await asyncio.to_thread(self._seen, call)
        found = result_of(look, self._tokens)
        return replace(found, usage=sum(spent, found.usage), newly_masked=masked)

    def _seen(self, call: CompressCall) -> tuple[Look, Plan | None]:
        look = self.projector.look(call)
        return look, self.projector.plan(look)

    async def _carry_out(self, look: Look, plan: Plan, spent: list[Usage]) -> CompressResult:
        """`spent` is the bill of texts that lost a race: it goes on the next, as theirs goes to it.

        Raises:
            LedgerConflict: another has committed meanwhile.
        """
        event = begun(look, plan)
        said = await asked(self._hook, event, look.key)
        if said is False:
            found = await asyncio.to_thread(self._refused, look, plan)
            return replace(found, usage=sum(spent, found.usage))
        look = replace(look, call=look.call.instructed(said)) if said else look
        started = time.monotonic()
        self._emit(event)
        try:
            look = await asyncio.to_thread(self.projector.with_room, look, plan)
            draft = await self.writing.write(look, plan, spent)
            spent[:] = [text.usage for text in draft.texts] or spent
            after = await asyncio.to_thread(self._commit, look, draft)
        except BaseException as error:
            self._emit(Event("abandoned", look.session.id, {"error": type(error).__name__}))
            raise
        result = result_of(after, self._tokens, draft.texts)
        summarized = sum(job.end - job.start for job in draft.plan.jobs)
        masked = len(plan.masks + plan.excerpts)
        result = replace(result, newly_masked=masked, newly_summarized=summarized)
        self._emit(result.committed(look, seconds=time.monotonic() - started))
        return result

    def _refused(self, look: Look, plan: Plan) -> CompressResult:
        """The view without the compression that a hook refused: the whole, where the window takes
        it, else as it fits without a model and recorded nowhere."""
        self._skip(look, VETO, look.session.tip)
        fits = look.layout.size() <= look.budget.limit
        found = result_of(look, self._tokens) if fits else self.uncommitted(look, plan)
        return replace(found, vetoed=True, written=())

    def _commit(self, look: Look, draft: Draft) -> Look:
        self._tell_of_another(look)
        entries = self._segments(look, draft)
        layout = look.layout.adding([segment for segment, _ in entries])
        outline = outline_of(replace(look, layout=layout))
        session = self._store.commit(look.session, entries, outline)
        self.projector.trim()
        return self.projector.look(look.call, session)

    def uncommitted(self, look: Look, plan: Plan, *, hold: bool = False) -> CompressResult:
        """The view with what is missing written without a model, and recorded nowhere; with
        `hold` the next turns add to it."""
        shown, texts = self.drafted(look, plan)
        if plan.excerpts:
            more = self.projector.plan(shown)
            if more is not None:
                return self.uncommitted(shown, more, hold=hold)
        if hold:
            self._hold(shown)
        return result_of(shown, self._tokens, texts)

    def drafted(self, look: Look, plan: Plan) -> tuple[Look, Sequence[Written]]:
        """The look as it would be after the plan, and the texts for it, without a model."""
        draft = self.writing.static(look, plan)
        segments = [segment for segment, _ in self._segments(look, draft)]
        call = look.call.after_excerpts() if plan.excerpts else look.call
        return replace(look, call=call, layout=look.layout.adding(segments)), draft.texts

    def save(self, call: CompressCall, session: Session) -> bool:
        """Record the transcript; False for no messages, or if another writer was faster."""
        if not call.reading.own:
            return False
        return self._store.keep(session, outline_of(self.projector.look(call, session)))

    # -------------------------------------------------------------- nothing to do

    def _plan(self, look: Look) -> Plan | None:
        """The plan; told of once where there is none though one is due."""
        fixed, budget, name = fixed_tokens(look.layout), look.budget, look.call.key[1]
        is_stuck = fixed > budget.trigger and not self.projector.excerpts(look)
        if is_stuck and self._skip(look, FIXED, ""):
            logger.warning(
                "session %s: what cannot be dropped takes %d tokens, compression begins at %d: "
                "views stay above it; raise context_window or trigger_ratio, or send fewer tools",
                *(name, fixed, budget.trigger),
            )
        plan = self.projector.plan(look)
        is_unmet = plan is None and not is_stuck and is_due(look.layout, budget)
        # Again only when there was a compression since.
        if is_unmet and self._skip(look, NO_GAIN, look.session.tip):
            logger.info("session %s: compressing it now would free too little", name)
        return plan

    def _tell_of_no_fork(self, call: CompressCall, parent: str) -> None:
        """Log that a session shares nothing with the parent it is given: no error, for its own
        messages are all there."""
        session = self.projector.open(call)
        chain = self._store.lineage(session.namespace, session.id)
        parents = {epoch.id: epoch.parent_id for epoch in chain}
        if parent in parents and parent != session.id:
            return
        why = "it began without that one; only a new session_id becomes a fork"
        if parents.get(session.id) == parent:
            if self.sessions.knows((session.namespace, parent)):
                return  # never compressed yet: there is nothing to share
            why = "nothing of that one was ever compressed in this store and namespace"
        logger.warning(
            "session %s: parent_session_id=%r shares nothing with it: %s", session.id, parent, why
        )

    def _tell_of_another(self, look: Look) -> None:
        """Log that two conversations go by one name, as far as that shows: this one has neither a
        summary of the session's nor the task that it began with."""
        session, layout = look.session, look.layout
        if [*layout.standing()] or all(s.kind != "summary" for s in in_force(session.entries)):
            return
        said = (m for m in self._store.transcript(session) if m.get("role") == "user")
        task = next(map(digest, said), None)
        if task not in (None, *layout.digests) and self.sessions.is_news(look.key, "another", ""):
            logger.warning(
                "session %s: another conversation than was compressed under that name takes its "
                "place; of the one before the archive keeps what was compressed, not its first and "
                "newest messages; give each a session_id of its own",
                session.id,
            )

    def _skip(self, look: Look, reason: str, since: str) -> bool:
        """Tell of a skip, unless it was told `since`; whether it was news."""
        call = look.call
        if not call.extends or not self.sessions.is_news(call.key, reason, since):
            return False
        numbers = {"tokens": look.layout.size(), "trigger": call.budget.trigger}
        self._emit(Event("skipped", look.session.id, {"reason": reason, **numbers}))
        return True

    def _as_it_is(self, look: Look) -> CompressResult:
        """The view of a look to which nothing is to be done: the next turn may only add to it."""
        result = result_of(look, self._tokens)
        turn = last_turn_of(look, result, self._tokens)
        if turn is not None:
            self.sessions.of(look.call.key).last_turn = turn
        return result

    # -------------------------------------------------------------- without waiting

    def _at_once(self, call: CompressCall) -> CompressResult:
        """The view at once; what a model has to write for it is begun off the request path."""
        look = self.projector.look(call)
        sent = self._with_placeholder(look)
        plan = None if sent is not None else self._plan(look)
        if plan is not None and (plan.masks or plan.excerpts):
            return self._mask(look, plan)
        soft = 1.0 if look.session.was_undone else self._config.soft_ratio
        if look.layout.size() > look.budget.trigger * soft:
            self.background.start(look.key, functools.partial(self._prepare, call))
        if sent is not None:
            return sent
        if plan is None:
            return self._as_it_is(look)
        if look.layout.size() <= call.budget.limit:
            # Above the trigger, but the provider takes it: nothing is lost and its cache stays
            # warm until the text is there. Less than the whole is sent only where it must be.
            return result_of(look, self._tokens)
        return self.uncommitted(look, plan, hold=True)

    def _mask(self, look: Look, plan: Plan) -> CompressResult:
        """Masks need no model: they are committed at once, unless a summary that is being written
        would lose the race to them, and its price with it."""
        done = None
        if self.sessions.enter(look.key) is None:
            try:
                done = run(self._carry_out(look, plan, []))
            except LedgerConflict:
                logger.debug("session %s moved on: its masks are not recorded", look.key[1])
            finally:
                self.sessions.leave(look.key)
        if done is None:
            return self.uncommitted(look, plan)
        if done.vetoed or not plan.excerpts:
            return done
        then = self._at_once(look.call.after_excerpts())
        return replace(then, newly_masked=then.newly_masked + done.newly_masked)

    async def _prepare(self, call: CompressCall) -> None:
        """Have a summary written before the trigger is reached, and a text without a model at hand
        should a turn need it first."""
        soft = int(call.budget.trigger * self._config.soft_ratio)
        call = replace(call, budget=replace(call.budget, trigger=soft))
        look, plan = await asyncio.to_thread(self._seen, call)
        if plan is None:
            return
        if plan.jobs:
            shown, texts = await asyncio.to_thread(self.drafted, look, plan)
            self._hold(shown, texts)
        done = await self.compress(Planned(look, plan))
        if done.usage != Usage():
            self.sessions.owe(call.key, done.usage)

    def _with_placeholder(self, look: Look) -> CompressResult | None:
        """The view with what is at hand in its place; None where nothing is, where the whole is not
        too much, or where that is too much by now and cannot be added to."""
        found, limit = self.sessions.of(look.call.key).placeholder, look.budget.limit
        if found is None or not look.session.is_as(found.session) or look.layout.size() <= limit:
            return None
        counted = [self.projector.recounted(segment) for segment in found.segments]
        shown = replace(look, layout=look.layout.adding(counted))
        if shown.layout.size() <= limit:
            self._hold(shown)
            return result_of(shown, self._tokens, found.untold)
        with contextlib.suppress(BudgetTooSmall):
            more = self.projector.plan(shown)
            if more is not None:
                return self.uncommitted(shown, more, hold=True)
        return None

    def _hold(self, shown: Look, untold: Sequence[Written] = ()) -> None:
        added = shown.layout.segments[len(shown.session.entries) :]
        standing = {id(segment) for _, _, segment in shown.layout.standing()}
        used = tuple(segment for segment in added if id(segment) in standing)
        held = Placeholder(shown.session, used, tuple(untold))
        self.sessions.of(shown.call.key).placeholder = held

    # -------------------------------------------------------------- whatever fails

    def best(self, call: CompressCall, session: Session) -> CompressResult:
        """The view for a turn that must go on: without a model or a write; shortened where what
        may not be dropped does not fit."""
        try:
            return self._statically(call, session)
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller says it once
        look = self.projector.look(call, session)
        pairs = zip(look.reading.own, look.layout.allowed, strict=True)
        kept = [message for message, may_go in pairs if not may_go]
        room = int(call.budget.limit * SHORTENED_SHARE)
        count = self._tokens.messages
        shorter = dict(zip(map(id, kept), shorten(kept, room, count), strict=True))
        messages = [shorter.get(id(message), message) for message in call.reading.own]
        whole = result_of(look, self._tokens)
        try:
            reading = Reading.of(messages, self._tokens.cache)
            fit = self._statically(replace(call, reading=reading), session)
        except BudgetTooSmall:
            bare = shorten(kept, call.budget.limit, count)
            fit = replace(
                whole,
                messages=bare,
                tokens_after=count(bare),
                summary_method=None,
                segments=(),
                masked=0,
            )
        # What is cut in its middle says so in its place, as a masked output does.
        status = "summarized" if fit.segments else "masked"
        # And may have been a rule.
        origin = replace(whole.origin, hidden=frozenset(range(len(whole.origin.messages))))
        return replace(fit, tokens_before=whole.tokens_before, context_status=status, origin=origin)

    def _statically(self, call: CompressCall, session: Session) -> CompressResult:
        look = self.projector.look(call, session)
        plan = self.projector.plan(look)
        if plan is None:
            return result_of(look, self._tokens)
        return self.uncommitted(look, plan)

    # -------------------------------------------------------------- segments

    def _segments(self, look: Look, draft: Draft) -> list[Recorded]:
        """The draft's summaries and masks, each with the messages it stands for."""
        layout, plan = look.layout, draft.plan

        def made(kind: str, start: int, end: int, text: Written) -> Recorded:
            segment = Segment(
                kind=kind,
                run=layout.digests[start:end],
                rendered=text.message,
                tokens=self._tokens.message(text.message),
                source_tokens=layout.source(start, end),
                method=text.method,
                model=text.model,
                usage=text.usage,
                created=time.time(),
                transcript_length=len(look.reading.given),
            )
            return segment, look.originals(start, end)

        jobs = zip(plan.jobs, draft.texts, strict=True)
        found = [made("summary", job.start, job.end, text) for job, text in jobs]
        first = len(layout.segments) + len(found) + 1
        names = {
            index: f"s{number}.1"
            if draft.recorded and layout.transcript.origins[index] not in look.dropped
            else ""
            for number, index in enumerate(sorted(plan.masks or plan.excerpts), first)
        }
        kind = "excerpt" if plan.excerpts else "mask"
        shorter = self.projector.excerpts if plan.excerpts else self.projector.masks
        lines = shorter(look, names) if names else {}
        return found + [made(kind, n, n + 1, Written(line, "static")) for n, line in lines.items()]


Recorded = tuple[Segment, Sequence[Message]]
"""A segment and the messages that it stands for."""

SHORTENED_SHARE = 0.75
"""Share of the window for what may not be dropped, where it has to be shortened: the rest is for
a summary and a tail."""
