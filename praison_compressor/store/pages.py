"""Freed pages: on disk, what was forgotten is not yet gone."""

from __future__ import annotations

import logging
import time

from sqlalchemy import Connection, text

from ..errors import StoreUnavailable
from .database import Database

__all__ = ["reclaim"]

logger = logging.getLogger(__name__)

_REWRITTEN = ("entries", "blocks", "messages", "links", "search", "transcripts")
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
