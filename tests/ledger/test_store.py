"""The store in a database: restarts, forks, encryption, other processes."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Engine, event

from praison_compressor import ConfigError, LedgerCorrupt, StoreUnavailable
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.messages import content_digest
from tests.benchmarks.crash import crash
from tests.benchmarks.races import race
from tests.benchmarks.tamper import tamper
from tests.helpers.stores import bytes_of
from tests.helpers.talks import NAMESPACE, archived, committed, segment, talk

# ---------------------------------------------------------------- lasting


def test_the_list_of_sessions_goes_by_the_servers_clock(postgres, monkeypatch):
    """Sessions are ordered by the server's clock, not by a worker's."""
    store, now = open_store(postgres.empty()), time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: now() + 3_600)
        committed(store, "first", talk(2, "a"))
    committed(store, "second", talk(2, "b"))
    listed = [info.id for info in store.sessions(NAMESPACE)]
    store.close()
    assert listed == ["second", "first"]


def test_an_epoch_begins_with_its_commit(store):
    """An epoch and the last write to its session have one time, by one clock."""
    session = committed(store, "s", talk(2, "a"), talk(2, "b"))
    assert store.lineage(NAMESPACE, "s")[-1].created == session.updated


def test_a_prefix_of_ids_is_compared_exactly(sql_store):
    """Session ids are listed by a prefix in its own case."""
    for name in ("a_b~1", "A_b~2", "axb~3"):
        committed(sql_store, name, talk(1))
    assert sql_store.ids_with_prefix(NAMESPACE, "a_b~", 8) == ["a_b~1"]


def test_a_commit_without_segments_is_a_use_of_the_session(store):
    """A commit that only records a transcript is the newest write to its session."""
    before = committed(store, "s", talk(2))
    store.commit(before, (), tuple(talk(3)))
    assert store.open(NAMESPACE, "s").updated > before.updated


def test_a_fork_is_made_of_one_state_of_its_parent(postgres):
    """A fork made while its parent commits has the parent's state before the commit."""
    url = postgres.empty()
    store, other = open_store(url), open_store(url)
    parent = committed(store, "s", talk(3, "a"))
    begun: list[threading.Thread] = []

    def commit_beside(_connection, _cursor, statement, *_) -> None:
        if statement.startswith("INSERT INTO compressor_sessions") and not begun:
            begun.append(threading.Thread(target=committed, args=(other, "s", talk(3, "b"))))
            begun[0].start()
            begun[0].join(1)

    event.listen(Engine, "before_cursor_execute", commit_beside)
    try:
        fork = store.open(NAMESPACE, "f", "s")
    finally:
        event.remove(Engine, "before_cursor_execute", commit_beside)
        begun[0].join()
    assert fork.entries == parent.entries
    assert store.transcript(fork) == talk(3, "a")
    assert len(store.open(NAMESPACE, "s").entries) == 2
    store.close()
    other.close()


def test_a_quiet_turn_asks_once(sql_store, statements):
    """An unchanged session is opened with one query, from memory."""
    session = committed(sql_store, "s", talk(5))
    statements.clear()
    assert sql_store.open(NAMESPACE, "s").entries is session.entries
    assert [s for s in statements if s.startswith("SELECT")] == [statements[-1]]


def test_equal_messages_are_archived_once_in_a_namespace(sql_store, execute):
    """All sessions of one tenant share equal originals."""
    committed(sql_store, "s", talk(8))
    committed(sql_store, "t", talk(8), talk(10))
    assert execute("SELECT count(*) FROM compressor_messages") == [(10,)]
    other = sql_store.open("other tenant", "s")
    sql_store.commit(other, [(segment(talk(8)), talk(8))])
    assert execute("SELECT count(*) FROM compressor_messages") == [(18,)]


# ---------------------------------------------------------------- leases


def test_a_lease_has_one_holder(store):
    """A lease has one holder until it is released."""
    session = store.open(NAMESPACE, "s")
    assert store.claim(session, "one", 60)
    assert not store.claim(session, "two", 60)
    assert store.claim(session, "one", 60)
    store.release(session, "two")
    assert not store.claim(session, "two", 60)
    store.release(session, "one")
    assert store.claim(session, "two", 60)


def test_each_session_of_a_tenant_has_its_own_lease(store):
    """A lease is of one session of one tenant."""
    assert store.claim(store.open(NAMESPACE, "s"), "two", 60)
    assert store.claim(store.open(NAMESPACE, "t"), "one", 60)
    assert store.claim(store.open("another tenant", "s"), "one", 60)


