"""A store that cannot be used: one line from the command; an agent's turns go on, said once."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import MemoryStore
from praison_compressor.ledger.sql import database
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.testing import LocalProvider, Summarizer, Worker
from tests.cli.test_commands import transcript
from tests.helpers.command import Run, runner
from tests.helpers.hosting import OPENAI, agent, at_home, context, of_agent, turn

pytest_plugins = ["tests.helpers.stores"]

TURNS = 16
ROOT = Path(__file__).parent.parent.parent
UNREACHABLE = "postgresql://someone:hunter2@127.0.0.1:9/ledger?connect_timeout=2"
WRONG = "mysql://someone:hunter2@host/ledger"
UNREADABLE = "://hunter2"


def damaged(directory: Path) -> str:
    """A file that is no database."""
    path = directory / "damaged.db"
    path.write_bytes(b"not a database at all, but long enough to be read as one" * 100)
    return str(path)


def below_a_file(directory: Path) -> str:
    """A path that no directory can be made for."""
    (directory / "file").write_text("")
    return str(directory / "file" / "ledger.db")


BAD = [UNREACHABLE, WRONG, UNREADABLE, damaged, below_a_file]
NAMES = ["unreachable", "wrong", "unreadable", "damaged", "below a file"]


def url_of(bad: Any, directory: Path) -> str:
    """The URL of a bad store."""
    return bad if isinstance(bad, str) else bad(directory)


# ---------------------------------------------------------------- the command


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command."""
    return runner(monkeypatch, capfd)


@pytest.mark.parametrize("bad", BAD, ids=NAMES)
def test_the_command_says_it_in_one_line(bad: Any, run: Run, tmp_path: Path) -> None:
    """Reading and writing: exit code 4, no password, no trace; `doctor` says it too."""
    url = url_of(bad, tmp_path)
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(transcript()))
    for command in (
        ("sessions",),
        ("resume", "s"),
        ("compress", file, "--window", 8_000, "--session", "s"),
    ):
        done = run(*command, "--store", url)
        assert (done.code, done.out, len(done.err.splitlines())) == (4, "", 1), command
        assert "hunter2" not in done.err
    told = run("doctor", "--store", url)
    assert told.code == 1
    assert "hunter2" not in told.out + told.err


def test_the_command_on_a_full_disk(tmp_path: Path) -> None:
    """One line, and what was there before is whole."""
    (tmp_path / "transcript.json").write_text(json.dumps(transcript()))
    (tmp_path / "longer.json").write_text(json.dumps(transcript(240)))
    store = str(tmp_path / "ledger.db")
    options = ("--window", "8000", "--store", store, "--session")
    assert _command("compress", str(tmp_path / "transcript.json"), *options, "s").returncode == 0
    before = open_store(store).open("default", "s")
    size = max(file.stat().st_size for file in tmp_path.glob("ledger.db*"))
    done = _command("compress", str(tmp_path / "longer.json"), *options, "t", most=size)
    assert done.returncode == 4
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "disk" in done.stderr
    assert open_store(store).open("default", "s") == before
    assert open_store(store).verify() == []


def read_only_file(directory: Path) -> Path:
    """A ledger with a session that nobody may write, in a directory that all may."""
    path = directory / "read" / "ledger.db"
    (directory / "short.json").write_text(json.dumps(transcript()))
    file = str(directory / "short.json")
    done = _command("compress", file, "--window", "8000", "--store", str(path), "--session", "s")
    assert done.returncode == 0, done.stderr
    path.chmod(0o400)
    return path


def read_only_directory(directory: Path) -> Path:
    """A path in a directory where no file can be made."""
    path = directory / "read" / "ledger.db"
    path.parent.mkdir()
    path.parent.chmod(0o500)
    return path


READ_ONLY = pytest.mark.parametrize("made", [read_only_file, read_only_directory])


