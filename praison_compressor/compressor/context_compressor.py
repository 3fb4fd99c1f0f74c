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

from ..config import CompressorConfig, Event, Hook, Listener, whole
from ..errors import CompressorError, ConfigError, LedgerError
from ..facts import Domain, RuleReader
from ..ledger.memory import MemoryStore
from ..ledger.recall import Recall
from ..ledger.segments import Segment, Session, Store, undoing
from ..ledger.tools import recall_tools
from ..messages import Message, as_list, to_plain
from ..summaries.protocol import as_summarizer
from ..summaries.threads import run
from ..tokens.counter import TokenCounter
from .call import CompressCall, Options, Reading, budget_of, check_name, checked, config_of
from .pipeline import Pipeline, Planned
from .preview import ContextUse, Preview, context_use_of, preview_of
from .result import CompressResult, Origin
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
            functools.partial(_tell, telemetry or Telemetry(), on_event),
            before_compression,
        )
        self.background = self._pipeline.background
        """What is being written off the request path."""
        self._without_ledger = False

    # -------------------------------------------------------------- public

    async def compress(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """The view of `messages`: itself while it fits, else with its middle summarized.

        An option left out or None means the configured value. `target_tokens` asks for a view of at
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
        options = checked(options)
        started = await asyncio.to_thread(self._start, messages, options)
        if not isinstance(started, CompressResult):
            started = await self._pipeline.compress(started)
        return self._billed(started, options)

    def compress_sync(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """`compress` from anywhere, also from inside a running event loop."""
        options = checked(options)
        started = self._start(messages, options)
        if not isinstance(started, CompressResult):
            started = run(self._pipeline.compress(started))
        return self._billed(started, options)

    def best_view(
        self, messages: Sequence[Any], *, told: Exception | None = None, **options: Unpack[Options]
    ) -> list[Message]:
        """The best valid view that needs no model and no store write; never raises.

        For a host whose turn must go on: what fits is as `compress` would send it, what cannot
        fit is shortened, and messages that cannot be read come back as they are. `told` is the
        failure that the caller has logged already: the log does not say it again.
        """
        return self.best(messages, told=told, **options).messages

    def best(
        self, messages: Sequence[Any], *, told: Exception | None = None, **options: Unpack[Options]
    ) -> CompressResult:
        """`best_view` with its counts and status; never raises."""
        try:
            return self._best(replace(self._call(messages, options), extends=False), told)
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

    def _best(self, call: CompressCall, told: Exception | None) -> CompressResult:
        """The view and its counts; without the ledger while that cannot be read."""
        try:
            session = self._pipeline.projector.open(call)
            self._without_ledger = False
            return self._pipeline.best(call, session)
        except LedgerError as error:
            # Once, until the ledger is there again: a turn comes every few seconds.
            is_news = not self._without_ledger and str(error) != str(told)
            self._without_ledger = True
            level = logging.WARNING if is_news else logging.DEBUG
            logger.log(level, "without the ledger for now: %s", error)
            nothing = Session(*call.key, tip=call.key[1], parent=call.parent_id)
            return self._pipeline.best(call, nothing)

    def preview(self, messages: Sequence[Any], **options: Unpack[Options]) -> Preview:
        """What `compress` would keep, mask and summarize, and why; nothing is asked or written.

        Raises:
            CompressorError: as `compress` would.
        """
        options = checked(options)
        call = replace(self._call(messages, options), extends=False)
        look = self._pipeline.projector.look(call)
        plan = self._pipeline.projector.plan(look)
        if plan is not None and plan.excerpts:
            look = self._pipeline.drafted(look, plan)[0]
            plan = self._pipeline.projector.plan(look)
        if plan is not None and not call.pays:
            # What a static text leaves over goes to the tail: how much, its writing alone tells.
            plan = self._pipeline.writing.static(look, plan, recorded=True).plan
        lines = self._pipeline.projector.masks(look) if plan and plan.masks else {}
        return preview_of(look, plan, lines, self.tokens)

    def context_use(self, messages: Sequence[Any], **options: Unpack[Options]) -> ContextUse:
        """What would fill the window if these messages were sent now, by part, and the largest of
        them; nothing is asked or written.

        Raises:
            CompressorError: as `compress` would.
        """
        options = checked(options)
        look = self._pipeline.projector.look(self._call(messages, options))
        return context_use_of(look, self.tokens, options.get("overhead_tokens", 0))

    def verbatim(
        self, messages: Sequence[Any] | None = None, *, session_id: str | None = None
    ) -> list[Message]:
        """The transcript that a view stands for: every summary replaced by its originals.

        Without `messages` the session's, whole, as the store has it: as of its last compression,
        or of the last `save`.

        Raises:
            InvalidMessages: not a list of chat messages.
            SessionNotFound: without `messages`, and the store has no such session.
        """
        name = self._named(session_id)
        if messages is None:
            return self._stored(name)
        session = self.store.open(self.config.namespace, name)
        given = list(as_list(messages))
        seen = self.tokens.cache.all(given)
        expanded = self._pipeline.projector.expanded(given, seen, session)
        return [to_plain(message) for message in (given if expanded is None else expanded)]

    def resume(
        self, session_id: str | None = None, token_budget: int | None = None
    ) -> CompressResult:
        """A stored session's messages, to go on from: in full where they fit, else its view.

        As of its last compression or `save`. `token_budget`: None for what the model takes.

        Raises:
            SessionNotFound: the store has no such session.
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
            origin = Origin(messages, domain=Domain.of(self.config))
            return CompressResult(
                messages, "full", size, size, session.tip, session.parent, None, origin=origin
            )
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
        """Record the transcript as it is now, for `resume` and `verbatim`; compresses nothing.

        A compression does it by itself, a quiet turn does not. Returns False with no messages, and
        where another writer was faster: what is recorded stays.

        Raises:
            InvalidMessages: not a list of chat messages.
            LedgerError: the store cannot be written.
        """
        call = replace(self._call(messages, {"session_id": self._named(session_id)}), extends=False)
        return self._pipeline.save(call, self._pipeline.projector.open(call))

    def recall_tools(
        self, session_id: str | None = None, *, turn_tokens: int | None = 4_000
    ) -> list[Callable[..., str]]:
        """The tools by which an agent searches and reads what was compressed in its session.

        Set `recall=True` in the configuration too, so that summaries name them. Together their
        answers are of at most `turn_tokens` (None: no bound); ask for new ones at each turn, as
        `CompressResult.recall_tools` has them.
        """
        session = self._opener(session_id)
        most = None if turn_tokens is None else whole("turn_tokens", turn_tokens)
        return recall_tools(lambda: self.store, session, self.tokens.text, turn_tokens=most)

    def read(
        self, reference: str = "", *, session_id: str | None = None, tokens: int = 2_000
    ) -> str:
        """What a reference of a summary names, as s2.14 or s2.14:900-940, word for word.

        "" lists the session's segments, s2 is a segment's outline. The answer is of at most
        `tokens`, and says how to go on; what is no reference is answered with how they are written.

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
        """Take the last compression back: what it stood for is sent again, word for word.

        Returns what stood for it; () where nothing is to be taken back. Called again, it takes back
        the compression before. A new entry of the ledger: nothing is deleted, epochs before it and
        their forks stay as they were. Until the next compression none is made by itself while the
        window takes the whole; `force` makes one.

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
        """`save` for every session that was sent last, as it was sent; how many were recorded.

        None that was compressed again or forgotten in part since then: what was sent is outdated,
        or holds words that must not come back. A store that cannot be written is logged.
        """
        saved = 0
        for turn in self.sessions.last_turns():
            sent = turn.session
            try:
                options: Options = {"session_id": sent.id}
                call = replace(self._call(turn.known, options), extends=False)
                session = self._pipeline.projector.open(call)
                saved += session.is_as(sent) and self._pipeline.save(call, session)
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

    # -------------------------------------------------------------- reading

    def _start(self, messages: Sequence[Any], options: Options) -> CompressResult | Planned:
        """The result, where nothing has to be waited for; else what to carry out."""
        quiet = self._quiet(messages, options)
        if quiet is not None:
            return quiet
        return self._pipeline.start(self._call(messages, options))

    def _quiet(self, messages: Sequence[Any], options: Options) -> CompressResult | None:
        """The result of a turn that only adds to the last one, and still fits; None: any other."""
        if options.get("force") or options.get("target_tokens") is not None:
            return None
        key = self._key(options)
        last = self.sessions.of(key).last_turn
        budget = budget_of(options, config_of(options, self.config), self.tokens)
        if last is None or not self.store.open(*key).is_as(last.session):
            return None
        if self.background.busy(key) or last.session.was_undone:
            # What is too much is being written, or was: the whole is sent while it fits.
            budget = replace(budget, trigger=budget.limit)
        elif self.config.background:
            budget = replace(budget, trigger=int(budget.trigger * self.config.soft_ratio))
        found = added_to(last, messages, budget, self.tokens)
        if found is None:
            return None
        turn, result = found
        if options.get("extends", True):
            self.sessions.of(key).last_turn = turn
        return result

    def _call(self, messages: Sequence[Any], options: Options) -> CompressCall:
        """Parse: the call that these messages and keywords make."""
        config, key = config_of(options, self.config), self._key(options)
        model, tools = options.get("auxiliary_model"), options.get("tools")
        extends = options.get("extends", True)
        has_model = self._pipeline.writer.summarizer is not None
        return CompressCall(
            reading=Reading.of(list(as_list(messages)), self.tokens.cache),
            config=config,
            budget=budget_of(options, config, self.tokens),
            key=key,
            parent_id=options.get("parent_session_id"),
            model=model,
            force=options.get("force", False),
            extends=extends,
            pays=has_model or bool(model or config.auxiliary_model),
            tools=None if tools is None else tuple(tools),
            rules=self.sessions.of(key).rules if extends else RuleReader(),
        )

    def _billed(self, result: CompressResult, options: Options) -> CompressResult:
        """The result with what the background has cost since the one before, and the tools that
        reach what the view leaves out."""
        if result.segments or result.masked or self.config.recall:
            tools = tuple(self.recall_tools(self._key(options)[1]))
            result = replace(result, recall_tools=tools)
        if not options.get("extends", True):
            return result
        owed = self.sessions.take_owed(self._key(options))
        return replace(result, usage=result.usage + owed)

    def _key(self, options: Options) -> tuple[str, str]:
        return self.config.namespace, options.get("session_id") or self.session_id


def _check(config: Any, store: Any, tokens: Any, *functions: Any) -> None:
    """Pass what a compressor can be made of; else raise a `ConfigError`."""
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
    """The store at `store_url`; memory where there is none."""
    if config.store_url is None:
        return MemoryStore()
    from ..ledger.sql.store import open_store  # loads SQLAlchemy: only when asked

    return open_store(config.store_url, key=config.store_key, mask_secrets=config.redact_archive)


def _tell(telemetry: Listener, listener: Listener | None, event: Event) -> None:
    telemetry(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        logger.exception("a listener failed at %s", event.name)
