"""An agent with a session of its own keeps its ledger; one without keeps nothing on a disk."""

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent, MemoryConfig
from praisonaiagents.session import HierarchicalSessionStore, get_default_session_store
from praisonaiagents.session import store as host_stores

from praison_compressor import MemoryStore
from praison_compressor.ledger.sql.database import default_path
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    MODES,
    OPENAI,
    OUTGROWING,
    PATHS,
    agent,
    chat,
    context,
    look_up,
    numbered,
    of_agent,
    reused,
    texts_in,
    turn,
)
from tests.helpers.stores import bytes_of
from tests.helpers.talks import archived

SESSION = "books-of-1900"


def kept(
    provider: LocalProvider,
    path: str = OPENAI,
    asked: Any = None,
    history: bool = False,
    **more: Any,
) -> Agent:
    """Return an agent whose conversation the host keeps on the disk."""
    memory = MemoryConfig(session_id=SESSION, history=history)
    return agent(provider, path, asked or context(provider), memory=memory, **more)


def talk(made: Agent) -> Any:
    """Return its compressor, after turns enough for a compression."""
    assert None not in chat(made, OUTGROWING)
    assert made.context_compressor.context_status == "summarized"
    return made.context_compressor


def use_as_default(monkeypatch: pytest.MonkeyPatch, store: Any) -> Any:
    """Inject the host's default session store, as its users do."""
    monkeypatch.setattr(host_stores, "_default_store", store)
    return store


# ---------------------------------------------------------------- where it is


@pytest.mark.parametrize("path", PATHS)
def test_a_session_of_the_host_puts_the_ledger_on_the_disk(host, path, caplog):
    """A session of the host has its ledger on the disk, for the user only."""
    with caplog.at_level(logging.INFO, logger="praison_compressor.praisonai.agent_ledger"):
        compressor = talk(kept(host, path))
    assert isinstance(compressor.ledger, SqlStore)
    modes = [path.stat().st_mode & 0o777 for path in (default_path(), default_path().parent)]
    assert modes == [0o600, 0o700]
    assert compressor.status().store == f"store sqlite:{default_path()}"
    said = [r.getMessage() for r in caplog.records if "its ledger is in" in r.getMessage()]
    assert said == [f"agent Ada: its ledger is in store sqlite:{default_path()}"]
    assert [s.id for s in open_store(None).sessions("default")] == [SESSION]
    assert open_store(None).verify() == []


def test_an_agent_without_a_session_stays_in_memory(host):
    """An agent without a session writes nothing to a disk."""
    compressor = talk(agent(host, OPENAI, context(host)))
    assert isinstance(compressor.ledger, MemoryStore)
    assert compressor.status().store == "memory"
    assert not default_path().exists()


@pytest.mark.parametrize("is_option", [True, False])
def test_a_named_store_comes_before_the_default(host, tmp_path, monkeypatch, is_option):
    """`store_url` and its environment variable override the default store, session or not."""
    named = tmp_path / "named" / "ledger.db"
    options = {"store_url": str(named)} if is_option else {}
    monkeypatch.setenv("PRAISON_COMPRESSOR_STORE", "" if is_option else str(named))
    talk(kept(host, asked=context(host, **options)))
    other = talk(agent(host, OPENAI, context(host, **options), name="Bob"))
    assert other.status().store == f"store sqlite:{named}"
    assert len(open_store(named).sessions("default")) == 2
    assert not default_path().exists()


# ---------------------------------------------------------------- resumed


@pytest.mark.parametrize(("mode", "calls"), [("chat", 0), ("stream", 0), ("iter_stream", 2)])
def test_the_hosts_session_history_is_sent_once(host, mode, calls):
    """The host's own copy of the session's history reaches no request."""
    host.answer_with(Worker(calls, arguments=numbered, answer="Noted."))
    made = kept(host, history=True, tools=[look_up] if calls else None)
    MODES[mode](made, [turn(n) for n in range(20)])
    for record in of_agent(host):
        said = texts_in(record, "user")
        assert len(said) == len(set(said))
    pairs = list(itertools.pairwise(host.requests))
    quiet = [(one, two) for one, two in pairs if "aux" not in (one.model, two.model)]
    assert [reused(one, two) for one, two in quiet] == [1] * len(quiet)
    assert len(quiet) >= 10
    assert 2 <= len(host.for_model("aux")) <= 8
    assert made.context_compressor.status().summaries > 0
    assert host.refused == []


# ---------------------------------------------------------------- encrypted


def encrypted(store: Any) -> Any:
    """Return the host's wrapper around a store, with a new key."""
    from praisonaiagents.session.encrypted_store import EncryptedSessionStore, generate_session_key

    return EncryptedSessionStore(store, key=generate_session_key())


def test_an_encrypted_session_has_an_encrypted_ledger(host, monkeypatch):
    """With the host's key no file has a word of the conversation in plain text."""
    use_as_default(monkeypatch, encrypted(get_default_session_store()))
    compressor = talk(kept(host))
    assert "ledger-encrypted.db" in compressor.status().store
    assert not default_path().exists()
    folders = (default_path().parent, Path(get_default_session_store().session_dir))
    written = b"".join(map(bytes_of, folders))
    assert len(written) > 10_000
    assert b"the parser reads each line" not in written
    assert b"L-001" not in written
    stored = archived(compressor.ledger, SESSION, "default")
    assert OUTGROWING[1] in [m["content"] for m in stored]  # the first is head


def test_a_plain_url_is_not_used_beside_an_encrypted_session(host, tmp_path, monkeypatch):
    """A plain store gets no word of an encrypted session."""
    named = tmp_path / "plain.db"
    open_store(named).check()
    store = get_default_session_store()
    use_as_default(monkeypatch, encrypted(store))
    compressor = talk(kept(host, asked=context(host, store_url=str(named))))
    assert isinstance(compressor.ledger, MemoryStore)
    assert open_store(named).sessions("default") == []


def test_a_cipher_that_we_cannot_use_keeps_the_ledger_in_memory(host, monkeypatch, caplog):
    """With an encryption that we cannot use the ledger stays in memory."""

    class VaultEncryptedStore(HierarchicalSessionStore):
        """Somebody's own."""

    store = VaultEncryptedStore(get_default_session_store().session_dir)
    use_as_default(monkeypatch, store)
    compressor = talk(kept(host))
    assert isinstance(compressor.ledger, MemoryStore)
    assert not default_path().exists()
    assert "VaultEncryptedStore" in caplog.text


# ---------------------------------------------------------------- forgotten


def test_a_forgotten_session_is_gone_and_the_hosts_own_is_named(host):
    """`forget` empties the ledger and names the host's own transcript."""
    compressor = talk(kept(host))
    done = compressor.forget()
    assert done.sessions == (SESSION,)
    (left,) = done.left
    assert f"the host's own session {SESSION}" in left
    assert compressor.ledger.verify() == []
