"""Use one database from threads, after forks and server restarts."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    exc,
    insert,
    inspect,
    make_url,
    select,
    text,
)

from ...concurrency import fork_guard, renew_after_fork
from ...config import STORE_KINDS
from ...errors import CompressorError, LedgerCorrupt, StoreUnavailable
from .archive import Codec, Packer, SqlArchive, new_pepper, packer_of
from .engines import (
    file_state,
    is_transient,
    is_truncated,
    postgresql_engine,
    sqlite_engine,
    translate_errors,
)
from .index import SearchSizes
from .schema import LAYOUT, make_tables, meta, metadata

logger = logging.getLogger(__name__)

T = TypeVar("T")
Url = str | os.PathLike[str] | None
"""A URL, a path, or None for the default path."""

_CREATION_LOCK = 0x70726169_736F6E63  # "praisonc", the lock of the process that makes the tables
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"
_TRIES = 3
PATIENCE_SECONDS = 10.0
"""Longest wait for older transactions before pages are cleared."""
_PAUSE_SECONDS = 0.05
# After a failure that took 1 s, nothing is tried for 10 s: otherwise every turn of an agent would
# wait.
_COOLDOWN_FACTOR = 10
_EXPECTED_URL = "expected sqlite:///path or postgresql://user@host/database"


def default_path(*, encrypted: bool = False) -> Path:
    """Return the ledger's default path, in the platform's directory for user data."""
    name = "ledger-encrypted.db" if encrypted else "ledger.db"
    return Path(platformdirs.user_data_dir("praison-compressor")) / name


def parse_url(url: Url) -> URL:
    """Return a database's URL from a URL, a path, or None.

    Raises:
        StoreUnavailable: the text names no SQLite file and no PostgreSQL database.
    """
    name = str(default_path()) if url is None else os.fspath(url)
    if name in STORE_KINDS:
        raise StoreUnavailable(f"{name!r} names a kind of store and no place; {_EXPECTED_URL}")
    if "://" not in name:
        name = f"sqlite:///{name}"
    try:
        parsed = make_url(name)
    except (exc.ArgumentError, ValueError) as error:
        # The text may hold a password, so the error does not repeat it.
        raise StoreUnavailable(f"the store's URL cannot be read; {_EXPECTED_URL}") from error
    kind = parsed.drivername
    if kind not in STORE_KINDS:
        raise StoreUnavailable(f"a store of the kind {kind!r} is not supported; {_EXPECTED_URL}")
    if kind.startswith("postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    path = name.partition(":///")[2]
    if not path or path == ":memory:":
        raise StoreUnavailable("sqlite:// names no file; expected sqlite:///path/to/ledger.db")
    return URL.create("sqlite", database=os.path.abspath(os.path.expanduser(path)))


def _display_name(url: URL) -> str:
    """Return the store's name for messages, without user and password."""
    if url.get_backend_name() == "sqlite":
        return f"store sqlite:{url.database}"
    host = url.host or url.query.get("host") or "local socket"
    port = f":{url.port}" if url.port else ""
    return f"store postgresql://{host}{port}/{url.database or ''}"