def test_a_lease_expires(store):
    """An expired lease can be taken by another holder."""
    session = store.open(NAMESPACE, "s")
    assert store.claim(session, "crashed", -1)
    assert store.claim(session, "next", 60)


# ---------------------------------------------------------------- made, or refused


def test_several_stores_may_be_the_first(store_url):
    """Four stores that open an empty database at once create one schema."""
    stores = [open_store(store_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(SqlStore.check, stores)) == [None] * 4


def test_a_store_of_another_layout_is_refused(store_url, execute):
    """A refused store of another version is left unchanged."""
    open_store(store_url).check()
    kind = "BLOB" if "sqlite" in store_url else "BYTEA"
    for change in (f"UPDATE %s SET value = CAST('99' AS {kind})", "DELETE FROM %s"):
        execute(change % "compressor_meta" + " WHERE name = 'layout'")
        before = execute("SELECT * FROM compressor_meta")
        with pytest.raises(StoreUnavailable, match=r"another version.*expected \d.*another store"):
            open_store(store_url).open(NAMESPACE, "s")
        assert execute("SELECT * FROM compressor_meta") == before


# ---------------------------------------------------------------- encrypted


def test_an_encrypted_store_shows_no_word(tmp_path):
    """With a codec no file holds a word, summary or digest of a message."""
    word = "xyzzyplugh"
    store = open_store(tmp_path / "ledger.db", codec=Fernet(Fernet.generate_key()))
    session = committed(store, "s", talk(6, word))
    assert store.originals(session, session.entries[0]) == talk(6, word)
    assert word.encode() not in bytes_of(tmp_path)
    assert b"summary 0" not in bytes_of(tmp_path)
    digest = bytes.fromhex(content_digest(talk(6, word)[0]).removeprefix("sha256:"))
    assert digest not in bytes_of(tmp_path)


def test_an_encrypted_store_is_searched(tmp_path):
    """A search in an encrypted store finds its messages."""
    store = open_store(tmp_path / "ledger.db", codec=Fernet(Fernet.generate_key()))
    committed(store, "s", talk(6, "alpha"))
    assert [hit.ordinal for hit in store.search(NAMESPACE, "number3", "s")] == [3]
    assert len(store.search(NAMESPACE, "alpha")) == 6


def test_an_encrypted_store_forgets_one_message(tmp_path):
    """An encrypted store forgets one message only."""
    store = open_store(tmp_path / "ledger.db", codec=Fernet(Fernet.generate_key()))
    messages = talk(6, "alpha")
    committed(store, "s", messages)
    assert store.verify() == []
    store.forget(NAMESPACE, content_digest(messages[3]))
    assert store.search(NAMESPACE, "number3") == []
    assert len(store.search(NAMESPACE, "alpha")) == 5
    assert store.verify() == []


@pytest.fixture
def key(store_url):
    """Return the key of a new store with a session "s"."""
    key = Fernet.generate_key().decode()
    committed(open_store(store_url, key=key), "s", talk(3))
    return key


def test_a_new_store_is_encrypted_with_the_key(store_url, key):
    """A new store is encrypted with the given key by Fernet."""
    assert archived(open_store(store_url, key=key), "s") == talk(3)
    assert archived(open_store(store_url, codec=Fernet(key)), "s") == talk(3)


OTHER = Fernet.generate_key()


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": OTHER.decode()}, "encrypted with another key"),
        ({"codec": Fernet(OTHER)}, "encrypted with another key"),
        ({}, "PRAISONAI_SESSION_KEY"),  # the key's variable
    ],
)
def test_only_its_key_opens_an_encrypted_store(store_url, options, said):
    """An encrypted store is refused with another key or codec and without one."""
    with pytest.raises(StoreUnavailable, match=said):
        open_store(store_url, **options).sessions(NAMESPACE)


def test_a_wrong_key_is_not_repeated(store_url):
    """The error of a text that is no Fernet key does not repeat the text."""
    with pytest.raises(ConfigError, match="is no Fernet key") as error:
        open_store(store_url, key="hunter2")
    assert "hunter2" not in str(error.value)


def test_a_plain_store_stays_plain(sql_store, store_url):
    """A plain store stays plain despite a key."""
    committed(sql_store, "s", talk(3))
    committed(open_store(store_url, key=Fernet.generate_key().decode()), "t", talk(6, "other"))
    assert sql_store.search(NAMESPACE, "other number3")[0].session_id == "t"
    assert sql_store.verify() == []


