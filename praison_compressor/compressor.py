"""`ContextCompressor`: projects a transcript through its ledger, and compresses when it must."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from .cache import MessageCache
from .config import CompressorConfig
from .errors import BudgetTooSmall, CompressorError, LedgerConflict, LedgerError
from .events import Event, Listener
from .facts import Coverage
from .flights import Flights, leased
from .ledger import Entry, MemoryStore, Segment, Session, Store, Usage
from .messages import Message, Transcript, read, to_plain
from .models import model_limits
from .plan import Budget, Job, Layout, Plan, arrange, plan
from .prompts import Summarizer, rendering, unframe
from .shorten import shorten
from .tokens import TokenCounter
from .writer import Brief, SummaryWriter, Written, as_summarizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CompressResult", "ContextCompressor", "Options"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class CompressResult:
    """What to send, and what was done to get there. Counts are tokens of the model at hand."""

    messages: list[Message]
    context_status: str
    """ "full", "masked" or "summarized": what the view is now."""
    tokens_before: int
    tokens_after: int
    session_id: str
    """The newest epoch; any epoch's id, and the stable one, name the session in later calls."""
    parent_session_id: str | None
    summary_method: str | None
    """ "model" or "static" when this call wrote a summary, "reused" when it found one."""
    usage: Usage = field(default_factory=Usage)
    """What the auxiliary model cost in this call."""
    segments: tuple[Segment, ...] = ()
    """The segments that stand in the view, in order."""
    written: tuple[Written, ...] = ()
    """What this call wrote, with the coverage of facts before and after repair."""

    @property
    def tokens_saved(self) -> int:
        """Tokens that the view has fewer than the messages given."""
        return self.tokens_before - self.tokens_after

    @property
    def coverage_before(self) -> Coverage | None:
        """Facts that the model's own text held; None where no model wrote."""
        return next((w.before for w in self.written if w.before), None)

    @property
    def coverage_after(self) -> Coverage | None:
        """Facts that the finished summary holds; None where none was written."""
        return next((w.after for w in self.written if w.after), None)


class Options(TypedDict, total=False):
    """The keywords of `compress`; what each means stands there."""

    protect_last_n_tokens: int | None
    summary_target_tokens: int | None
    auxiliary_model: str | None
    session_id: str | None
    parent_session_id: str | None
    target_tokens: int | None
    force: bool
    overhead_tokens: int
    extends: bool


@dataclass(frozen=True)
class _Call:
    """One request to compress, read and budgeted."""

    given: Sequence[Any]
    transcript: Transcript
    budget: Budget
    key: tuple[str, str]
    parent_id: str | None
    model: str | None
    force: bool
    extends: bool


@dataclass(frozen=True)
class _Look:
    """The transcript as it stands in the ledger now."""

    session: Session
    raw: Sequence[Message]
    layout: Layout
    plan: Plan | None


