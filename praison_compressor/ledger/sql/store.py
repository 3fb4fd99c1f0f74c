"""`SqlStore`: the ledger in SQLite for one machine, in PostgreSQL for many."""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from ...errors import LedgerCorrupt
from ...messages import Message, to_plain
from ...messages.forks import renewed
from ..segments import Outline, Segment, Session, plain_outline
from . import sessions as reading
from . import writing
from .archive import Archive, Codec, codec_of
from .audit import Fault, audit, export_session, import_session
from .database import Database
from .erasure import Erased, erase_message, erase_session, reclaim
from .schema import check_names

_MOST = 256
"""Sessions whose entries are kept as they were read last."""

P = ParamSpec("P")
T = TypeVar("T")


def _reading(work: Callable[Concatenate[Archive, P], T]) -> Callable[Concatenate[SqlStore, P], T]:
    """The method that does this work in a transaction that reads; its docstring is the work's."""

    @functools.wraps(work)
    def method(store: SqlStore, /, *args: P.args, **options: P.kwargs) -> T:
        return store._database.read(lambda archive: work(archive, *args, **options))

    return method


def _writing(work: Callable[Concatenate[Archive, P], T]) -> Callable[Concatenate[SqlStore, P], T]:
    """The same in a transaction that writes."""

    @functools.wraps(work)
    def method(store: SqlStore, /, *args: P.args, **options: P.kwargs) -> T:
        return store._database.write(lambda archive: work(archive, *args, **options))

    return method


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
        self._database = Database(url, codec, plain_too, on_open=self._unread)
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
        self._database.read(lambda archive: None)

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
            named = namespace, session_id, parent_session_id
            self._database.write(lambda a: writing.create(a, *named))
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
            plain = writing.without_secrets(session.namespace, plain)

        def work(archive: Archive) -> Session | None:
            writing.append(archive, session, plain, whole)
            return self._opened(archive, session.namespace, session.id)

        return self._database.write(work) or session

    def keep(self, session: Session, outline: Outline) -> bool:
        whole = self._recorded(session, outline)
        return self._database.write(lambda a: writing.keep(a, session, whole))

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        # A look first: who waits asks again and again, and must not keep the writers waiting.
        if self._database.read(lambda a: writing.is_taken(a, session, holder)):
            return False
        return self._database.write(lambda a: writing.claim(a, session, holder, seconds))

    release = _writing(writing.release)
    originals = _reading(reading.originals)
    transcript = _reading(reading.transcript)
    lineage = _reading(reading.lineage)
    search = _reading(reading.search)
    trim = _writing(Archive.trim)
    dropped = _reading(Archive.dropped)

    # -------------------------------------------------------------- for people

    namespaces = _reading(reading.namespaces_of)
    sessions = _reading(reading.sessions_of)
    names_below = _reading(reading.names_below)
    tree = _reading(reading.tree)
    archived = _reading(reading.archived)
    export = _reading(export_session)

    def import_(self, namespace: str, exported: Mapping[str, Any]) -> Session:
        """Take in an exported session.

        Raises:
            LedgerCorrupt: its chain or archive disagrees, or it is no export; nothing is written.
            LedgerConflict: another session of that id is here.
        """
        check_names(namespace)
        name = self._database.write(lambda a: import_session(a, namespace, exported))
        return self.open(namespace, name)

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

    # -------------------------------------------------------------- inside

    def _recorded(self, session: Session, outline: Outline) -> Outline:
        plain = plain_outline(outline)
        if not self.mask_secrets:
            return plain
        return writing.outline_without_secrets(session.namespace, plain)

    def _opened(self, archive: Archive, namespace: str, session_id: str) -> Session | None:
        """The session as it is now; what this process read of it before is not read again."""
        row = reading.find(archive, namespace, session_id)
        if row is None:
            return None
        with self._lock:
            known = self._read_last.get((namespace, row.id))
        if known is None or (known.head_hash, known.edits) != (row.head, row.edits):
            known = reading.snapshot(archive, row, known)
        with self._lock:
            self._read_last[namespace, row.id] = known
            self._read_last.move_to_end((namespace, row.id))
            while len(self._read_last) > _MOST:
                self._read_last.popitem(last=False)
        return known

    def _unread(self) -> None:
        with self._lock:
            self._read_last.clear()


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
