"""A store that fails: one clear error, and nothing lost or half written."""

import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from praison_compressor import (
    CompressorConfig,
    ConfigError,
    ContextCompressor,
    LedgerConflict,
    LedgerCorrupt,
    LedgerError,
    MemoryStore,
    StoreUnavailable,
)
from praison_compressor.ledger.sql.store import open_store
from tests.helpers.compressing import Model
from tests.helpers.processes import python
from tests.helpers.talks import NAMESPACE, committed, segment, talk
from tests.helpers.transcripts import coding_turns, find_repairs


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://root:hunter2@host/db", "'mysql' is not supported"),
        ("sqlite://", "names no file"),
        ("sqlite", "names a kind of store and no place"),
        ("postgresql://user:hunter2@host:notaport/db", "URL cannot be read"),
        ("://hunter2", "URL cannot be read"),
    ],
)
def test_a_wrong_url_is_one_clear_error(url, said):
    """The error names the expected form without the given password."""
    with pytest.raises(StoreUnavailable, match=said) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
    assert "sqlite:///" in str(caught.value)


def test_a_torn_file_is_damaged(tmp_path):
    """Half a database is an error, never an empty answer."""
    path = tmp_path / "ledger.db"
    store = open_store(path)
    committed(store, "s", *(talk(40, f"topic{n}") for n in range(10)))
    store.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    faults = open_store(path).verify()
    assert faults
    assert "ledger.db is damaged" in str(faults[0])


def test_a_name_that_no_database_can_hold_is_refused(tmp_path):
    """An empty or invalid id is the caller's error on every store, with a short quote."""
    stores: list[Any] = [open_store(tmp_path / "ledger.db"), MemoryStore()]
    for store in stores:
        for name in ("", "nul\0", "\udc80", "x" * 5_000, 3, b"s"):
            with pytest.raises(ConfigError, match=r"^session_id=.{1,61}: expected a name of 1 to"):
                store.open(NAMESPACE, name)


# ---------------------------------------------------------------- locked, lost


WAITS = re.compile("^BEGIN IMMEDIATE$|FOR UPDATE$")
"""Statements that wait for a lock."""


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Keep everybody else from writing, as another program would."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE compressor_sessions IN EXCLUSIVE MODE")
            yield
            other.rollback()


def test_a_driver_waits_for_two_seconds(store_url, connections):
    """A driver waits two seconds for a lock, and two for a server."""
    open_store(store_url).check()
    expected: dict[str, object] = {"timeout": 2}
    if store_url.startswith("postgresql"):
        options = make_url(store_url).query["options"]
        expected = {"connect_timeout": 2, "options": f"-c lock_timeout=2s {options}"}
    assert connections[0].items() >= expected.items()


def test_a_locked_store_is_waited_for_once(store_url, statements):
    """A locked store delays only one write in a cooldown."""
    store = open_store(store_url)
    session = committed(store, "s", talk(3, "a"))
    with locked(store_url):
        statements.clear()
        reasons = set()
        for _ in range(4):
            with pytest.raises(StoreUnavailable, match="kept it locked") as caught:
                store.commit(session, [(segment(talk(3, "b")), talk(3, "b"))])
            reasons.add(str(caught.value))
            assert store.open(NAMESPACE, "s") == session
        assert open_store(store_url).open(NAMESPACE, "s").tip == session.tip
    assert len(reasons) == 1
    assert len([sent for sent in statements if WAITS.search(sent)]) == 1
    store.close()


def _deleted_with_its_log(path: Path) -> None:
    for file in path.parent.glob(path.name + "*"):
        file.unlink()


def _another_in_its_place(path: Path) -> None:
    with closing(open_store(path.with_name("other.db"))) as other:
        committed(other, "other", talk(3))
    _deleted_with_its_log(path)
    path.with_name("other.db").replace(path)


@pytest.mark.parametrize("lose", [_deleted_with_its_log, _another_in_its_place])
def test_a_file_that_went_away_is_made_again(lose, tmp_path, caplog):
    """After a deletion the next commit makes the file again, with one log line."""
    path = tmp_path / "ledger.db"
    store = open_store(path)
    lost = committed(store, "s", talk(3, "a"), talk(3, "b"))
    lose(path)
    with pytest.raises(LedgerConflict, match="read it again"):
        store.commit(lost, [(segment(talk(3, "c")), talk(3, "c"))])
    session = committed(store, "s", talk(3, "c"))
    with closing(open_store(path)) as other:
        assert other.open(NAMESPACE, "s") == session
        assert other.verify() == []
    assert [entry.segment.run for entry in session.entries] == [segment(talk(3, "c")).run]
    (logged,) = [m for m in caplog.messages if "deleted or replaced" in m]
    assert str(path) in logged
    store.close()


