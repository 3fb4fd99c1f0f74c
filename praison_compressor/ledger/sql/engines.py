"""Open SQLite's file or PostgreSQL's server; translate their errors."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc

from ...errors import LedgerConflict, LedgerCorrupt, LedgerError, StoreUnavailable

logger = logging.getLogger(__name__)

LOCK_SECONDS = 2
"""Longest wait for another process's lock."""

_CONNECT_SECONDS = 2

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


_EXPECTED_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


def is_truncated(url: URL) -> bool:
    """Return whether a SQLite file is shorter than its header says.

    SQLite itself reads the header. If Python opened and closed the file, this process's
    connections would lose their locks.
    """
    path = Path(str(url.database)).absolute()
    # Retry: a process that extends the file writes the header page first.
    for seconds in (0.0, 0.05, 0.3):
        time.sleep(seconds)
        try:
            size = path.stat().st_size
            with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as file:
                if size and size >= file.execute(_EXPECTED_BYTES).fetchone()[0]:
                    return False
        except sqlite3.DatabaseError as error:
            if "malformed" not in str(error):
                return False
        except OSError:
            return False
    return True


def file_state(url: URL) -> os.stat_result | None:
    """Return the `stat` of SQLite's file, or None without one."""
    with suppress(OSError):
        return os.stat(str(url.database))
    return None


def _create_private(path: Path) -> None:
    for directory in reversed(path.parents):
        if not directory.exists():
            directory.mkdir(mode=0o700, exist_ok=True)
    # SQLite gives its -wal and -shm files the same rights.
    if not path.exists():
        # O_EXCL: closing a file that another thread opened would end that thread's locks.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    # No warning about a new file: another process may be creating the ledger at this moment.
    elif path.is_file() and not path.stat().st_size and time.time() - path.stat().st_mtime > 1:
        logger.warning(
            "store sqlite:%s: the file is empty, so a new ledger is created; if it held a ledger, "
            "restore a copy",
            path,
        )


def _set_pragmas(connection: Any, _record: object) -> None:
    # We send BEGIN ourselves. The driver sends BEGIN only before the first write: two writers could
    # both read, then fail.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        # A commit has a paid summary: worth one fsync.
        "synchronous = FULL",
        "foreign_keys = ON",
        # With it `forget` overwrites deleted bytes in place.
        "secure_delete = ON",
    ):
        _execute_patiently(cursor, "PRAGMA " + pragma)
    cursor.close()


def _execute_patiently(cursor: Any, statement: str) -> None:
    """Run a statement, waiting for a locked file.

    SQLite itself does not wait while another process sets the journal mode.
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


# -------------------------------------------------------------- PostgreSQL's server


def postgresql_engine(url: URL) -> Engine:
    """Return an engine for a server or its pooler."""
    try:
        import psycopg  # noqa: F401  # else SQLAlchemy's error names no remedy
    except ImportError as error:
        raise StoreUnavailable(
            "PostgreSQL needs psycopg: pip install 'praison-compressor[postgres]'"
        ) from error
    arguments = {
        # These arguments override the URL, so each repeats the URL's own value.
        "connect_timeout": url.query.get("connect_timeout", _CONNECT_SECONDS),
        # Prepare no statements: a pooler (PgBouncer) gives each transaction another connection.
        "prepare_threshold": None,
        # The URL's own options come last, and so win.
        "options": f"-c lock_timeout={LOCK_SECONDS}s {url.query.get('options', '')}",
    }
    return create_engine(
        url,
        hide_parameters=True,
        connect_args=arguments,
        pool_timeout=60,
        # Another writer's new messages must be seen, whatever the server's default is.
        isolation_level="READ COMMITTED",
    )


# -------------------------------------------------------------- errors

_DAMAGE_SIGNS = ("malformed", "not a database", "invalid page", "no such table")
_REMEDY_BY_SIGN = (
    ("disk is full", "the disk is full; free some space"),
    ("no space left", "the disk is full; free some space"),
    ("readonly", "it is read-only; make the file and its directory writable"),
    ("read-only", "it is read-only; write to the primary server"),
    ("unable to open", "it cannot be opened; check that the path exists and is writable"),
    ("locked", "another process has kept it locked; try again, or end that process"),
    ("lock timeout", "another process has kept it locked; try again, or end that process"),
    ("password authentication", "user or password is wrong"),
    ("does not exist", "the server knows no such database or user; create it"),
    ("permission denied", "this user may not do that; grant it the rights to its tables"),
    ("disk i/o", "its file was cut off, or the disk fails; restore a copy, or move it away"),
    ("connection", "it cannot be reached; start its server, or check the store's URL"),
)
# psycopg quotes connection strings in some of its messages.
_PASSWORD = re.compile(r"(?i)(password\s*=\s*|//[^/@\s:]*:)[^\s@&\"']+")


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raise a database's errors as `LedgerError`, with a remedy."""
    try:
        yield
    except exc.IntegrityError as error:
        raise LedgerConflict(
            f"{where}: another writer was first ({_driver_message(error)})"
        ) from error
    except exc.SQLAlchemyError as error:
        raise _ledger_error(where, _driver_message(error)) from error
    except UnicodeEncodeError as error:  # only of a name: messages are stored as bytes
        name = repr(error.object[:60])
        raise LedgerError(f"{where} cannot hold {name}: no UTF-8; use another name") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreUnavailable(f"{where}: {reason}; check the path and its rights") from error


def is_transient(error: exc.DBAPIError) -> bool:
    """Return whether a retry may succeed, as after a deadlock."""
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or state in ("40001", "40P01")


def _ledger_error(where: str, reason: str) -> LedgerError:
    folded = reason.casefold()
    if any(sign in folded for sign in _DAMAGE_SIGNS):
        return LedgerCorrupt(
            f"{where} is damaged or no ledger ({reason}); restore a copy, or move it away"
        )
    for sign, remedy in _REMEDY_BY_SIGN:
        if sign in folded:
            return StoreUnavailable(f"{where}: {remedy} ({reason})")
    return StoreUnavailable(f"{where} cannot be reached or used ({reason})")


def _driver_message(error: exc.SQLAlchemyError) -> str:
    """Return the driver's first line; SQLAlchemy's own text would quote statements."""
    original = getattr(error, "orig", None) or error
    lines = str(original).strip().splitlines() or [type(original).__name__]
    return _PASSWORD.sub(r"\1***", lines[0])