class Database:
    """Run work in transactions; raise each error as a `LedgerError`."""

    def __init__(
        self, url: Url, codec: Codec | None, accepts_plain: bool, sizes: SearchSizes
    ) -> None:
        self.url = parse_url(url)
        self.location = _display_name(self.url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._codec = codec
        self._accepts_plain = accepts_plain
        self._sizes = sizes
        self._lock = renew_after_fork(threading.RLock())
        # One thread writes at a time: SQLite serves waiting writers in no order, so that some of
        # many threads would wait too long.
        self._writing = renew_after_fork(threading.Lock())
        self._engine: Engine | None = None
        self._packer = Packer()  # replaced at the first opening
        self._file: os.stat_result | None = None  # SQLite's file at the last write
        # Kind of transaction -> until when it is refused, and the error's text.
        self._cooldowns: dict[str, tuple[float, str]] = {}
        renew_after_fork(self)

    def _at_fork_close(self) -> None:
        # Two processes must not use one connection.
        engine = self._engine
        if engine is not None:
            engine.dispose()

    def _at_fork_reinit(self) -> None:
        self._engine = None

    def read(self, work: Callable[[SqlArchive], T]) -> T:
        """Run work that only reads; return its result.

        Raises:
            LedgerCorrupt: a row has a value of a wrong form.
        """
        try:
            return self._retry(work, _READ)
        except CompressorError:
            raise
        except (AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
            raise LedgerCorrupt(
                f"{self.location}: a row was changed, and cannot be read ({error!r:.80}); "
                "restore a copy, or move it away"
            ) from error

    def write(self, work: Callable[[SqlArchive], T]) -> T:
        """Run work that writes, in one transaction; return its result."""
        with self._writing if self.is_sqlite else nullcontext():
            if self.is_sqlite and self._engine is not None:
                self._check_file()
            return self._retry(work, _WRITE)

    def _check_file(self) -> None:
        """Close a replaced file; refuse a truncated file."""
        before, now = self._file, file_state(self.url)
        if before is None or now is None or not os.path.samestat(before, now):
            # Close the deleted file: a commit to it would be lost.
            logger.warning(
                "%s: its file was deleted or replaced, and its content is gone; the file at its "
                "path is used from now on, and created if missing",
                self.location,
            )
            self.close()
            return
        if now.st_size < before.st_size:
            # Check now: a process with cached pages would not notice the loss.
            self._check_size()
        self._file = now

    def clear_freed_pages(self) -> bool:
        """Overwrite freed pages; return whether all old bytes are gone."""
        try:
            return self._clear_file() if self.is_sqlite else self._clear_tables()
        except StoreUnavailable as error:
            logger.warning("freed pages could not be cleared: %s", error)
            return False

    def _clear_file(self) -> bool:
        # `secure_delete` overwrote freed bytes in place; the log may still hold old bytes.
        ((busy, *_),) = self._run_alone("PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    def _clear_tables(self) -> bool:
        # A plain VACUUM leaves old bytes in reused pages. VACUUM FULL rewrites the tables, but
        # copies rows that an older transaction may still read: wait for older transactions.
        now = self.write(lambda a: str(a.execute(text(_CURRENT_TRANSACTION)).scalar()))
        until = time.monotonic() + PATIENCE_SECONDS
        while self.read(lambda a: a.execute(_OLDER_TRANSACTIONS, {"now": now}).scalar()):
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_SECONDS)
        for name in (*metadata.tables, "compressor_search"):
            self._run_alone(f"VACUUM FULL {name}")
        return True

    def _run_alone(self, statement: str) -> list[Any]:
        """Run a statement outside a transaction; return its rows."""
        with self._explain_errors(), fork_guard, self._get_engine().connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT", begin="")
            result = connection.exec_driver_sql(statement)
            return list(result.all()) if result.returns_rows else []

    def exists(self) -> bool:
        """Return whether the database has a ledger; create nothing.

        Raises:
            StoreUnavailable: the database cannot be reached, or its path cannot be written.
        """
        if self.is_sqlite and not os.path.exists(str(self.url.database)):
            above = next(p for p in Path(str(self.url.database)).parents if os.path.exists(p))
            # Write a file to find out: by the permission bits root may write to every directory,
            # even on a read-only disk.
            with self._explain_errors(), tempfile.TemporaryFile(dir=above):
                return False
        engine = create_engine(self.url) if self.is_sqlite else postgresql_engine(self.url)
        try:
            with self._explain_errors(), engine.connect() as connection:
                return bool(_read_meta(connection))
        finally:
            engine.dispose()

    def close(self) -> None:
        """Close the connections of this process."""
        with fork_guard, self._lock:
            if self._engine is not None:
                self._engine.dispose()
            self._engine = None

    # -------------------------------------------------------------- inside

    def _retry(self, work: Callable[[SqlArchive], T], begin: str) -> T:
        with self._cool_down(begin):
            for _ in range(_TRIES - 1):
                try:
                    return self._attempt(work, begin)
                except exc.DBAPIError as error:
                    # Retrying is safe: a commit that has already succeeded raises `LedgerConflict`.
                    if not is_transient(error):
                        raise
            return self._attempt(work, begin)

    def _attempt(self, work: Callable[[SqlArchive], T], begin: str) -> T:
        with fork_guard, self._get_engine().connect() as connection:
            connection = connection.execution_options(begin=begin)
            with connection.begin():
                return work(SqlArchive(connection, self._packer, self._sizes))

    def _get_engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                # Other threads wait for this lock: after a failed opening they fail at once.
                with self._cool_down(_READ):
                    self._engine = self._open_engine()
            return self._engine

    @contextmanager
    def _cool_down(self, begin: str) -> Iterator[None]:
        started = time.monotonic()
        # A failed read stops writes too; a failed write does not stop reads.
        for kind in (_READ, begin):
            until, reason = self._cooldowns.get(kind, (0.0, ""))
            if started < until:
                raise StoreUnavailable(reason)
        try:
            with self._explain_errors():
                yield
        except StoreUnavailable as error:
            now = time.monotonic()
            self._cooldowns[begin] = now + _COOLDOWN_FACTOR * (now - started), str(error)
            raise

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            with translate_errors(self.location):
                yield
        except StoreUnavailable as error:
            # SQLite may report a truncated file as locked.
            self._check_size(error)
            raise

    def _check_size(self, cause: Exception | None = None) -> None:
        if self.is_sqlite and is_truncated(self.url):
            raise LedgerCorrupt(
                f"{self.location} was truncated: its file is shorter than its header says; "
                "restore a copy, or move it away"
            ) from cause

    def _open_engine(self) -> Engine:
        path = str(self.url.database)
        if self.is_sqlite and os.path.isfile(path) and not os.access(path, os.W_OK):
            # Check now: SQLite reports a read-only file only at the first write.
            raise StoreUnavailable(
                f"{self.location}: it is read-only; make the file and its directory writable"
            )
        engine = sqlite_engine(self.url) if self.is_sqlite else postgresql_engine(self.url)
        try:
            with engine.connect() as connection:
                values = self._get_meta(connection)
            self._packer = packer_of(
                values, self._codec, self.location, accepts_plain=self._accepts_plain
            )
            self._file = file_state(self.url) if self.is_sqlite else None
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _get_meta(self, connection: Connection) -> dict[str, bytes]:
        """Return the values of `meta`; create the tables of a new store."""
        with connection.begin():
            values = _read_meta(connection)
        if values:
            return values
        # Only a new store takes SQLite's write lock: an existing store opens during writes.
        with connection.execution_options(begin=_WRITE).begin():
            if not self.is_sqlite:  # creating tables takes longer than a commit
                connection.execute(text("SET LOCAL lock_timeout = '60s'"))
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
            return _read_meta(connection) or self._make_meta(connection)

    def _make_meta(self, connection: Connection) -> dict[str, bytes]:
        make_tables(connection)
        values = {"layout": LAYOUT, "pepper": new_pepper(self._codec)}
        rows = [{"name": name, "value": value} for name, value in values.items()]
        connection.execute(insert(meta), rows)
        return values


def _read_meta(connection: Connection) -> dict[str, bytes]:
    if not inspect(connection).has_table(meta.name):
        return {}
    rows = connection.execute(select(meta.c.name, meta.c.value)).all()
    return {"layout": b"", **{name: value for name, value in rows if isinstance(value, bytes)}}


# ---------------------------------------------------------------- transactions of PostgreSQL
_CURRENT_TRANSACTION = "SELECT pg_current_xact_id()::xid"

# Ages are compared, because transaction numbers wrap around. Transactions in the server's other
# databases count too.
_OLDER_TRANSACTIONS = text(
    """
    SELECT count(*) FROM (
        SELECT backend_xmin AS held FROM pg_stat_activity WHERE pid <> pg_backend_pid()
        UNION ALL SELECT backend_xid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
        UNION ALL SELECT xmin FROM pg_replication_slots
        UNION ALL SELECT transaction FROM pg_prepared_xacts
    ) AS holders WHERE age(held) > age(CAST(CAST(:now AS text) AS xid))
    """
)
