"""`SqlStore`: the ledger in SQLite for one machine, in PostgreSQL for many."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from ...errors import LedgerCorrupt
from ...messages import Message, to_plain
from ...messages.forks import renewed
from ..segments import ARCHIVE_ONLY, EVERY, Entry, Epoch, Outline, Segment, Session, plain_outline
from ..words import Hit
from .archive import Archive, Codec, codec_of
from .audit import Fault, audit
from .database import Database
from .erasure import Erased, erase_message, erase_session, reclaim
from .queries import SessionInfo, archived, namespaces_of, search, sessions_of
from .schema import check_names, entries
from .sessions import family, find, lineage, snapshot, whole_transcript
from .transfer import export_session, import_session
from .writing import (
    append,
    claim,
    create,
    is_taken,
    keep,
    outline_without_secrets,
    release,
    without_secrets,
)

logger = logging.getLogger(__name__)

_MOST = 256
"""Sessions whose entries are kept as they were read last."""


class SqlStore:
    """A ledger in a database, as `open_store` makes it; thread-safe, safe after a fork, one for
    many sessions. `plain_too` lets a store that is not encrypted stay so, whatever the codec.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] | None = None,
        *,
        codec: Codec | None = None,
        plain_too: bool = False,
        mask_secrets: bool = True,
    ) -> None:
        self.mask_secrets = mask_secrets
        self._lock = renewed(threading.Lock())
        self._read_last: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._database = Database(url, codec=codec, plain_too=plain_too, on_open=self._unread)
        self.place = self._database.place
        """Where the ledger is, in words that hold no secret."""

    def is_there(self) -> bool:
        """Whether a ledger was made there already; makes none.

        Raises:
            StoreUnavailable: it cannot be reached.
        """
        return self._database.is_made()

    def check(self) -> None:
        """Reach the store; a new one gets its tables.

        Raises:
            StoreUnavailable: it cannot be reached, or another version wrote it.
        """
        self._database.read(lambda a: None)

    def close(self) -> None:
        """Close its connections; a later call would open new ones."""
        self._database.close()

    # -------------------------------------------------------------- the protocol

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        """The session that `session_id` (stable or an epoch's) names; a new one if none does.

        A new session without a parent is not written before its first commit: agents that never
        compress leave nothing behind. A fork is, for its parent moves on.
        """
        check_names(namespace, session_id, parent_session_id)
        found = self._database.read(lambda a: self._opened(a, namespace, session_id))
        if found is None and parent_session_id is not None:
            self._database.write(lambda a: create(a, namespace, session_id, parent_session_id))
            found = self._database.read(lambda a: self._opened(a, namespace, session_id))
        return found or Session(namespace, session_id, session_id, None)

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        outline: Outline | None = None,
    ) -> Session:
        plain = [(segment, [to_plain(m) for m in originals]) for segment, originals in segments]
        whole = None if outline is None else self._recorded(session, outline)
        if self.mask_secrets:
            plain = without_secrets(session.namespace, plain)

        def work(archive: Archive) -> Session | None:
            append(archive, session, plain, whole)
            return self._opened(archive, session.namespace, session.id)

        return self._database.write(work) or session

    def keep(self, session: Session, outline: Outline) -> bool:
        whole = self._recorded(session, outline)
        return self._database.write(lambda a: keep(a, session, whole))

    def transcript(self, session: Session) -> list[Message]:
        return self._database.read(lambda a: _whole(a, session))

    def originals(
        self, session: Session, entry: Entry, wanted: slice = EVERY
    ) -> list[Message] | None:
        return self._database.read(lambda a: _originals(a, session, entry, wanted))

    def trim(self, namespace: str, most_bytes: int) -> int:
        return self._database.write(lambda a: a.trim(namespace, most_bytes))

    def dropped(self, namespace: str, digests: Iterable[str]) -> frozenset[str]:
        return self._database.read(lambda a: a.dropped(namespace, digests))

    def lineage(self, namespace: str, session_id: str) -> list[Epoch]:
        return self._database.read(lambda a: lineage(a.connection, namespace, session_id))

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        # A look first: who waits asks again and again, and must not keep the writers waiting.
        if self._database.read(lambda a: is_taken(a.connection, session, holder)):
            return False
        return self._database.write(lambda a: claim(a.connection, session, holder, seconds))

    def release(self, session: Session, holder: str) -> None:
        self._database.write(lambda a: release(a.connection, session, holder))

    def search(
        self,
        namespace: str,
        query: str,
        session_id: str | None = None,
        limit: int = 10,
        *,
        archived_only: bool = False,
    ) -> list[Hit]:
        return self._database.read(
            lambda a: search(a, namespace, query, session_id, limit, archived_only=archived_only)
        )

    # -------------------------------------------------------------- for people

    def sessions(self, namespace: str) -> list[SessionInfo]:
        """The sessions of a namespace that were not forgotten whole, the last used first."""
        return self._database.read(lambda a: sessions_of(a.connection, namespace))

    def namespaces(self) -> list[str]:
        """The namespaces that have sessions."""
        return self._database.read(lambda a: namespaces_of(a.connection))

    def tree(self, namespace: str, session_id: str) -> list[Epoch]:
        """All epochs of the session's family, forks included, each after its parent.

        Raises:
            SessionNotFound: no such session in this namespace.
        """
        return self._database.read(lambda a: family(a.connection, namespace, session_id))

    def archived(self, namespace: str, session_id: str) -> list[Message]:
        """Every original in the session's archive once, in the order it was compressed.

        Raises:
            SessionNotFound: no such session in this namespace.
        """
        return self._database.read(lambda a: archived(a, namespace, session_id))

    def verify(self, namespace: str | None = None, session_id: str | None = None) -> list[Fault]:
        """Everything whose hash, place or archive disagrees; empty when the ledger is sound.

        Raises:
            StoreUnavailable: it cannot be reached.
        """
        try:
            return self._database.read(lambda a: audit(a, namespace, session_id))
        except LedgerCorrupt as error:
            return [Fault(self.place, str(error))]

    def forget(self, namespace: str, target: str) -> Erased:
        """Remove a session (by any of its ids) or one message (by its content digest).

        What is gone: originals, the summaries that covered them and those written in their
        light, the index, and the bytes in free pages. The chain keeps salted commitments whose
        salt is destroyed, and still verifies. What a server keeps beside its tables (write-ahead
        log, replicas, backups) is the operator's.

        Raises:
            SessionNotFound: no such session or message in this namespace.
        """
        erase = erase_message if target.startswith("sha256:") else erase_session
        done = self._database.write(lambda a: erase(a, namespace, target))
        self._unread()
        return replace(done, pages_cleared=self.clear_pages())

    def clear_pages(self) -> bool:
        """Clear the pages that a `forget` could not; False where something keeps them still."""
        return reclaim(self._database)

    def export(self, namespace: str, session_id: str) -> dict[str, Any]:
        """The session with all it inherits as plain JSON.

        Raises:
            SessionNotFound: no such session in this namespace.
        """
        return self._database.read(lambda a: export_session(a, namespace, session_id))

    def import_(self, namespace: str, exported: Mapping[str, Any]) -> Session:
        """Take in an exported session.

        Raises:
            LedgerCorrupt: its chain or archive disagrees, or it is no export; nothing is written.
            LedgerConflict: another session of that id is here.
        """
        check_names(namespace)
        name = self._database.write(lambda a: import_session(a, namespace, exported))
        return self.open(namespace, name)

    # -------------------------------------------------------------- inside

    def _recorded(self, session: Session, outline: Outline) -> Outline:
        plain = plain_outline(outline)
        return outline_without_secrets(session.namespace, plain) if self.mask_secrets else plain

    def _opened(self, archive: Archive, namespace: str, session_id: str) -> Session | None:
        """The session as it is now; what this process read of it before is not read again."""
        row = find(archive.connection, namespace, session_id)
        if row is None:
            return None
        with self._lock:
            known = self._read_last.get((namespace, row.id))
        if known is None or (known.tip, known.edits) != (row.tip, row.edits):
            known = snapshot(archive, row, known)
        with self._lock:
            self._read_last[namespace, row.id] = known
            self._read_last.move_to_end((namespace, row.id))
            while len(self._read_last) > _MOST:
                self._read_last.popitem(last=False)
        return known

    def _unread(self) -> None:
        with self._lock:
            self._read_last.clear()


