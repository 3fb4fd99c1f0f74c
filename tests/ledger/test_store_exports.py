"""A session is carried to another store whole, or refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from praison_compressor.errors import LedgerConflict, LedgerCorrupt
from praison_compressor.ledger.segments import commitment, link
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.messages import content_digest
from tests.helpers.talks import NAMESPACE, committed, segment, talk

pytest_plugins = ["tests.helpers.stores"]


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
