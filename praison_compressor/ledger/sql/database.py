"""One database, reached safely from threads, after a fork, after a restart of the server."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
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
    event,
    exc,
    insert,
    inspect,
    make_url,
    select,
    text,
)

from ...config import STORE_KINDS
from ...errors import LedgerConflict, LedgerCorrupt, LedgerError, StoreUnavailable
from ...messages.forks import renewed, undivided
from .archive import Archive, Codec, Packer, new_pepper, packer_of
from .schema import LAYOUT, make_tables, meta

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MAKING = 0x70726169_736F6E63  # "praisonc", an advisory lock: one process makes the tables
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"
_LOCKED_PAUSE = 0.01  # seconds between two tries
_LOCK_SECONDS = 2
_CONNECT_SECONDS = 2
_TRIES = 3
# After what failed slowly, fail at once for this many times as long: an agent's turn must not wait
# for a locked file or a dead server again and again.
_REST = 10
_EXPECTED = "expected sqlite:///path or postgresql://user@host/database"


def default_path(*, encrypted: bool = False) -> Path:
    """Where the ledger is when no path is given: the platform's directory for a user's data.

    The encrypted one is beside the plain one: a file is encrypted with one key, or not at all.
    """
    name = "ledger-encrypted.db" if encrypted else "ledger.db"
    return Path(platformdirs.user_data_dir("praison-compressor")) / name


def parse(url: str | os.PathLike[str] | None) -> URL:
    """A database's URL from a URL, a path, or nothing."""
    given = str(default_path()) if url is None else os.fspath(url)
    if given in STORE_KINDS:
        raise StoreUnavailable(f"{given!r} names a kind of store and no place; {_EXPECTED}")
    if "://" not in given:
        given = f"sqlite:///{given}"
    try:
        parsed = make_url(given)
    except (exc.ArgumentError, ValueError) as error:
        # The text itself may hold a password: not a word of it is repeated.
        raise StoreUnavailable(f"the store's URL cannot be read; {_EXPECTED}") from error
    kind = parsed.drivername
    if kind not in STORE_KINDS:
        raise StoreUnavailable(f"a store of the kind {kind!r} is not supported; {_EXPECTED}")
    if kind.startswith("postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    path = given.partition(":///")[2]
    if not path or path == ":memory:":
        raise StoreUnavailable("sqlite:// names no file; expected sqlite:///path/to/ledger.db")
    return URL.create("sqlite", database=os.path.abspath(os.path.expanduser(path)))


def _place(url: URL) -> str:
    """The store in words for messages: no user, no password, no options."""
    if url.get_backend_name() == "sqlite":
        return f"store sqlite:{url.database}"
    host = url.host or url.query.get("host") or "local socket"
    port = f":{url.port}" if url.port else ""
    return f"store postgresql://{host}{port}/{url.database or ''}"


class Database:
    """Runs work in transactions; everything that it raises is a `LedgerError`."""

    def __init__(
        self,
        url: str | os.PathLike[str] | None,
        codec: Codec | None,
        plain_too: bool,
        on_open: Callable[[], None],
    ) -> None:
        """`on_open` hears of every opening: what was read before may be of another file."""
        self.url = parse(url)
        self.place = _place(self.url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._codec = codec
        self._plain_too = plain_too
        self._on_open = on_open
        self._lock = renewed(threading.RLock())
        # SQLite takes one writer at a time and serves those who wait in no order: of hundreds of
        # threads some would wait too long. Only one of a process asks it.
        self._writing = renewed(threading.Lock())
        self._engine: Engine | None = None
        self._packer = Packer()  # the store's own, once it was reached
        self._file: tuple[int, int] | None = None
        # By kind of transaction: until when it is refused, and in which words.
        self._rests: dict[str, tuple[float, str]] = {}
        renewed(self)

    def _at_fork_close(self) -> None:
        # SQLite and PostgreSQL both forbid a connection on two sides of a fork.
        engine = self._engine
        if engine is not None:
            engine.dispose()

    def _at_fork_reinit(self) -> None:
        self._engine = None

    def read(self, work: Callable[[Archive], T]) -> T:
        """The outcome of work that only reads."""
        return self._run(work, _READ)

    def write(self, work: Callable[[Archive], T]) -> T:
        """The outcome of work that writes, all of it or nothing."""
        with self._writing if self.is_sqlite else nullcontext():
            if self.is_sqlite and self._engine is not None and self._file != _identity(self.url):
                # What is written to the file that is open nobody would find again.
                logger.warning(
                    "%s: its file was deleted or replaced; what it held is gone, the file at its "
                    "path is used from now on, and made anew if there is none",
                    self.place,
                )
                self.close()
            return self._run(work, _WRITE)

    def maintain(self, statement: str) -> list[Any]:
        """Run a statement that may not be in a transaction; its rows."""
        with _translated(self.place), undivided, self._ready().connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT", begin="")
            result = connection.exec_driver_sql(statement)
            return list(result.all()) if result.returns_rows else []

    def is_made(self) -> bool:
        """Whether a ledger was made there; what else may be there is left as it is."""
        if self.is_sqlite and not os.path.exists(str(self.url.database)):
            above = next(p for p in Path(str(self.url.database)).parents if os.path.exists(p))
            try:
                # Tried, not looked up: by the rights alone root may write to every place.
                with tempfile.TemporaryFile(dir=above):
                    return False
            except OSError as error:
                said = f"{self.place}: {above} is no directory that is writable"
                raise StoreUnavailable(f"{said}; check the path and its rights") from error
        engine = create_engine(self.url) if self.is_sqlite else _postgresql(self.url)
        try:
            with _translated(self.place), engine.connect() as connection:
                return bool(_about(connection))
        finally:
            engine.dispose()

    def close(self) -> None:
        """Close the connections of this process."""
        with undivided, self._lock:
            if self._engine is not None:
                self._engine.dispose()
            self._engine = None

    # -------------------------------------------------------------- inside

    def _run(self, work: Callable[[Archive], T], begin: str) -> T:
        with self._resting(begin):
            for _ in range(_TRIES - 1):
                try:
                    return self._once(work, begin)
                except exc.DBAPIError as error:
                    # Safe to repeat: a commit whose answer was lost meets its own moved tip.
                    if not _is_transient(error):
                        raise
            return self._once(work, begin)

    def _once(self, work: Callable[[Archive], T], begin: str) -> T:
        with undivided, self._ready().connect() as connection:
            connection = connection.execution_options(begin=begin)
            with connection.begin():
                return work(Archive(connection, self._packer))

    def _ready(self) -> Engine:
        with self._lock:
            if self._engine is None:
                with self._resting(_READ):  # here too: others wait for the lock to do the same
                    self._engine = self._opened()
                self._on_open()
            return self._engine

    @contextmanager
    def _resting(self, begin: str) -> Iterator[None]:
        started = time.monotonic()
        # What cannot be read cannot be written; what another keeps from writing can be read.
        for kind in (_READ, begin):
            until, told = self._rests.get(kind, (0.0, ""))
            if started < until:
                raise StoreUnavailable(told)  # in the same words: it is the same failure
        try:
            with _translated(self.place):
                yield
        except StoreUnavailable as error:
            now = time.monotonic()
            self._rests[begin] = now + _REST * (now - started), str(error)
            raise

    def _opened(self) -> Engine:
        path = str(self.url.database)
        if self.is_sqlite and os.path.isfile(path) and not os.access(path, os.W_OK):
            # At once: SQLite says so at the first word that is written.
            raise StoreUnavailable(
                f"{self.place}: it is read-only; make the file and its directory writable"
            )
        engine = _sqlite(self.url) if self.is_sqlite else _postgresql(self.url)
        try:
            with engine.connect() as connection:
                self._packer = self._packer_of(connection)
            self._file = _identity(self.url)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _packer_of(self, connection: Connection) -> Packer:
        """How the store packs; a new one gets its tables."""
        with connection.begin():
            known = _about(connection)
        if not known:
            # The one lock of SQLite only here: what has its tables opens while others write.
            with connection.execution_options(begin=_WRITE).begin():
                if not self.is_sqlite:  # whoever makes the tables needs longer than a commit
                    connection.execute(text("SET LOCAL lock_timeout = '60s'"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MAKING})"))
                known = _about(connection)
                if not known:
                    make_tables(connection)
                    known = {"layout": LAYOUT, "pepper": new_pepper(self._codec)}
                    rows = [{"name": name, "value": value} for name, value in known.items()]
                    connection.execute(insert(meta), rows)
        if known.get("layout") != LAYOUT or "pepper" not in known:
            raise StoreUnavailable(
                f"{self.place} was written by another version, and its layout is unknown here "
                f"(expected {LAYOUT.decode()}); use the version that wrote it, or another store"
            )
        packer = packer_of(known["pepper"], self._codec, self.place, plain_too=self._plain_too)
        if self._codec is not None and not packer.encrypts:
            logger.warning("%s is not encrypted and stays so: the key is not used", self.place)
        return packer


def _about(connection: Connection) -> dict[str, bytes]:
    """What the store says of itself; nothing where it is new."""
    if not inspect(connection).has_table(meta.name):
        return {}
    found = connection.execute(select(meta.c.name, meta.c.value)).all()
    return {"layout": b"", **{name: value for name, value in found if isinstance(value, bytes)}}


# ---------------------------------------------------------------- SQLite
def _sqlite(url: URL) -> Engine:
    _private(Path(str(url.database)))
    engine = create_engine(
        url, hide_parameters=True, connect_args={"timeout": _LOCK_SECONDS}, pool_timeout=60
    )
    event.listen(engine, "connect", _pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _identity(url: URL) -> tuple[int, int] | None:
    """Which file is at the path of a SQLite store."""
    try:
        found = os.stat(str(url.database))
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _private(path: Path) -> None:
    """Make the file and the directories to it for this user only; what exists is left alone."""
    for directory in reversed(path.parents):
        if not directory.exists():
            directory.mkdir(mode=0o700, exist_ok=True)
    # SQLite gives its -wal and -shm files the rights of the database itself.
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _pragmas(connection: Any, _record: object) -> None:
    # The driver's own, late BEGIN would make two writers read first and then fail both.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        # A commit is rare and holds what a model was paid for: worth one fsync.
        "synchronous = FULL",
        "foreign_keys = ON",
        # What `forget` removes is overwritten in place.
        "secure_delete = ON",
    ):
        _until_it_is_free(cursor, "PRAGMA " + pragma)
    cursor.close()


def _until_it_is_free(cursor: Any, statement: str) -> None:
    """Run it, waiting for the file: SQLite itself does not wait where a journal changes its kind,
    and of those who open a new store at once all but one would be refused."""
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_LOCKED_PAUSE)
        else:
            return


def _begin(connection: Connection) -> None:
    statement = connection.get_execution_options().get("begin", "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)


# ---------------------------------------------------------------- PostgreSQL
def _postgresql(url: URL) -> Engine:
    try:
        import psycopg  # noqa: F401  # only to say how it is installed
    except ImportError as error:
        raise StoreUnavailable(
            "PostgreSQL needs psycopg: pip install 'praison-compressor[postgres]'"
        ) from error
    arguments: dict[str, Any] = {
        # A pooler in front (PgBouncer) gives each transaction another connection.
        "prepare_threshold": None,
        # Who says another bound says it later, and that counts.
        "options": f"-c lock_timeout={_LOCK_SECONDS}s {url.query.get('options', '')}",
    }
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = _CONNECT_SECONDS
    return create_engine(
        url,
        hide_parameters=True,
        connect_args=arguments,
        pool_timeout=60,
        # What another writer has just archived must be seen, whatever the server's default is.
        isolation_level="READ COMMITTED",
    )


# ---------------------------------------------------------------- errors in our words
_DAMAGED = ("malformed", "not a database", "invalid page", "no such table")
_REMEDIES = (
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
    ("connection", "it cannot be reached; start its server, or check the store's URL"),
)
# psycopg quotes connection strings in some of its messages.
_SECRET = re.compile(r"(?i)(password\s*=\s*|//[^/@\s:]*:)[^\s@&\"']+")


@contextmanager
def _translated(where: str) -> Iterator[None]:
    """Let out only `LedgerError`, with fact and remedy; `where` names the store."""
    try:
        yield
    except exc.IntegrityError as error:
        raise LedgerConflict(f"{where}: another writer was first ({_short(error)})") from error
    except exc.SQLAlchemyError as error:
        raise _translation(where, _short(error)) from error
    except UnicodeEncodeError as error:  # names only: messages are stored as bytes
        said = f"{where} cannot hold {error.object[:60]!r}: no text in UTF-8"
        raise LedgerError(f"{said}; name it otherwise") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreUnavailable(f"{where}: {reason}; check the path and its rights") from error


def _is_transient(error: exc.DBAPIError) -> bool:
    """Whether the same work may succeed at once: a dead connection, a deadlock's victim."""
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or state in ("40001", "40P01")


def _translation(where: str, reason: str) -> LedgerError:
    folded = reason.casefold()
    if any(sign in folded for sign in _DAMAGED):
        return LedgerCorrupt(
            f"{where} is damaged or no ledger ({reason}); restore a copy, or move it away"
        )
    for sign, remedy in _REMEDIES:
        if sign in folded:
            return StoreUnavailable(f"{where}: {remedy} ({reason})")
    return StoreUnavailable(f"{where} cannot be reached or used ({reason})")


def _short(error: exc.SQLAlchemyError) -> str:
    """The first line of what the driver says; SQLAlchemy's own text would quote statements."""
    original = getattr(error, "orig", None) or error
    lines = str(original).strip().splitlines() or [type(original).__name__]
    return _SECRET.sub(r"\1***", lines[0])
