"""`verify` names every change that was made behind the store's back."""

import sqlite3
from contextlib import closing

import pytest

from praison_compressor.ledger.sql import open_store
from tests.benchmarks.tamper import tamper
from tests.helpers.talks import NAMESPACE, committed, talk


def test_a_flipped_bit_is_named(store_url):
    """A flipped bit in summary, archive, transcript or chain is named."""
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
        ("UPDATE compressor_sessions SET base_key = key, parent_id = 'x'", "its parent is not"),
        ("UPDATE compressor_sessions SET id = 'x'", "of its 2 compressions"),
        ("UPDATE compressor_entries SET parent = hash", "its chain has no entry"),
        ("UPDATE compressor_entries SET namespace = 'x' WHERE key = 1", "its chain has no entry"),
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


def test_faults_name_session_and_entry(sql_store, execute):
    """A fault names the session, the entry and the disagreement."""
    session = committed(sql_store, "s", talk(3, "a"), talk(3, "b"))
    committed(sql_store, "sound", talk(3, "c"))
    execute("UPDATE compressor_entries SET epoch = 'x' WHERE key = 2")
    faults = [str(fault) for fault in sql_store.verify(NAMESPACE, "s")]
    assert faults[0] == f"session s ({NAMESPACE}), entry 1 (x): its hash disagrees"
    assert sql_store.verify(NAMESPACE, "sound") == []
    assert session.tip not in faults[0]
