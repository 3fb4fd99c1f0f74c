"""What was changed in a store behind its back is named."""

from __future__ import annotations

import random
from typing import Any

import pytest

from praison_compressor.ledger.sql.store import SqlStore
from tests.helpers.stores import Execute
from tests.helpers.talks import NAMESPACE, committed, talk

pytest_plugins = ["tests.helpers.stores"]


COLUMNS = [
    ("entries", "parent"),
    ("entries", "epoch"),
    ("entries", "commitment"),
    ("entries", "hash"),
    ("entries", "sealed"),
    ("entries", "kind"),
    ("messages", "body"),
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
        ("UPDATE compressor_messages SET digest = body", "changed"),
        ("DELETE FROM compressor_entries WHERE position = 1", "entries|epoch"),
        ("UPDATE compressor_entries SET position = 7 WHERE position = 1", "expected entry"),
        ("UPDATE compressor_sessions SET length = length - 1", "entries"),
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
