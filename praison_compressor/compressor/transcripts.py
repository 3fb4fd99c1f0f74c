"""`Transcripts`: restore, record and compare whole transcripts; the store they are in."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..config import CompressorConfig
from ..ledger.memory import MemoryStore
from ..ledger.segments import Session, Store, in_force
from ..messages import Message, as_list, digest, to_plain
from ..tokens.counter import TokenCounter
from ..view.view import View
from .projection import Projector, outline_of
from .request import Request, pinned_segment
from .sessions import Sessions

logger = logging.getLogger(__name__)


class Transcripts:
    """Reads and records the transcripts of one compressor's sessions; thread-safe."""

    def __init__(
        self,
        config: CompressorConfig,
        store: Store,
        tokens: TokenCounter,
        sessions: Sessions,
        projector: Projector,
    ) -> None:
        self._config = config
        self._store = store
        self._tokens = tokens
        self._sessions = sessions
        self._projector = projector

    def stored(self, session_id: str) -> list[Message]:
        """Return the recorded transcript of a session.

        Raises:
            SessionNotFound: the store has no such session.
        """
        namespace = self._config.namespace
        self._store.lineage(namespace, session_id)  # `open` accepts an unknown name
        session = self._store.open(namespace, session_id)
        if gone := sum(entry.forgotten for entry in session.entries):
            logger.warning("session %s: %d of its segments were forgotten", session_id, gone)
        return self._store.transcript(session)

    def expanded(self, messages: Sequence[Any], session_id: str) -> list[Message]:
        """Return the transcript of a view of the session."""
        session = self._store.open(self._config.namespace, session_id)
        given = list(as_list(messages))
        seen = self._tokens.cache.all(given)
        pinned = pinned_segment({}, self._config, self._tokens)
        found = self._projector.expanded(given, seen, session, pinned)
        return [to_plain(message) for message in (given if found is None else found)]

    def save(self, request: Request, session: Session) -> bool:
        """Record the transcript; return False without messages or if another writer was faster."""
        if not request.messages:
            return False
        return self._store.keep(session, outline_of(self._projector.look(request, session)))

    # -------------------------------------------------------------- logged once

    def log_no_fork(self, request: Request) -> None:
        """Log once that a session shares nothing with its `parent_session_id`."""
        parent = request.parent_id
        if parent is None or not self._sessions.is_first(request.key, "fork", parent):
            return
        session = self._projector.open(request)
        chain = self._store.lineage(session.namespace, session.id)
        parents = {epoch.id: epoch.parent_id for epoch in chain}
        if parent in parents and parent != session.id:
            return
        why = "it began without that one; only a new session_id becomes a fork"
        if parents.get(session.id) == parent:
            if self._sessions.knows((session.namespace, parent)):
                return  # the parent was never compressed: it has nothing to share
            why = "nothing of that one was ever compressed in this store and namespace"
        logger.warning(
            "session %s: parent_session_id=%r shares nothing with it: %s", session.id, parent, why
        )

    def log_another(self, view: View) -> None:
        """Log once that two conversations seem to share one session id.

        Such a transcript has neither a summary of the session nor the session's first task.
        """
        session = view.session
        if view.standing or all(s.kind != "summary" for s in in_force(session.entries)):
            return
        said = (m for m in self._store.transcript(session) if m.get("role") == "user")
        task, key = next(map(digest, said), None), (session.namespace, session.id)
        if task not in (None, *view.digests) and self._sessions.is_first(key, "another", ""):
            logger.warning(
                "session %s: another conversation was compressed under this session_id before; the "
                "archive keeps its compressed messages, not its first and newest ones; give each "
                "conversation its own session_id",
                session.id,
            )


def default_store(config: CompressorConfig) -> Store:
    """Return the store at `store_url`; memory without one."""
    if config.store_url is None:
        return MemoryStore()
    from ..ledger.sql.store import open_store  # loads SQLAlchemy: only when asked

    masks = config.redact_secrets is not False
    return open_store(config.store_url, key=config.store_key, mask_secrets=masks)
