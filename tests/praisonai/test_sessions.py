"""An agent with a session of its own keeps its ledger; one without keeps nothing on a disk."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents.session import get_default_session_store

from praison_compressor import MemoryStore
from praison_compressor.ledger.sql.database import default_path
from praison_compressor.ledger.sql.store import SqlStore, open_store
from praison_compressor.praisonai import requests as conversation
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import (
    MODES,
    OPENAI,
    PATHS,
    agent,
    context,
    look_up,
    numbered,
    of_agent,
    reused,
    turn,
)
from tests.helpers.kept_sessions import SESSION, TURNS, kept, rights, summaries_asked, talk

OTHER_PROCESS = """
import sys
from praison_compressor.testing import LocalProvider
from praison_compressor import install
from praisonaiagents import MemoryConfig
from tests.helpers.hosting import agent, context

class Elsewhere:
    base_url, url = sys.argv[1], sys.argv[2]

install()
memory = MemoryConfig(session_id=sys.argv[4], history=sys.argv[6] == "True")
made = agent(Elsewhere, sys.argv[3], context(Elsewhere), memory=memory)
made.chat(sys.argv[5])
print(made.context_compressor.context_status, made.context_compressor.last_result.summary_method)
"""


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
    with caplog.at_level(logging.INFO, logger="praison_compressor.praisonai.sessions"):
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


@pytest.mark.parametrize("is_option", [True, False])
def test_a_named_store_comes_before_the_default(
    host: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_option: bool
) -> None:
    """By `store_url` or `PRAISON_COMPRESSOR_STORE`, with a session and without one."""
    told = tmp_path / "told" / "ledger.db"
    options = {"store_url": str(told)} if is_option else {}
    monkeypatch.setenv("PRAISON_COMPRESSOR_STORE", "" if is_option else str(told))
    talk(kept(host, asked=context(host, **options)))
    other = talk(agent(host, OPENAI, context(host, **options), name="Bob"))
    assert other.status().store == f"store sqlite:{told}"
    assert len(open_store(told).sessions("default")) == 2
    assert not default_path().exists()


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


@pytest.mark.parametrize(("path", "mode"), [(path, m) for path in PATHS for m in ("chat", "achat")])
def test_the_next_agent_of_that_session_goes_on(host: LocalProvider, path: str, mode: str) -> None:
    """The same summaries, word for word, and no call of the summarizer, whatever it is asked by."""
    before = talk(kept(host, path)).last_result
    asked = summaries_asked(host)
    again = kept(host, path)
    again._init_session_store()  # the host restores a session in `chat` only
    MODES[mode](again, ["And the next one?"])
    assert summaries_asked(host) == asked > 0
    after = again.context_compressor.last_result
    assert after.summary_method == "reused"
    assert after.segments == before.segments
    assert after.session_id == before.session_id
    # The view of the last turn is what this one begins with; the host writes its own prompt.
    assert of_agent(host)[-1].messages[1 : len(before.messages)] == before.messages[1:]


@pytest.mark.parametrize("history", [False, True])
def test_another_process_goes_on(host: LocalProvider, history: bool) -> None:
    """What reaches the provider from a new process begins with the same view, also where the host
    puts a window of its session in front of the history."""
    before = talk(kept(host, history=history)).last_result
    asked = summaries_asked(host)
    arguments = [host.base_url, host.url, OPENAI, SESSION, "And the next one?", str(history)]
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, *arguments],
        cwd=Path(__file__).parent.parent.parent,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["summarized", "reused"]
    assert summaries_asked(host) == asked > 0
    assert of_agent(host)[-1].messages[1 : len(before.messages)] == before.messages[1:]


@pytest.mark.parametrize(("mode", "calls"), [("chat", 0), ("stream", 0), ("iter_stream", 2)])
def test_a_window_of_the_session_in_front_is_not_another_conversation(
    host: LocalProvider, mode: str, calls: int
) -> None:
    """With the host's session history every turn is compressed as without it: nothing is said
    twice, and each request begins with the one before unless a summary came between."""
    host.answer_with(Worker(calls, arguments=numbered, answer="Noted."))
    made = kept(host, history=True, tools=[look_up] if calls else None)
    MODES[mode](made, [turn(n) for n in range(28)])
    for record in of_agent(host):
        said = [m["content"] for m in record.messages if m["role"] == "user"]
        assert len(said) == len(set(said))
    pairs = list(itertools.pairwise(host.requests))
    quiet = [(one, two) for one, two in pairs if "aux" not in (one.model, two.model)]
    assert [reused(one, two) for one, two in quiet] == [1] * len(quiet)
    assert len(quiet) >= 20
    assert 2 <= summaries_asked(host) <= 8
    assert made.context_compressor.status().summaries > 0
    assert host.refused == []


TALK = [
    {"role": role, "content": f"{role} {n}"} for n in range(4) for role in ("user", "assistant")
]


@pytest.mark.parametrize(
    ("sent", "carried"),
    [
        (TALK, True),
        (TALK[4:], True),
        ([*TALK[5:], *TALK[:5]], True),
        (TALK[::-1], True),
        ([{"role": "user", "content": "Recall."}, *TALK[-2:]], True),
        ([{"role": "user", "content": "Grade this."}, TALK[-1]], False),
        ([{"role": "user", "content": "Give it a title."}], False),
    ],
)
def test_any_window_of_the_conversation_is_the_conversation(
    host: LocalProvider, sent: list[Any], carried: bool
) -> None:
    """Whole, cut or in another order; one of its messages among other words is not."""
    made = agent(host, OPENAI, context(host))
    made.chat_history = list(TALK)
    assert conversation.carries_conversation(made, sent) == carried


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
    """Turns since the last compression are in the store once it is told to, and resuming the
    session that the agent is in does not put an older state back."""
    told = str(tmp_path / "told.db")
    made = agent(host, OPENAI, context(host, store_url=told))
    compressor = talk(made)
    made.chat("One more thing.")
    history = list(made.chat_history)
    compressor.resume(compressor.session_id)
    assert made.chat_history == history
    assert compressor.save() == 1
    session = compressor.ledger.open("default", compressor.session_id)
    said = [m["content"] for m in compressor.ledger.transcript(session) if m["role"] == "user"]
    assert said == [*(turn(n) for n in range(TURNS)), "One more thing."]
