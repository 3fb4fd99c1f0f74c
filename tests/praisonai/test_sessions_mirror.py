"""The host's session store shows each compression as a child session, until it is forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from praisonaiagents.session import HierarchicalSessionStore, get_default_session_store

from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.messages import content_digest
from praison_compressor.praisonai import sessions as mirror
from praison_compressor.testing import LocalProvider
from tests.helpers.hosting import MODES, turn
from tests.helpers.kept_sessions import SESSION, TURNS, kept, talk


@pytest.mark.parametrize("mode", ["chat", "achat"])
def test_the_host_sees_the_child_sessions(host: LocalProvider, mode: str) -> None:
    """By its own API (parent, list, search, export), each once; of `achat` it keeps nothing else
    itself, and of `chat` every word of every turn as before."""
    made = kept(host)
    MODES[mode](made, [turn(n) for n in range(TURNS)])
    compressor = made.context_compressor
    store = get_default_session_store()
    tree = HierarchicalSessionStore(store.session_dir)
    chain = [e.id for e in compressor.ledger.lineage("default", SESSION)]
    assert [tree.get_parent(one) for one in chain[1:]] == chain[:-1] != []
    listed = {each["session_id"] for each in store.list_sessions()}
    assert set(chain) <= listed
    for one in (SESSION, chain[-1]):
        assert store.get_session(one).metadata["lineage_id"] == SESSION
    exported = tree.export_session(chain[-1])
    assert exported["parent_id"] == chain[-2]
    assert exported["messages"][0]["role"] == "system"
    assert "L-001" in exported["messages"][0]["content"]
    assert [hit.session_id in chain for hit in store.search("L-001")] == [True]
    said = [m["content"] for m in store.get_chat_history(SESSION) if m["role"] == "user"]
    assert said == ([turn(n) for n in range(TURNS)] if mode == "chat" else [])
    kept(host).chat("And the next one?")  # no compression: no child
    assert {each["session_id"] for each in store.list_sessions()} == listed


def test_a_failing_mirror_harms_nothing(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A host store that cannot be written is said once; the view is the same."""
    expected = talk(kept(host, session="sound")).last_result.messages

    def full(self: Any, *_: Any, **__: Any) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(HierarchicalSessionStore, "create_session", full)
    compressor = talk(kept(host), TURNS)
    assert compressor.last_result.messages == expected
    said = [r for r in caplog.records if r.name == mirror.__name__]
    assert len(said) == 1
    assert isinstance(compressor.ledger, SqlStore)


# ---------------------------------------------------------------- forgotten


def children(compressor: Any) -> list[str]:
    """The ids of the session's epochs."""
    return [e.id for e in compressor.ledger.lineage("default", SESSION)[1:]]


def test_a_forgotten_session_is_gone_from_the_hosts_mirror_too(host: LocalProvider) -> None:
    """Its summaries are in no file of ours, and in no child of the host's; its own is named."""
    made = kept(host)
    compressor = talk(made)
    store = get_default_session_store()
    mirrored = [child for child in children(compressor) if store.session_exists(child)]
    done = compressor.forget()
    assert list(done.mirrored) == mirrored != []
    assert [store.session_exists(child) for child in mirrored] == [False] * len(mirrored)
    assert done.erased.sessions == (SESSION,)
    (left,) = done.left
    assert f"the host's own session {SESSION}" in left
    assert compressor.ledger.verify() == []


def test_a_forgotten_message_is_gone_from_the_hosts_mirror_too(host: LocalProvider) -> None:
    """A child may repeat it, as a summary or word for word: none is left that could."""
    made = kept(host)
    compressor = talk(made)
    store = get_default_session_store()
    (told,) = [m for m in compressor.ledger.archived("default", SESSION) if m["content"] == turn(2)]
    done = compressor.forget(content_digest(told))
    assert done.erased.messages == 1
    assert len(done.mirrored) > 0
    assert [c for c in children(compressor) if store.session_exists(c)] == []
