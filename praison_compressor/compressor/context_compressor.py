"""`ContextCompressor`: projects a transcript through its ledger, and compresses when it must."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..config import CompressorConfig, whole
from ..errors import CompressorError, ConfigError, LedgerError
from ..events import Event, Hook, Listener
from ..ledger.memory import MemoryStore
from ..ledger.recall import Recall
from ..ledger.segments import Segment, Session, Store, undoing
from ..ledger.tools import recall_tools
from ..messages import Message, as_list, to_plain
from ..summaries.protocol import as_summarizer
from ..summaries.threads import run
from ..tokens.counter import TokenCounter
from .pipeline import Pipeline, Planned
from .preview import ContextUse, Preview, context_use_of, preview_of
from .request import (
    Key,
    Mode,
    Options,
    Request,
    budget_of,
    check_name,
    checked,
    key_of,
    pinned_segment,
    request_of,
)
from .result import CompressResult
from .sessions import Sessions, added_to
from .telemetry import Telemetry

if TYPE_CHECKING:
    from typing_extensions import Unpack


logger = logging.getLogger(__name__)


class ContextCompressor:
    """Keeps a conversation within its model's window; thread-safe, one for many sessions.

    Without a summarizer and without `auxiliary_model` summaries are static. Without a store the
    ledger is in memory, or where `config.store_url` says. Without a `session_id` all calls belong
    to one random session of this object: give each conversation its own. `on_event` hears what
    happens; `telemetry` does too, and is `Telemetry()` with the global providers where left out.

    `before_compression` is asked before each compression that would be recorded, with the `Event`
    "started" (`session_id`, and in `data` tokens, messages, trigger, target, limit, to_summarize,
    to_mask, forced). It may return None (go on), False (not now; what the window does not take is
    made to fit all the same) or text (instructions for this summary). Called in a thread, or async;
    what it raises is logged and refuses nothing.

    `sessions` is what is remembered of sessions between turns: the compressors of one agent share
    it, since all of it holds for whichever model is next.
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
        before_compression: Hook | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        _check(config, store, tokens, on_event, telemetry, before_compression)
        self.config = (config or CompressorConfig()).with_environment()
        self.tokens = tokens or TokenCounter(self.config.model)
        self.store = store if store is not None else default_store(self.config)
        self.session_id = f"session-{uuid.uuid4().hex}"
        self.sessions = sessions or Sessions()
        self._pipeline = Pipeline(
            self.config,
            as_summarizer(summarizer),
            self.store,
            self.tokens,
            self.sessions,
            functools.partial(_emit, telemetry or Telemetry(), on_event),
            before_compression,
        )
        self.background = self._pipeline.background
        """What is being written off the request path."""
        self._without_ledger = False

    # -------------------------------------------------------------- views

    async def compress(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """Return the view of `messages`: itself while it fits, else with its middle summarized.

        An option left out or None means the configured value. `messages` is not changed.

        Args:
            messages: the whole transcript, or a view of it.
            options:
                target_tokens: at most that many tokens, in place of window, reserve, trigger and
                    target.
                force: compress below the trigger too; ask models that rest after a failure too.
                overhead_tokens: what the request has beside the messages (tool schemas).
                parent_session_id: makes a new session a fork of that one.
                extends: False reads the ledger and never writes to it.
                pinned: texts added to the configured ones.

        Raises:
            ConfigError: an option has a value that cannot work.
            InvalidMessages: not a list of chat messages.
            BudgetTooSmall: what cannot be dropped exceeds the window or `target_tokens`.
            LedgerError: the store cannot be read or written.
        """
        options = checked(options)
        started = await asyncio.to_thread(self._start, messages, options)
        if not isinstance(started, CompressResult):
            started = await self._pipeline.carry_out(started)
        return self._billed(started, options)

    def compress_sync(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """Call `compress` from anywhere, also from inside a running event loop."""
        options = checked(options)
        started = self._start(messages, options)
        if not isinstance(started, CompressResult):
            started = run(self._pipeline.carry_out(started))
        return self._billed(started, options)

    def best_view(
        self,
        messages: Sequence[Any],
        *,
        logged: Exception | None = None,
        **options: Unpack[Options],
    ) -> list[Message]:
        """Return the best valid view without a model and without a store write; never raise.

        For a host whose turn must go on: what fits is as `compress` would send it, what cannot
        fit is shortened, and messages that cannot be read come back as they are. `logged` is the
        failure that the caller has logged already: it is not logged again.
        """
        return self.best(messages, logged=logged, **options).messages

    def best(
        self,
        messages: Sequence[Any],
        *,
        logged: Exception | None = None,
        **options: Unpack[Options],
    ) -> CompressResult:
        """Return `best_view` with its counts and status; never raise."""
        try:
            return self._best(self._request(messages, options, Mode.FALLBACK), logged)
        except CompressorError as error:
            logger.warning("sent as it is: %s", error)
        except Exception:
            # A mistake of ours: it must be heard of, and must not end the turn.
            logger.exception("sent as it is")
        size = 0
        with contextlib.suppress(Exception):  # what cannot be read cannot always be counted
            size = self.tokens.messages(messages)
        given: Any = list(messages) if isinstance(messages, (list, tuple)) else messages
        return CompressResult(given, "full", size, size, self._key(options)[1], None, None)

    def _best(self, request: Request, logged: Exception | None) -> CompressResult:
        """Return the view and its counts; without the ledger while that cannot be read."""
        try:
            session = self._pipeline.projector.open(request)
            self._without_ledger = False
            return self._pipeline.best(request, session)
        except LedgerError as error:
            # Once, until the ledger is there again: a turn comes every few seconds.
            is_new = not self._without_ledger and str(error) != str(logged)
            self._without_ledger = True
            level = logging.WARNING if is_new else logging.DEBUG
            logger.log(level, "without the ledger for now: %s", error)
            nothing = Session(*request.key, tip=request.key[1], parent=request.parent_id)
            return self._pipeline.best(request, nothing)

    def preview(self, messages: Sequence[Any], **options: Unpack[Options]) -> Preview:
        """Return what `compress` would keep, mask and summarize, and why; nothing is written.

        Raises:
            CompressorError: as `compress` would.
        """
        request = self._request(messages, checked(options), Mode.PREVIEW)
        projector = self._pipeline.projector
        view = projector.look(request)
        plan = projector.plan(request, view)
        return preview_of(request, view, plan, projector.texts, self.tokens)

    def context_use(self, messages: Sequence[Any], **options: Unpack[Options]) -> ContextUse:
        """Return what would fill the window if these messages were sent now, by part.

        Raises:
            CompressorError: as `compress` would.
        """
        options = checked(options)
        request = self._request(messages, options, Mode.PREVIEW)
        view = self._pipeline.projector.look(request)
        return context_use_of(request, view, self.tokens, options.get("overhead_tokens", 0))

    # -------------------------------------------------------------- transcripts

    def verbatim(
        self, messages: Sequence[Any] | None = None, *, session_id: str | None = None
    ) -> list[Message]:
        """Return the transcript of a view: every summary replaced by its originals.

        Without `messages` return the session's, as of its last compression or `save`.

        Raises:
            InvalidMessages: not a list of chat messages.
            SessionNotFound: without `messages`, and nothing of the session was ever compressed.
        """
        name = self._named(session_id)
        if messages is None:
            return self._stored(name)
        session = self.store.open(self.config.namespace, name)
        given = list(as_list(messages))
        seen = self.tokens.cache.all(given)
        pinned = pinned_segment({}, self.config, self.tokens)
        expanded = self._pipeline.projector.expanded(given, seen, session, pinned)
        return [to_plain(message) for message in (given if expanded is None else expanded)]

    def resume(
        self, session_id: str | None = None, token_budget: int | None = None
    ) -> CompressResult:
        """Return a stored session's messages in full where they fit, else their view.

        They are as of the last compression or `save`. `token_budget` None: what the model takes.

        Raises:
            SessionNotFound: nothing of that name was ever compressed in this store.
            BudgetTooSmall: what cannot be dropped exceeds `token_budget`.
            LedgerError: the store cannot be read.
        """
        session_id = self._named(session_id)
        messages = self._stored(session_id)
        size = self.tokens.messages(messages)
        if token_budget is None:
            room = budget_of({}, self.config, self.tokens).trigger
        else:
            room = whole("token_budget", token_budget)
        if size <= room:
            session = self.store.open(self.config.namespace, session_id)
            return CompressResult(messages, "full", size, size, session.tip, session.parent, None)
        return self.compress_sync(
            messages, session_id=session_id, target_tokens=token_budget, extends=False
        )

    def _stored(self, session_id: str) -> list[Message]:
        namespace = self.config.namespace
        self.store.lineage(namespace, session_id)  # opening a name that nobody has is no error
        session = self.store.open(namespace, session_id)
        if gone := sum(entry.forgotten for entry in session.entries):
            logger.warning("session %s: %d segments of it were forgotten", session_id, gone)
        return self.store.transcript(session)

    def save(self, messages: Sequence[Any], *, session_id: str | None = None) -> bool:
        """Record the transcript as it is now, for `resume` and `verbatim`; compress nothing.

        A compression does it by itself, a quiet turn does not. Returns False with no messages, and
        where another writer was faster: what is recorded stays.

        Raises:
            InvalidMessages: not a list of chat messages.
            LedgerError: the store cannot be written.
        """
        options: Options = {"session_id": self._named(session_id)}
        request = self._request(messages, options, Mode.FALLBACK)
        return self._pipeline.save(request, self._pipeline.projector.open(request))

    def recall_tools(
        self, session_id: str | None = None, *, turn_tokens: int | None = 4_000
    ) -> list[Callable[..., str]]:
        """Return the tools by which an agent searches and reads what was compressed.

        Set `recall=True` in the configuration too, so that summaries name the tools. All answers
        together take at most `turn_tokens` (None: no bound): ask for new tools at each turn.
        """
        session = self._opener(session_id)
        most = None if turn_tokens is None else whole("turn_tokens", turn_tokens)
        return recall_tools(lambda: self.store, session, self.tokens.text, turn_tokens=most)

    def read(
        self, reference: str = "", *, session_id: str | None = None, tokens: int = 2_000
    ) -> str:
        """Return what a reference names, as s2.14 or s2.14:900-940, word for word.

        "" lists the session's segments, s2 is a segment's outline. The answer takes at most
        `tokens`, and says how to read on; to another text it says how references are written.

        Raises:
            LedgerError: the store cannot be read.
        """
        if not isinstance(reference, str):
            raise ConfigError(f"reference={reference!r}: expected a text such as s2.14")
        recall = Recall(
            lambda: self.store, self._opener(session_id), self.tokens.text, turn_tokens=None
        )
        return recall.read(reference, whole("tokens", tokens))

    def _opener(self, session_id: str | None) -> Callable[[], Session]:
        name = self._named(session_id)
        return lambda: self.store.open(self.config.namespace, name)

    def _named(self, session_id: str | None) -> str:
        check_name("session_id", session_id)
        return session_id or self.session_id

    def undo(self, session_id: str | None = None) -> tuple[Segment, ...]:
        """Take the last compression back: its originals are sent again, word for word.

        Return the segments taken back; () if there are none. Called again, take back the one
        before. Nothing is deleted: the undo is a new entry of the ledger, earlier epochs and their
        forks stay. The next compression comes when the window is full, or by `force`.

        Raises:
            LedgerConflict: somebody else wrote to the session just now.
            LedgerError: the store cannot be read or written.
        """
        session = self._opener(session_id)()
        found = undoing(session.entries)
        if found is None:
            return ()
        self.store.commit(session, [(found, ())])
        return tuple(entry.segment for entry in session.entries if entry.hash in found.run)

    def save_all(self) -> int:
        """Save every session as it was last sent; return how many were recorded.

        A session that was compressed again or forgotten in part since then is left out: what was
        sent is outdated, or holds words that must not come back. Failures of the store are logged.
        """
        saved = 0
        for turn in self.sessions.last_turns():
            sent = turn.session
            try:
                options: Options = {"session_id": sent.id}
                request = self._request(turn.known, options, Mode.FALLBACK)
                session = self._pipeline.projector.open(request)
                saved += session.is_as(sent) and self._pipeline.save(request, session)
            except CompressorError as error:
                logger.warning("session %s: its last turns are not saved: %s", sent.id, error)
        return saved

    def close(self) -> None:
        """Cancel what is written in the background, save the newest transcripts, close the store.

        A store that cannot be written is logged.
        """
        self.background.close()
        self.save_all()
        self.store.close()

    # -------------------------------------------------------------- requests

    def _start(self, messages: Sequence[Any], options: Options) -> CompressResult | Planned:
        """Return the result if nothing has to be waited for, else what to carry out."""
        request = self._request(messages, options)
        return self._quiet(request) or self._pipeline.start(request)

    def _quiet(self, request: Request) -> CompressResult | None:
        """Return the result of a turn that only adds to the last one and fits; None: any other."""
        last, budget = self.sessions.of(request.key).last_turn, request.budget
        if last is None or request.force or budget.limit == budget.target:
            return None
        if not self.store.open(*request.key).is_as(last.session):
            return None
        trigger = request.budget_for(last.session).trigger
        if self.background.busy(request.key):
            # A summary is being written: the whole is sent while it fits.
            trigger = budget.limit
        elif self.config.background:
            trigger = self._pipeline.soft_mark(request, last.session)
        found = added_to(last, request, trigger, self.tokens)
        if found is None:
            return None
        turn, result = found
        if request.mode is not Mode.FALLBACK:
            self.sessions.of(request.key).last_turn = turn
        return result

    def _request(
        self, messages: Sequence[Any], options: Options, mode: Mode | None = None
    ) -> Request:
        return request_of(
            messages,
            options,
            self.config,
            self.tokens,
            session_id=self.session_id,
            has_model=self._pipeline.writer.summarizer is not None,
            mode=mode,
        )

    def _billed(self, result: CompressResult, options: Options) -> CompressResult:
        """Return the result with what the background has cost since, and the recall tools."""
        if result.segments or result.masked or self.config.recall:
            tools = tuple(self.recall_tools(self._key(options)[1]))
            result = replace(result, recall_tools=tools)
        if not options.get("extends", True):
            return result
        owed = self.sessions.take_owed(self._key(options))
        return replace(result, usage=result.usage + owed)

    def _key(self, options: Options) -> Key:
        return key_of(options, self.config, self.session_id)


def _check(config: Any, store: Any, tokens: Any, *functions: Any) -> None:
    """Raise a `ConfigError` for what no compressor can be made of."""
    if config is not None and not isinstance(config, CompressorConfig):
        wanted = "a CompressorConfig; CompressorConfig.from_mapping takes a dictionary"
        raise ConfigError(f"config: a {type(config).__name__}; expected {wanted}")
    if store is not None and not hasattr(store, "open"):
        wanted = "a store; a URL belongs in CompressorConfig(store_url=...)"
        raise ConfigError(f"store: a {type(store).__name__}; expected {wanted}")
    if tokens is not None and not hasattr(tokens, "messages"):
        raise ConfigError(f"tokens: a {type(tokens).__name__}; expected a TokenCounter")
    wrong = next((given for given in functions if given is not None and not callable(given)), None)
    if wrong is not None:
        raise ConfigError(f"a listener or hook is a {type(wrong).__name__}; expected a function")


def default_store(config: CompressorConfig) -> Store:
    """Return the store at `store_url`; memory without one."""
    if config.store_url is None:
        return MemoryStore()
    from ..ledger.sql.store import open_store  # loads SQLAlchemy: only when asked

    masks = config.redact_secrets is not False
    return open_store(config.store_url, key=config.store_key, mask_secrets=masks)


def _emit(telemetry: Listener, listener: Listener | None, event: Event) -> None:
    telemetry(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        logger.exception("a listener failed at %s", event.name)