class ContextCompressor:
    """Keeps a conversation within its model's window; thread-safe, one for many sessions.

    Without a summarizer and without `auxiliary_model` summaries are static. Without a store the
    ledger is in memory, or where `config.store_url` says. Without a `session_id` all calls belong
    to one random session of this object: give each conversation its own.
    """

    def __init__(
        self,
        config: CompressorConfig | None = None,
        *,
        summarizer: Any = None,
        store: Store | None = None,
        tokens: TokenCounter | None = None,
        on_event: Listener | None = None,
    ) -> None:
        self.config = (config or CompressorConfig()).with_environment()
        self.tokens = tokens or TokenCounter(self.config.model)
        self.store = store if store is not None else _default_store(self.config)
        self.session_id = f"session-{uuid.uuid4().hex}"
        self._summarizer = as_summarizer(summarizer)
        self._cache = getattr(self.tokens, "cache", None) or MessageCache()
        self._flights = Flights()
        self._listener = on_event

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
    ) -> CompressResult:
        """The view of `messages`: itself while it fits, else with its middle summarized.

        An argument left None means the configured value. `target_tokens` asks for a view of at
        most that many tokens, in place of window, reserve, trigger and target; `force` compresses
        although the trigger is not reached; `overhead_tokens` is what the request carries besides
        the messages (tool schemas); `parent_session_id` makes a new session a fork of that one;
        `extends=False` reads the ledger and never writes to it. `messages` is not changed.

        Raises:
            InvalidMessages: not a list of chat messages.
            BudgetTooSmall: what cannot be dropped exceeds the window or `target_tokens`.
            LedgerError: the store cannot be read or written.
        """
        call = self._call(
            messages,
            protect_last_n_tokens=protect_last_n_tokens,
            summary_target_tokens=summary_target_tokens,
            auxiliary_model=auxiliary_model,
            session_id=session_id,
            parent_session_id=parent_session_id,
            target_tokens=target_tokens,
            force=force,
            overhead_tokens=overhead_tokens,
            extends=extends,
        )
        look = await asyncio.to_thread(self._look, call)
        return await self._compress(call, look)

    def compress_sync(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """`compress` from anywhere, also from inside a running event loop."""
        call = self._call(messages, **options)
        look = self._look(call)
        if look.plan is None:
            return self._result(call, look)
        return _run(self._compress(call, look))

    def best_view(self, messages: Sequence[Any], **options: Unpack[Options]) -> list[Message]:
        """The best valid view that needs no model and no store write; never raises.

        For a host whose turn must go on: what fits is as `compress` would send it, what cannot
        fit is shortened, and messages that cannot be read come back as they are.
        """
        try:
            call = replace(self._call(messages, **options), extends=False)
        except CompressorError as error:
            logger.warning("sent as it is: %s", error)
            return list(messages)
        try:
            return self._static_view(call, self._open(call))
        except LedgerError as error:
            logger.warning("without the ledger for this request: %s", error)
            nothing = Session(call.key[0], call.key[1], call.key[1], call.parent_id)
            return self._static_view(call, nothing)

    def verbatim(self, messages: Sequence[Any], *, session_id: str | None = None) -> list[Message]:
        """The transcript that a view stands for: every summary replaced by its originals."""
        session = self.store.open(self.config.namespace, session_id or self.session_id)
        return [to_plain(message) for message in self._expanded(list(messages), session)]

    # -------------------------------------------------------------- reading

    def _call(self, messages: Sequence[Any], **options: Unpack[Options]) -> _Call:
        unknown = sorted(set(options) - set(Options.__annotations__))
        if unknown:
            raise TypeError(f"compress() got an unexpected keyword argument {unknown[0]!r}")
        transcript = read(messages)
        config = self.config
        protect = options.get("protect_last_n_tokens")
        if protect is not None:
            config = replace(config, protect_last_n_tokens=protect)
        prose = options.get("summary_target_tokens")
        if prose is not None:
            config = replace(config, summary_target_tokens=prose)
        return _Call(
            given=list(messages),
            transcript=transcript,
            budget=self._budget(config, options),
            key=(config.namespace, options.get("session_id") or self.session_id),
            parent_id=options.get("parent_session_id"),
            model=options.get("auxiliary_model"),
            force=options.get("force", False),
            extends=options.get("extends", True),
        )

    def _budget(self, config: CompressorConfig, options: Options) -> Budget:
        priming = self.tokens.messages([])
        target = options.get("target_tokens")
        if target is not None:
            return Budget.exactly(config, target - priming)
        window = model_limits(config.model, config.context_window).window
        return Budget.of(config, window, options.get("overhead_tokens", 0) + priming)

    def _open(self, call: _Call) -> Session:
        namespace, session_id = call.key
        return self.store.open(namespace, session_id, call.parent_id)

    def _look(self, call: _Call) -> _Look:
        """What the ledger has for this transcript now, and what would have to be done."""
        session = self._open(call)
        raw, layout = self._project(call, session)
        return _Look(session, raw, layout, plan(layout, call.budget, force=call.force))

    def _project(self, call: _Call, session: Session) -> tuple[Sequence[Message], Layout]:
        """The transcript laid out along a session's ledger, and the messages it was read from."""
        raw, transcript = call.given, call.transcript
        expanded = self._expanded(transcript.messages, session)
        if len(expanded) != len(transcript.messages):
            raw, transcript = expanded, read(expanded)
        seen = self._cache.all(transcript.messages)
        digests = [entry.digest for entry in seen]
        counts = [self.tokens.message(message) for message in transcript.messages]
        segments = [self._recounted(entry.segment) for entry in session.entries]
        return raw, arrange(transcript, digests, counts, segments, call.budget.head)

    def _recounted(self, segment: Segment) -> Segment:
        """The segment as this model counts it: it may have been written under another."""
        tokens = self.tokens.message(segment.rendered)
        return segment if tokens == segment.tokens else replace(segment, tokens=tokens)

    def _expanded(self, messages: Sequence[Message], session: Session) -> list[Message]:
        """The messages with every rendering of this session replaced by what it stands for."""
        rendered = {self._cache(e.segment.rendered).digest: e for e in session.entries}
        if not rendered:
            return list(messages)
        return [
            part for message in messages for part in self._originals(message, rendered, session)
        ]

    def _originals(
        self, message: Message, rendered: dict[str, Entry], session: Session
    ) -> list[Message]:
        entry = rendered.get(self._cache(message).digest)
        originals = self.store.originals(session, entry) if entry is not None else None
        return [message] if originals is None else originals

    def _size(self, messages: Sequence[Message]) -> int:
        return sum(map(self.tokens.message, messages))

    # -------------------------------------------------------------- acting

    async def _compress(self, call: _Call, look: _Look) -> CompressResult:
        while look.plan is not None:
            key = (look.session.namespace, look.session.id)
            flying = self._flights.enter(key)
            if flying is not None:
                await asyncio.wrap_future(flying)
                look = await asyncio.to_thread(self._look, call)
                continue
            try:
                async with leased(self.store, look.session):
                    # Another may have finished between our look and our turn.
                    look = await asyncio.to_thread(self._look, call)
                    if look.plan is not None:
                        return await self._carry_out(call, look, look.plan)
            except LedgerConflict:
                look = await asyncio.to_thread(self._look, call)
            finally:
                self._flights.leave(key)
        return self._result(call, look)

    async def _carry_out(self, call: _Call, look: _Look, todo: Plan) -> CompressResult:
        session_id = look.session.id
        numbers = {"tokens": look.layout.size(), "messages": len(look.layout.tokens)}
        self._emit(Event("started", session_id, numbers))
        writer = self._writer(call)
        written = await asyncio.gather(
            *(
                writer.write(
                    self._brief(look, job, todo, call), model=call.model, session_id=session_id
                )
                for job in todo.jobs
            )
        )
        if not call.extends:
            return self._result(call, self._with(look, todo, written), written)
        entries = [
            (self._segment(look, job, text), self._archived(look, job))
            for job, text in zip(todo.jobs, written, strict=True)
        ]
        await asyncio.to_thread(self.store.commit, look.session, entries)
        after = await asyncio.to_thread(self._look, replace(call, force=False))
        result = self._result(call, after, written)
        self._emit(
            Event(
                "committed",
                session_id,
                {
                    "tokens_before": result.tokens_before,
                    "tokens_after": result.tokens_after,
                    "method": result.summary_method,
                    "epoch": result.session_id,
                    "cost": result.usage.cost,
                },
            )
        )
        return result

    def _static_view(self, call: _Call, session: Session) -> list[Message]:
        """The view with what is missing written statically and committed nowhere."""
        raw, layout = self._project(call, session)
        try:
            todo = plan(layout, call.budget, force=call.force)
        except BudgetTooSmall as error:
            logger.warning("shortened to go on: %s", error)
            return shorten(self._bare(layout), call.budget.limit, self._size)
        if todo is None:
            return layout.view()
        look = _Look(session, raw, layout, todo)
        writer = self._writer(call)
        written = [writer.static(self._brief(look, job, todo, call)) for job in todo.jobs]
        return self._with(look, todo, written).layout.view()

    def _with(self, look: _Look, todo: Plan, written: Sequence[Written]) -> _Look:
        """The look as it would be with these texts in the ledger."""
        segments = [self._segment(look, j, w) for j, w in zip(todo.jobs, written, strict=True)]
        known = [self._recounted(entry.segment) for entry in look.session.entries]
        layout = look.layout
        layout = arrange(
            layout.transcript,
            layout.digests,
            layout.tokens,
            [*known, *segments],
            layout.head_tokens,
        )
        return replace(look, layout=layout, plan=None)

    def _bare(self, layout: Layout) -> list[Message]:
        """Only what may not be dropped: for a window that does not even take that."""
        pairs = zip(layout.transcript.messages, layout.allowed, strict=True)
        return [message for message, may_go in pairs if not may_go]

    def _writer(self, call: _Call) -> SummaryWriter:
        if self._summarizer is None and (call.model or self.config.auxiliary_model):
            self._summarizer = _default_summarizer(self.config, call.model)
        return SummaryWriter(self.config, self._summarizer, self.tokens, self._emit)

    def _brief(self, look: _Look, job: Job, todo: Plan, call: _Call) -> Brief:
        layout, messages = look.layout, look.layout.transcript.messages
        # A static text is written anew from the originals; only a model's prose is carried on.
        carried = [segment for segment in job.folds if segment.method == "model"]
        covered = {i for t in layout.tiles if t.segment in carried for i in range(t.start, t.end)}
        found = [t.segment for t in layout.tiles if t.segment is not None]
        kept = [segment for segment in found if segment not in job.folds]
        outside = [*range(layout.head_end), *range(todo.tail_start, len(messages))]
        # A fold carries more than one segment did.
        prose = call.budget.prose_for(job.source_tokens) * (2 if carried else 1)
        return Brief(
            messages=messages[job.start : job.end],
            shown=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
            room=job.room,
            most=job.most,
            facts=job.facts,
            prose=max(1, min(prose, job.room // 2)),
            folded=tuple(unframe(segment.rendered) for segment in carried),
            earlier=tuple(unframe(segment.rendered) for segment in kept),
            visible="\n".join(rendering([messages[i] for i in outside])),
        )

    def _segment(self, look: _Look, job: Job, text: Written) -> Segment:
        return Segment(
            kind="summary",
            run=look.layout.digests[job.start : job.end],
            rendered=text.message,
            tokens=self.tokens.message(text.message),
            source_tokens=job.source_tokens,
            method=text.method,
            model=text.model,
            usage=text.usage,
            created=time.time(),
        )

    def _archived(self, look: _Look, job: Job) -> list[Message]:
        """The caller's own messages of a run, as they came and in their order."""
        origins = look.layout.transcript.origins[job.start : job.end]
        return [to_plain(look.raw[i]) for i in sorted(o for o in origins if o is not None)]

    def _result(self, call: _Call, look: _Look, written: Sequence[Written] = ()) -> CompressResult:
        view = look.layout.view()
        segments = tuple(t.segment for t in look.layout.tiles if t.segment is not None)
        status = "summarized" if segments else "masked" if look.layout.replaced else "full"
        methods = {text.method for text in written}
        method = "model" if "model" in methods else "static" if methods else None
        return CompressResult(
            messages=view,
            context_status=status,
            tokens_before=self.tokens.messages(call.transcript.messages),
            tokens_after=self.tokens.messages(view),
            session_id=look.session.tip,
            parent_session_id=look.session.parent,
            summary_method=method or ("reused" if segments else None),
            usage=functools.reduce(Usage.__add__, (text.usage for text in written), Usage()),
            segments=segments,
            written=tuple(written),
        )

    def _emit(self, event: Event) -> None:
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception:
            logger.exception("a listener failed at %s", event.name)


# ---------------------------------------------------------------- helpers


def _default_summarizer(config: CompressorConfig, model: str | None) -> Summarizer:
    from .summarizer import LiteLLMSummarizer

    name = model or config.auxiliary_model
    assert name is not None
    return LiteLLMSummarizer(
        name, api_base=config.auxiliary_api_base, api_key=config.auxiliary_api_key
    )


def _default_store(config: CompressorConfig) -> Store:
    if config.store_url is None:
        return MemoryStore()
    from .store import open_store

    return open_store(config.store_url)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in this thread or, inside a running loop, in another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_thread(lambda: asyncio.run(work))


def _in_thread(function: Callable[[], T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="praison-compressor", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