@pytest.mark.parametrize("left", [0, 2_048])
def test_a_truncated_file_is_not_written_to(left, tmp_path):
    """A write to a truncated file raises LedgerCorrupt."""
    path = tmp_path / "ledger.db"
    with closing(open_store(path)) as store:
        session = committed(store, "s", talk(3, "a"))
        os.truncate(path, left)
        with pytest.raises(LedgerCorrupt, match=r"was truncated.*restore a copy"):
            store.commit(session, [(segment(talk(3, "c")), talk(3, "c"))])


def test_another_process_ends_no_lock(tmp_path):
    """Another process that opens and closes the store does not lose later writes."""
    path = tmp_path / "ledger.db"
    with closing(open_store(path)) as store:
        session, seen = committed(store, "s", talk(3, "a")), []
        for said in "bcd":
            session = store.open(NAMESPACE, "s")
            store.commit(session, [(segment(talk(3, said)), talk(3, said))])
            seen.append(int(_read_elsewhere(path).stdout))
    assert seen == [2, 3, 4]


def _read_elsewhere(path: Path) -> subprocess.CompletedProcess[str]:
    """Print a session's number of entries in another process."""
    read = (
        "import sys; from praison_compressor.ledger.sql.store import open_store; "
        "s = open_store(sys.argv[1]); print(len(s.open(sys.argv[2], 's').entries)); s.close()"
    )
    return python("-c", read, str(path), NAMESPACE, folder=path.parent, environment=os.environ)


def test_a_file_cut_to_nothing_beside_its_log_is_reported(tmp_path):
    """Another process reads neither an empty ledger nor an error without a remedy."""
    path = tmp_path / "ledger.db"
    with closing(open_store(path)) as store:
        committed(store, "s", talk(3, "a"))
        os.truncate(path, 0)
        with pytest.raises(LedgerCorrupt, match=r"was truncated.*restore a copy"):
            open_store(path).open(NAMESPACE, "s")
        assert re.search(r"(truncated|cut off).*restore a copy", _read_elsewhere(path).stderr)


def test_an_empty_file_is_named(tmp_path, caplog):
    """Opening an old file of 0 bytes logs one warning with its path."""
    path = tmp_path / "ledger.db"
    path.touch()
    os.utime(path, (1, 1))
    with closing(open_store(path)) as store:
        committed(store, "s", talk(3, "a"))
    (logged,) = [m for m in caplog.messages if "the file is empty" in m]
    assert str(path) in logged


# ---------------------------------------------------------------- conversations
CONFIG = CompressorConfig(
    model="gpt-4o", context_window=5_000, protect_last_n_tokens=800, namespace=NAMESPACE
)


def grown(url: str, turns: Sequence[int], model: Model, **options: Any) -> Any:
    """Return the last result of a conversation that was sent after each of these turns."""
    subject = ContextCompressor(CONFIG, summarizer=model, store=open_store(url))
    return [subject.compress_sync(coding_turns(count), **options) for count in turns][-1]


def test_a_fork_pays_only_for_what_is_its_own(store_url):
    """A fork does not summarize the common prefix again."""
    paid, model = Model(), Model()
    parent = grown(store_url, range(2, 13, 2), paid, session_id="s")
    fork = grown(store_url, [12], model, session_id="f", parent_session_id="s")
    assert json.dumps(fork.messages) == json.dumps(parent.messages)
    assert model.requests == []
    grown(store_url, range(12, 17, 2), model, session_id="f")
    assert 0 < len(model.requests) < len(paid.requests) + 2


def test_a_fork_does_not_change_its_parent(store_url):
    """Compressions of a fork do not change its parent."""
    parent = grown(store_url, range(2, 13, 2), Model(), session_id="s")
    model = Model()
    grown(store_url, [12], model, session_id="f", parent_session_id="s")
    grown(store_url, range(12, 17, 2), model, session_id="f")
    assert model.requests
    assert open_store(store_url).open(NAMESPACE, "s").tip == parent.session_id


def _wait_for_the_cooldown(store: Any) -> None:
    for _ in range(600):
        with suppress(StoreUnavailable):
            store.check()
            return
        time.sleep(0.1)
    store.check()


def test_an_agent_is_answered_while_the_server_is_away(postgres):
    """An outage of PostgreSQL breaks no view and doubles no segment."""
    store = open_store(postgres.empty())
    ours = ContextCompressor(CONFIG, store=store)
    ours.compress_sync(coding_turns(6), session_id="s")
    for turns in (9, 14):
        before = store.open(NAMESPACE, "s")
        postgres.stop()
        try:
            with pytest.raises(LedgerError):
                ours.compress_sync(coding_turns(turns), session_id="s")
            away = ours.fallback_view(coding_turns(turns), session_id="s").messages
        finally:
            postgres.start()
        _wait_for_the_cooldown(store)
        assert find_repairs(away) == []
        assert store.open(NAMESPACE, "s") == before
        done = ours.compress_sync(coding_turns(turns), session_id="s")
        assert (done.summary_method, find_repairs(done.messages)) == ("static", [])
    runs = [entry.segment.run for entry in store.open(NAMESPACE, "s").entries]
    assert len(set(runs)) == len(runs) >= 3
    assert store.verify() == []
    store.close()
