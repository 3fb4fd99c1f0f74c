"""What is archived can be found, checked, carried elsewhere, encrypted, and really removed."""

from __future__ import annotations

import copy
import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from praison_compressor.chain import FORGOTTEN, commitment, link, verify
from praison_compressor.errors import (
    ConfigError,
    LedgerConflict,
    LedgerCorrupt,
    SessionNotFound,
    StoreUnavailable,
)
from praison_compressor.ledger import GENESIS
from praison_compressor.messages import content_digest
from praison_compressor.store import SqlStore, open_store
from praison_compressor.store.words import rank, snippet, words

from .stores import Execute
from .talks import NAMESPACE, committed, segment, talk

pytest_plugins = ["tests.stores"]


# ---------------------------------------------------------------- searching


@pytest.mark.parametrize(
    ("query", "ordinal"),
    [
        ("number3", 3),
        ("NUMBER3 hello", 3),
        ("src/topic_5.py", 5),
        ("read_file topic 1", 1),
        ("漢字 result6", 6),
        ("ÜNÏCODE result2", 2),
    ],
)
def test_a_message_is_found_by_its_words(sql_store: SqlStore, query: str, ordinal: int) -> None:
    """Words, paths, tool arguments, other scripts; case is ignored; the place is told."""
    session = committed(sql_store, "s", talk(8))
    best = sql_store.search(NAMESPACE, query, "s")[0]
    assert (best.ordinal, best.entry) == (ordinal, session.entries[0].hash)
    assert best.message == talk(8)[ordinal]
    assert best.digest == content_digest(best.message)


def test_a_search_stays_in_its_session(sql_store: SqlStore) -> None:
    """Equal words in another session or namespace are not found; a fork finds its parent's."""
    committed(sql_store, "s", talk(4, "secret"))
    sql_store.open(NAMESPACE, "f", "s")
    committed(sql_store, "s", talk(4, "later"))
    committed(sql_store, "t", talk(4, "other"))
    assert sql_store.search(NAMESPACE, "secret", "t") == []
    assert len(sql_store.search(NAMESPACE, "secret", "f")) > 0
    assert sql_store.search(NAMESPACE, "later", "f") == []
    assert {hit.session_id for hit in sql_store.search(NAMESPACE, "hello")} == {"s", "t"}
    assert sql_store.search("another tenant", "secret") == []
    with pytest.raises(SessionNotFound):
        sql_store.search(NAMESPACE, "secret", "nobody")


def test_any_word_is_enough_where_no_message_has_all(sql_store: SqlStore) -> None:
    """A query with one wrong word still finds; the rarer word counts for more."""
    committed(sql_store, "s", talk(8))
    hits = sql_store.search(NAMESPACE, "hello number3 nonsense", "s")
    assert hits[0].ordinal == 3
    assert len(hits) > 1


@pytest.mark.parametrize(
    "query", ["", "  ", "!!! ---", '"', "'", "NOT", "zz OR q", "x*", "\\", ":"]
)
def test_no_query_is_a_syntax_error(sql_store: SqlStore, query: str) -> None:
    """What a database would read as an operator is only words."""
    committed(sql_store, "s", talk(4))
    assert sql_store.search(NAMESPACE, query, "s") == []


def test_a_phrase_ranks_before_its_words() -> None:
    """Of texts with the same words, the one that has them together comes first."""
    texts = ["time out of mind", "the time is out", "a connection time out happened"]
    order = [index for _, index in rank("time out", texts)]
    assert set(order) == {0, 1, 2}
    assert order[-1] == 1


def test_a_snippet_shows_the_place() -> None:
    """A long text is cut round the match, and says where it was cut."""
    text = "start " * 200 + "the NEEDLE is here" + " end" * 200
    cut = snippet("needle", text, width=60)
    assert "NEEDLE is" in cut
    assert cut.startswith("…")
    assert cut.endswith("…")
    assert len(cut) <= 62


def test_words_are_folded_and_distinct() -> None:
    """No case, no underscores, no punctuation; a script without spaces goes by characters."""
    assert words("Foo_bar foo, ＢＡＲ! 漢字x") == ["foo", "bar", "漢", "字", "x"]


# ---------------------------------------------------------------- verify


