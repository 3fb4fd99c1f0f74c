"""Commands list, verify and restore the sessions of a store."""

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.helpers.command import NAMED, SESSION, SUMMARIZE
from tests.helpers.transcripts import audit

# ---------------------------------------------------------------- sessions


def test_a_stored_session_is_listed_with_its_lineage(run, view):
    """A compression opens an epoch whose parent is the session."""
    assert SESSION in run("sessions").out
    listed = run("sessions", "--json").json
    assert [info["id"] for info in listed] == [SESSION]
    epochs = run("lineage", SESSION, "--json").json
    assert epochs[0]["id"] == SESSION
    assert epochs[1]["parent_id"] == SESSION
    drawn = run("lineage", SESSION).out
    assert epochs[1]["id"] in drawn
    assert run("lineage", epochs[1]["id"], "--json").json[-1]["id"] == epochs[1]["id"]


@pytest.fixture
def undone(ours):
    """Undo the session's compression."""
    ours.undo(SESSION)


def test_an_undo_counts_as_no_compression(run, undone):
    """An epoch that `undo` made counts as no compression."""
    hows = [line.partition("(")[2] for line in run("lineage", SESSION).out.splitlines()]
    assert [how.partition(" 2")[0] for how in hows] == ["began", "compressed", "undo"]
    assert "1, 1 undone" in run("sessions").out
    assert re.search(r"^s1 +summary, undone ", run("show", SESSION).out, re.M)
    assert [row["state"] for row in run("show", SESSION, "--json").json] == ["undone"] * 2
    assert run("show", SESSION, "--live").out == f"{SESSION}: 2 segments, none of this kind.\n"
    [listed] = run("sessions", "--json").json
    assert (listed["compressions"], listed["undone"]) == (1, 1)


def test_a_page_says_what_was_undone(run, undone, tmp_path):
    """`report` and its page count an undone compression as undone."""
    value = run("report", SESSION, "--out", "page.html", "--json").json
    assert (value["compressions"], value["undone"]) == (1, 1)
    assert "; 1 compression, 1 undone\n" in run("report", SESSION, "--out", "page.html").out
    page = (tmp_path / "page.html").read_text("utf-8")
    assert ">undo<" in page
    assert "<dt>compressions</dt><dd>1, 1 undone</dd>" in page
    assert "Undone compressions are not drawn" in page


def test_lines_of_what_has_none_end_no_command(run, undone):
    """`show` answers for lines of an undo, and of what was forgotten."""
    assert "undoes others" in run("show", SESSION, "s2.1:1-2").out
    run("forget", SESSION, "--yes")
    assert "forgotten" in run("show", SESSION, "s1.1:1-2, s1.2:1-2").out


def test_an_empty_namespace_names_the_others(run, view):
    """An empty list names the namespaces that have sessions."""
    elsewhere = run("sessions", "--namespace", "nobody's")
    assert "exist in: default (--namespace NAME)" in elsewhere.out


def test_another_namespace_has_no_session(run, view):
    """A session is unknown in another namespace."""
    assert run("show", SESSION, "--namespace", "other").code == 4


def test_a_session_that_is_not_there_is_exit_code_4(run, view):
    """Every command refuses an unknown session instead of creating it."""
    for command in (*NAMED, ("report", SESSION)):
        missing = run(*("nobody" if word == SESSION else word for word in command))
        assert (missing.code, missing.out, len(missing.err.splitlines())) == (4, "", 1), command
        assert "nobody" in missing.err
    assert "nobody" not in run("sessions").out


# ---------------------------------------------------------------- where a store is


def test_a_missing_store_says_how_one_is_made(run):
    """The error of a missing store says how a session is stored."""
    empty = run("sessions")
    assert empty.code == 4
    assert "compress FILE --store URL --session ID" in empty.err
    assert "CompressorContext(store_url=...)" in empty.err


def test_an_unreachable_store_shows_no_password(run):
    """The error of an unreachable store has no password."""
    away = run("sessions", "--store", "postgresql://user:secret@127.0.0.1:1/db")
    assert (away.code, "secret" in away.err + away.out) == (4, False)


def test_reading_leaves_no_trace(run, tmp_path):
    """A missing store or a foreign database is refused untouched."""
    with closing(sqlite3.connect("photos.db")) as theirs:
        theirs.execute("CREATE TABLE photos (name)")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    more = (("sessions",), ("search", "FACT-3"), ("verify",), ("report", SESSION), ("forget",))
    for command in (*NAMED, *more):
        for store in ("no/such/folder/legder.db", "legder.db", "photos.db"):
            done = run(*command, "--store", store)
            assert (done.code, done.out, len(done.err.splitlines())) == (4, "", 1), command
            assert f"{tmp_path / store}: there is no such file, or no ledger in it" in done.err
    assert before == {p: p.is_file() and p.read_bytes() for p in tmp_path.rglob("*")}


def test_a_look_at_a_file_creates_no_store(run, file, tmp_path):
    """`inspect` creates no store."""
    seen = run("inspect", file, "--window", "8k", "--store", "new/ledger.db")
    assert (seen.code, seen.err) == (0, "")
    assert "new/ledger.db yet: no segment is found again" in seen.out
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["nosuch.jsonl", "folder/nosuch"])
def test_a_missing_file_is_no_session(run, name):
    """`report` takes no missing file for a session."""
    done = run("report", name)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"{name}: there is no such file" in done.err


