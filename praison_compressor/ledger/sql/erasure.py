"""`forget`: what is removed is gone from archive, chain, index and free pages.

A tombstone keeps the place in the chain: its commitment is salted and the salt is destroyed with
the segment, so that it verifies and cannot be guessed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select, text, update

from ...errors import SessionNotFound, StoreUnavailable
from ...messages import content_digest, is_system
from .archive import Archive, optimize_index
from .database import Database
from .schema import entries, exports, is_sqlite, leases, links, messages, sessions
from .sessions import drop_transcript, remove_message, require, sessions_with

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Export:
    """An earlier export: a copy that this store cannot reach."""

    session_id: str
    created: float
    note: str


@dataclass(frozen=True)
class Erased:
    """What was forgotten, and what the caller must still see to."""

    segments: int
    """Segments of which only a tombstone is left."""
    messages: int
    """Originals that are gone."""
    sessions: tuple[str, ...]
    """The sessions whose summaries were removed: stable ids, for the host's mirror."""
    still_in: tuple[str, ...]
    """Other sessions of the namespace that hold some of the same messages, or are forks."""
    exports: tuple[Export, ...]
    """Copies that were made before."""
    pages_cleared: bool = True
    """False where a reader or missing rights kept the database from clearing freed pages."""


def erase_session(archive: Archive, namespace: str, target: str) -> Erased:
    """Forget everything that the session holds itself; what it inherits is its parent's."""
    connection = archive.connection
    _exclusive(connection)
    row = require(connection, namespace, target)
    own = select(entries.c.key).where(entries.c.session_key == row.key)
    linked = set(
        connection.execute(select(links.c.message_key).where(links.c.entry_key.in_(own))).scalars()
    )
    tombs = _bury(connection, connection.execute(own).scalars().all())
    connection.execute(delete(links).where(links.c.entry_key.in_(own)))
    connection.execute(
        delete(leases).where(leases.c.namespace == namespace, leases.c.session_id == row.id)
    )
    gone = linked - _linked(connection, linked)
    holders = _holders(connection, linked - gone)
    _remove(archive, gone)
    kept = drop_transcript(archive, row.key)
    # Every session of an agent has its system prompt: no sign of this one.
    said = {content_digest(message) for message in kept if not is_system(message)}
    holders |= set(sessions_with(archive, namespace, said))
    forks = _descendants(connection, [row.key])
    _stale(connection, [row.key, *forks])
    names = _names(connection, holders | set(forks)) - {row.id}
    return Erased(
        segments=tombs,
        messages=len(gone) + len(kept),
        sessions=(row.id,),
        still_in=tuple(sorted(names)),
        exports=_exports(connection, namespace, [row.id, *_names(connection, forks)]),
    )


def erase_message(archive: Archive, namespace: str, target: str) -> Erased:
    """Forget one message in every session of the namespace."""
    connection = archive.connection
    _exclusive(connection)
    key = _message_key(archive, namespace, target)
    keeping = [
        session_key
        for session_key in sessions_with(archive, namespace, [target])
        if remove_message(archive, session_key, target)
    ]
    if key is None and not keeping:
        raise SessionNotFound(f"no stored message {target} in namespace {namespace!r}")
    touched = dict.fromkeys(keeping, ()) | _covered(connection, key)
    tombs = _bury(connection, [entry_key for keys in touched.values() for entry_key in keys])
    if key is not None:
        connection.execute(delete(links).where(links.c.message_key == key))
        _remove(archive, [key])
    _stale(connection, touched)
    names = sorted(_names(connection, touched))
    return Erased(
        segments=tombs,
        messages=1,
        sessions=tuple(names),
        still_in=(),
        exports=_exports(connection, namespace, names),
    )


def _message_key(archive: Archive, namespace: str, target: str) -> int | None:
    """The archived message of that digest; None where only recorded transcripts can hold it."""
    try:
        name = archive.packer.name(target)
    except ValueError as error:
        raise SessionNotFound(f"{target!r} is no digest of a message") from error
    query = select(messages.c.key).where(
        messages.c.namespace == namespace, messages.c.digest == name
    )
    return archive.connection.execute(query).scalar()


def _covered(connection: Connection, key: int | None) -> dict[int, list[int]]:
    """By session, the entries that a message takes with it."""
    query = (
        select(entries)
        .join(links, links.c.entry_key == entries.c.key)
        .where(links.c.message_key == key)
    )
    return {} if key is None else _in_its_light(connection, connection.execute(query).all())


def _in_its_light(connection: Connection, covering: Sequence[Row[Any]]) -> dict[int, list[int]]:
    """Entries by session that may repeat the message: those that cover it, and every later
    summary, for its writer was shown the earlier ones."""
    first: dict[int, int] = {}
    for row in covering:
        first[row.session_key] = min(row.position, first.get(row.session_key, row.position))
    for session_key, position in list(first.items()):
        for fork in _descendants(connection, [session_key], after=position):
            first[fork] = -1
    found: dict[int, list[int]] = {key: [] for key in first}
    for row in covering:
        found[row.session_key].append(row.key)
    for session_key, position in first.items():
        query = select(entries.c.key).where(
            entries.c.session_key == session_key,
            entries.c.position > position,
            entries.c.kind == "summary",
        )
        found[session_key] += connection.execute(query).scalars()
    return found


