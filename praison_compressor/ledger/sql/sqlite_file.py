"""Create, open and check the file of a SQLite ledger."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

logger = logging.getLogger(__name__)

LOCK_SECONDS = 2
"""Longest wait for another process."""

_LOCKED_PAUSE = 0.01  # seconds between two tries


def sqlite_engine(url: URL) -> Engine:
    """Return an engine whose processes share the file; create a missing file."""
    _create_private(Path(str(url.database)))
    engine = create_engine(
        url, hide_parameters=True, connect_args={"timeout": LOCK_SECONDS}, pool_timeout=60
    )
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin_transaction)
    return engine


_SIZE_PRAGMAS = ("PRAGMA page_count", "PRAGMA page_size")


def is_truncated(url: URL) -> bool:
    """Return whether a SQLite file is shorter than its header says.

    SQLite reads the header. If this process closed a handle of its own, its connections would
    lose their locks; another process could then delete the log that they use.
    """
    path = Path(str(url.database)).absolute()
    # Retry: a process that extends the file writes the header page first.
    for seconds in (0.0, 0.05, 0.3):
        time.sleep(seconds)
        try:
            size = path.stat().st_size
            with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as file:
                ((pages,),), ((page,),) = map(file.execute, _SIZE_PRAGMAS)
                if size and size >= pages * page:
                    return False
        except sqlite3.DatabaseError as error:
            if "malformed" not in str(error):
                return False
        except OSError:
            return False
    return True


def file_state(url: URL) -> os.stat_result | None:
    """Return the state of a store's file, or None without one."""
    with suppress(OSError):
        return os.stat(str(url.database))
    return None


def _create_private(path: Path) -> None:
    """Create missing file and directories, for this user only."""
    for directory in reversed(path.parents):
        if not directory.exists():
            directory.mkdir(mode=0o700, exist_ok=True)
    # SQLite gives its -wal and -shm files the same rights.
    if not path.exists():
        # A close of a file that a thread has opened since would end that thread's locks.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    # A file that another process creates at this moment is empty too.
    elif path.is_file() and not path.stat().st_size and time.time() - path.stat().st_mtime > 1:
        logger.warning(
            "store sqlite:%s: the file is empty, so a new ledger is created; if it held a ledger, "
            "restore a copy",
            path,
        )


def _set_pragmas(connection: Any, _record: object) -> None:
    # With the driver's late BEGIN two writers would both read first, and both fail.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        # A commit is rare and holds a paid summary: worth one fsync.
        "synchronous = FULL",
        "foreign_keys = ON",
        # `forget` overwrites in place.
        "secure_delete = ON",
    ):
        _execute_patiently(cursor, "PRAGMA " + pragma)
    cursor.close()


def _execute_patiently(cursor: Any, statement: str) -> None:
    """Run a statement, waiting for a locked file.

    SQLite itself does not wait while a journal changes its mode: of several processes that open a
    new store all but one would fail.
    """
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_LOCKED_PAUSE)
        else:
            return


def _begin_transaction(connection: Connection) -> None:
    statement = connection.get_execution_options().get("begin", "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)
