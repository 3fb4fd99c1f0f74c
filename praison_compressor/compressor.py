"""`ContextCompressor`: projects a transcript through its ledger, and compresses when it must."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from .anywhere import run
from .background import Background
from .breaker import Breaker
from .briefs import briefs_for
from .budget import Budget
from .callables import as_summarizer
from .config import CompressorConfig
from .defaults import default_store, default_summarizer
from .errors import BudgetTooSmall, CompressorError, LedgerConflict, LedgerError
from .events import Event, Listener
from .flights import Flights, leased
from .layout import Layout
from .ledger import Segment, Session, Store
from .messages import Message, as_list, read, to_plain
from .models import model_limits
from .outline import outline_of
from .plan import Plan
from .preview import Preview, preview_of
from .projection import Call, Look, Projector, Quiet
from .recording import segments_of
from .redact import masks_secrets
from .result import CompressResult, Options, of_look, of_quiet
from .resuming import in_full, transcript_of
from .shorten import shorten
from .telemetry import Telemetry
from .tokens import TokenCounter
from .widening import widened
from .writer import SummaryWriter, Written

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ContextCompressor"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_CONFLICTS = 8
"""Races lost in one call. Each means that another writer got on; a store whose tip was damaged
loses them for ever."""

SHORTENED_SHARE = 0.75
"""Share of the window for what may not be dropped, where it has to be shortened: the rest is for
a summary and a tail."""


class ContextCompressor:
    """Keeps a conversation within its model's window; thread-safe, one for many sessions.

    Without a summarizer and without `auxiliary_model` summaries are static. Without a store the
    ledger is in memory, or where `config.store_url` says. Without a `session_id` all calls belong
    to one random session of this object: give each conversation its own. `on_event` hears what
    happens; `telemetry` does too, and is `Telemetry()` with the global providers where left out.
    """

    def __init__(
        self,
        config: CompressorConfig | None = None,
        *,
        summarizer: Any = None,
        store: Store | None = None,
        tokens: TokenCounter | None = None,
        on_event: Listener | None = None,
        telemetry: Listener | None = None,
    ) -> None:
        self.config = (config or CompressorConfig()).with_environment()
        self.tokens = tokens or TokenCounter(self.config.model)
        self.store = store if store is not None else default_store(self.config)
        self.session_id = f"session-{uuid.uuid4().hex}"
        self.breaker = Breaker()
        self.background = Background()
        self._summarizer = as_summarizer(summarizer)
        self._projector = Projector(self.store, self.tokens)
        self._flights = Flights()
        self._without_ledger = False
        self._listener = on_event
        self._telemetry = telemetry or Telemetry()

    # -------------------------------------------------------------- public

    async def compress(
        self,
        messages: Sequence[Any],
        *,
        protect_last_n_tokens: int | None = None,
        summary_target_tokens: int | None = None,
        auxiliary_model: str | None = None,
        session_id: str | None = None,
        parent_session_id: str | None = None,
        target_tokens: int | None = None,
        force: bool = False,
        overhead_tokens: int = 0,
        extends: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> CompressResult:
        """The view of `messages`: itself while it fits, else with its middle summarized.

        An argument left None means the configured value. `target_tokens` asks for a view of at
        most that many tokens, in place of window, reserve, trigger and target; `force` compresses
        although the trigger is not reached, and asks a model that is left alone after a failure;
        `overhead_tokens` is what the request carries besides the messages (tool schemas), `tools`
        those schemas, for `summarize_on_prefix`; `parent_session_id` makes a new session a fork of
        that one; `extends=False` reads the ledger and never writes to it. `messages` is not
        changed.

        Raises:
            InvalidMessages: not a list of chat messages.
            BudgetTooSmall: what cannot be dropped exceeds the window or `target_tokens`.
            LedgerError: the store cannot be read or written.
        """
        options = Options(
            protect_last_n_tokens=protect_last_n_tokens,
            summary_target_tokens=summary_target_tokens,
            auxiliary_model=auxiliary_model,
            session_id=session_id,
            parent_session_id=parent_session_id,
            target_tokens=target_tokens,
            force=force,
            overhead_tokens=overhead_tokens,
            extends=extends,
            tools=tools,
        )
        started = await asyncio.to_thread(self._start, messages, options)
        if isinstance(started, CompressResult):
            return started
        return await self._compress(*started)

    def compress_sync(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """`compress` from anywhere, also from inside a running event loop."""
        started = self._start(messages, options)
        if isinstance(started, CompressResult):
            return started
        return run(self._compress(*started))

    def best_view(
        self,
        messages: Sequence[Any],
        *,
        told: Exception | None = None,
        **options: Unpack[Options],
    ) -> list[Message]:
        """The best valid view that needs no model and no store write; never raises.

        For a host whose turn must go on: what fits is as `compress` would send it, what cannot
        fit is shortened, and messages that cannot be read come back as they are. `told` is the
        failure that the caller has logged already: the log does not say it again.
        """
        try:
            return self._best(messages, options, told)
        except CompressorError as error:
            logger.warning("sent as it is: %s", error)
        except Exception:
            # A mistake of ours: it must be heard of, and must not end the turn.
            logger.exception("sent as it is")
        return list(messages) if isinstance(messages, (list, tuple)) else messages  # type: ignore[return-value]

    def _best(
        self, messages: Sequence[Any], options: Options, told: Exception | None
    ) -> list[Message]:
        call = replace(self._call(messages, options), extends=False)
        try:
            session = self._projector.open(call)
            self._without_ledger = False
            return self._static_view(call, session)
        except LedgerError as error:
            # Once, until the ledger is there again: a turn comes every few seconds.
            is_news = not self._without_ledger and str(error) != str(told)
            level = logging.WARNING if is_news else logging.DEBUG
            self._without_ledger = True
            logger.log(level, "without the ledger for now: %s", error)
            nothing = Session(call.key[0], call.key[1], call.key[1], call.parent_id)
            return self._static_view(call, nothing)

    def preview(self, messages: Sequence[Any], **options: Unpack[Options]) -> Preview:
        """What `compress` would keep, mask and summarize, and why; nothing is asked or written.

        Raises:
            CompressorError: as `compress` would.
        """
        self._check(options)
        call = replace(self._call(messages, options), extends=False)
        look = self._projector.look(call)
        if look.plan is not None and call.budget.exact and not call.pays:
            # What a static text leaves over goes to the tail: how much, its writing alone tells.
            look = replace(look, plan=self._statically(call, look, look.plan)[0])
        return preview_of(call, look, self._projector, self.tokens)

    def verbatim(
        self, messages: Sequence[Any] | None = None, *, session_id: str | None = None
    ) -> list[Message]:
        """The transcript that a view stands for: every summary replaced by its originals.

        Without `messages` the session's, whole, as the store has it: as of its last compression,
        or of the last `save`.

        Raises:
            SessionNotFound: without `messages`, and nothing of the session was ever compressed.
        """
        name = session_id or self.session_id
        if messages is None:
            return transcript_of(self.store, self.config.namespace, name)
        session = self.store.open(self.config.namespace, name)
        expanded = self._projector.expanded(list(messages), session)
        return [to_plain(message) for message in (messages if expanded is None else expanded)]

    def resume(self, session_id: str, token_budget: int | None = None) -> CompressResult:
        """A stored session's messages, to go on from: in full where they fit, else its view.

        From the store alone: as of its last compression, or of the last `save`. No model is asked
        and nothing is written. `token_budget` is None for what this compressor's model takes.
        What is sent on under the same session is projected through its ledger as ever.

        Raises:
            SessionNotFound: nothing of that name was ever compressed in this store.
            BudgetTooSmall: what cannot be dropped exceeds `token_budget`.
            LedgerError: the store cannot be read.
        """
        messages = transcript_of(self.store, self.config.namespace, session_id)
        size = self.tokens.messages(messages)
        fits = self._budget(self.config, {}).trigger if token_budget is None else token_budget
        if size <= fits:
            session = self.store.open(self.config.namespace, session_id)
            return in_full(messages, session, size)
        return self.compress_sync(
            messages, session_id=session_id, target_tokens=token_budget, extends=False
        )

    def save(self, messages: Sequence[Any], *, session_id: str | None = None) -> bool:
        """Record the transcript as it is now, for `resume` and `verbatim`; compresses nothing.

        A compression does it by itself, a quiet turn does not. False where nothing of the session
        was ever compressed: then there is nothing to go on from but the caller's own messages.

        Raises:
            InvalidMessages: not a list of chat messages.
            LedgerError: the store cannot be written.
        """
        call = replace(self._call(messages, {"session_id": session_id}), extends=False)
        session = self._projector.open(call)
        if not session.entries:
            return False
        raw, layout = self._projector.project(call, session)
        return self.store.keep(session, outline_of(raw, layout))

    def recall_tools(
        self, session_id: str | None = None, *, budget_tokens: int = 2_000
    ) -> list[Callable[..., str]]:
        """The tools by which an agent searches and reads what was compressed in its session.

        Set `recall=True` in the configuration too, so that summaries name them. Each answer is of
        at most `budget_tokens`.
        """
        from .recall import recall_tools

        name = session_id or self.session_id

        def session() -> Session:
            return self.store.open(self.config.namespace, name)

        return recall_tools(self.store, session, self.tokens.text, budget_tokens=budget_tokens)

    def save_all(self) -> int:
        """`save` for every session that was sent last, as it was sent; how many were recorded.

        A store that cannot be written is logged.
        """
        saved = 0
        for (_, session_id), messages in self._projector.remembered():
            try:
                saved += self.save(messages, session_id=session_id)
            except CompressorError as error:
                logger.warning("session %s: its last turns are not saved: %s", session_id, error)
        return saved

    def close(self) -> None:
        """Cancel what is written in the background, save the newest transcripts, close the store.

        Only of sessions that were compressed. A store that cannot be written is logged.
        """
        self.background.close()
        self.save_all()
        self.store.close()

    # -------------------------------------------------------------- reading

    def _start(
        self, messages: Sequence[Any], options: Options
    ) -> CompressResult | tuple[Call, Look]:
        """The result, where nothing has to be waited for; else what to carry out."""
        self._check(options)
        quiet = self._quiet(messages, options)
        if quiet is not None:
            return of_quiet(quiet, model=self.config.model)
        call = self._call(messages, options)
        look = self._projector.look(call)
        if self._in_background(call):
            return self._without_waiting(call, look)
        if look.plan is None:
            return self._result(call, look)
        if not call.extends:
            return self._uncommitted(call, look, look.plan)
        return call, look

    def _check(self, options: Options) -> None:
        unknown = sorted(set(options) - set(Options.__annotations__))
        if unknown:
            raise TypeError(f"compress() got an unexpected keyword argument {unknown[0]!r}")

    def _quiet(self, messages: Sequence[Any], options: Options) -> Quiet | None:
        if options.get("force") or options.get("target_tokens") is not None:
            return None
        config = self._config(options)
        budget = self._budget(config, options)
        key = (config.namespace, options.get("session_id") or self.session_id)
        extends = options.get("extends", True)
        busy = self.background.busy(key)
        if busy:  # what is too much is being written: meanwhile the whole is sent while it fits
            budget = replace(budget, trigger=budget.limit)
        quiet = self._projector.again(messages, key, budget, keep=extends)
        soft = quiet is not None and self.config.background and not busy
        if quiet is None or (soft and quiet.tokens_after > budget.trigger * self.config.soft_ratio):
            return None
        return quiet

    def _config(self, options: Options) -> CompressorConfig:
        given = {
            "protect_last_n_tokens": options.get("protect_last_n_tokens"),
            "summary_target_tokens": options.get("summary_target_tokens"),
        }
        changed: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        return replace(self.config, **changed) if changed else self.config

    def _call(self, messages: Sequence[Any], options: Options) -> Call:
        config = self._config(options)
        model, tools = options.get("auxiliary_model"), options.get("tools")
        given = list(as_list(messages))
        return Call(
            given=given,
            transcript=read(given),
            config=config,
            budget=self._budget(config, options),
            key=(config.namespace, options.get("session_id") or self.session_id),
            parent_id=options.get("parent_session_id"),
            model=model,
            force=options.get("force", False),
            extends=options.get("extends", True),
            pays=self._summarizer is not None or bool(model or config.auxiliary_model),
            tools=None if tools is None else tuple(tools),
        )

    def _budget(self, config: CompressorConfig, options: Options) -> Budget:
        priming = self.tokens.messages([])
        target = options.get("target_tokens")
        if target is not None:
            return Budget.exactly(config, target - priming)
        window = model_limits(config.model, config.context_window).window
        return Budget.of(config, window, options.get("overhead_tokens", 0) + priming)

    # -------------------------------------------------------------- acting

    async def _compress(self, call: Call, look: Look) -> CompressResult:
        lost = 0
        while look.plan is not None:
            key = (look.session.namespace, look.session.id)
            flying = self._flights.enter(key)
            if flying is not None:
                await asyncio.wrap_future(flying)
                look = await asyncio.to_thread(self._projector.look, call)
                continue
            try:
                async with leased(self.store, look.session):
                    # Another may have finished between our look and our turn.
                    look = await asyncio.to_thread(self._projector.renewed, call, look)
                    if look.plan is not None:
                        return await self._carry_out(call, look, look.plan)
            except LedgerConflict:
                lost += 1
                if lost >= MOST_CONFLICTS:
                    raise
                look = await asyncio.to_thread(self._projector.look, call)
            finally:
                self._flights.leave(key)
        return self._result(call, look)

    async def _carry_out(self, call: Call, look: Look, todo: Plan) -> CompressResult:
        given = look.layout.transcript
        look = self._projector.settled(look)
        started = time.monotonic()
        numbers = {"tokens": look.layout.size(), "messages": len(look.layout.tokens)}
        self._emit(Event("started", look.session.id, numbers))
        try:
            written = await self._write(call, look, todo)
            todo, written = await asyncio.to_thread(self._widened, call, look, todo, written)
            after = await asyncio.to_thread(self._commit, call, look, todo, written)
        except BaseException as error:
            self._emit(Event("abandoned", look.session.id, {"error": type(error).__name__}))
            raise
        # The caller's own messages: the settled ones are the cache's, and a view may be edited.
        shown = replace(after, layout=replace(after.layout, transcript=given))
        result = self._result(call, shown, written)
        self._emit(result.committed(look, seconds=time.monotonic() - started))
        return result

    async def _write(self, call: Call, look: Look, todo: Plan) -> list[Written]:
        writer = self._writer(call)
        write = functools.partial(
            writer.write, model=call.model, session_id=look.session.id, force=call.force
        )
        return await asyncio.gather(*map(write, briefs_for(call, look, todo)))

    def _widened(
        self, call: Call, look: Look, todo: Plan, written: Sequence[Written]
    ) -> tuple[Plan, list[Written]]:
        return widened(
            call,
            look,
            todo,
            written,
            decide=lambda call, look: self._projector.plan(call, look.layout),
            writer=self._writer(call),
            size=self.tokens.message,
        )

    def _commit(self, call: Call, look: Look, todo: Plan, written: Sequence[Written]) -> Look:
        entries = self._segments(call, look, todo, written)
        after = self._projector.with_segments(look, [segment for segment, _ in entries])
        outline = outline_of(after.raw, after.layout)
        return self._projector.within(after, self.store.commit(look.session, entries, outline))

    # -------------------------------------------------------------- without waiting

    def _in_background(self, call: Call) -> bool:
        asked_now = call.force or call.budget.limit == call.budget.target
        return self.config.background and call.extends and call.pays and not asked_now

    def _without_waiting(self, call: Call, look: Look) -> CompressResult:
        """The view at once; what a model has to write for it is begun off the request path."""
        todo = look.plan
        if todo is not None and todo.masks:
            return self._masked_now(call, look, todo)
        if look.layout.size() > int(call.budget.trigger * self.config.soft_ratio):
            key = (look.session.namespace, look.session.id)
            self.background.start(
                key, functools.partial(self._prepare, self._projector.snapshot(call))
            )
        if todo is None or look.layout.size() <= call.budget.limit:
            # Above the trigger, but the provider takes it: nothing is lost and its cache stays
            # warm until the text is there. Less than the whole is sent only where it must be.
            return self._result(call, look)
        return self._uncommitted(call, look, todo)

    def _masked_now(self, call: Call, look: Look, todo: Plan) -> CompressResult:
        """Masks need no model; they are committed unless a summary that is being written would
        lose the race to them, and its price with it."""
        key = (look.session.namespace, look.session.id)
        if self._flights.enter(key) is None:
            try:
                return run(self._carry_out(call, look, todo))
            except LedgerConflict:
                logger.debug("session %s moved on: its masks are not recorded", key[1])
            finally:
                self._flights.leave(key)
        return self._uncommitted(call, look, todo)

    def _uncommitted(self, call: Call, look: Look, todo: Plan) -> CompressResult:
        """The view with what is missing written without a model, and recorded nowhere."""
        todo, written = self._statically(call, look, todo)
        segments = [segment for segment, _ in self._segments(call, look, todo, written)]
        return self._result(call, self._projector.with_segments(look, segments), written)

    def _statically(self, call: Call, look: Look, todo: Plan) -> tuple[Plan, list[Written]]:
        """The plan with its texts written without a model."""
        writer = self._writer(call)
        written = [writer.static(brief) for brief in briefs_for(call, look, todo)]
        return self._widened(call, look, todo, written)

    async def _prepare(self, given: Call) -> None:
        soft = int(given.budget.trigger * self.config.soft_ratio)
        budget = replace(given.budget, trigger=soft)
        transcript = await asyncio.to_thread(read, given.given)
        call = replace(given, transcript=transcript, budget=budget)
        look = await asyncio.to_thread(self._projector.look, call)
        await self._compress(call, look)

    def _static_view(self, call: Call, session: Session) -> list[Message]:
        """The view with what is missing written statically and committed nowhere."""
        try:
            return self._planned_view(call, session)
        except BudgetTooSmall as error:
            logger.info("shortened to go on: %s", error)  # each request; the caller says it once
        kept = _bare(self._projector.project(call, session)[1])
        room = int(call.budget.limit * SHORTENED_SHARE)
        shorter = dict(zip(map(id, kept), shorten(kept, room, self._size), strict=True))
        messages = [shorter.get(id(message), message) for message in call.transcript.messages]
        try:
            return self._planned_view(
                replace(call, given=messages, transcript=read(messages)), session
            )
        except BudgetTooSmall:
            return shorten(kept, call.budget.limit, self._size)

    def _planned_view(self, call: Call, session: Session) -> list[Message]:
        look = self._projector.look(call, session)
        if look.plan is None:
            return look.layout.view()
        return self._uncommitted(call, look, look.plan).messages

    def _size(self, messages: Sequence[Message]) -> int:
        return sum(self.tokens.each(self.tokens.cache.all(messages)))

    # -------------------------------------------------------------- pieces

    def _writer(self, call: Call) -> SummaryWriter:
        if self._summarizer is None and call.pays:
            self._summarizer = default_summarizer(self.config, call.model)
        return SummaryWriter(
            self.config,
            self._summarizer,
            self.tokens,
            self._emit,
            breaker=self.breaker,
            on_disk=masks_secrets(self.store),
        )

    def _segments(
        self, call: Call, look: Look, todo: Plan, written: Sequence[Written]
    ) -> list[tuple[Segment, Sequence[Message]]]:
        return segments_of(call, look, todo, written, projector=self._projector, tokens=self.tokens)

    def _result(self, call: Call, look: Look, written: Sequence[Written] = ()) -> CompressResult:
        opening = self.tokens.messages([])
        before = self._size(call.transcript.messages) + opening
        result = of_look(look, written, before=before, opening=opening, model=self.config.model)
        if not written and look.plan is None:
            self._projector.remember(call, look, before, result.tokens_after)
        return result

    def _emit(self, event: Event) -> None:
        self._telemetry(event)
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception:
            logger.exception("a listener failed at %s", event.name)


def _bare(layout: Layout) -> list[Message]:
    """Only what may not be dropped: for a window that does not even take that."""
    pairs = zip(layout.transcript.messages, layout.allowed, strict=True)
    return [message for message, may_go in pairs if not may_go]
