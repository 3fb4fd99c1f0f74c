"""Commands on a store list, search, restore, verify and erase its sessions."""

import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from praison_compressor import CompressorConfig, ContextCompressor, open_store
from tests.helpers.command import SESSION, SUMMARIZE
from tests.helpers.processes import own_environment, python
from tests.helpers.talks import NAMESPACE, committed
from tests.helpers.transcripts import audit


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
def ours(view, tmp_path):
    """Return a compressor on the session's store."""
    with closing(open_store(f"sqlite:///{tmp_path / 'ledger.db'}")) as store:
        yield ContextCompressor(CompressorConfig(), store=store)


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


def test_a_missing_store_says_how_one_is_made(run):
    """The error of a missing store says how a session is stored."""
    empty = run("sessions")
    assert empty.code == 4
    assert "compress FILE --store URL --session ID" in empty.err
    assert "CompressorContext(store_url=...)" in empty.err


def test_an_empty_namespace_names_the_others(run, view):
    """An empty list names the namespaces that have sessions."""
    elsewhere = run("sessions", "--namespace", "nobody's")
    assert "exist in: default (--namespace NAME)" in elsewhere.out


def test_an_unreachable_store_shows_no_password(run):
    """The error of an unreachable store has no password."""
    away = run("sessions", "--store", "postgresql://user:secret@127.0.0.1:1/db")
    assert (away.code, "secret" in away.err + away.out) == (4, False)


def test_compressed_messages_can_be_read_and_searched(run, view):
    """Every message of a stored session is found."""
    rows = run("show", SESSION, "--json").json
    assert sum(len(row["run"]) for row in rows) > 0
    assert "originals" in run("show", SESSION, "s1", "--full").out
    for words in ("FACT-3", "never change LEDGER-7", "FACT-29"):  # the task and the newest turn too
        for where in ((), ("--session", SESSION)):
            assert run("search", words, *where, "--json").json[0]["session_id"] == SESSION
    assert "FACT-3" in run("search", "FACT-3").out
    assert run("search", "zebra crossing").out == "Nothing found.\n"


@pytest.mark.parametrize("empty", ["", " ?! "])
def test_a_search_without_words_is_refused(run, view, empty):
    """A search without words is refused."""
    done = run("search", empty)
    assert (done.code, done.out) == (2, "")


def test_search_answers_as_the_agents_tool(run, ours):
    """`search` prints what the agent's tool answers."""
    found = run("search", "FACT-3").out
    by_tool = ours.recall_tools(SESSION)[0]("FACT-3", limit=10, tokens=2_000)
    assert found.startswith(f"{SESSION}\n{by_tool.rpartition('(')[0]}")
    assert re.findall(r"FACT-\d+", found) == ["FACT-3"]  # no part of another name


def test_search_finds_a_message_that_was_not_compressed(run, view):
    """`search` marks a message that was not compressed."""
    assert run("search", "FACT-29", "--json").json[0]["reference"] is None
    assert "(not compressed)" in run("search", "FACT-29").out


def test_show_reads_the_references_that_search_prints(run, ours):
    """`show` reads the references of `search` as the library does."""
    (message, *_) = re.findall(r"^\[(s\d+\.\d+)\]", run("search", "FACT-3").out, re.M)
    where = f"{message}:1-9"
    assert run("search", "FACT-3", "--json").json[0]["reference"] == message
    assert "FACT-3\n" in run("show", SESSION, message).out
    assert "row 29: " not in run("show", SESSION, where).out
    assert "row 29: " in run("show", SESSION, message).out
    for reference in (where, message, "s1"):
        text = ours.read(reference, session_id=SESSION)
        assert run("show", SESSION, reference, "--json").json["text"] == text
        assert run("show", SESSION, reference).out == text + "\n"


def test_a_person_reads_on_by_the_command(run, tmp_path):
    """A cut text ends with the shell command that reads on."""
    rows = [f"row {n}: " + "plain words of it " * 4 for n in range(1, 301)]
    messages = [{"role": "user", "content": f"{n}\n" + "\n".join(rows)} for n in range(40)]
    with closing(open_store(tmp_path / "some where.db")) as store:
        committed(store, "an audit", messages)
    place = ("--store", tmp_path / "some where.db", "--namespace", NAMESPACE)
    said = run("show", "an audit", "s1.1", *place).out
    pages = [said]
    while found := re.search(r"go on: praison-compressor (.*)\)$", said, re.M):
        said = run(*shlex.split(found[1])).out
        pages.append(said)
    assert len(pages) > 3
    assert all(f"row {n}: " in "".join(pages) for n in range(1, 301))
    several = run("show", "an audit", "s1.1-40", *place).out
    assert re.search(r"^s1\.1 user: 0 row 1: ", several, re.M)
    assert "conversation_archive" not in "".join([*pages, several])