COLUMNS = [
    ("entries", "parent"),
    ("entries", "epoch"),
    ("entries", "commitment"),
    ("entries", "hash"),
    ("entries", "sealed"),
    ("entries", "kind"),
    ("blocks", "body"),
    ("messages", "digest"),
    ("sessions", "head_hash"),
    ("sessions", "base_hash"),
    ("sessions", "tip"),
    ("epochs", "parent_id"),
]


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_flipped_byte_is_named(
    sql_store: SqlStore, execute: Execute, table: str, column: str
) -> None:
    """Wherever a bit is changed in summary, archive or chain, `verify` says so."""
    committed(sql_store, "s", talk(6, "a"), talk(6, "b"))
    assert sql_store.verify() == []
    chance = random.Random(f"{table}.{column}")
    rows = execute(f"SELECT key, {column} FROM compressor_{table} WHERE {column} IS NOT NULL")
    for _ in range(12):
        key, value = chance.choice(rows)
        change = f"UPDATE compressor_{table} SET {column} = :value WHERE key = :key"
        execute(change, key=key, value=flipped(value, chance))
        assert sql_store.verify() != []
        execute(change, key=key, value=value)
    assert sql_store.verify() == []


def flipped(value: Any, chance: random.Random) -> Any:
    """The value with one bit of one byte changed; text stays ASCII."""
    data = bytearray(value.encode() if isinstance(value, str) else value)
    place = chance.randrange(len(data))
    data[place] ^= 1 << chance.randrange(6 if isinstance(value, str) else 8)
    if not isinstance(value, str):
        return bytes(data)
    text = data.decode()
    return text if "\0" not in text else text.replace("\0", "~")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM compressor_links WHERE ordinal = 2", "originals"),
        ("UPDATE compressor_links SET message_key = 1", "originals"),
        ("UPDATE compressor_messages SET line = line + 1", "changed|originals"),
        ("DELETE FROM compressor_entries WHERE position = 1", "entries|epoch"),
        ("UPDATE compressor_entries SET position = 7 WHERE position = 1", "expected entry"),
        ("UPDATE compressor_sessions SET length = length - 1", "entries"),
        ("UPDATE compressor_usage SET prompt_tokens = prompt_tokens + 1", "usage"),
    ],
)
def test_a_row_that_is_gone_or_moved_is_named(
    sql_store: SqlStore, execute: Execute, damage: str, said: str
) -> None:
    """Rows belong together: none can be removed or moved unnoticed by whoever cannot hash."""
    committed(sql_store, "s", talk(6, "a"), talk(6, "b"))
    is_sqlite = "sqlite" in sql_store.place
    unchecked = "SELECT 1" if is_sqlite else "SET LOCAL session_replication_role = replica"
    execute(unchecked, damage)
    text = "\n".join(map(str, sql_store.verify()))
    assert any(part in text for part in said.split("|"))


def test_faults_name_session_and_entry(sql_store: SqlStore, execute: Execute) -> None:
    """A person learns which session, which entry, what disagrees."""
    session = committed(sql_store, "s", talk(3, "a"), talk(3, "b"))
    committed(sql_store, "sound", talk(3, "c"))
    execute("UPDATE compressor_entries SET epoch = 'x' WHERE position = 1")
    faults = [str(fault) for fault in sql_store.verify(NAMESPACE, "s")]
    assert faults[0] == f"session s ({NAMESPACE}), entry 1 (x): its hash disagrees"
    assert sql_store.verify(NAMESPACE, "sound") == []
    assert session.tip not in faults[0]


# ---------------------------------------------------------------- forgetting


def test_a_forgotten_session_is_gone_and_the_chain_verifies(sql_store: SqlStore) -> None:
    """Originals, summaries and index are empty; tombstones keep their places."""
    session = committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    erased = sql_store.forget(NAMESPACE, session.tip)
    assert (erased.segments, erased.messages, erased.sessions) == (2, 8, ("s",))
    assert erased.pages_cleared
    again = sql_store.open(NAMESPACE, "s")
    assert [entry.segment for entry in again.entries] == [FORGOTTEN, FORGOTTEN]
    assert [sql_store.originals(again, entry) for entry in session.entries] == [None, None]
    assert sql_store.archived(NAMESPACE, "s") == []
    assert sql_store.search(NAMESPACE, "hello") == []
    verify(again.entries, GENESIS)
    assert sql_store.verify() == []
    assert len(committed(sql_store, "s", talk(4, "c")).entries) == 3
    assert sql_store.verify() == []


