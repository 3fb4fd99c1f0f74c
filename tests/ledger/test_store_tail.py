"""Recording writes only new messages, and a compression beside it loses none."""

from contextlib import closing

import pytest
from cryptography.fernet import Fernet

from praison_compressor import MemoryStore, open_store
from praison_compressor.ledger.segments import Session
from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.messages import Message, content_digest
from tests.helpers.stores import bytes_of
from tests.helpers.talks import NAMESPACE, committed, segment, talk
from tests.helpers.transcripts import user

SYSTEM = {"role": "system", "content": "You keep the books."}


def extended(store: SqlStore, recorded: list[Message], appended: list[Message]) -> Session:
    """Return a session with a recorded transcript and messages appended to it."""
    session = store.open(NAMESPACE, "s")
    store.record_transcript(session, tuple(recorded))
    assert store.extend_transcript(session, len(recorded), appended)
    return session


def test_a_session_that_was_never_compressed_is_recorded(store):
    """The next open finds a transcript that was recorded without a compression."""
    session = store.open(NAMESPACE, "s")
    assert store.record_transcript(session, (SYSTEM, *talk(4, "a")))
    assert store.transcript(store.open(NAMESPACE, "s")) == [SYSTEM, *talk(4, "a")]
    assert [epoch.id for epoch in store.lineage(NAMESPACE, "s")] == ["s"]


def test_a_commit_without_a_transcript_appends_its_originals(store):
    """The originals are appended to the recorded transcript, in order of compression."""
    session = store.open(NAMESPACE, "s")
    store.record_transcript(session, (SYSTEM,))
    session = committed(store, "s", talk(4, "a"), talk(3, "b"))
    assert store.transcript(session) == [SYSTEM, *talk(4, "a"), *talk(3, "b")]


def test_nothing_is_appended_before_a_transcript_is_recorded(sql_store):
    """A session without a recorded transcript takes no appended messages."""
    session = sql_store.open(NAMESPACE, "s")
    assert not sql_store.extend_transcript(session, 0, talk(2, "a"))


def test_another_process_reads_appended_messages(sql_store, store_url):
    """Another process reads appended messages after the others."""
    session = sql_store.open(NAMESPACE, "s")
    assert sql_store.record_transcript(session, (SYSTEM, *talk(4, "a")))
    assert sql_store.extend_transcript(session, 4, talk(2, "b"))
    assert sql_store.extend_transcript(session, 6, talk(2, "c"))
    with closing(open_store(store_url)) as other:
        found = other.transcript(other.open(NAMESPACE, "s"))
        assert found == [SYSTEM, *talk(4, "a"), *talk(2, "b"), *talk(2, "c")]
        assert other.verify() == []


def test_appended_messages_can_be_replaced(sql_store):
    """An edit of appended messages, or a whole transcript, replaces what stood there."""
    session = extended(sql_store, talk(4, "a"), talk(4, "b"))
    assert sql_store.extend_transcript(session, 5, talk(1, "c"))
    assert sql_store.transcript(session) == [*talk(4, "a"), *talk(4, "b")[:1], *talk(1, "c")]
    assert sql_store.record_transcript(session, talk(2, "e"))
    assert sql_store.transcript(session) == talk(2, "e")


@pytest.mark.parametrize("start", [3, 9], ids=["older", "after a gap"])
def test_only_appended_messages_can_be_replaced(sql_store, start):
    """Messages before the appended ones, and after a gap, are refused."""
    session = extended(sql_store, talk(4, "a"), talk(4, "b"))
    assert not sql_store.extend_transcript(session, start, talk(1, "d"))


def test_a_commit_of_an_older_transcript_loses_no_newer_message(sql_store):
    """A commit of an older transcript keeps the messages appended since."""
    before = [SYSTEM, *talk(8, "a")]
    session = sql_store.open(NAMESPACE, "s")
    sql_store.record_transcript(session, tuple(before))
    sql_store.extend_transcript(session, 8, talk(4, "b"))
    run = talk(8, "a")[2:6]
    sql_store.commit(session, [(segment(run), run)], (*before[:3], 0, *before[7:]))
    after = sql_store.open(NAMESPACE, "s")
    assert sql_store.transcript(after) == [*before, *talk(4, "b")]
    assert sql_store.extend_transcript(after, 12, talk(2, "c"))
    assert sql_store.transcript(after) == [*before, *talk(4, "b"), *talk(2, "c")]
    assert sql_store.verify() == []


