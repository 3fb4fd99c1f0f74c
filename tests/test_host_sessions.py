"""An agent with a session of its own keeps its ledger; one without keeps nothing on a disk."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent, MemoryConfig
from praisonaiagents.session import HierarchicalSessionStore, get_default_session_store
from praisonaiagents.session import store as host_stores

from praison_compressor.errors import StoreUnavailable
from praison_compressor.memory import MemoryStore
from praison_compressor.messages import content_digest
from praison_compressor.praisonai import mirror
from praison_compressor.store import SqlStore, default_path, open_store
from praison_compressor.testing import LocalProvider, Summarizer, Worker

from .hosting import MODES, OPENAI, PATHS, agent, at_home, context, of_agent, turn

SESSION = "books-of-1900"
TURNS = 16
OTHER_PROCESS = """
import sys
from praison_compressor.testing import LocalProvider
from praison_compressor.praisonai import install
from praisonaiagents import MemoryConfig
from tests.hosting import agent, context

class Elsewhere:
    base_url, url = sys.argv[1], sys.argv[2]

install()
memory = MemoryConfig(session_id=sys.argv[4])
made = agent(Elsewhere, sys.argv[3], context(Elsewhere), memory=memory)
made.chat(sys.argv[5])
print(made.context_compressor.context_status, made.context_compressor.last_result.summary_method)
"""


@pytest.fixture
def host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, provider: LocalProvider
) -> Iterator[LocalProvider]:
    """The strict provider as the host's, our installation, and a user of its own."""
    monkeypatch.delenv("PRAISON_COMPRESSOR_STORE", raising=False)
    with at_home(monkeypatch, tmp_path, provider) as running:
        running.answer_with(Worker(answer="Noted. " * 12))
        running.route("aux", Summarizer(r"L-\d+"))
        yield running


def kept(
    provider: LocalProvider, path: str = OPENAI, asked: Any = None, session: str = SESSION
) -> Agent:
    """An agent whose conversation the host keeps on the disk."""
    memory = MemoryConfig(session_id=session)
    return agent(provider, path, asked or context(provider), memory=memory)


def talk(made: Agent, count: int = TURNS) -> Any:
    """Turns enough for a compression; returns the compressor."""
    for n in range(count):
        assert made.chat(turn(n)) is not None
    assert made.context_compressor.context_status == "summarized"
    return made.context_compressor


def summaries_asked(provider: LocalProvider) -> int:
    """How many requests the summarizer had."""
    return sum(record.model == "aux" for record in provider.requests)