def test_a_forgotten_message_takes_what_was_said_of_it(sql_store: SqlStore) -> None:
    """The summary that covered it and every later one go; earlier ones and the rest stay."""
    session = committed(sql_store, "s", talk(4, "a"), talk(4, "b"), talk(4, "c"))
    fork = sql_store.open(NAMESPACE, "f", "s")
    sql_store.commit(fork, [(segment(talk(4, "d")), talk(4, "d"))])
    digest = content_digest(talk(4, "b")[0])
    erased = sql_store.forget(NAMESPACE, digest)
    assert (erased.segments, erased.messages, erased.sessions) == (3, 1, ("f", "s"))
    kept = [e.forgotten for e in sql_store.open(NAMESPACE, "f").entries]
    assert kept == [False, True, True, True]
    assert sql_store.originals(session, session.entries[0]) == talk(4, "a")
    left = sql_store.archived(NAMESPACE, "s")
    assert left == [*talk(4, "a"), *talk(4, "b")[1:], *talk(4, "c")]
    assert sql_store.search(NAMESPACE, "b number0", "s")[:1] != [talk(4, "b")[0]]
    assert sql_store.verify() == []
    with pytest.raises(SessionNotFound):
        sql_store.forget(NAMESPACE, digest)


def test_a_summary_begun_before_a_forgetting_is_not_committed(sql_store: SqlStore) -> None:
    """Its writer was shown what is forgotten now: it is told to look again."""
    before = committed(sql_store, "s", talk(4, "a"))
    sql_store.forget(NAMESPACE, content_digest(talk(4, "a")[1]))
    late = segment(talk(4, "b"), "as number1 of a says")
    with pytest.raises(LedgerConflict, match="a part was forgotten"):
        sql_store.commit(before, [(late, talk(4, "b"))])
    now = sql_store.commit(sql_store.open(NAMESPACE, "s"), [(segment(talk(4, "b")), talk(4, "b"))])
    assert [entry.forgotten for entry in now.entries] == [True, False]
    assert sql_store.verify() == []


def test_another_process_sees_what_was_forgotten(store_url: str) -> None:
    """A snapshot that was read before is not used again."""
    one, two = open_store(store_url), open_store(store_url)
    committed(one, "s", talk(4))
    assert not two.open(NAMESPACE, "s").entries[0].forgotten
    one.forget(NAMESPACE, "s")
    assert two.open(NAMESPACE, "s").entries[0].forgotten
    one.close()
    two.close()


def test_what_others_hold_is_told_and_kept(sql_store: SqlStore) -> None:
    """A message that another session archived too stays there, and the caller learns where."""
    committed(sql_store, "s", talk(6))
    committed(sql_store, "t", talk(4))
    sql_store.open(NAMESPACE, "f", "s")
    erased = sql_store.forget(NAMESPACE, "s")
    assert erased.messages == 2
    assert erased.still_in == ("f", "t")
    assert sql_store.archived(NAMESPACE, "t") == talk(4)
    assert sql_store.verify() == []


def test_earlier_exports_are_told(sql_store: SqlStore) -> None:
    """A copy elsewhere cannot be called back: who made one is told when and where to."""
    committed(sql_store, "s", talk(4))
    sql_store.export(NAMESPACE, "s", note="sent to the auditor")
    erased = sql_store.forget(NAMESPACE, "s")
    assert [(e.session_id, e.note) for e in erased.exports] == [("s", "sent to the auditor")]


def test_nothing_of_a_forgotten_session_is_left_in_the_file(tmp_path: Path) -> None:
    """The word is in the index's bytes before, and in no byte of any file after."""
    word = "xyzzyplugh"
    store = open_store(tmp_path / "ledger.db")
    committed(store, "kept", *(talk(30, f"other{n}") for n in range(5)))
    committed(store, "s", talk(30, word), talk(30, "more" + word))
    sealed = store.open(NAMESPACE, "s").entries[0].salt.encode()
    assert word.encode() in _bytes_of(tmp_path)
    blocks = _column(tmp_path, "SELECT body FROM compressor_blocks")
    payloads = _column(tmp_path, "SELECT sealed FROM compressor_entries")
    store.forget(NAMESPACE, "s")
    assert word.encode() not in _bytes_of(tmp_path)
    assert sealed not in _bytes_of(tmp_path)
    gone = [
        *(set(blocks) - set(_column(tmp_path, "SELECT body FROM compressor_blocks"))),
        *(set(payloads) - set(_column(tmp_path, "SELECT sealed FROM compressor_entries"))),
    ]
    assert len(gone) >= 4
    assert [b for b in gone if b[10:60] in _bytes_of(tmp_path)] == []
    assert _count(tmp_path, "PRAGMA freelist_count") == 0
    assert store.verify() == []


