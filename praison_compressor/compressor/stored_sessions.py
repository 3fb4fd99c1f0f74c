"""`StoredSessions`: restore, read, save and undo the sessions of a store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..config import CompressorConfig, whole_number
from ..errors import CompressorError, ConfigError
from ..ledger.memory_store import MemoryStore
from ..ledger.segments import Segment, Session, undo_segment
from ..ledger.stores import Store
from ..messages import Message, to_plain
from ..recall.answers import TURN_TOKENS, Recall, recall_tools
from ..recall.reading import LEAST_TOKENS
from .projection import LastTurn, Projector, skeleton_of
from .request import Request, RequestReader, SessionKey

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredSessions:
    """The sessions of one store, by stable or epoch id; thread-safe."""

    store: Store
    requests: RequestReader
    projector: Projector

    def opener(self, session_id: str | None) -> Callable[[], Session]:
        """Return a function that opens the session when it is called."""
        key = self.requests.key(session_id)
        return lambda: self.store.open(*key)

    # -------------------------------------------------------------- transcripts

    def transcript(self, session_id: str | None) -> list[Message]:
        """Return the recorded transcript of a session."""
        key = self.requests.key(session_id)
        self._require_session(key)
        session = self.store.open(*key)
        if gone := sum(entry.is_forgotten for entry in session.entries):
            logger.warning("session %s: %d of its segments were forgotten", key[1], gone)
        return self.store.transcript(session)

    def _require_session(self, key: SessionKey) -> None:
        self.store.lineage(*key)  # raises SessionNotFound; `open` accepts any name

    def newest_messages(self, session: Session, last_turn: LastTurn | None) -> list[Message]:
        """Return the last turn's messages, or the recorded messages if newer."""
        if last_turn is not None and session.is_unchanged_since(last_turn.session):
            return last_turn.messages
        return self.store.transcript(session)

    def verbatim(self, messages: Sequence[Any], session_id: str | None) -> list[Message]:
        """Return the transcript of a view."""
        request = self.requests.read_only(messages, session_id)
        originals = self.projector.originals_of(request)
        return list(map(to_plain, request.messages if originals is None else originals))

    def save(self, messages: Sequence[Any], session_id: str | None) -> bool:
        """Record the transcript; return whether it was recorded."""
        request = self.requests.read_only(messages, session_id)
        return self._record(request, self.projector.open(request))

    def save_turns(self, turns: Iterable[LastTurn]) -> int:
        """Record the transcripts of unchanged sessions; return how many were recorded."""
        saved = 0
        for turn in turns:
            name = turn.session.id
            try:
                request = self.requests.read_only(turn.messages, name)
                session = self.projector.open(request)
                is_current = session.is_unchanged_since(turn.session)
                saved += is_current and self._record(request, session)
            except CompressorError as error:
                logger.warning("session %s: its last turns are not saved: %s", name, error)
        return saved

    def _record(self, request: Request, session: Session) -> bool:
        if not request.messages:
            return False
        return self.store.record_transcript(
            session, skeleton_of(self.projector.look(request, session))
        )

    # -------------------------------------------------------------- the archive

    def recall_tools(
        self, session_id: str | None, turn_tokens: int | None = TURN_TOKENS
    ) -> tuple[Callable[..., str], ...]:
        """Return the two tools that search and read a session's archive."""
        most = None if turn_tokens is None else whole_number("turn_tokens", turn_tokens, 0)
        count = self.requests.tokens.text
        return recall_tools(lambda: self.store, self.opener(session_id), count, turn_tokens=most)

    def read(self, reference: str, session_id: str | None, tokens: int) -> str:
        """Return the messages of a reference, in at most `tokens`."""
        if not isinstance(reference, str):
            raise ConfigError(f"reference={reference!r}: expected a text such as s2.14")
        count = self.requests.tokens.text
        recall = Recall(lambda: self.store, self.opener(session_id), count, turn_tokens=None)
        return recall.read(reference, whole_number("tokens", tokens, LEAST_TOKENS))

    def undo(self, session_id: str | None) -> tuple[Segment, ...]:
        """Undo the newest compression; return its segments, () without one."""
        session = self.opener(session_id)()
        undo = undo_segment(session.entries)
        if undo is None:
            return ()
        self.store.commit(session, [(undo, ())])
        return tuple(entry.segment for entry in session.entries if entry.hash in undo.run)


def default_store(config: CompressorConfig) -> Store:
    """Return the store at `store_url`; memory without one."""
    if config.store_url is None:
        return MemoryStore()
    from ..ledger.sql.store import open_store  # loads SQLAlchemy, so only if needed

    redacts = config.redact_secrets is not False
    return open_store(config.store_url, key=config.store_key, redact_secrets=redacts)
