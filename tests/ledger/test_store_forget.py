"""`forget` removes words from archive, index and file, and the chain stays valid."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from praison_compressor import LedgerConflict, SessionNotFound
from praison_compressor.ledger.segments import BLANK
from praison_compressor.ledger.sql import database
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import content_digest
from tests.helpers.stores import bytes_of
from tests.helpers.talks import NAMESPACE, archived, committed, segment, talk, verify


def test_a_forgotten_session_is_gone(sql_store):
    """Originals, summaries and index of a forgotten session are empty."""
    session = committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    erased = sql_store.forget(NAMESPACE, session.tip)
    assert (erased.segments, erased.messages, erased.sessions) == (2, 8, ("s",))
    assert erased.pages_cleared
    again = sql_store.open(NAMESPACE, "s")
    assert [entry.segment for entry in again.entries] == [BLANK, BLANK]
    assert [sql_store.originals(again, entry) for entry in session.entries] == [None, None]
    assert archived(sql_store, "s") == []
    assert sql_store.search(NAMESPACE, "hello") == []


def test_another_process_sees_a_forgotten_session(sql_store, store_url):
    """Another process that had read a session sees that it was forgotten."""
    session = committed(sql_store, "s", talk(4, "a"))
    with closing(open_store(store_url)) as other:
        assert not other.open(NAMESPACE, "s").entries[0].is_forgotten
        sql_store.forget(NAMESPACE, session.tip)
        assert other.open(NAMESPACE, "s").entries[0].is_forgotten


def test_a_chain_with_forgotten_entries_verifies(sql_store):
    """A chain with forgotten entries verifies, also after the next commit."""
    sql_store.forget(NAMESPACE, committed(sql_store, "s", talk(4, "a"), talk(4, "b")).tip)
    verify(sql_store.open(NAMESPACE, "s").entries)
    assert sql_store.verify() == []
    assert len(committed(sql_store, "s", talk(4, "c")).entries) == 3
    assert sql_store.verify() == []


def test_a_forgotten_message_takes_what_was_said_of_it(sql_store):
    """The summary that covers a message and every later one are removed with it."""
    session = committed(sql_store, "s", talk(4, "a"), talk(4, "b"), talk(4, "c"))
    fork = sql_store.open(NAMESPACE, "f", "s")
    sql_store.commit(fork, [(segment(talk(4, "d")), talk(4, "d"))])
    digest = content_digest(talk(4, "b")[0])
    erased = sql_store.forget(NAMESPACE, digest)
    assert (erased.segments, erased.messages, erased.sessions) == (3, 1, ("f", "s"))
    kept = [e.is_forgotten for e in sql_store.open(NAMESPACE, "f").entries]
    assert kept == [False, True, True, True]
    assert sql_store.originals(session, session.entries[0]) == talk(4, "a")
    left = sql_store.transcript(session)
    assert left == [*talk(4, "a"), *talk(4, "b")[1:], *talk(4, "c")]
    assert sql_store.search(NAMESPACE, "b number0", "s")[:1] != [talk(4, "b")[0]]
    assert sql_store.verify() == []
    with pytest.raises(SessionNotFound):
        sql_store.forget(NAMESPACE, digest)


def test_a_wholly_forgotten_session_is_not_listed(sql_store):
    """A session is listed until its last message but the system prompt is forgotten."""
    system = {"role": "system", "content": "Be brief."}
    last = {"role": "user", "content": "and the end"}
    session = sql_store.open(NAMESPACE, "s")
    entry = segment(talk(2))
    session = sql_store.commit(session, [(entry, talk(2))], (system, 0, last))
    sql_store.open(NAMESPACE, "f", "s")
    for message in (*talk(2), last):
        assert [info.id for info in sql_store.sessions(NAMESPACE)] == ["f", "s"]
        sql_store.forget(NAMESPACE, content_digest(message))
    assert sql_store.sessions(NAMESPACE) == []
    assert sql_store.namespaces() == []
    assert sql_store.verify() == []
    sql_store.commit(sql_store.open(NAMESPACE, "s"), [(segment(talk(2, "new")), talk(2, "new"))])
    assert [info.id for info in sql_store.sessions(NAMESPACE)] == ["s"]


def test_a_summary_begun_before_a_forgetting_is_not_committed(sql_store):
    """A summary whose writer saw a forgotten message is refused."""
    before = committed(sql_store, "s", talk(4, "a"))
    sql_store.forget(NAMESPACE, content_digest(talk(4, "a")[1]))
    late = segment(talk(4, "b"), "as number1 of a says")
    with pytest.raises(LedgerConflict, match="a part was forgotten"):
        sql_store.commit(before, [(late, talk(4, "b"))])
    now = sql_store.commit(sql_store.open(NAMESPACE, "s"), [(segment(talk(4, "b")), talk(4, "b"))])
    assert [entry.is_forgotten for entry in now.entries] == [True, False]
    assert sql_store.verify() == []


def test_a_message_that_another_session_archived_stays_there(sql_store):
    """A message that another session archived stays in that session."""
    committed(sql_store, "s", talk(6))
    committed(sql_store, "t", talk(4))
    sql_store.open(NAMESPACE, "f", "s")
    assert sql_store.forget(NAMESPACE, "s").messages == 2
    assert archived(sql_store, "t") == talk(4)
    assert sql_store.verify() == []


def test_a_forgetting_names_the_other_sessions(sql_store):
    """The result names forks and other sessions with some of the messages."""
    committed(sql_store, "s", talk(6))
    committed(sql_store, "t", talk(4))
    sql_store.open(NAMESPACE, "f", "s")
    assert sql_store.forget(NAMESPACE, "s").other_sessions == ("f", "t")
    assert sql_store.verify() == []


def test_nothing_of_a_forgotten_session_is_left_in_the_file(tmp_path):
    """No file holds a byte of the forgotten words."""
    word = "xyzzyplugh"
    store = open_store(tmp_path / "ledger.db")
    committed(store, "kept", *(talk(30, f"other{n}") for n in range(5)))
    committed(store, "s", talk(30, word), talk(30, "more" + word))
    sealed = store.open(NAMESPACE, "s").entries[0].salt.encode()
    assert word.encode() in bytes_of(tmp_path)
    bodies = _bodies(tmp_path)
    store.forget(NAMESPACE, "s")
    assert word.encode() not in bytes_of(tmp_path)
    assert sealed not in bytes_of(tmp_path)
    gone = bodies - _bodies(tmp_path)
    assert len(gone) == 60
    assert [body for body in gone if body[10:60] in bytes_of(tmp_path)] == []
    assert store.verify() == []


def test_a_forgotten_session_leaves_the_servers_tables(postgres, monkeypatch):
    """No table of the server holds the words, at the latest after `clear_pages`."""
    word = "xyzzyplugh"

    def in_a_table() -> bool:
        postgres.checkpoint()
        return word.encode() in bytes_of(postgres.directory / "base")

    url = postgres.empty()
    store = open_store(url)
    committed(store, "s", talk(30, word))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    with psycopg.connect(url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM compressor_search")
        with monkeypatch.context() as impatient:
            impatient.setattr(database, "PATIENCE_SECONDS", 0.1)
            assert not store.forget(NAMESPACE, "s").pages_cleared
            assert not store.clear_pages()
    assert in_a_table()
    assert store.clear_pages()
    assert not in_a_table()
    store.close()


def _bodies(directory: Path) -> set[bytes]:
    with closing(sqlite3.connect(directory / "ledger.db")) as connection:
        return {bytes(row[0]) for row in connection.execute("SELECT body FROM compressor_messages")}
