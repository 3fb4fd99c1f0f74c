"""What was changed in a store behind its back is named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import LedgerConflict, LedgerCorrupt, SessionNotFound
from praison_compressor.ledger.segments import commitment, link
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.messages import content_digest
from tests.benchmarks.tamper import tamper
from tests.helpers.stores import Execute
from tests.helpers.talks import NAMESPACE, committed, segment, talk

pytest_plugins = ["tests.helpers.stores"]


def test_a_flipped_bit_is_named(store_url: str) -> None:
    """Wherever one is changed in summary, archive, transcript or chain, `verify` says so."""
    flips, unnamed = tamper(store_url, every=250)
    assert unnamed == []
    assert min(flips[part] for part in ("summary", "archive", "transcript", "chain")) > 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE compressor_entries SET epoch = 'x' WHERE key = 2", "its hash disagrees"),
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
        ("UPDATE compressor_sessions SET base_key = key, parent_id = 'x'", "what it was forked"),
        ("UPDATE compressor_sessions SET id = 'x'", "of its 2 compressions"),
        ("UPDATE compressor_entries SET parent = hash", "its chain has no entry"),
        ("UPDATE compressor_entries SET namespace = 'x' WHERE key = 1", "its chain has no entry"),
    ],
)
def test_a_row_that_is_gone_or_moved_is_named(tmp_path: Path, damage: str, said: str) -> None:
    """Rows belong together: none can be removed or moved unnoticed by whoever cannot hash."""
    store = open_store(tmp_path / "ledger.db")
    committed(store, "s", talk(6, "a"), talk(6, "b"))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as behind:
        behind.execute(damage)
        behind.commit()
    assert said in "\n".join(map(str, store.verify()))


def test_faults_name_session_and_entry(sql_store: SqlStore, execute: Execute) -> None:
    """A person learns which session, which entry, what disagrees."""
    session = committed(sql_store, "s", talk(3, "a"), talk(3, "b"))
    committed(sql_store, "sound", talk(3, "c"))
    execute("UPDATE compressor_entries SET epoch = 'x' WHERE key = 2")
    faults = [str(fault) for fault in sql_store.verify(NAMESPACE, "s")]
    assert faults[0] == f"session s ({NAMESPACE}), entry 1 (x): its hash disagrees"
    assert sql_store.verify(NAMESPACE, "sound") == []
    assert session.tip not in faults[0]


# ---------------------------------------------------------------- exports


def test_an_export_comes_back_elsewhere(sql_store: SqlStore, tmp_path: Path) -> None:
    """Through JSON into another store: entries, originals and tombstones; the chain verifies."""
    committed(sql_store, "s", talk(4, "a"), talk(4, "b"))
    fork = sql_store.open(NAMESPACE, "f", "s")
    fork = sql_store.commit(fork, [(segment(talk(3, "c")), talk(3, "c"))])
    sql_store.forget(NAMESPACE, content_digest(talk(3, "c")[1]))
    fork = sql_store.open(NAMESPACE, "f")
    assert [entry.forgotten for entry in fork.entries] == [False, False, True]
    exported = json.loads(json.dumps(sql_store.export(NAMESPACE, "f")))
    other = open_store(tmp_path / "other.db")
    session = other.import_("elsewhere", exported)
    assert session.entries == fork.entries
    assert other.archived("elsewhere", "f") == sql_store.archived(NAMESPACE, "f")
    assert other.verify() == []
    assert other.import_("elsewhere", exported) == session
    parent = other.import_("elsewhere", sql_store.export(NAMESPACE, "s"))
    assert other.open("elsewhere", parent.tip) == parent
    assert [e.session_id for e in other.lineage("elsewhere", parent.tip)] == ["s"] * 3
    assert [e.session_id for e in other.lineage("elsewhere", "f")] == ["f"] * 2
    assert other.verify() == []
    other.commit(session, [(segment(talk(2, "d")), talk(2, "d"))])
    with pytest.raises(LedgerConflict, match="session f is already"):
        other.import_("elsewhere", exported)
    assert other.verify() == []


def test_a_stranger_of_the_parents_name_has_none_of_its_epochs(
    sql_store: SqlStore, tmp_path: Path
) -> None:
    """A fork's export brings its parent's entries, not its parent."""
    tip = committed(sql_store, "s", talk(4, "a")).tip
    fork = sql_store.open(NAMESPACE, "f", "s")
    sql_store.commit(fork, [(segment(talk(3, "c")), talk(3, "c"))])
    other = open_store(tmp_path / "other.db")
    stranger = committed(other, "s", talk(3, "z"))
    other.import_(NAMESPACE, sql_store.export(NAMESPACE, "f"))
    with pytest.raises(SessionNotFound):
        other.forget(NAMESPACE, tip)
    assert other.open(NAMESPACE, stranger.tip) == stranger


MESSAGE = content_digest(talk(4, "a")[0])


@pytest.fixture(scope="module")
def exported_session(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqlStore, str]:
    """A store, and what it exports."""
    store = open_store(tmp_path_factory.mktemp("exports") / "ledger.db")
    committed(store, "s", talk(4, "a"), talk(4, "b"))
    return store, json.dumps(store.export(NAMESPACE, "s"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), [1]),
        ((), None),
        (("format",), "another/1"),
        (("entries", 0, "hash"), "sha256:0"),
        (("entries", 1, "parent"), "sha256:0"),
        (("entries", 0, "archive"), "sha256:0"),
        (("entries", 0, "salt"), "sha256:0"),
        (("session",), None),
        (("session",), 5),
        (("session",), "a\0b"),
        (("session",), "x" * 5_000),
        (("created",), "now"),
        (("commits",), 3),
        (("commits",), 10**30),
        (("commits",), float("inf")),
        (("updated",), 10**400),
        (("created",), float("nan")),
        (("head",), 10**30),
        (("head",), ""),
        (("base_head",), "elsewhere"),
        (("parent_id",), [1]),
        (("entries", 0, "created"), []),
        (("messages",), []),
        (("messages", MESSAGE), {"role": "user", "content": "forged"}),
        (("messages",), {}),
        (("entries", 0, "segment"), "run"),
        (("entries", 0, "segment"), "rendered"),
        (("entries", 0, "segment"), "usage"),
    ],
    ids=lambda found: repr(found)[:30],
)
def test_an_export_of_another_shape_is_refused_whole(
    exported_session: tuple[SqlStore, str], path: tuple[Any, ...], value: Any
) -> None:
    """One error, and no session that nobody can open, also where somebody sealed it himself."""
    store, text = exported_session
    exported = {"": json.loads(text)}
    if path[-1:] == ("segment",):
        exported[""] = _resealed(exported[""], without=value)
    else:
        _put(exported, ("", *path), value)
    with pytest.raises(LedgerCorrupt, match="export"):
        store.import_("elsewhere", exported[""])
    assert store.namespaces() == [NAMESPACE]


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