@pytest.fixture
def masked(run, file):
    """Mask the session's outputs, and return the beginning of another `compress`."""
    options = ("--target", "6k", "--keep-tokens", 500, "--set", "tool_policies=keep_none")
    given = ("compress", file, "--session", SESSION)
    assert run(*given, *options).code == 0
    return given


def test_neighbouring_masks_share_a_row(run, masked):
    """Neighbouring masks share a row of `show`."""
    rows = run("show", SESSION, "--json").json
    assert {row["kind"] for row in rows} == {"mask"}
    assert len(run("show", SESSION).out.splitlines()) == 2 < len(rows)


def test_a_list_can_have_summaries_alone(run, masked):
    """`--summaries` lists summaries alone."""
    assert run(*masked, "--window", "8k", "--force").code == 0
    summaries = run("show", SESSION, "--summaries", "--json").json
    assert {row["kind"] for row in summaries} == {"summary"}


def test_a_list_can_have_the_segments_of_the_view_alone(run, masked):
    """`--live` lists the segments of the view alone."""
    for more in ((), ("--keep", len(audit()) - 9)):
        assert run(*masked, "--window", "8k", "--force", *more).code == 0
    live = run("show", SESSION, "--live", "--json").json
    assert all(row["in_view"] for row in live)
    assert len(live) < len(run("show", SESSION, "--json").json)


def test_a_kept_message_is_listed(run, masked):
    """`show` lists a message that the user keeps."""
    assert run(*masked, "--window", "8k", "--force", "--keep", len(audit()) - 9).code == 0
    assert re.search(r"s\d+ +keep +user", run("show", SESSION).out)


def test_a_wrong_reference_is_one_line_and_exit_code_2(run, view):
    """A wrong reference is answered in one line by what would be right."""
    for wrong in ("s99", "s0", "s1.9999", "s1.0", "s1.5-3", "14", "[14]", "sha256:1f", ""):
        done = run("show", SESSION, wrong)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert any(hint in done.err for hint in ("there is 1 segment", "s1 has", "s2.14:900-940"))
    lines = run("show", SESSION, "s1.2:500-600")
    assert (lines.code, lines.out) == (2, "")
    assert lines.err.endswith("no line s1.2:500-600, s1.2 has 31 lines\n")


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


def test_a_sound_ledger_verifies(run, view):
    """`verify` of a sound ledger ends with code 0."""
    assert run("verify").code == 0
    assert run("verify", SESSION, "--json").json == {"sound": True, "faults": []}


def test_a_damaged_ledger_does_not_verify(run, view, tmp_path):
    """`verify` ends with code 1 after a hash was changed."""
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE compressor_entries SET hash = 'sha256:0'")
    damaged = run("verify", "--json")
    assert damaged.code == 1
    assert damaged.json["faults"]
    assert run("verify").code == 1


def test_another_namespace_has_no_session(run, view):
    """A session is unknown in another namespace."""
    assert run("show", SESSION, "--namespace", "other").code == 4


def test_nothing_is_forgotten_without_a_yes(run, view, monkeypatch):
    """Without a yes nothing is forgotten."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run("forget", SESSION).code != 0
    assert "FACT-3" in run("search", "FACT-3").out


def test_forgotten_words_are_found_nowhere(run, view):
    """After `forget` no search finds the session's words."""
    done = run("forget", SESSION, "--yes")
    assert done.code == 0, done.err
    assert run("search", "FACT-3").out == "Nothing found.\n"


def test_after_forget_the_chain_verifies(run, view):
    """After `forget` the chain of hashes verifies."""
    run("forget", SESSION, "--yes")
    assert run("verify").code == 0


def test_a_forgotten_session_is_not_listed(run, view):
    """A forgotten session is in no list of sessions."""
    run("forget", SESSION, "--yes")
    assert run("sessions", "--json").json == []
    assert SESSION not in run("sessions").out


