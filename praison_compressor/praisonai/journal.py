"""Complete each request with what its conversation has carried, and record it in the store.

The host's own lists stay as they are. A store on disk gets each request's new messages before the
request is sent, so that a process that is killed loses no result that the model was shown.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ..compressor.context_compressor import ContextCompressor
from ..concurrency import renewed
from ..errors import CompressorError, LedgerError
from ..ledger.segments import Session
from ..ledger.stores import lasting
from ..messages import Message, digest, leading_in
from ..messages.digests import Seen
from ..messages.display import counted
from ..messages.dropped_steps import (
    Carried,
    Completed,
    answered,
    called,
    carried_in,
    completed,
    failed,
)
from ..messages.secrets import Redactor, masks_secrets
from ..messages.shapes import makes_calls

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptSteps:
    """Steps of earlier turns in a request that the host dropped."""

    steps: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        steps = counted(self.steps, "step")
        return f"kept from earlier turns: {steps}, {counted(self.tokens, 'token')}"


def kept_of(
    back: Sequence[Message], engine: ContextCompressor, view: Sequence[Message] | None = None
) -> KeptSteps:
    """Count restored messages; of a view only the verbatim ones."""
    if view is not None:
        there = {id(message) for message in view}
        back = [message for message in back if id(message) in there]
    return KeptSteps(sum(map(makes_calls, back)), sum(map(engine.tokens.message, back)))


class Journal:
    """The transcript that one conversation's requests have carried; thread-safe."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._lock = renewed(threading.RLock())
        self._carried: Carried | None = None
        """None: not read from the store yet."""
        self._system: list[Message] = []
        self._recorded: tuple[str, ...] = ()
        """Digests of the messages that the store has."""
        self._edits = -1
        """How often a part of the session was forgotten, when the store was last written."""
        self.failure = ""
        """Words of the store's failure, logged once; "" while the store works."""
        self.tokens = 0
        """Size of what is remembered, as of the end of the last turn."""

    @property
    def is_recorded(self) -> bool:
        """Return whether the store has the whole transcript."""
        carried = self._carried
        return (
            bool(self._recorded)
            and carried is not None
            and _names(carried.record) == self._recorded
        )

    def complete(
        self,
        given: Sequence[Message],
        engine: ContextCompressor,
        *,
        turn: Hashable = None,
        bound: int = 0,
    ) -> Completed:
        """Return a request with what the host left out; record it."""
        session, cache = self._session(engine), engine.tokens.cache
        model = engine.config.model
        with self._lock:
            carried = self._known(given, engine, session)
            done = completed(carried, given, cache, turn=turn, bound=bound, model=model)
            self._system = list(given[: leading_in(given)])
            self._carried = done.carried
            self._record(engine, session)
        return done

    def at_rest(self, given: Sequence[Message], engine: ContextCompressor) -> Completed:
        """Return the messages with what the host left out; record nothing."""
        session = self._session(engine)
        with self._lock:
            carried = self._known(given, engine, session)
        return completed(carried, given, engine.tokens.cache)

    @property
    def transcript(self) -> Sequence[Message]:
        """Return all messages that are remembered, leading system messages first."""
        carried = self._carried
        return () if carried is None else (*self._system, *carried.messages)

    # ------------------------------------------------------------ the running turn

    def call(self, message: Message, engine: ContextCompressor) -> None:
        """Add an answer's calls: the turn may stop before their results."""
        with self._lock:
            if self._carried is not None:
                self._carried = called(self._carried, engine.tokens.cache(message))
        self.settle(engine)

    def end(
        self, history: Sequence[Message], engine: ContextCompressor, *, has_failed: bool
    ) -> None:
        """Add the answer in the host's history; drop a failed turn."""
        with self._lock:
            if self._carried is not None and has_failed:
                self._carried = failed(self._carried)
            elif self._carried is not None:
                self._carried = answered(self._carried, history, engine.tokens.cache)

    def settle(self, engine: ContextCompressor) -> None:
        """Record what is new."""
        session = self._session(engine)
        with self._lock:
            if self._carried is not None:
                self.tokens = sum(engine.tokens.each(self._carried.seen))
            self._record(engine, session)

    # ------------------------------------------------------------ the store

    def _session(self, engine: ContextCompressor) -> Session | None:
        """Return the ledger's session; None while the store is down."""
        try:
            return engine.store.open(engine.config.namespace, self._session_id)
        except LedgerError as error:
            self._down(error)
            return None

    def _known(
        self, given: Sequence[Message], engine: ContextCompressor, session: Session | None
    ) -> Carried:
        """Return what was carried: as remembered, or as the store has it."""
        is_stale = session is not None and self._edits not in (-1, session.edits)
        if self._carried is not None and not is_stale:
            return self._carried
        if session is None:
            return Carried()
        try:
            transcript = engine.store.transcript(session)
        except LedgerError as error:
            self._down(error)
            return Carried()
        if masks_secrets(engine.store):
            transcript = _unmasked(transcript, given, session.namespace)
        found = carried_in(transcript, engine.tokens.cache)
        self._recorded, self._edits = _names(found.seen), session.edits
        return found

    def _record(self, engine: ContextCompressor, session: Session | None) -> None:
        """Write the messages that the store lacks; log its failure."""
        store = lasting(engine.store)
        if session is None or self._carried is None or store is None:
            return
        record = self._carried.record
        names, messages = _names(record), [each.plain for each in record]
        pairs = zip(self._recorded, names, strict=False)
        place = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        if place == len(names) == len(self._recorded):
            return
        try:
            done = bool(self._recorded) and store.extend(session, place, messages[place:])
            done = done or engine.save([*self._system, *messages], session_id=self._session_id)
        except CompressorError as error:
            self._down(error)
            return
        self.failure = ""
        if done:
            self._recorded, self._edits = names, session.edits

    def _down(self, error: CompressorError) -> None:
        level = logging.DEBUG if self.failure else logging.WARNING
        self.failure = str(error)
        log.log(level, "session %s: not recorded for now: %s", self._session_id, error)


def _names(seen: Sequence[Seen]) -> tuple[str, ...]:
    # Of everything in a message: a call read from an answer may have more than the host sends.
    return tuple(each.content_digest for each in seen)


def _unmasked(
    transcript: Sequence[Message], given: Sequence[Message], namespace: str
) -> list[Message]:
    """Return a stored transcript with the host's messages for masked ones."""
    masked = Redactor(namespace).masked(given)[0]
    pairs = zip(given, masked, strict=True)
    own = {digest(hidden): message for message, hidden in pairs if hidden != message}
    return [own.get(digest(message), message) for message in transcript] if own else [*transcript]
