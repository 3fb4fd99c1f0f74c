"""Restore dropped tool steps to each request, and record the request.

The host's own lists are not changed. Each request's new messages are written to the store before
the request is sent: a killed process loses no result that the model has read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ..compressor.context_compressor import ContextCompressor
from ..concurrency import renew_after_fork
from ..errors import CompressorError, LedgerError
from ..ledger.segments import Session
from ..ledger.stores import DurableStore, redacts_secrets
from ..messages import Message, digest, dropped_steps, leading_count
from ..messages.digests import CachedMessage
from ..messages.display import pluralize
from ..messages.dropped_steps import (
    CarriedHistory,
    CompletedRequest,
    complete_request,
    history_from,
)
from ..messages.secrets import Redactor
from ..messages.shapes import makes_calls
from ..messages.transcript import common_length

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptSteps:
    """Steps of earlier turns that the host dropped, in one request."""

    steps: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        steps = pluralize(self.steps, "step")
        return f"kept from earlier turns: {steps}, {pluralize(self.tokens, 'token')}"


def count_kept_steps(
    restored: Sequence[Message],
    compressor: ContextCompressor,
    view: Sequence[Message] | None = None,
) -> KeptSteps:
    """Count the steps and tokens of the restored messages.

    With a `view`, count only the messages that the view has verbatim.
    """
    if view is not None:
        sent = {id(message) for message in view}
        restored = [message for message in restored if id(message) in sent]
    return KeptSteps(sum(map(makes_calls, restored)), sum(map(compressor.tokens.message, restored)))


class Journal:
    """All messages that the requests of one conversation have had; thread-safe."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._lock = renew_after_fork(threading.RLock())
        self._carried: CarriedHistory | None = None
        """None until the store is read."""
        self._system: list[Message] = []
        self._recorded: tuple[str, ...] = ()
        """Digests of the messages that the store has."""
        self._erasures = -1
        """`Session.erasures` when the store was last read or written; -1 before."""
        self._failure = ""
        """Text of the store's failure, which is logged once; "" while the store works."""
        self.tokens = 0
        """Tokens of all messages when they were last recorded."""

    def complete(
        self, messages: Sequence[Message], compressor: ContextCompressor, turn: Hashable, limit: int
    ) -> CompletedRequest:
        """Return a request with the messages the host left out; record it.

        `limit`: most messages in the host's list; 0: unknown.
        """
        if not compressor.config.keep_tool_steps:
            return _unchanged(messages)
        session = self._session(compressor)
        cache = compressor.tokens.cache
        model = compressor.config.model
        with self._lock:
            carried = self._load(messages, compressor, session)
            result = complete_request(carried, messages, cache, turn=turn, bound=limit, model=model)
            self._system = list(messages[: leading_count(messages)])
            self._carried = result.carried
            self._write(compressor, session)
        return result

    def peek(self, messages: Sequence[Message], compressor: ContextCompressor) -> CompletedRequest:
        """Return the messages with those that the host left out; record nothing."""
        if not compressor.config.keep_tool_steps:
            return _unchanged(messages)
        session = self._session(compressor)
        with self._lock:
            carried = self._load(messages, compressor, session)
        return complete_request(carried, messages, compressor.tokens.cache)

    @property
    def transcript(self) -> Sequence[Message]:
        """Return all messages, the leading system messages of the last request first."""
        carried = self._carried
        return () if carried is None else (*self._system, *carried.messages)

    # ------------------------------------------------------------ the running turn

    def add_calls(self, message: Message, compressor: ContextCompressor) -> None:
        """Add an answer's calls: the turn may stop before their results."""
        with self._lock:
            if self._carried is not None:
                self._carried = dropped_steps.add_call(
                    self._carried, compressor.tokens.cache(message)
                )
        self.record(compressor)

    def end_turn(
        self, history: Sequence[Message], compressor: ContextCompressor, *, has_failed: bool
    ) -> None:
        """Add the turn's answer, or drop the failed turn's work."""
        with self._lock:
            if self._carried is not None and has_failed:
                self._carried = dropped_steps.drop_work(self._carried)
            elif self._carried is not None:
                cache = compressor.tokens.cache
                self._carried = dropped_steps.add_answer(self._carried, history, cache)

    def record(self, compressor: ContextCompressor) -> bool:
        """Write new messages; return whether the store has all; never raise."""
        if self._carried is None:
            return False
        session = self._session(compressor)
        with self._lock:
            self.tokens = sum(compressor.tokens.each(self._carried.cached))
            self._write(compressor, session)
            return bool(self._recorded) and self._recorded == _content_digests(self._carried.record)

    # ------------------------------------------------------------ the store

    def _session(self, compressor: ContextCompressor) -> Session | None:
        """Return the ledger's session; None while the store is down."""
        try:
            return compressor.store.open(compressor.config.namespace, self._session_id)
        except LedgerError as error:
            self._log_failure(error)
            return None

    def _load(
        self, messages: Sequence[Message], compressor: ContextCompressor, session: Session | None
    ) -> CarriedHistory:
        """Return the conversation's exchanges, from memory or from the store."""
        is_stale = session is not None and self._erasures not in (-1, session.erasures)
        if self._carried is not None and not is_stale:
            return self._carried
        if session is None:
            return CarriedHistory()
        try:
            transcript = compressor.store.transcript(session)
        except LedgerError as error:
            self._log_failure(error)
            return CarriedHistory()
        if redacts_secrets(compressor.store):
            transcript = _restore_secrets(transcript, messages, session.namespace)
        loaded = history_from(transcript, compressor.tokens.cache)
        self._recorded, self._erasures = _content_digests(loaded.cached), session.erasures
        return loaded

    def _write(self, compressor: ContextCompressor, session: Session | None) -> None:
        """Write the messages that the store lacks; log its failure."""
        store = compressor.store
        if session is None or self._carried is None or not isinstance(store, DurableStore):
            return
        record = self._carried.record
        digests = _content_digests(record)
        messages = [message.plain for message in record]
        common = common_length(self._recorded, digests)
        if common == len(digests) == len(self._recorded):
            return
        try:
            added = messages[common:]
            is_written = bool(self._recorded) and store.extend_transcript(session, common, added)
            if not is_written:
                transcript = [*self._system, *messages]
                is_written = compressor.save(transcript, session_id=self._session_id)
        except CompressorError as error:
            self._log_failure(error)
            return
        self._failure = ""
        if is_written:
            self._recorded, self._erasures = digests, session.erasures

    def has_logged(self, error: Exception) -> bool:
        """Return whether this error was logged as the store's failure."""
        # Texts are compared, because a store that is down raises a new error each time. A kept
        # error would also keep its frames.
        return self._failure != "" and self._failure == str(error)

    def _log_failure(self, error: CompressorError) -> None:
        level = logging.DEBUG if self._failure else logging.WARNING
        self._failure = str(error)
        logger.log(level, "session %s: not recorded for now: %s", self._session_id, error)


def _unchanged(messages: Sequence[Message]) -> CompletedRequest:
    return CompletedRequest(list(messages), CarriedHistory(), [], [])


def _content_digests(cached: Sequence[CachedMessage]) -> tuple[str, ...]:
    # Digests of whole messages: a call read from an answer may have keys that the host omits.
    return tuple(message.content_digest for message in cached)


def _restore_secrets(
    transcript: Sequence[Message], messages: Sequence[Message], namespace: str
) -> list[Message]:
    """Return a stored transcript, its redacted messages replaced by the host's."""
    redacted = Redactor(namespace).redact(messages)[0]
    pairs = zip(messages, redacted, strict=True)
    originals = {digest(hidden): message for message, hidden in pairs if hidden != message}
    # Without redacted messages nothing is digested.
    return [originals.get(digest(m), m) for m in transcript] if originals else [*transcript]