def test_no_command_writes_over_a_ledger(run, view):
    """No command overwrites a ledger."""
    for command in ("restore", "report"):
        assert run(command, SESSION, "--out", "no/such/folder").code == 2
        refused = run(command, SESSION, "--out", "ledger.db")
        assert (refused.code, refused.out) == (2, "")
        assert "is a database" in refused.err
    assert run("verify", SESSION).code == 0
    assert [info["id"] for info in run("sessions", "--json").json] == [SESSION]


def test_no_command_writes_over_its_transcript(run, file):
    """No command overwrites the transcript that it reads."""
    assert run("report", "transcript.json", "--out", "transcript.json").code == 2
    assert run("report", "transcript.json", "--out", "page.html").code == 0
    for out in ("transcript.json", "no/such/folder.json"):
        assert run("compress", "transcript.json", "--window", "8k", "--out", out).code == 2
    assert json.loads(Path("transcript.json").read_text()) == audit()


# ---------------------------------------------------------------- verify


def test_a_sound_ledger_verifies(run, view):
    """`verify` of a sound ledger ends with code 0."""
    assert run("verify").code == 0
    assert run("verify", SESSION, "--json").json == {"sound": True, "faults": []}


def test_verify_names_a_tenant_that_has_nothing(run, view):
    """`verify` of a mistyped namespace does not call it sound."""
    said = run("verify", "--namespace", "defualt").out
    assert "Sound" not in said
    assert said.splitlines()[1] == "Sessions exist in: default (--namespace NAME)."
    assert "Sound" in run("verify", "--namespace", "default").out


def test_a_damaged_ledger_does_not_verify(run, view, tmp_path):
    """`verify` ends with code 1 after a hash was changed."""
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE compressor_entries SET hash = 'sha256:0'")
    damaged = run("verify", "--json")
    assert damaged.code == 1
    assert damaged.json["faults"]
    assert run("verify").code == 1


# ---------------------------------------------------------------- restore


def test_a_whole_session_is_restored(run, view):
    """`restore` writes every message as it came, from the ledger or from a view."""
    whole = audit()
    assert json.loads(run("restore", SESSION).out) == whole
    by_view = run("restore", SESSION, "--view", view)
    assert json.loads(by_view.out) == whole
    assert by_view.err == ""  # no note on the window of a model that no one asked


@pytest.fixture
def other(run, file):
    """Return the view of a session "other" in other.db; its transcript has one secret more."""
    messages = audit()
    messages[1]["content"] += " The key is sk-proj-" + "a1B2" * 12
    file.write_text(json.dumps(messages))
    given = ("--window", "8k", "--store", "other.db", "--session", "other", "--out", "other.jsonl")
    assert run("compress", file, *given, *SUMMARIZE).code == 0
    return "other.jsonl"


def test_restore_counts_redacted_secrets(run, other):
    """`restore` counts the secrets that the ledger redacted."""
    whole = ("restore", "other", "--store", "other.db", "--out", "whole.json")
    assert "1 secret redacted" in run(*whole).out
    found = run(*whole, "--json").json["differences"]
    assert found == ["1 secret redacted; the ledger never stored the originals"]


def test_restore_counts_the_summaries_of_another_ledger(run, view, other):
    """`restore` counts the summaries of a view that are another ledger's."""
    foreign = run("restore", SESSION, "--view", other, "--out", "still.json")
    assert "1 summary left, unknown to this session's ledger" in foreign.out


# ---------------------------------------------------------------- encrypted


@pytest.fixture
def store(run, file, monkeypatch):
    """Return the name of an encrypted store, with its key in the environment."""
    monkeypatch.setenv("PRAISONAI_SESSION_KEY", Fernet.generate_key().decode())
    arguments = ("--window", 8_000, "--session", SESSION, "--store", "secret.db", "--out", "v")
    assert run("compress", file, *arguments).code == 0
    return "secret.db"


def test_an_encrypted_store_opens_with_its_key(run, store):
    """An encrypted store opens with its key."""
    assert json.loads(run("restore", SESSION, "--store", store).out) == audit()
    assert "FACT-3" in run("search", "FACT-3", "--store", store).out
    assert run("verify", "--store", store).code == 0


def test_report_takes_the_key_of_an_option(run, store, monkeypatch):
    """`report --set store_key=KEY` opens an encrypted store."""
    key = os.environ["PRAISONAI_SESSION_KEY"]
    monkeypatch.delenv("PRAISONAI_SESSION_KEY")
    done = run("report", SESSION, "--store", store, "--set", f"store_key={key}")
    assert done.code == 0, done.err


def test_an_encrypted_store_refuses_another_key(run, store, monkeypatch):
    """Another key, or none, gives one line that names it."""
    monkeypatch.setenv("PRAISONAI_SESSION_KEY", Fernet.generate_key().decode())
    refused = run("restore", SESSION, "--store", store)
    assert (refused.code, len(refused.err.splitlines())) == (4, 1)
    assert "another key" in refused.err
    monkeypatch.delenv("PRAISONAI_SESSION_KEY")
    missing = run("sessions", "--store", store)
    assert (missing.code, len(missing.err.splitlines())) == (4, 1)
    assert "PRAISONAI_SESSION_KEY" in missing.err
    assert "--set" not in missing.err  # which `sessions` does not have