def test_a_key_that_is_not_used_is_logged_once(sql_store, store_url, caplog):
    """The log says once that a plain store does not use the key."""
    committed(sql_store, "s", talk(3))
    assert "is not encrypted" not in caplog.text
    committed(open_store(store_url, key=Fernet.generate_key().decode()), "t", talk(6, "other"))
    assert caplog.text.count("is not encrypted and stays so: the key is not used") == 1


def test_a_plain_store_refuses_a_codec(sql_store, store_url):
    """A plain store refuses a codec."""
    committed(sql_store, "s", talk(3))
    with pytest.raises(StoreUnavailable, match="is not encrypted"):
        open_store(store_url, codec=Fernet(Fernet.generate_key())).open(NAMESPACE, "s")


# ---------------------------------------------------------------- killed, racing


def test_a_killed_writer_leaves_a_whole_ledger(store_url):
    """After a kill every acknowledged epoch is there, nothing is half written."""
    outcome = crash(store_url, kills=3, seed=7, every=4)
    assert outcome.lost == []
    assert outcome.faults == []
    assert outcome.without_archive == 0
    assert outcome.acknowledged >= 3


def test_a_segment_costs_one_call_however_many_race(store_url, tmp_path):
    """Racing processes share the segments that one of them paid for."""
    found = race(store_url, 3, 2, tmp_path)
    assert found.sessions == 2
    assert found.calls == found.segments > 0
    assert found.views == 1
    assert found.faults == []


# ---------------------------------------------------------------- changed behind its back


def test_a_flipped_bit_is_named(store_url):
    """A flipped bit in summary, archive, transcript or chain is named."""
    flips, unnamed = tamper(store_url, every=250)
    assert unnamed == []
    assert min(flips[part] for part in ("summary", "archive", "transcript", "chain")) > 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM compressor_links WHERE ordinal = 2", "originals"),
        ("UPDATE compressor_links SET message_key = 1", "originals"),
        ("UPDATE compressor_messages SET digest = body", "changed"),
        ("DELETE FROM compressor_entries WHERE key = 1", "its chain has no entry"),
        ("DELETE FROM compressor_sessions", "no session leads to it"),
        (
            "UPDATE compressor_sessions SET head = (SELECT parent FROM compressor_entries "
            "WHERE key = 2)",
            "no session leads to it",
        ),
        ("UPDATE compressor_sessions SET base_head = head", "of its 2 compressions"),
        ("UPDATE compressor_sessions SET commits = 1", "of its 1 compressions"),
        ("UPDATE compressor_sessions SET id = 't'", "of its 2 compressions"),
        ("UPDATE compressor_sessions SET base_key = key, parent_id = 'x'", "its parent is not"),
    ],
)
def test_a_row_that_is_gone_or_moved_is_named(tmp_path, damage, said):
    """A removed or moved row is named."""
    store = open_store(tmp_path / "ledger.db")
    committed(store, "s", talk(6, "a"), talk(6, "b"))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as behind:
        behind.execute(damage)
        behind.commit()
    assert said in "\n".join(map(str, store.verify()))


def test_a_session_that_is_its_own_base_is_refused(sql_store, execute):
    """A changed base ends a lineage or a commit in an error, not in an endless loop."""
    session = committed(sql_store, "s", talk(3))
    execute("UPDATE compressor_sessions SET base_key = key")
    for work in (
        lambda: sql_store.lineage(NAMESPACE, "s"),
        lambda: sql_store.commit(session, [(segment(talk(2)), talk(2))]),
    ):
        with pytest.raises(LedgerCorrupt, match="its base is not an older session"):
            work()


def test_faults_name_session_and_entry(sql_store, execute):
    """A fault names the session, the entry and the disagreement."""
    session = committed(sql_store, "s", talk(3, "a"), talk(3, "b"))
    committed(sql_store, "sound", talk(3, "c"))
    execute("UPDATE compressor_entries SET epoch = 'x' WHERE key = 2")
    faults = [str(fault) for fault in sql_store.verify(NAMESPACE, "s")]
    assert faults[0] == f"session s ({NAMESPACE}), entry 1 (x): its hash disagrees"
    assert sql_store.verify(NAMESPACE, "sound") == []
    assert session.tip not in faults[0]