def _exclusive(connection: Connection) -> None:
    """Keep commits away: one that links a message just now would lose it."""
    if not is_sqlite(connection):
        connection.execute(text("LOCK TABLE compressor_sessions IN EXCLUSIVE MODE"))


def _bury(connection: Connection, keys: Sequence[int]) -> int:
    """Make tombstones; how many were none before."""
    if not keys:
        return 0
    done = connection.execute(
        update(entries)
        .where(entries.c.key.in_(keys), entries.c.sealed.is_not(None))
        .values(sealed=None)
    )
    return done.rowcount


def _linked(connection: Connection, keys: Iterable[int]) -> set[int]:
    query = select(links.c.message_key).where(links.c.message_key.in_(list(keys)))
    return set(connection.execute(query).scalars())


def _holders(connection: Connection, keys: Iterable[int]) -> set[int]:
    """Sessions that link one of the messages."""
    query = (
        select(entries.c.session_key)
        .join(links, links.c.entry_key == entries.c.key)
        .where(links.c.message_key.in_(list(keys)))
    )
    return set(connection.execute(query).scalars())


def _descendants(
    connection: Connection, keys: Sequence[int], after: int | None = None
) -> list[int]:
    """Forks of the sessions, forks of those too; `after`: only what inherits that position."""
    query = select(sessions.c.key).where(sessions.c.base_key.in_(keys))
    if after is not None:
        query = query.where(sessions.c.base_length > after)
    found = list(connection.execute(query).scalars())
    return found + (_descendants(connection, found) if found else [])


def _names(connection: Connection, keys: Iterable[int]) -> set[str]:
    query = select(sessions.c.id).where(sessions.c.key.in_(list(keys)))
    return set(connection.execute(query).scalars())


def _exports(connection: Connection, namespace: str, ids: Iterable[str]) -> tuple[Export, ...]:
    query = (
        select(exports)
        .where(exports.c.namespace == namespace, exports.c.session_id.in_(list(ids)))
        .order_by(exports.c.created)
    )
    return tuple(Export(row.session_id, row.created, row.note) for row in connection.execute(query))


def _remove(archive: Archive, keys: Iterable[int]) -> None:
    archive.remove(keys)
    if archive.indexed:
        optimize_index(archive.connection)


def _stale(connection: Connection, keys: Iterable[int]) -> None:
    """Tell every process that snapshots of these sessions and their forks are stale."""
    everyone = [*keys]
    everyone += _descendants(connection, everyone)
    connection.execute(
        update(sessions).where(sessions.c.key.in_(everyone)).values(edits=sessions.c.edits + 1)
    )


# ---------------------------------------------------------------- freed pages
_REWRITTEN = ("entries", "messages", "links", "search", "transcripts")
_PATIENCE = 10.0
"""Seconds for transactions that may still read what was forgotten; a backup takes longer."""
_PAUSE = 0.05


def reclaim(database: Database) -> bool:
    """Clear the pages that were freed; whether no byte of them is left in the database's files."""
    try:
        return _of_sqlite(database) if database.is_sqlite else _of_postgresql(database)
    except StoreUnavailable as error:
        # What was forgotten stays forgotten; the caller learns that old bytes may be left.
        logger.warning("freed pages could not be cleared: %s", error)
        return False


def _of_sqlite(database: Database) -> bool:
    # Freed bytes were overwritten in place (secure_delete); old ones may be in the log still.
    ((busy, *_),) = database.maintain(
        "PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"
    )
    return not busy


def _of_postgresql(database: Database) -> bool:
    # A plain VACUUM leaves old bytes in reused pages; FULL writes the tables anew, but copies
    # what a transaction from before may still read, and whoever comes waits behind it.
    if not _no_reader_left(database, database.write(_transaction)):
        return False
    database.maintain(*(f"VACUUM FULL compressor_{name}" for name in _REWRITTEN))
    return True


def _transaction(connection: Connection) -> str:
    """The number of a transaction that began after what was forgotten was committed."""
    return str(connection.execute(text("SELECT pg_current_xact_id()::xid")).scalar())


# Numbers of transactions wrap round, so ages are compared. Readers of other databases count too:
# one that writes there holds back the snapshots of those who begin here.
_BEFORE = text(
    """
    SELECT count(*) FROM (
        SELECT backend_xmin AS held FROM pg_stat_activity WHERE pid <> pg_backend_pid()
        UNION ALL SELECT backend_xid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
        UNION ALL SELECT xmin FROM pg_replication_slots
        UNION ALL SELECT transaction FROM pg_prepared_xacts
    ) AS holders WHERE age(held) > age(CAST(CAST(:now AS text) AS xid))
    """
)


def _no_reader_left(database: Database, now: str) -> bool:
    """Wait until no transaction that began before that one is left; False where one outstays us."""

    def held(connection: Connection) -> bool:
        return bool(connection.execute(_BEFORE, {"now": now}).scalar())

    until = time.monotonic() + _PATIENCE
    while database.read(held):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True