def test_a_forgotten_session_is_an_error(run, view):
    """After `forget`, reading the session's messages is a "forgotten" error of code 4."""
    assert run("forget", SESSION, "--yes").code == 0
    for command in (*NAMED[2:], ("bill", SESSION), ("report", SESSION), SEARCHED):
        done = run(*command)
        assert (done.code, done.out, len(done.err.splitlines())) == (4, "", 1), command
        assert f"session '{SESSION}' was forgotten" in done.err
    assert "forgotten" in run("show", SESSION).out
    assert run("lineage", SESSION).code == 0


def test_forget_asks_only_about_what_is_there(run, view):
    """`forget` refuses an unknown name before it asks."""
    missing = run("forget", "audit")
    assert (missing.code, "did you mean 'audit-1'?" in missing.err) == (4, True)
    assert (run("forget", "sha256:" + "0" * 64).code, "Erase" in missing.err) == (4, False)


WITHOUT_A_NAME_OF_THE_HOST = """
from praisonaiagents.context import models
del models.OptimizerStrategy
from praison_compressor.cli import main
main()
"""


def test_forget_needs_no_host(run, view, tmp_path):
    """Without the host `forget` erases all but the host's sessions."""
    words = ("forget", SESSION, "--yes", "--store", tmp_path / "ledger.db")
    script = ("-c", WITHOUT_A_NAME_OF_THE_HOST, *map(str, words))
    done = python(*script, folder=tmp_path, environment=own_environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Erased: ")
    assert re.search("Left: .* not looked up: .*OptimizerStrategy", done.stdout)
    assert run("search", "FACT-3").out == "Nothing found.\n"


@pytest.mark.parametrize("malformed", ["sha256:zz", "sha256:1f", "sha256:"])
def test_forget_refuses_a_malformed_digest(run, view, malformed):
    """A malformed digest is refused with the expected form."""
    done = run("forget", malformed, "--yes")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "expected sha256: and 64 hexadecimal digits" in done.err


def test_forget_asks_for_a_digest_instead_of_an_entrys_hash(run, view):
    """For an entry's hash the error names the field with the digest."""
    hit = run("search", "FACT-3", "--json").json[0]
    entry = run("forget", hit["entry"], "--yes")
    assert entry.code == 4
    assert 'expected the "digest" that `search --json` prints, not its "entry"' in entry.err
    assert run("forget", hit["digest"], "--yes").code == 0


NAMED = [
    ("lineage", SESSION),
    ("show", SESSION),
    ("restore", SESSION),
    ("forget", SESSION, "--yes"),
    ("verify", SESSION),
]
SEARCHED = ("search", "FACT-3", "--session", SESSION)


def test_a_session_that_is_not_there_is_exit_code_4(run, view):
    """Every command refuses an unknown session instead of creating it."""
    for command in (*NAMED, ("report", SESSION)):
        missing = run(*("nobody" if word == SESSION else word for word in command))
        assert (missing.code, missing.out, len(missing.err.splitlines())) == (4, "", 1), command
        assert "nobody" in missing.err
    assert "nobody" not in run("sessions").out


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


def test_a_whole_session_is_restored(run, view):
    """`restore` writes every message as it came, from the ledger or from a view."""
    whole = audit()
    assert json.loads(run("restore", SESSION).out) == whole
    assert json.loads(run("restore", SESSION, "--view", view).out) == whole


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
    assert found == ["1 secret redacted: the ledger never held more"]


def test_restore_counts_the_summaries_of_another_ledger(run, view, other):
    """`restore` counts the summaries of a view that are another ledger's."""
    foreign = run("restore", SESSION, "--view", other, "--out", "still.json")
    assert "1 summary left: not of this session's ledger" in foreign.out


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1", "TERM": "xterm"}])
def test_a_pipe_that_closes_is_no_error(run, view, colour, unbuffered):
    """`show ... | head` succeeds silently."""
    command = [sys.executable, "-m", "praison_compressor", "show", SESSION, "s1", "--full"]
    pipe, environment = subprocess.PIPE, {**os.environ, "PYTHONUNBUFFERED": unbuffered, **colour}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment) as piped:
        piped.stdout.close()
        assert piped.stderr.read() == b""
    assert piped.returncode == 0
