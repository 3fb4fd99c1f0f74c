"""A store with a key shows nothing to who has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from praison_compressor.errors import ConfigError, StoreUnavailable
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.messages import content_digest
from tests.helpers.stores import bytes_of
from tests.helpers.talks import NAMESPACE, committed, talk

pytest_plugins = ["tests.helpers.stores"]


def test_an_encrypted_store_shows_no_word(tmp_path: Path) -> None:
    """With a codec no word, summary or digest of a message is readable in any file."""
    word = "xyzzyplugh"
    store = open_store(tmp_path / "ledger.db", codec=Fernet(Fernet.generate_key()))
    session = committed(store, "s", talk(6, word))
    assert store.originals(session, session.entries[0]) == talk(6, word)
    assert word.encode() not in bytes_of(tmp_path)
    assert b"summary 0" not in bytes_of(tmp_path)
    digest = bytes.fromhex(content_digest(talk(6, word)[0]).removeprefix("sha256:"))
    assert digest not in bytes_of(tmp_path)
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
