"""`SqlStore`: the ledger in SQLite for one machine, in PostgreSQL for many.

`SqlStore` redacts the secrets in messages before it writes them.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from ...concurrency import renew_after_fork
from ...errors import LedgerCorrupt
from ...messages import Message, to_plain
from ...messages.secrets import Redactor
from ..segments import Segment, Session, Skeleton, skeleton_messages
from ..stores import Forgotten, check_names
from . import commits, maintenance, queries
from .archive import Codec, SqlArchive, codec_of
from .database import Database, Url
from .index import SearchSizes
from .maintenance import Fault
from .search import search

_MOST_SNAPSHOTS = 256
"""The entries of at most this number of sessions stay in memory."""

P = ParamSpec("P")
T = TypeVar("T")


def _in_transaction(
    run: Callable[[Database, Callable[[SqlArchive], T]], T],
    work: Callable[Concatenate[SqlArchive, P], T],
) -> Callable[Concatenate[SqlStore, P], T]:

    @functools.wraps(work)
    def method(store: SqlStore, /, *args: P.args, **options: P.kwargs) -> T:
        return run(store._database, lambda archive: work(archive, *args, **options))

    return method


class SqlStore:
    """A ledger in a database, thread-safe and safe after a fork."""

    def __init__(
        self,
        url: Url = None,
        *,
        codec: Codec | None = None,
        accepts_plain: bool = False,
        redact_secrets: bool = True,
        search_sizes: SearchSizes | None = None,
    ) -> None:
        """Take `open_store`'s options; `accepts_plain` allows an unencrypted store."""
        self.redact_secrets = redact_secrets
        self._lock = renew_after_fork(threading.Lock())
        self._snapshots: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._database = Database(url, codec, accepts_plain, search_sizes or SearchSizes())
        self.location = self._database.location

    def exists(self) -> bool:
        """See `Database.exists`."""
        return self._database.exists()

    def check(self) -> None:
        """See `DurableStore.check`."""
        self._database.read(lambda archive: None)

    def close(self) -> None:
        """Close the store's connections; a later call opens new ones."""
        self._database.close()

    # -------------------------------------------------------------- the protocol

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        """See `Store.open`."""
        check_names(namespace, session_id, parent_session_id)
        session = self._database.read(lambda a: self._read_session(a, namespace, session_id))
        if session is None and parent_session_id is not None:
            # A fork is written at once, because the parent may change.
            names = namespace, session_id, parent_session_id
            self._database.write(lambda a: commits.create_session(a, *names))
            session = self._database.read(lambda a: self._read_session(a, namespace, session_id))
        return session or Session(namespace, session_id, session_id, None)

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        skeleton: Skeleton | None = None,
    ) -> Session:
        """See `Store.commit`."""
        plain = [(segment, list(map(to_plain, originals))) for segment, originals in segments]
        whole = None if skeleton is None else self._skeleton_to_store(session.namespace, skeleton)
        if self.redact_secrets:
            redactor = Redactor(session.namespace)
            plain = [commits.redact_segment(redactor, *run) for run in plain]

        def work(archive: SqlArchive) -> Session | None:
            commits.append_segments(archive, session, plain, whole)
            return self._read_session(archive, session.namespace, session.id)

        return self._database.write(work) or session

    def record_transcript(self, session: Session, skeleton: Skeleton) -> bool:
        """See `Store.record_transcript`."""
        whole = self._skeleton_to_store(session.namespace, skeleton)
        return self._database.write(lambda a: commits.record_transcript(a, session, whole))

    def extend_transcript(self, session: Session, start: int, messages: Sequence[Message]) -> bool:
        """See `DurableStore.extend_transcript`."""
        added = self._messages_to_store(session.namespace, messages)
        return self._database.write(lambda a: commits.extend_transcript(a, session, start, added))

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        """See `Store.claim`."""
        # Read first: waiting holders ask often and must not block writers.
        if self._database.read(lambda a: commits.is_lease_taken(a, session, holder)):
            return False
        return self._database.write(lambda a: commits.claim_lease(a, session, holder, seconds))

    release = _in_transaction(Database.write, commits.release_lease)
    change_note = _in_transaction(Database.write, commits.change_note)
    originals = _in_transaction(Database.read, queries.originals)
    transcript = _in_transaction(Database.read, queries.transcript)
    lineage = _in_transaction(Database.read, queries.lineage)
    note = _in_transaction(Database.read, queries.read_note)
    search = _in_transaction(Database.read, search)

    # -------------------------------------------------------------- for people

    namespaces = _in_transaction(Database.read, queries.list_namespaces)
    sessions = _in_transaction(Database.read, queries.list_sessions)
    ids_with_prefix = _in_transaction(Database.read, queries.ids_with_prefix)
    tree = _in_transaction(Database.read, queries.epoch_tree)
    find_message = _in_transaction(Database.read, maintenance.find_message)

    def verify(self, namespace: str | None = None, session_id: str | None = None) -> list[Fault]:
        """Return the faults of the store, a namespace or a session."""
        try:
            return self._database.read(lambda a: maintenance.find_faults(a, namespace, session_id))
        except LedgerCorrupt as error:
            return [Fault(self.location, str(error))]

    def forget(self, namespace: str, target: str) -> Forgotten:
        """See `DurableStore.forget`."""
        is_message = target.startswith("sha256:")
        forget = maintenance.forget_message if is_message else maintenance.forget_session
        forgotten = self._database.write(lambda a: forget(a, namespace, target))
        with self._lock:
            self._snapshots.clear()
        return replace(forgotten, pages_cleared=self.clear_pages())

    def clear_pages(self) -> bool:
        """Overwrite freed pages that hold old bytes; return whether it worked.

        On a server, wait at most PATIENCE_SECONDS for older transactions.
        """
        return self._database.clear_freed_pages()

    # -------------------------------------------------------------- inside

    def _messages_to_store(self, namespace: str, messages: Iterable[Message]) -> list[Message]:
        plain = list(map(to_plain, messages))
        return list(Redactor(namespace).redact(plain)[0]) if self.redact_secrets else plain

    def _skeleton_to_store(self, namespace: str, skeleton: Skeleton) -> Skeleton:
        messages = iter(self._messages_to_store(namespace, skeleton_messages(skeleton)))
        return tuple(item if isinstance(item, int) else next(messages) for item in skeleton)

    def _read_session(self, archive: SqlArchive, namespace: str, session_id: str) -> Session | None:
        row = queries.find_session(archive, namespace, session_id)
        if row is None:
            return None
        if not isinstance(row.updated, (int, float)):
            raise LedgerCorrupt(f"session {row.id}: the time of its last write is no number")
        with self._lock:
            snapshot = self._snapshots.get((namespace, row.id))
        if snapshot is None or (snapshot.head_hash, snapshot.erasures) != (row.head, row.erasures):
            snapshot = queries.read_session(archive, row, snapshot)
        with self._lock:
            self._snapshots[namespace, row.id] = snapshot
            self._snapshots.move_to_end((namespace, row.id))
            while len(self._snapshots) > _MOST_SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return replace(snapshot, updated=row.updated)


def open_store(
    url: Url = None,
    *,
    codec: Codec | None = None,
    key: str | None = None,
    redact_secrets: bool = True,
) -> SqlStore:
    """Return the store at a path, `sqlite:///path` or `postgresql://…`.

    None is a file in the user's data directory. With a `codec` an unencrypted store is refused.
    With a `key` (Fernet) a new store is encrypted; an unencrypted store stays unencrypted. An
    encrypted store has no index: a search reads the messages. With `redact_secrets` keys and tokens
    are redacted before a write.

    Raises:
        StoreUnavailable: the URL cannot be read; the store itself is reached at first use.
        ConfigError: the key is no Fernet key.
    """
    cipher = codec_of(key) if codec is None and key is not None else codec
    accepts_plain = codec is None
    return SqlStore(url, codec=cipher, accepts_plain=accepts_plain, redact_secrets=redact_secrets)