def rights(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def bytes_kept() -> bytes:
    """Every byte of every file of ours and of the host's session store."""
    places = (default_path().parent, Path(get_default_session_store().session_dir))
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


def use_as_default(monkeypatch: pytest.MonkeyPatch, store: Any) -> Any:
    """Inject the host's default session store, as its users do."""
    monkeypatch.setattr(host_stores, "_default_store", store)
    return store


# ---------------------------------------------------------------- where it is


def test_the_data_directory_is_the_tests_own(host: LocalProvider, tmp_path: Path) -> None:
    """Nothing here may write to the data of whoever runs the tests."""
    assert tmp_path in default_path().parents
    assert Path(get_default_session_store().session_dir).is_relative_to(tmp_path)


@pytest.mark.parametrize("path", PATHS)
def test_a_session_of_the_host_puts_the_ledger_on_the_disk(
    host: LocalProvider, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite in the user's data directory, for the user only; log and status say so."""
    with caplog.at_level(logging.INFO, logger="praison_compressor.praisonai.ledgers"):
        compressor = talk(kept(host, path))
    assert isinstance(compressor.ledger, SqlStore)
    assert rights(default_path()) == 0o600
    assert rights(default_path().parent) == 0o700
    assert compressor.status().store == f"store sqlite:{default_path()}"
    said = [r.getMessage() for r in caplog.records if "its ledger is in" in r.getMessage()]
    assert said == [f"agent Ada: its ledger is in store sqlite:{default_path()}"]
    assert [s.id for s in open_store(None).sessions("default")] == [SESSION]
    assert open_store(None).verify() == []


def test_an_agent_without_a_session_stays_in_memory(host: LocalProvider) -> None:
    """Nobody's words go to a disk unasked."""
    compressor = talk(agent(host, OPENAI, context(host)))
    assert isinstance(compressor.ledger, MemoryStore)
    assert compressor.status().store == "memory"
    assert not default_path().exists()


def test_a_url_comes_before_the_default(host: LocalProvider, tmp_path: Path) -> None:
    """With a session and without one, the ledger is where it was told."""
    told = tmp_path / "told" / "ledger.db"
    talk(kept(host, asked=context(host, store_url=str(told))))
    talk(agent(host, OPENAI, context(host, store_url=str(told)), name="Bob"))
    assert len(open_store(told).sessions("default")) == 2
    assert not default_path().exists()


def test_the_environment_names_the_store(
    host: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`PRAISON_COMPRESSOR_STORE` counts for agents without a session too."""
    told = tmp_path / "told.db"
    monkeypatch.setenv("PRAISON_COMPRESSOR_STORE", str(told))
    assert talk(agent(host, OPENAI, context(host))).status().store == f"store sqlite:{told}"


def test_a_directory_that_cannot_be_written_costs_no_compression(
    host: LocalProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The default place is nobody's wish: where it fails, the ledger is in memory and says so."""
    default_path().parent.parent.mkdir(parents=True, exist_ok=True)
    default_path().parent.write_text("a file where the directory should be")
    compressor = talk(kept(host))
    assert isinstance(compressor.ledger, MemoryStore)
    assert len([r for r in caplog.records if "stays in memory" in r.getMessage()]) == 1


def test_a_database_adapter_is_no_reason_to_write_here(host: LocalProvider) -> None:
    """`db=` may be another machine's."""

    class Elsewhere:
        def on_agent_start(self, **_: Any) -> list[Any]:
            return []

    made = kept(host)
    made._db = Elsewhere()
    assert isinstance(made.context_compressor.ledger, MemoryStore)


# ---------------------------------------------------------------- resumed


@pytest.mark.parametrize("path", PATHS)
def test_the_next_agent_of_that_session_goes_on(host: LocalProvider, path: str) -> None:
    """The same summaries, word for word, and no call of the summarizer."""
    before = talk(kept(host, path)).last_result
    asked = summaries_asked(host)
    again = kept(host, path)
    again.chat("And the next one?")
    assert summaries_asked(host) == asked > 0
    after = again.context_compressor.last_result
    assert after.summary_method == "reused"
    assert after.segments == before.segments
    assert after.session_id == before.session_id
    # The view of the last turn is what this one begins with; the host writes its own prompt.
    assert of_agent(host)[-1].messages[1 : len(before.messages)] == before.messages[1:]


def test_another_process_goes_on(host: LocalProvider) -> None:
    """What reaches the provider from a new process begins with the same view."""
    before = talk(kept(host)).last_result
    asked = summaries_asked(host)
    arguments = [host.base_url, host.url, OPENAI, SESSION, "And the next one?"]
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, *arguments],
        cwd=Path(__file__).parent.parent,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["summarized", "reused"]
    assert summaries_asked(host) == asked > 0
    assert of_agent(host)[-1].messages[1 : len(before.messages)] == before.messages[1:]


def test_achat_goes_on_too(host: LocalProvider) -> None:
    """The ledger does not depend on the way of asking."""
    talk(kept(host))
    asked = summaries_asked(host)
    again = kept(host)
    again._init_session_store()  # the host restores a session in `chat` only
    asyncio.run(again.achat("And the next one?"))
    assert summaries_asked(host) == asked
    assert again.context_compressor.last_result.summary_method == "reused"


@pytest.mark.parametrize("path", PATHS)
def test_an_agent_takes_up_a_session_that_its_host_has_forgotten(
    host: LocalProvider, path: str, tmp_path: Path
) -> None:
    """From our store alone: its history and its view, and nobody is asked for a summary."""
    told = str(tmp_path / "told.db")
    first = agent(host, path, context(host, store_url=told))
    before = talk(first).last_result
    asked = summaries_asked(host)
    again = agent(host, path, context(host, store_url=told))
    compressor = again.context_compressor
    assert compressor.resume(before.session_id) == first.context_compressor.session_id
    assert len(again.chat_history) < TURNS
    again.chat("And the next one?")
    assert summaries_asked(host) == asked > 0
    assert compressor.last_result.segments == before.segments
    assert compressor.last_result.session_id == before.session_id
    compressor.new_session()
    compressor.resume(before.session_id, 100_000)
    said = [m["content"] for m in again.chat_history if m["role"] == "user"]
    assert said == [turn(n) for n in range(len(said))] != []


def test_an_agents_last_words_can_be_saved(host: LocalProvider, tmp_path: Path) -> None:
    """Turns since the last compression are in the store once it is told to."""
    told = str(tmp_path / "told.db")
    made = agent(host, OPENAI, context(host, store_url=told))
    compressor = talk(made)
    made.chat("One more thing.")
    assert compressor.save() == 1
    session = compressor.ledger.open("default", compressor.session_id)
    said = [m["content"] for m in compressor.ledger.transcript(session) if m["role"] == "user"]
    assert said == [*(turn(n) for n in range(TURNS)), "One more thing."]


def test_an_agent_keeps_its_own_newer_words(host: LocalProvider, tmp_path: Path) -> None:
    """Resuming the session that it is in already does not put the store's older state back."""
    made = agent(host, OPENAI, context(host, store_url=str(tmp_path / "told.db")))
    talk(made)
    made.chat("One more thing.")
    history = list(made.chat_history)
    made.context_compressor.resume(made.context_compressor.session_id)
    assert made.chat_history == history


# ---------------------------------------------------------------- mirrored


def test_the_host_sees_the_child_session(host: LocalProvider) -> None:
    """By its own API: parent, list, search, export."""
    compressor = talk(kept(host))
    store = get_default_session_store()
    tree = HierarchicalSessionStore(store.session_dir)
    chain = [e.id for e in compressor.ledger.lineage("default", SESSION)]
    child = chain[-1]
    assert tree.get_parent(chain[1]) == SESSION
    assert [tree.get_parent(one) for one in chain[1:]] == chain[:-1]
    listed = {each["session_id"]: each for each in store.list_sessions()}
    assert set(chain) <= set(listed)
    assert store.get_session(SESSION).metadata["lineage_id"] == SESSION
    assert store.get_session(child).metadata["lineage_id"] == SESSION
    exported = tree.export_session(child)
    assert exported["parent_id"] == chain[-2]
    assert exported["messages"][0]["role"] == "system"
    assert "L-001" in exported["messages"][0]["content"]
    hits = store.search("L-001")
    assert [hit.session_id in chain for hit in hits] == [True]


def test_the_host_sees_the_children_of_an_agent_that_only_awaits(host: LocalProvider) -> None:
    """The host itself keeps nothing of `achat`; what we compressed is there all the same."""
    made = kept(host)
    MODES["achat"](made, [turn(n) for n in range(TURNS)])
    compressor = made.context_compressor
    assert compressor.context_status == "summarized"
    store = get_default_session_store()
    tree = HierarchicalSessionStore(store.session_dir)
    chain = [e.id for e in compressor.ledger.lineage("default", SESSION)]
    assert [tree.get_parent(one) for one in chain[1:]] == chain[:-1]
    assert "L-001" in tree.export_session(chain[-1])["messages"][0]["content"]
    assert len(store.search("L-001")) == 1


def test_the_host_keeps_its_own_transcript(host: LocalProvider) -> None:
    """Every word of every turn is still in the agent's session."""
    talk(kept(host))
    history = get_default_session_store().get_chat_history(SESSION)
    asked = [m["content"] for m in history if m["role"] == "user"]
    assert asked == [turn(n) for n in range(TURNS)]


def test_each_compression_is_mirrored_once(host: LocalProvider) -> None:
    """Turns without a compression, and a new agent on the session, add no child."""
    talk(kept(host))
    store = get_default_session_store()
    before = {each["session_id"] for each in store.list_sessions()}
    kept(host).chat("And the next one?")
    assert {each["session_id"] for each in store.list_sessions()} == before


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


def test_what_could_not_be_removed_is_named(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that refuses keeps its child, and the caller learns which."""
    made = kept(host)
    compressor = talk(made)
    store = get_default_session_store()
    monkeypatch.setattr(type(store), "delete_session", lambda *_: False)
    done = compressor.forget()
    assert done.mirrored == ()
    refused = [line for line in done.left if "could not be removed" in line]
    assert [child for child in children(compressor) if any(child in r for r in refused)] != []
    assert done.erased.messages > 0


def test_memory_has_nothing_to_forget(host: LocalProvider) -> None:
    """Said in one clear error, before anything is touched."""
    made = agent(host, OPENAI, context(host))
    compressor = talk(made)
    with pytest.raises(StoreUnavailable, match="in memory"):
        compressor.forget()


# ---------------------------------------------------------------- encrypted


def encrypted(store: Any) -> Any:
    """The host's wrapper around a store, with a new key."""
    from praisonaiagents.session.encrypted_store import EncryptedSessionStore, generate_session_key

    return EncryptedSessionStore(store, key=generate_session_key())


def test_an_encrypted_session_has_an_encrypted_ledger(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the host's key: not a word of the conversation is plain in any file."""
    plain = get_default_session_store()
    use_as_default(monkeypatch, encrypted(plain))
    compressor = talk(kept(host))
    assert "ledger-encrypted.db" in compressor.status().store
    assert not default_path().exists()
    written = bytes_kept()
    assert len(written) > 10_000
    assert b"the parser reads each line" not in written
    assert b"L-001" not in written
    archived = compressor.ledger.archived("default", SESSION)
    assert turn(1) in [m["content"] for m in archived]  # the first turn is head, never compressed


def test_the_mirror_of_an_encrypted_session_is_encrypted(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child is there, and readable through the host's store."""
    store = get_default_session_store()
    wrapped = use_as_default(monkeypatch, encrypted(store))
    compressor = talk(kept(host))
    child = compressor.ledger.lineage("default", SESSION)[-1].id
    assert "L-001" in wrapped.get_session(child).messages[0].content
    assert "L-001" not in store.get_session(child).messages[0].content


def test_another_key_is_refused_and_nothing_is_plain(
    host: LocalProvider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A ledger of another key stays as it is; this one is in memory, and the log says why."""
    store = get_default_session_store()
    use_as_default(monkeypatch, encrypted(store))
    talk(kept(host))
    use_as_default(monkeypatch, encrypted(store))
    compressor = talk(kept(host, session="another"))
    assert isinstance(compressor.ledger, MemoryStore)
    assert "encrypted with another key" in caplog.text
    assert b"the parser reads each line" not in bytes_kept()


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