def test_nothing_of_a_forgotten_session_is_left_in_the_servers_tables(
    postgres: Any,
) -> None:
    """The files of the tables are written anew: the word is in none of them."""
    word = "xyzzyplugh"
    store = open_store(postgres.empty())
    committed(store, "s", talk(30, word))
    postgres.checkpoint()
    base = postgres.directory / "base"
    assert word.encode() in _bytes_of(base)
    store.forget(NAMESPACE, "s")
    postgres.checkpoint()
    assert word.encode() not in _bytes_of(base)
    store.close()


def _bytes_of(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())


def _count(directory: Path, query: str) -> int:
    connection = sqlite3.connect(directory / "ledger.db")
    found = int(connection.execute(query).fetchone()[0])
    connection.close()
    return found


def _column(directory: Path, query: str) -> list[bytes]:
    connection = sqlite3.connect(directory / "ledger.db")
    found = [bytes(row[0]) for row in connection.execute(query) if row[0] is not None]
    connection.close()
    return found


# ---------------------------------------------------------------- export and import


def test_an_export_comes_back_elsewhere(sql_store: SqlStore, tmp_path: Path) -> None:
    """Through JSON into another store: entries, originals, lineage, and a chain that verifies."""
    committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    fork = sql_store.open(NAMESPACE, "f", "s")
    fork = sql_store.commit(fork, [(segment(talk(3, "c")), talk(3, "c"))])
    exported = json.loads(json.dumps(sql_store.export(NAMESPACE, "f")))
    other = open_store(tmp_path / "other.db")
    session = other.import_("elsewhere", exported)
    assert session.entries == fork.entries
    assert other.archived("elsewhere", "f") == sql_store.archived(NAMESPACE, "f")
    assert other.verify() == []
    assert other.import_("elsewhere", exported) == session
    other.commit(session, [(segment(talk(2, "d")), talk(2, "d"))])
    with pytest.raises(LedgerConflict, match="session f is already"):
        other.import_("elsewhere", exported)
    assert other.verify() == []


def test_a_session_with_tombstones_can_be_carried_too(sql_store: SqlStore) -> None:
    """What was forgotten stays forgotten in the copy, and the copy's chain verifies."""
    committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    sql_store.forget(NAMESPACE, content_digest(talk(4, "b")[1]))
    session = sql_store.import_("copy", sql_store.export(NAMESPACE, "s"))
    assert [entry.forgotten for entry in session.entries] == [False, True]
    assert sql_store.verify() == []


@pytest.mark.parametrize(
    "path",
    [
        ("format",),
        ("entries", 0, "hash"),
        ("entries", 1, "parent"),
        ("entries", 0, "segment"),
        ("entries", 0, "archive"),
        ("entries", 0, "salt"),
        ("entries", 0, "kind"),
    ],
)
def test_a_changed_export_is_refused(sql_store: SqlStore, path: tuple[Any, ...]) -> None:
    """Nothing is written of a file whose hashes disagree."""
    committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    exported = copy.deepcopy(sql_store.export(NAMESPACE, "s"))
    holder: Any = exported
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = holder[path[-1]].replace("a", "b") + "x"
    with pytest.raises(LedgerCorrupt, match="export"):
        sql_store.import_("elsewhere", exported)
    assert sql_store.sessions("elsewhere") == []


def test_a_changed_message_in_an_export_is_refused(sql_store: SqlStore) -> None:
    """An original that does not hash to its name is named."""
    committed(sql_store, "s", talk(4))
    exported = sql_store.export(NAMESPACE, "s")
    digest = next(iter(exported["messages"]))
    exported["messages"][digest] = {"role": "user", "content": "forged"}
    with pytest.raises(LedgerCorrupt, match=digest):
        sql_store.import_("elsewhere", exported)
    del exported["messages"][digest]
    with pytest.raises(LedgerCorrupt, match="incomplete"):
        sql_store.import_("elsewhere", exported)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), [1]),
        ((), None),
        (("session",), None),
        (("session", "id"), 5),
        (("session", "id"), "a\0b"),
        (("session", "id"), "x" * 5_000),
        (("session", "created"), "now"),
        (("epochs",), []),
        (("epochs", 0, "id"), [1]),
        (("epochs", 1, "parent_id"), "elsewhere"),
        (("epochs", 0, "length"), 10**30),
        (("messages",), []),
        (("entries", 0, "segment"), "run"),
        (("entries", 0, "segment"), "rendered"),
        (("entries", 0, "segment"), "usage"),
    ],
    ids=lambda found: repr(found)[:30],
)
def test_an_export_of_another_shape_is_refused_whole(
    sql_store: SqlStore, path: tuple[Any, ...], value: Any
) -> None:
    """One error, and no session that nobody can open, also where somebody sealed it himself."""
    committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    exported = {"": copy.deepcopy(sql_store.export(NAMESPACE, "s"))}
    if path[-1:] == ("segment",):
        exported[""] = _resealed(exported[""], without=value)
    else:
        _put(exported, ("", *path), value)
    with pytest.raises(LedgerCorrupt, match="export"):
        sql_store.import_("elsewhere", exported[""])
    assert sql_store.namespaces() == [NAMESPACE]