@READ_ONLY
def test_the_command_on_a_read_only_store(made: Callable[[Path], Path], tmp_path: Path) -> None:
    """One line that names the path and says what to do, for reading and for writing."""
    store = made(tmp_path)
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(transcript(60)))
    for command in (
        ("sessions",),
        ("show", "s"),
        ("verify",),
        ("compress", str(file), "--window", "8000", "--session", "t"),
    ):
        done = _command(*command, "--store", str(store), bound=True)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (4, "", 1), command
        assert str(store) in done.stderr
        assert re.search("writable|rights|there is no such file", done.stderr)


def _command(
    *arguments: str, most: int | None = None, bound: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command in a process whose files may not grow beyond `most` bytes."""

    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        if bound:
            obey_modes()

    return subprocess.run(
        [sys.executable, "-m", "praison_compressor.cli", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


def obey_modes() -> None:
    """Have the process that follows keep to a file's mode, also where root runs the tests."""
    for overriding in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, overriding, 0, 0, 0)  # PR_CAPBSET_DROP


# ---------------------------------------------------------------- inside an agent


@pytest.fixture
def host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: LocalProvider
) -> Iterator[LocalProvider]:
    """The strict provider as the host's: it refuses what exceeds the window."""
    (tmp_path / "home").mkdir()
    with at_home(monkeypatch, tmp_path / "home", provider) as running:
        running.answer_with(Worker(answer="Noted. " * 12))
        running.route("aux", Summarizer(r"L-\d+"))
        yield running


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What our log said of the store, from warnings up."""
    ours = [r for r in caplog.records if r.name.startswith("praison_compressor")]
    return [r.getMessage() for r in ours if r.levelno >= logging.WARNING]


@pytest.mark.parametrize("bad", BAD, ids=NAMES)
def test_an_agents_turns_go_on(
    bad: Any, host: LocalProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every turn is answered and fits; the cause is in the log once, without its password."""
    made = agent(host, OPENAI, context(host, store_url=url_of(bad, tmp_path)))
    for n in range(TURNS):
        assert made.chat(turn(n)) is not None
    assert host.refused == []
    assert len(of_agent(host)[-1].messages) < 2 * TURNS
    assert len([text for text in said(caplog) if "store" in text]) == 1
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("bad", [WRONG, UNREADABLE])
def test_a_store_that_can_never_be_opened_costs_no_compression(
    bad: str, host: LocalProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """The ledger is in memory, and `status` says so."""
    made = agent(host, OPENAI, context(host, store_url=bad))
    for n in range(TURNS):
        made.chat(turn(n))
    compressor = made.context_compressor
    assert compressor.context_status == "summarized"
    assert isinstance(compressor.ledger, MemoryStore)
    assert compressor.status().store == "memory"
    assert len([text for text in said(caplog) if "stays in memory" in text]) == 1


def test_a_wrong_key_costs_no_compression(
    host: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is written plain instead."""
    monkeypatch.setenv("PRAISONAI_SESSION_KEY", "hunter2")
    told = tmp_path / "told.db"
    made = agent(host, OPENAI, context(host, store_url=str(told)))
    for n in range(TURNS):
        made.chat(turn(n))
    assert made.context_compressor.context_status == "summarized"
    assert not told.exists()


def test_a_store_that_is_damaged_under_way(
    host: LocalProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Compressed until then; afterwards the best view that needs no store."""
    told = tmp_path / "told.db"
    made = agent(host, OPENAI, context(host, store_url=str(told)))
    for n in range(TURNS):
        made.chat(turn(n))
    assert made.context_compressor.context_status == "summarized"
    for file in tmp_path.glob("told.db*"):
        file.write_bytes(b"garbage " * 2_000)
    for n in range(TURNS, 2 * TURNS):
        assert made.chat(turn(n)) is not None
    assert host.refused == []
    assert len(of_agent(host)[-1].messages) < 2 * TURNS
    assert len([text for text in said(caplog) if "sent as well as it fits" in text]) == 1


@pytest.mark.parametrize("background", [False, True])
def test_a_store_that_another_keeps_locked(
    background: bool,
    host: LocalProvider,
    tmp_path: Path,
    statements: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One wait, then turns go on at once with the summaries there are; the log says it once."""
    monkeypatch.setattr(database, "_REST", 1_000)
    told = tmp_path / "told.db"
    options = {"store_url": str(told), "background": background}
    made = agent(host, OPENAI, context(host, **options))
    for n in range(TURNS):
        made.chat(turn(n))
    assert made.context_compressor.engine().background.wait(60)
    before = open_store(told).sessions("default")[0]
    with closing(sqlite3.connect(told)) as other:
        other.execute("BEGIN IMMEDIATE")
        statements.clear()
        for n in range(TURNS, 2 * TURNS):
            assert made.chat(turn(n)) is not None
        assert made.context_compressor.engine().background.wait(60)
        assert statements.count("BEGIN IMMEDIATE") == 1
        assert open_store(told).sessions("default")[0] == before
    assert host.refused == []
    assert len(of_agent(host)[-1].messages) < 2 * TURNS
    assert len([text for text in said(caplog) if "kept it locked" in text]) == 1


def test_a_store_whose_file_is_deleted(
    host: LocalProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next compression is on disk again, and the log says once that the file was lost."""
    told = tmp_path / "told.db"
    made = agent(host, OPENAI, context(host, store_url=str(told)))
    for n in range(TURNS):
        made.chat(turn(n))
    for file in tmp_path.glob("told.db*"):
        file.unlink()
    for n in range(TURNS, 2 * TURNS):
        assert made.chat(turn(n)) is not None
    assert host.refused == []
    store = open_store(told)
    session = store.open("default", made.context_compressor.session_id)
    assert session.entries
    assert session.tip == made.context_compressor.last_result.session_id
    assert store.verify() == []
    assert len([text for text in said(caplog) if "deleted or replaced" in text]) == 1


IN_A_PROCESS = """
import os, resource, sys
from pathlib import Path
from praison_compressor import install
from tests.helpers.hosting import OPENAI, agent, context, turn

class Elsewhere:
    base_url, url = sys.argv[1], sys.argv[2]

install()
ledger, is_full = Path(sys.argv[3]), sys.argv[5] == "full"
made = agent(Elsewhere, OPENAI, context(Elsewhere, store_url=str(ledger)))
answers = [made.chat(turn(0))]
if is_full:
    size = max(file.stat().st_size for file in ledger.parent.glob(ledger.name + "*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
answers += [made.chat(turn(n)) for n in range(1, int(sys.argv[4]))]
print(*(answer is not None for answer in answers))
"""


def _turns(
    host: LocalProvider, ledger: Path, state: str, before: Callable[[], None] | None = None
) -> list[str]:
    """An agent's turns in a process of its own; the lines of its log that name the store."""
    told = (host.base_url, host.url, str(ledger), str(TURNS), state)
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, *told],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=before,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * TURNS
    assert host.refused == []
    assert len(of_agent(host)[-1].messages) < 2 * TURNS
    return [line for line in done.stderr.splitlines() if str(ledger) in line]


def test_an_agent_on_a_full_disk(host: LocalProvider, tmp_path: Path) -> None:
    """No commit succeeds, every turn is answered, and the file verifies."""
    ledger = tmp_path / "told.db"
    assert len(_turns(host, ledger, "full")) == 1
    assert open_store(ledger).verify() == []


def test_an_agent_on_a_read_only_store(host: LocalProvider, tmp_path: Path) -> None:
    """Every turn is answered and fits; what to do about the path is in the log once."""
    told = _turns(host, read_only_file(tmp_path), "read-only", obey_modes)
    assert len(told) == 1
    assert "make the file and its directory writable" in told[0]