def _originals(
    archive: Archive, session: Session, entry: Entry, wanted: slice
) -> list[Message] | None:
    query = select(entries.c.key).where(
        entries.c.namespace == session.namespace,
        entries.c.hash == entry.hash,
        entries.c.sealed.is_not(None),
    )
    key = archive.connection.execute(query).scalar()
    return None if key is None else archive.of_entries([key], wanted)[key]


def _whole(archive: Archive, session: Session) -> list[Message]:
    row = find(archive.connection, session.namespace, session.id)
    found = None if row is None else whole_transcript(archive, row)
    if row is None or found is not None:
        return found or []
    logger.warning(ARCHIVE_ONLY, session.id)
    return archived(archive, session.namespace, session.id)


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    codec: Codec | None = None,
    key: str | None = None,
    mask_secrets: bool = True,
) -> SqlStore:
    """The store at a path, `sqlite:///path` or `postgresql://…`; None: the platform's directory.

    With a `codec` it is encrypted or refused, and a search reads messages instead of an index. With
    a `key` (Fernet) it is encrypted if it is new or was so before; a plain one stays plain. With
    `mask_secrets` keys and tokens are masked in all that is written.

    Raises:
        StoreUnavailable: the URL cannot be read; the store itself is reached at first use.
        ConfigError: the key is none.
    """
    if codec is None and key is not None:
        return SqlStore(url, codec=codec_of(key), plain_too=True, mask_secrets=mask_secrets)
    return SqlStore(url, codec=codec, mask_secrets=mask_secrets)