def _put(holder: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value


def _resealed(exported: dict[str, Any], *, without: str) -> dict[str, Any]:
    """The export with a field of its last segment away, and hashes that agree with that."""
    last = exported["entries"][-1]
    found = json.loads(last["segment"])
    del found[without]
    text = json.dumps(found)
    promise = commitment(last["salt"], text, last["archive"])
    last |= {"segment": text, "commitment": promise}
    last["hash"] = link(last["parent"], last["epoch"], promise)
    return exported


# ---------------------------------------------------------------- encryption


def test_an_encrypted_store_shows_no_word(tmp_path: Path) -> None:
    """With a codec no word, summary or digest of a message is readable in any file."""
    word = "xyzzyplugh"
    store = open_store(tmp_path / "ledger.db", codec=Fernet(Fernet.generate_key()))
    session = committed(store, "s", talk(6, word))
    assert store.originals(session, session.entries[0]) == talk(6, word)
    assert word.encode() not in _bytes_of(tmp_path)
    assert b"summary 0" not in _bytes_of(tmp_path)
    digest = bytes.fromhex(content_digest(talk(6, word)[0]).removeprefix("sha256:"))
    assert digest not in _bytes_of(tmp_path)
    assert [hit.ordinal for hit in store.search(NAMESPACE, "number3", "s")] == [3]
    assert len(store.search(NAMESPACE, word)) == 6
    assert store.verify() == []
    store.forget(NAMESPACE, content_digest(talk(6, word)[0]))
    assert store.verify() == []


def test_a_store_opens_only_with_its_own_key(store_url: str) -> None:
    """Without the key, with another, or with one where there is none: refused, never mixed."""
    key = Fernet.generate_key()
    committed(open_store(store_url, codec=Fernet(key)), "s", talk(3))
    with pytest.raises(StoreUnavailable, match="is encrypted; open it with its key"):
        open_store(store_url).open(NAMESPACE, "s")
    with pytest.raises(StoreUnavailable, match="encrypted with another key"):
        open_store(store_url, codec=Fernet(Fernet.generate_key())).open(NAMESPACE, "s")
    assert len(open_store(store_url, codec=Fernet(key)).open(NAMESPACE, "s").entries) == 1


def test_a_plain_store_does_not_become_encrypted(sql_store: SqlStore, store_url: str) -> None:
    """An agent with encrypted sessions cannot write beside plain ones."""
    committed(sql_store, "s", talk(3))
    with pytest.raises(StoreUnavailable, match="is not encrypted"):
        open_store(store_url, codec=Fernet(Fernet.generate_key())).open(NAMESPACE, "s")


def test_a_key_opens_what_is_encrypted_and_leaves_plain_what_is_plain(store_url: str) -> None:
    """One key in the environment for all stores: a new one is encrypted with it."""
    key = Fernet.generate_key().decode()
    committed(open_store(store_url, key=key), "s", talk(3))
    assert open_store(store_url, key=key).archived(NAMESPACE, "s") == talk(3)
    assert open_store(store_url, codec=Fernet(key)).archived(NAMESPACE, "s") == talk(3)
    with pytest.raises(StoreUnavailable, match="PRAISONAI_SESSION_KEY"):
        open_store(store_url).sessions(NAMESPACE)
    with pytest.raises(StoreUnavailable, match="encrypted with another key"):
        open_store(store_url, key=Fernet.generate_key().decode()).sessions(NAMESPACE)
    with pytest.raises(ConfigError, match="is no Fernet key") as error:
        open_store(store_url, key="hunter2")
    assert "hunter2" not in str(error.value)


def test_a_plain_store_is_read_and_searched_as_before_with_a_key(
    sql_store: SqlStore, store_url: str
) -> None:
    """Its full-text index goes on: nothing is half encrypted."""
    committed(sql_store, "s", talk(6))
    keyed = open_store(store_url, key=Fernet.generate_key().decode())
    committed(keyed, "t", talk(6, "other"))
    assert [hit.session_id for hit in sql_store.search(NAMESPACE, "other number3")][:1] == ["t"]
    assert sql_store.verify() == []
