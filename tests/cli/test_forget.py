"""`forget` erases a session, or one message by its digest."""

import io
import re

import pytest

from tests.helpers.command import NAMED, SEARCHED, SESSION
from tests.helpers.processes import own_environment, python


def test_nothing_is_forgotten_without_a_yes(run, view, monkeypatch):
    """Without a yes nothing is forgotten."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = run("forget", SESSION)
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "praison-compressor: nothing was erased; --yes erases without a question",
    )
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
