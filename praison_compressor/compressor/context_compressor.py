"""`ContextCompressor`: projects a transcript through its ledger, and compresses when it must."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..config import CompressorConfig, whole
from ..errors import CompressorError
from ..events import Event, Listener
from ..ledger.segments import Session, Store, Usage
from ..messages import Message, as_list, read, to_plain
from ..summaries.protocol import as_summarizer
from ..summaries.retries import Breaker
from ..summaries.threads import run
from ..tokens.counter import TokenCounter
from .background import Background
from .best_view import BestView
from .call import CompressCall, Look, Options, budget_of, call_of, config_of
from .defaults import default_store
from .executor import Executor
from .preview import Preview, preview_of
from .projection import Projector
from .quiet_turns import Quiet, QuietTurns
from .remembered import Bills, Meanwhile, Skips
from .result import CompressResult, of_quiet
from .telemetry import Telemetry
from .work import outline_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "ContextCompressor",
    "in_full",
    "transcript_of",
]

logger = logging.getLogger(__name__)


# -------------------------------------------------------------- resuming


def transcript_of(store: Store, namespace: str, session_id: str) -> list[Message]:
    """The session's transcript as the store has it; any of its epochs' ids names it.

    Raises:
        SessionNotFound: nothing of that name was ever compressed in this store.
    """
    store.lineage(namespace, session_id)  # opening a name that nobody has would not be an error
    return store.transcript(store.open(namespace, session_id))


def in_full(messages: list[Message], session: Session, tokens: int) -> CompressResult:
    """The whole transcript as a result: nothing in it is represented."""
    return CompressResult(
        messages=messages,
        context_status="full",
        tokens_before=tokens,
        tokens_after=tokens,
        session_id=session.tip,
        parent_session_id=session.parent,
        summary_method=None,
    )


# -------------------------------------------------------------- compressor


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
        self.background = Background()
        self.bills = Bills()
        self._projector = Projector(self.store, self.tokens, recall=self.config.recall)
        self._quiet_turns = QuietTurns(self.store, self.tokens)
        emit = functools.partial(_tell, telemetry or Telemetry(), on_event)
        self._skips = Skips(emit)
        self._executor = Executor(
            self.config, as_summarizer(summarizer), self.store, self._projector, self.tokens, emit
        )
        self._meanwhile = Meanwhile(self._projector, self._executor)
        self._best_view = BestView(self._projector, self._executor, self.tokens)

    @property
    def breaker(self) -> Breaker:
        """Which models are left alone after a failure."""
        return self._executor.breaker

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
            ConfigError: an option has a value that cannot work.
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
            return self._billed(started, options)
        return self._billed(await self._executor.compress(*started), options)

    def compress_sync(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """`compress` from anywhere, also from inside a running event loop."""
        started = self._start(messages, options)
        if isinstance(started, CompressResult):
            return self._billed(started, options)
        return self._billed(run(self._executor.compress(*started)), options)

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
        return self.best(messages, told=told, **options).messages

    def best(
        self,
        messages: Sequence[Any],
        *,
        told: Exception | None = None,
        **options: Unpack[Options],
    ) -> CompressResult:
        """`best_view` with its counts and status; never raises."""
        try:
            call = replace(self._call(messages, options), extends=False)
            return self._best_view.of(call, told)
        except CompressorError as error:
            logger.warning("sent as it is: %s", error)
        except Exception:
            # A mistake of ours: it must be heard of, and must not end the turn.
            logger.exception("sent as it is")
        given = list(messages) if isinstance(messages, (list, tuple)) else messages
        return self._as_given(given, options)

    def _as_given(self, messages: Any, options: Options) -> CompressResult:
        size = 0
        with contextlib.suppress(Exception):  # what cannot be read cannot always be counted
            size = self.tokens.messages(messages)
        session_id = self._key(options)[1]
        return CompressResult(messages, "full", size, size, session_id, None, None)

    def preview(self, messages: Sequence[Any], **options: Unpack[Options]) -> Preview:
        """What `compress` would keep, mask and summarize, and why; nothing is asked or written.

        Raises:
            CompressorError: as `compress` would.
        """
        self._check(options)
        call = replace(self._call(messages, options), extends=False)
        look = self._projector.look(call)
        if look.plan is not None and not call.pays:
            # What a static text leaves over goes to the tail: how much, its writing alone tells.
            look = replace(look, plan=self._executor.statically(call, look, look.plan)[0])
        return preview_of(call, look, self._projector, self.tokens)

    def verbatim(
        self, messages: Sequence[Any] | None = None, *, session_id: str | None = None
    ) -> list[Message]:
        """The transcript that a view stands for: every summary replaced by its originals.

        Without `messages` the session's, whole, as the store has it: as of its last compression,
        or of the last `save`.

        Raises:
            InvalidMessages: not a list of chat messages.
            SessionNotFound: without `messages`, and nothing of the session was ever compressed.
        """
        name = session_id or self.session_id
        if messages is None:
            return transcript_of(self.store, self.config.namespace, name)
        session = self.store.open(self.config.namespace, name)
        given = list(as_list(messages))
        expanded = self._projector.expanded(given, session)
        return [to_plain(message) for message in (given if expanded is None else expanded)]

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
        if token_budget is None:
            room = budget_of({}, self.config, self.tokens).trigger
        else:
            room = whole("token_budget", token_budget)
        if size <= room:
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
        return self._keep(call, self._projector.open(call))

    def _keep(self, call: CompressCall, session: Session) -> bool:
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
        from ..ledger.recall import recall_tools

        name = session_id or self.session_id

        def session() -> Session:
            return self.store.open(self.config.namespace, name)

        return recall_tools(self.store, session, self.tokens.text, budget_tokens=budget_tokens)

    def save_all(self) -> int:
        """`save` for every session that was sent last, as it was sent; how many were recorded.

        None that was compressed again or forgotten in part since then: what was sent is outdated,
        or holds words that must not come back. A store that cannot be written is logged.
        """
        saved = 0
        for sent, messages in self._quiet_turns.remembered():
            session_id = sent.id
            try:
                call = replace(self._call(messages, {"session_id": session_id}), extends=False)
                session = self._projector.open(call)
                saved += session.is_as(sent) and self._keep(call, session)
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
    ) -> CompressResult | tuple[CompressCall, Look]:
        """The result, where nothing has to be waited for; else what to carry out."""
        self._check(options)
        quiet = self._quiet(messages, options)
        if quiet is not None:
            return of_quiet(quiet, model=self.config.model)
        call = self._call(messages, options)
        if self._in_background(call):
            return self._without_waiting(call)
        look = self._planned(call, self._projector.laid(call))
        if look.plan is None:
            return self._as_it_is(call, look)
        if not call.extends:
            return self._executor.uncommitted(call, look, look.plan)
        return call, look

    def _planned(self, call: CompressCall, laid: Look) -> Look:
        """The look with what is to be done; told of where something is not."""
        self._skips.fixed(call, laid)
        look = replace(laid, plan=self._projector.plan(call, laid.layout))
        self._skips.planned(call, look)
        return look

    def _check(self, options: Options) -> None:
        unknown = sorted(set(options) - set(Options.__annotations__))
        if unknown:
            raise TypeError(f"compress() got an unexpected keyword argument {unknown[0]!r}")

    def _quiet(self, messages: Sequence[Any], options: Options) -> Quiet | None:
        if options.get("force") or options.get("target_tokens") is not None:
            return None
        config = config_of(options, self.config)
        budget = budget_of(options, config, self.tokens)
        key = self._key(options)
        extends = options.get("extends", True)
        busy = self.background.busy(key)
        if busy:  # what is too much is being written: meanwhile the whole is sent while it fits
            budget = replace(budget, trigger=budget.limit)
        quiet = self._quiet_turns.again(messages, key, budget, keep=extends)
        soft = quiet is not None and self.config.background and not busy
        if quiet is None or (soft and quiet.tokens_after > budget.trigger * self.config.soft_ratio):
            return None
        return quiet

    def _call(self, messages: Sequence[Any], options: Options) -> CompressCall:
        return call_of(
            messages,
            options,
            self.config,
            self.tokens,
            session_id=self.session_id,
            has_model=self._executor.summarizer is not None,
        )

    def _as_it_is(self, call: CompressCall, look: Look) -> CompressResult:
        result = self._executor.result(call, look)
        if look.plan is None:
            self._quiet_turns.remember(call, look, result.tokens_before, result.tokens_after)
        return result

    # -------------------------------------------------------------- without waiting

    def _in_background(self, call: CompressCall) -> bool:
        asked_now = call.force or call.budget.limit == call.budget.target
        return self.config.background and call.extends and call.pays and not asked_now

    def _without_waiting(self, call: CompressCall) -> CompressResult:
        """The view at once; what a model has to write for it is begun off the request path."""
        laid = self._projector.laid(call)
        sent = self._meanwhile.again(call, laid)
        look = laid if sent else self._planned(call, laid)
        todo = look.plan
        if todo is not None and todo.masks:
            return self._executor.mask(call, look, todo)
        if look.layout.size() > int(call.budget.trigger * self.config.soft_ratio):
            key = (look.session.namespace, look.session.id)
            self.background.start(
                key, functools.partial(self._prepare, self._projector.snapshot(call))
            )
        if sent is not None:
            return sent
        if todo is None or look.layout.size() <= call.budget.limit:
            # Above the trigger, but the provider takes it: nothing is lost and its cache stays
            # warm until the text is there. Less than the whole is sent only where it must be.
            return self._as_it_is(call, look)
        return self._meanwhile.first(call, look, todo)

    async def _prepare(self, given: CompressCall) -> None:
        soft = int(given.budget.trigger * self.config.soft_ratio)
        budget = replace(given.budget, trigger=soft)
        transcript = await asyncio.to_thread(read, given.given)
        call = replace(given, transcript=transcript, budget=budget)
        look = await asyncio.to_thread(self._projector.look, call)
        if look.plan is not None and look.plan.jobs:
            await asyncio.to_thread(self._meanwhile.prepare, call, look, look.plan)
        done = await self._executor.compress(call, look)
        if done.usage != Usage():
            self.bills.owe(call.key, done.usage)

    def _billed(self, result: CompressResult, options: Options) -> CompressResult:
        """The result with what the background has cost since the one before."""
        if not options.get("extends", True):
            return result
        owed = self.bills.take(self._key(options))
        return result if owed is None else replace(result, usage=result.usage + owed)

    def _key(self, options: Options) -> tuple[str, str]:
        return self.config.namespace, options.get("session_id") or self.session_id


def _tell(telemetry: Listener, listener: Listener | None, event: Event) -> None:
    telemetry(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        logger.exception("a listener failed at %s", event.name)
