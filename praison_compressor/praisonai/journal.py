"""Keep all messages of a conversation's requests, in memory and in store.

From these messages `messages.dropped_steps` restores the steps that the host dropped.

New messages are written to the store before the request is sent: a killed process loses no result
that the model has read.
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
    """Restored steps of earlier turns in one request."""

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
    """Count restored steps and their tokens, in the `view` if given."""
    if view is not None:
        sent = {id(message) for message in view}
        restored = [message for message in restored if id(message) in sent]
    return KeptSteps(sum(map(makes_calls, restored)), sum(map(compressor.tokens.message, restored)))


class Journal:
    """All messages of one conversation's requests; thread-safe."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._lock = renew_after_fork(threading.RLock())
        self._carried: CarriedHistory | None = None
        """None until the store is read."""
        self._system: list[Message] = []
        self._stored_digests: tuple[str, ...] = ()
        """Digests of the messages in the store."""
        self._erasures = -1
        """`Session.erasures` at the last read or write of the store; -1 before."""
        self._failure = ""
        """The store's failure, which is logged once; "" while the store works."""
        self.tokens = 0
        """Tokens of all messages when they were last recorded."""

    def complete(
        self,
        messages: Sequence[Message],
        compressor: ContextCompressor,
        turn: Hashable,
        history_limit: int,
    ) -> CompletedRequest:
        """Return a request with the messages that the host dropped; record it."""
        if not compressor.config.keep_tool_steps:
            return _unchanged(messages)
        session = self._session(compressor)
        cache = compressor.tokens.cache
        model = compressor.config.model
        with self._lock:
            carried = self._load(messages, compressor, session)
            result = complete_request(
                carried, messages, cache, turn=turn, bound=history_limit, model=model
            )
            self._system = list(messages[: leading_count(messages)])
            self._carried = result.carried
            self._write(compressor, session)
        return result

    def peek(self, messages: Sequence[Message], compressor: ContextCompressor) -> CompletedRequest:
        """Return messages with the messages that the host dropped; record nothing."""
        if not compressor.config.keep_tool_steps:
            return _unchanged(messages)
        session = self._session(compressor)
        with self._lock:
            carried = self._load(messages, compressor, session)
        return complete_request(carried, messages, compressor.tokens.cache)

    @property
    def transcript(self) -> Sequence[Message]:
        """All messages, after the last request's leading system messages."""
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
            return bool(self._stored_digests) and self._stored_digests == _content_digests(
                self._carried.record
            )

    # ------------------------------------------------------------ the store

    def _session(self, compressor: ContextCompressor) -> Session | None:
        try:
            return compressor.store.open(compressor.config.namespace, self._session_id)
        except LedgerError as error:
            self._log_failure(error)
            return None

    def _load(
        self, messages: Sequence[Message], compressor: ContextCompressor, session: Session | None
    ) -> CarriedHistory:
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
        self._stored_digests, self._erasures = _content_digests(loaded.cached), session.erasures
        return loaded

    def _write(self, compressor: ContextCompressor, session: Session | None) -> None:
        store = compressor.store
        if session is None or self._carried is None or not isinstance(store, DurableStore):
            return
        record = self._carried.record
        digests = _content_digests(record)
        messages = [message.plain for message in record]
        common = common_length(self._stored_digests, digests)
        if common == len(digests) == len(self._stored_digests):
            return
        try:
            added = messages[common:]
            is_written = bool(self._stored_digests) and store.extend_transcript(
                session, common, added
            )
            if not is_written:
                transcript = [*self._system, *messages]
                is_written = compressor.save(transcript, session_id=self._session_id)
        except CompressorError as error:
            self._log_failure(error)
            return
        self._failure = ""
        if is_written:
            self._stored_digests, self._erasures = digests, session.erasures

    def has_logged(self, error: Exception) -> bool:
        """Return whether this error was logged as the store's failure."""
        # Compare texts, because a store that is down raises a new error each time.
        return self._failure != "" and self._failure == str(error)

    def _log_failure(self, error: CompressorError) -> None:
        level = logging.DEBUG if self._failure else logging.WARNING
        self._failure = str(error)
        logger.log(level, "session %s: not recorded for now: %s", self._session_id, error)


def _unchanged(messages: Sequence[Message]) -> CompletedRequest:
    return CompletedRequest(list(messages), CarriedHistory(), [], [])


def _content_digests(cached: Sequence[CachedMessage]) -> tuple[str, ...]:
    # Whole messages are digested: a call read from an answer may have keys that the host omits.
    return tuple(message.content_digest for message in cached)


def _restore_secrets(
    transcript: Sequence[Message], messages: Sequence[Message], namespace: str
) -> list[Message]:
    """Return a stored transcript with the host's originals of redacted messages."""
    redacted = Redactor(namespace).redact(messages)[0]
    pairs = zip(messages, redacted, strict=True)
    originals = {digest(hidden): message for message, hidden in pairs if hidden != message}
    return [originals.get(digest(m), m) for m in transcript] if originals else [*transcript]
