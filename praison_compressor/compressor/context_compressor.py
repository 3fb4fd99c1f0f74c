"""`ContextCompressor`: compress transcripts, read originals, undo."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..config import CompressorConfig
from ..errors import CompressorError
from ..events import Hook, Listener
from ..ledger.segments import Segment
from ..ledger.stores import Store, redacts_secrets
from ..messages import Message
from ..recall.answers import TURN_TOKENS
from ..summaries.protocol import as_summarizer
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from .background import Background
from .billing import Billing
from .bills import Bill
from .commit import Committer
from .pipeline import Pipeline
from .plan_texts import PlanTexts
from .preview import ContextUse, Preview
from .projection import Projector
from .request import Options, RequestReader, check_argument, check_constructor
from .result import CompressResult
from .session_states import SessionStates
from .stored_sessions import StoredSessions, default_store
from .telemetry import Telemetry, emit

# `typing.get_type_hints` evaluates the annotations, so the name exists at run time too.
if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack
else:

    class Unpack:
        """Evaluate to `Options` itself: Python 3.10 has no `typing.Unpack`."""

        def __class_getitem__(cls, options: Any) -> Any:
            return options


logger = logging.getLogger(__name__)


class ContextCompressor:
    """Keep many conversations within their model's window; thread-safe.

    Calls without a `session_id` share one random session: give each conversation an id.

    Args:
        config: the options. None: the defaults.
        summarizer: the model that writes summaries. None: `auxiliary_model`, else no model.
        store: the ledger. None: the store at `config.store_url`, else memory.
        tokens: counts tokens. None: a `TokenCounter` for `config.model`.
        on_event: called with each `Event`.
        telemetry: called with each `Event`. None: `Telemetry()` with the global providers.
        before_compression: called in a thread, or async, with the `Event` "started" of each
            compression. False refuses the compression, but a view above the window is still
            shortened. A text instructs the summarizer. None continues. An exception is logged and
            refuses nothing.
        shares_sessions_with: a compressor whose memory of sessions this compressor uses too.
        clock: returns seconds since 1970. None: `time.time`.
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
        shares_sessions_with: ContextCompressor | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        check_constructor(
            config,
            store,
            tokens,
            on_event=on_event,
            telemetry=telemetry,
            before_compression=before_compression,
            clock=clock,
        )
        shares = shares_sessions_with
        is_compressor = isinstance(shares, ContextCompressor)
        check_argument("shares_sessions_with", shares, is_compressor, "a ContextCompressor")
        self.config = (config or CompressorConfig()).with_environment()
        self.tokens = tokens or TokenCounter(self.config.model)
        self.store = store if store is not None else default_store(self.config)
        self.session_id = f"session-{uuid.uuid4().hex}"
        self._sessions: SessionStates = SessionStates() if shares is None else shares._sessions
        self._background = Background()
        summarizer = as_summarizer(summarizer)
        self._requests = RequestReader(self.config, self.tokens, self.session_id, summarizer)
        projector = Projector(self.config, self.store, self.tokens)
        self._stored = StoredSessions(self.store, self._requests, projector)
        self._billing = Billing(self.store, self._requests, self._sessions, clock or time.time)
        report = functools.partial(emit, telemetry or Telemetry(), on_event)
        on_disk = redacts_secrets(self.store)
        writer = SummaryWriter(self.config, summarizer, self.tokens, report, on_disk=on_disk)
        self._pipeline = self._wire(projector, writer, before_compression)

    def _wire(self, projector: Projector, writer: SummaryWriter, hook: Hook | None) -> Pipeline:
        plan_texts = PlanTexts(writer, projector.renderer, self.tokens)
        committer = Committer(
            store=self.store,
            tokens=self.tokens,
            sessions=self._sessions,
            projector=projector,
            plan_texts=plan_texts,
            emit=writer.emit,
            hook=hook,
        )
        return Pipeline(
            tokens=self.tokens,
            sessions=self._sessions,
            projector=projector,
            stored=self._stored,
            plan_texts=plan_texts,
            committer=committer,
            background=self._background,
            billing=self._billing,
        )

    # -------------------------------------------------------------- views

    async def compress(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """Return the messages if they fit, else with a summarized middle.

        Other threads do the work. A first request of 770,000 tokens still stops the event loop for
        up to 0.2 s at a time. `messages` is not changed.

        Args:
            messages: the whole transcript, or a view of it.
            options: None means the configured value.
                session_id: stable or epoch id of the session; default: this object's `session_id`.
                protect_last_n_tokens: newest tokens kept verbatim where they fit.
                summary_target_tokens: tokens of prose asked of the model for a summary.
                auxiliary_model: the model that writes this call's summaries.
                target_tokens: upper bound of the view's tokens; replaces window, reserve, trigger,
                    target.
                force: compress below the trigger too; ask models that rest after a failure too.
                overhead_tokens: tokens of the request beside the messages (tool schemas).
                parent_session_id: makes a new session a fork of that one.
                extends: False reads the ledger and never writes to it.
                pinned: texts added to the configured texts.
                keep: messages that no summary or mask replaces from now on, by reference (s2.14, as
                    views and `preview` show it) or index in `messages`.
                since, until: the first message of a range to compress, and the first message after
                    the range.

        Raises:
            ConfigError: an option has a value that cannot work.
            InvalidMessages: not a list of chat messages.
            BudgetTooSmall: what cannot be dropped exceeds the window or `target_tokens`.
            LedgerError: the store cannot be read or written.
        """
        request = await asyncio.to_thread(self._requests.read, messages, options)
        return await self._pipeline.compress(request)

    def compress_sync(self, messages: Sequence[Any], **options: Unpack[Options]) -> CompressResult:
        """Call `compress` from anywhere, also from inside a running event loop."""
        return self._pipeline.compress_sync(self._requests.read(messages, options))

    def fallback_view(
        self,
        messages: Sequence[Any],
        *,
        logged: Exception | None = None,
        **options: Unpack[Options],
    ) -> CompressResult:
        """Return the best valid view without a model or a write; never raise.

        Messages that cannot fit are shortened. Unreadable messages come back unchanged.

        Args:
            logged: a failure that the caller logged; it is not logged again.
        """
        try:
            request = self._requests.read(messages, options, "read only")
            return self._pipeline.fallback_view(request, logged)
        except CompressorError as error:
            logger.warning("sent as it is: %s", error)
        except Exception:
            # A bug of ours must show in the log and must not end the turn.
            logger.exception("sent as it is")
        size = 0
        with contextlib.suppress(Exception):  # unreadable messages may be uncountable too
            size = self.tokens.messages(messages)
        unread: Any = list(messages) if isinstance(messages, (list, tuple)) else messages
        asked = options.get("session_id")
        name = asked if isinstance(asked, str) and asked else self.session_id
        return CompressResult(unread, "full", size, size, name, None, None)

    def preview(
        self, messages: Sequence[Any], *, write: bool = False, **options: Unpack[Options]
    ) -> Preview:
        """Return what `compress` would keep, mask and summarize; record nothing.

        The next `compress` of the same transcript and options commits exactly what the preview
        shows. That call may omit `keep`, `since` and `until`. With `write` a model writes the
        summaries now.

        Raises:
            CompressorError: as `compress` would.
        """
        request = self._requests.read(messages, options, "read only")
        return self._pipeline.preview(request, write=write)

    def context_use(self, messages: Sequence[Any], **options: Unpack[Options]) -> ContextUse:
        """Return the tokens of each part of these messages' window.

        Raises:
            CompressorError: as `compress` would.
        """
        return self._pipeline.context_use(self._requests.read(messages, options, "read only"))

    def summarize_if_cold(
        self, messages: Sequence[Any] | None = None, **options: Unpack[Options]
    ) -> bool:
        """Begin a summary if the cache is cold; return whether it began.

        Call this from an application's idle loop. In each silence at most one summary begins, above
        `idle_trigger_ratio` of the trigger. Without `messages` the session's last transcript is
        read.

        Raises:
            CompressorError: as `compress` would.
        """
        request = self._requests.read(messages or (), options, "background")
        return self._pipeline.summarize_if_cold(request)

    def record_usage(self, answer: Any, *, session_id: str | None = None) -> Bill:
        """Add the last request's usage to the session's bill; return the bill.

        `answer` is a response, or its usage, of OpenAI's, Anthropic's or litellm's client, or a
        dictionary of the same shape. None or an answer without a usage, as most pieces of a
        stream, leaves the bill unchanged. `close` writes the bill to the store; so does every call
        after 30 seconds, or after 10 % more requests.

        Raises:
            ConfigError: `answer` is neither an answer nor a usage nor None.
        """
        return self._billing.record(answer, session_id)

    def bill(self, session_id: str | None = None) -> Bill:
        """Return what the session has cost, in other processes too."""
        return self._billing.bill(session_id)

    def add_to_bill(self, bill: Bill, *, session_id: str | None = None) -> None:
        """Add a cost to the session's bill; `save_bill` writes the bill."""
        self._billing.account(session_id).add(bill)

    def save_bill(self, session_id: str | None = None) -> None:
        """Write the session's bill to the store, as often as `record_usage` does."""
        self._billing.account(session_id).save(self.store)

    def save_bills(self) -> None:
        """Write the bills of all sessions to the store."""
        self._billing.save_all()

    # -------------------------------------------------------------- transcripts

    def verbatim(
        self, messages: Sequence[Any] | None = None, *, session_id: str | None = None
    ) -> list[Message]:
        """Return a view's messages with each summary replaced by its originals.

        Without `messages` return the session's transcript of its last compression or `save`.

        Raises:
            InvalidMessages: not a list of chat messages.
            SessionNotFound: without `messages`, and the store has no such session.
        """
        if messages is None:
            return self._stored.transcript(session_id)
        return self._stored.verbatim(messages, session_id)

    def resume(
        self, session_id: str | None = None, target_tokens: int | None = None
    ) -> CompressResult:
        """Return a stored session's messages if they fit, else their view.

        The messages are those of the last compression or `save`. The messages fit if they have at
        most `target_tokens` (None: the trigger).

        Raises:
            SessionNotFound: the store has no such session.
            BudgetTooSmall: what cannot be dropped exceeds `target_tokens`.
            LedgerError: the store cannot be read.
        """
        messages = self._stored.transcript(session_id)
        options: Options = {"session_id": session_id, "target_tokens": target_tokens}
        request = self._requests.read(messages, options, "read only")
        wanted = request.budget.trigger if target_tokens is None else target_tokens
        if self.tokens.messages(messages) <= wanted:
            return self._pipeline.verbatim_result(request)
        return self._pipeline.compress_sync(request)

    def save(self, messages: Sequence[Any], *, session_id: str | None = None) -> bool:
        """Record the transcript for `resume` and `verbatim`; compress nothing.

        Return False without messages, or if another writer was faster.

        Raises:
            InvalidMessages: not a list of chat messages.
            LedgerError: the store cannot be written.
        """
        return self._stored.save(messages, session_id)

    def recall_tools(
        self, session_id: str | None = None, *, turn_tokens: int | None = TURN_TOKENS
    ) -> tuple[Callable[..., str], ...]:
        """Return two tools by which an agent searches and reads the archive.

        All answers of one pair take at most `turn_tokens` (None: no bound), so make a new pair for
        each turn. With `recall=True` in the configuration, summaries name the tools.

        Raises:
            ConfigError: `session_id` or `turn_tokens` cannot work.
        """
        return self._stored.recall_tools(session_id, turn_tokens)

    def read(
        self, reference: str = "", *, session_id: str | None = None, tokens: int = 2_000
    ) -> str:
        """Return the messages of a reference (s2.14, s2.14:900-940) word for word.

        "" lists the session's segments, "s2" returns a segment's outline. Any other text is
        answered with the syntax of references. The answer takes at most `tokens` (100 or more) and
        names the messages that it leaves out.

        Raises:
            ConfigError: `reference` is no text, or `tokens` cannot work.
            LedgerError: the store cannot be read.
        """
        return self._stored.read(reference, session_id, tokens)

    def undo(self, session_id: str | None = None) -> tuple[Segment, ...]:
        """Undo the newest compression; return its segments, () without one.

        The next view has the originals word for word, until the window is full or `force` is given.
        If the same compression comes later, it reuses the undone text. A second call undoes the
        previous compression.

        Raises:
            LedgerConflict: another writer committed to the session meanwhile.
            LedgerError: the store cannot be read or written.
        """
        return self._stored.undo(session_id)

    def save_transcripts(self) -> int:
        """Save the last transcript of every session; return how many were recorded.

        A session that was compressed or partly forgotten after its last transcript is skipped.
        Failures of the store are logged.
        """
        return self._stored.save_turns(s.last_turn for s in self._sessions.states() if s.last_turn)

    def wait_for_summaries(self, seconds: float | None = None) -> bool:
        """Wait for summaries in the background; return False after `seconds`."""
        return self._background.wait(seconds)

    def close(self) -> None:
        """Cancel the background's work, save the newest transcripts, close the store.

        A failure of the store is logged.
        """
        self._background.close()
        self.save_transcripts()
        self._billing.save_all()
        self.store.close()