SECRET = user("the magenta heron")


def test_an_appended_message_is_found(sql_store):
    """A search finds an appended message."""
    extended(sql_store, talk(2, "a"), [SECRET])
    assert [hit.message for hit in sql_store.search(NAMESPACE, "magenta")] == [SECRET]


def test_no_stale_writer_brings_a_forgotten_message_back(sql_store):
    """A writer that opened the session before a `forget` appends nothing."""
    session = extended(sql_store, talk(2, "a"), [SECRET])
    sql_store.forget(NAMESPACE, content_digest(SECRET))
    assert sql_store.transcript(session) == talk(2, "a")
    assert not sql_store.extend_transcript(session, 2, [SECRET])
    assert sql_store.extend_transcript(sql_store.open(NAMESPACE, "s"), 2, talk(1, "b"))


def test_a_forgotten_session_loses_appended_messages(sql_store):
    """A forgotten session has none of its appended messages."""
    session = extended(sql_store, talk(2, "a"), [SECRET])
    sql_store.forget(NAMESPACE, "s")
    assert sql_store.transcript(session) == []


def test_a_fork_begins_with_what_was_appended_to_its_parent(sql_store):
    """A fork begins with the messages that were appended to its parent."""
    session = committed(sql_store, "s", talk(4, "a"))
    assert sql_store.record_transcript(session, (0, *talk(2, "b")))
    assert sql_store.extend_transcript(session, 6, talk(2, "c"))
    fork = sql_store.open(NAMESPACE, "f", "s")
    assert sql_store.transcript(fork) == [*talk(4, "a"), *talk(2, "b"), *talk(2, "c")]


def test_a_fork_gets_no_later_message_of_its_parent(sql_store):
    """A message appended to the parent after the fork is not the fork's."""
    session = committed(sql_store, "s", talk(4, "a"))
    assert sql_store.record_transcript(session, (0, *talk(2, "b")))
    fork = sql_store.open(NAMESPACE, "f", "s")
    assert sql_store.extend_transcript(session, 6, talk(2, "c"))
    assert sql_store.transcript(fork) == [*talk(4, "a"), *talk(2, "b")]


def test_secrets_of_appended_messages_are_redacted(tmp_path):
    """A key in an appended message is redacted, as in an archived original."""
    key = "sk-" + "Zq9" * 16
    store = open_store(tmp_path / "ledger.db")
    session = extended(store, talk(1, "a"), [user(f"use {key} for heron")])
    assert key not in str(store.transcript(session))
    store.close()


def test_appended_messages_are_encrypted(tmp_path):
    """An encrypted store has no word of an appended message in its files."""
    store = open_store(tmp_path / "hidden.db", key=Fernet.generate_key().decode())
    extended(store, talk(1, "a"), [user("magenta heron")])
    store.close()
    assert b"magenta" not in bytes_of(tmp_path)


def test_a_memory_store_makes_no_session_of_a_look():
    """`MemoryStore.open` records no session."""
    store = MemoryStore()
    store.open(NAMESPACE, "s")
    with pytest.raises(LookupError):
        store.lineage(NAMESPACE, "s")


def test_a_fork_of_a_fork_is_extended(sql_store):
    """New messages of a fork follow the messages of the entries that its transcript names."""
    committed(sql_store, "s", talk(4, "a"))
    sql_store.open(NAMESPACE, "f", "s")
    committed(sql_store, "f", talk(3, "b"))
    sql_store.open(NAMESPACE, "g", "f")
    committed(sql_store, "s", talk(5, "later"))
    session = committed(sql_store, "g", talk(2, "c"))
    assert sql_store.record_transcript(session, (SYSTEM, 0, 1))
    assert sql_store.extend_transcript(session, 7, talk(1, "d"))
    whole = [SYSTEM, *talk(4, "a"), *talk(3, "b"), *talk(1, "d")]
    assert sql_store.transcript(session) == whole
