"""`search` and `show` read the messages of a stored session."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import closing

import pytest

from praison_compressor import open_store
from tests.helpers.command import SESSION
from tests.helpers.talks import NAMESPACE, committed
from tests.helpers.transcripts import audit

# ---------------------------------------------------------------- search


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


# ---------------------------------------------------------------- references


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


def test_show_reads_several_references_at_once(run, view, ours):
    """`show` reads "s1.2, s1.9" as the tool and the library do."""
    text = ours.read("s1.2, s1.9", session_id=SESSION)
    for several in ("s1.2, s1.9", "s1.2,s1.9", "s1.2 and s1.9"):
        assert run("show", SESSION, several).out == text + "\n"
    assert run("show", SESSION, "s1.2, s1.9", "--json").json["reference"] == "s1.2, s1.9"
    refused = [
        run("show", SESSION, names) for names in ("s1.2, s9.1", "s1.2, s0", "s1.2, s1.9:500")
    ]
    assert [done.code for done in refused] == [2, 2, 2]
    assert run("show", SESSION, "s1, s1", "--full").code == 2


def test_a_limit_of_nothing_names_the_option(run, view):
    """A search for no passages names `--limit`."""
    done = run("search", "FACT-3", "--limit", 0)
    assert (done.code, "--limit=0: expected" in done.err) == (2, True)


def test_a_wrong_reference_is_one_line_and_exit_code_2(run, view):
    """A wrong reference is answered in one line by what would be right."""
    for wrong in ("s99", "s0", "s1.9999", "s1.0", "s1.5-3", "14", "[14]", "sha256:1f", ""):
        done = run("show", SESSION, wrong)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert any(hint in done.err for hint in ("there is 1 segment", "s1 has", "s2.14:900-940"))
    lines = run("show", SESSION, "s1.2:500-600")
    assert (lines.code, lines.out) == (2, "")
    assert lines.err.endswith("no line s1.2:500-600, s1.2 has 31 lines\n")


# ---------------------------------------------------------------- lists of segments


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
