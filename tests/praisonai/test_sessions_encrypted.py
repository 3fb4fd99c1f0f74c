"""Beside an encrypted session the ledger is encrypted too, or on no disk at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from praisonaiagents.session import HierarchicalSessionStore, get_default_session_store

from praison_compressor import MemoryStore
from praison_compressor.ledger.sql.database import default_path
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.testing import LocalProvider
from tests.helpers.hosting import context, turn
from tests.helpers.kept_sessions import SESSION, bytes_kept, kept, talk, use_as_default


def encrypted(store: Any) -> Any:
    """The host's wrapper around a store, with a new key."""
    from praisonaiagents.session.encrypted_store import EncryptedSessionStore, generate_session_key

    return EncryptedSessionStore(store, key=generate_session_key())


def test_an_encrypted_session_has_an_encrypted_ledger(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the host's key: not a word of the conversation is plain in any file, and the host's
    store reads the child that shows a compression."""
    plain = get_default_session_store()
    wrapped = use_as_default(monkeypatch, encrypted(plain))
    compressor = talk(kept(host))
    assert "ledger-encrypted.db" in compressor.status().store
    assert not default_path().exists()
    written = bytes_kept()
    assert len(written) > 10_000
    assert b"the parser reads each line" not in written
    assert b"L-001" not in written
    child = compressor.ledger.lineage("default", SESSION)[-1].id
    assert "L-001" in wrapped.get_session(child).messages[0].content
    assert "L-001" not in plain.get_session(child).messages[0].content
    archived = compressor.ledger.archived("default", SESSION)
    assert turn(1) in [m["content"] for m in archived]  # the first turn is head, never compressed


def test_a_plain_url_is_not_used_beside_an_encrypted_session(
    host: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that has been plain until now is refused, and gets not a word."""
    told = tmp_path / "told.db"
    open_store(told).check()
    store = get_default_session_store()
    use_as_default(monkeypatch, encrypted(store))
    compressor = talk(kept(host, asked=context(host, store_url=str(told))))
    assert isinstance(compressor.ledger, MemoryStore)
    assert open_store(told).sessions("default") == []


def test_a_cipher_that_we_cannot_use_keeps_the_ledger_in_memory(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another's encrypted store has no key for us: refused by name, never plain beside it."""

    class VaultEncryptedStore(HierarchicalSessionStore):
        """Somebody's own."""

    store = VaultEncryptedStore(get_default_session_store().session_dir)
    use_as_default(monkeypatch, store)
    compressor = talk(kept(host))
    assert isinstance(compressor.ledger, MemoryStore)
    assert not default_path().exists()
    assert "VaultEncryptedStore" in caplog.text
