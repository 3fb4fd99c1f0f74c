"""An unusable store gives one line from the command, one log line from an agent."""

import ctypes
import json
import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from praison_compressor.ledger.sql.store import open_store
from praison_compressor.recall.answers import READ, SEARCH
from praison_compressor.testing import LocalProvider
from tests.helpers.command import runner
from tests.helpers.hosting import OPENAI, agent, context, look_up, of_agent, turn
from tests.helpers.processes import ROOT
from tests.helpers.talks import committed, talk
from tests.helpers.transcripts import audit

TURNS = 16
UNREACHABLE = "postgresql://someone:hunter2@127.0.0.1:9/ledger?connect_timeout=2"
WRONG = "mysql://someone:hunter2@host/ledger"


def damaged(directory: Path) -> str:
    """Return the path of a file that is no database."""
    path = directory / "damaged.db"
    path.write_bytes(b"not a database at all, but long enough to be read as one" * 100)
    return str(path)


def below_a_file(directory: Path) -> str:
    """Return a path below a file, where no directory can be created."""
    (directory / "file").write_text("")
    return str(directory / "file" / "ledger.db")


def test_an_unusable_store_is_one_line_of_the_command(tmp_path, monkeypatch, capfd):
    """Every command ends with code 4 and one line without the password."""
    run = runner(monkeypatch, capfd)
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(audit()))
    for url in (UNREACHABLE, WRONG, damaged(tmp_path), below_a_file(tmp_path)):
        for command in (("sessions",), ("compress", file, "--window", 8_000, "--session", "s")):
            done = run(*command, "--store", url)
            assert (done.code, done.out, len(done.err.splitlines())) == (4, "", 1), command
            assert "hunter2" not in done.err


def test_a_read_only_store_is_one_line_of_the_command(tmp_path):
    """The command names the path and the remedy, for reading too."""
    command = [sys.executable, "-m", "praison_compressor", "sessions", "--store"]
    store = read_only(tmp_path)
    done = _in_a_process([*command, str(store)], obey_modes)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (4, "", 1)
    assert f"{store}: it is read-only; make the file and its directory writable" in done.stderr


def read_only(directory: Path) -> Path:
    """Return a ledger with one session that cannot be written."""
    path = directory / "ledger.db"
    with closing(open_store(path)) as store:
        committed(store, "s", talk(3))
    path.chmod(0o400)
    return path


def obey_modes() -> None:
    """Make the next process obey a file's mode, even as root."""
    for overriding in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, overriding, 0, 0, 0)  # PR_CAPBSET_DROP


def _in_a_process(
    command: list[str], before: Callable[[], None] | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, preexec_fn=before
    )


# ---------------------------------------------------------------- inside an agent


def times_logged(caplog: pytest.LogCaptureFixture, words: str) -> int:
    """Return the number of our warnings and errors with these words."""
    ours = [r for r in caplog.records if r.name.startswith("praison_compressor")]
    logged = [r.getMessage() for r in ours if r.levelno >= logging.WARNING]
    return len([text for text in logged if words in text])


def talked(host: LocalProvider, made: Any, turns: range) -> None:
    """Run turns of an agent, each answered and within the window."""
    for n in turns:
        assert made.chat(turn(n)) is not None
    assert host.refused == []
    assert len(of_agent(host)[-1].messages) < 2 * TURNS


def test_an_unusable_store_ends_no_turn(host, caplog, tmp_path, monkeypatch):
    """Turns go on in memory, with one log line of cause and remedy."""
    for url, place, remedy in (
        (UNREACHABLE, "127.0.0.1", "check"),
        (below_a_file(tmp_path), str(tmp_path / "file"), "check"),
        (WRONG, "mysql", "expected"),
    ):
        caplog.clear()
        host.requests.clear()
        monkeypatch.setenv("PRAISON_COMPRESSOR_STORE", url)
        made = agent(host, OPENAI, context(host), tools=[look_up])
        talked(host, made, range(TURNS))
        assert [record for record in host.requests if record.model == "aux"]
        assert {SEARCH, READ} <= {tool.__name__ for tool in made.tools}
        assert made.context_compressor.status().store == "memory"
        assert times_logged(caplog, "store") == times_logged(caplog, place) == 1
        assert times_logged(caplog, "stays in memory") == times_logged(caplog, remedy) == 1
        assert "hunter2" not in caplog.text


def test_a_store_damaged_under_way_ends_no_turn(host, tmp_path, caplog):
    """After the damage each turn is sent the best view without a store."""
    made = agent(host, OPENAI, context(host, store_url=str(tmp_path / "ledger.db")))
    talked(host, made, range(TURNS))
    assert made.context_compressor.context_status == "summarized"
    for file in tmp_path.glob("ledger.db*"):
        file.write_bytes(b"garbage " * 2_000)
    talked(host, made, range(TURNS, 2 * TURNS))
    assert times_logged(caplog, "sent as well as it fits") == 1


@pytest.mark.parametrize("background", [False, True])
def test_a_store_that_another_keeps_locked_is_waited_for_once(
    background, host, tmp_path, statements, caplog
):
    """An agent waits for a locked store once in twenty seconds."""
    path = tmp_path / "ledger.db"
    made = agent(host, OPENAI, context(host, store_url=str(path), background=background))
    talked(host, made, range(TURNS))
    assert made.context_compressor.for_model().wait_for_summaries(60)
    before = open_store(path).sessions("default")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        statements.clear()
        started = time.monotonic()
        talked(host, made, range(TURNS, 2 * TURNS))
        assert made.context_compressor.for_model().wait_for_summaries(60)
        most = 1 + (time.monotonic() - started) // 20
        assert 1 <= statements.count("BEGIN IMMEDIATE") <= most
        assert open_store(path).sessions("default") == before
    # In the background each summary that was begun says so.
    assert 1 <= times_logged(caplog, "kept it locked") <= 1 + background


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


@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_full_disk_or_a_read_only_file_ends_no_turn(host, tmp_path, state):
    """A store that takes no commit costs no turn."""
    path = read_only(tmp_path) if state == "read-only" else tmp_path / "ledger.db"
    given = (host.base_url, host.url, str(path), str(TURNS), state)
    before = obey_modes if state == "read-only" else None
    done = _in_a_process([sys.executable, "-c", IN_A_PROCESS, *given], before)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * TURNS
    assert host.refused == []
    assert len(of_agent(host)[-1].messages) < 2 * TURNS
    assert len([line for line in done.stderr.splitlines() if str(path) in line]) == 1
    path.chmod(0o600)
    assert open_store(path).verify() == []
