"""`demo` and `doctor` do what they show."""

import os
import re
import socket
from typing import Any

import pytest

from praison_compressor import CompressorConfig, TokenCounter
from praison_compressor.cli import doctor as checks
from praison_compressor.cli.demo import picture
from praison_compressor.cli.demo_agent import FACT, MODEL, WINDOW, RecordedRequest
from praison_compressor.ledger.sql import default_path, open_store
from praison_compressor.praisonai import installed
from praison_compressor.testing import Failure, Reply
from tests.helpers.command import runner
from tests.helpers.talks import NAMESPACE, committed, talk


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    """Return the command in an empty folder and home, with a key that must not be used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    return runner(monkeypatch, capfd)


@pytest.fixture
def no_network(monkeypatch):
    """Return the names that are looked up but this machine's."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "localhost", None):
            asked.append(str(host))
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_the_demo_needs_no_network_and_refuses_nothing(run, no_network):
    """The demo's agent outgrows its window offline, and finds the answer in its archive."""
    before = dict(os.environ)
    done = run("demo", "--json")
    assert done.code == 0, done.err
    turns = done.json["turns"]
    requests = [request for turn in turns for request in turn["requests"]]
    assert [request["refused"] for request in requests if request["refused"]] == []
    assert max(request["transcript_tokens"] for request in requests) > WINDOW
    assert max(request["sent_tokens"] for request in requests) < WINDOW
    assert {request["compressed"] for request in requests} >= {None, "summarized"}
    assert turns[-1]["answer"] == f"The log says: {FACT}."
    last = turns[-1]["requests"][0]
    assert (FACT in str(last["view"]), last["transcript_tokens"] > WINDOW) == (False, True)
    assert done.json["check"] == {
        "fact": FACT,
        "in_view": False,
        "in_transcript": True,
        "found_by": "search_conversation_archive",
        "right": True,
    }
    assert done.json["totals"]["summary_requests"] > 0
    assert done.json["totals"]["cost_saved"] > done.json["totals"]["cost"] > 0
    assert done.json["totals"]["cached_tokens"] > done.json["totals"]["sent_tokens"] / 2
    assert TokenCounter(MODEL).exact  # its figures are counts
    assert no_network == []
    changed = {name for name, value in os.environ.items() if before.get(name) != value}
    assert changed <= {"TIKTOKEN_CACHE_DIR"}  # litellm sets it, where it had not been imported yet
    assert installed() is None


@pytest.mark.parametrize("columns", [60, 80])
def test_the_demos_picture_fits_the_terminal(columns):
    """Each line of the two halves has at most the terminal's columns."""
    talk = [{"role": "user", "content": "Read the log. " * 40}] * 9
    sent = RecordedRequest(talk, talk[:4], 123_456, 12_345, 0)
    lines = [*picture(sent, TokenCounter(MODEL), columns // 2 - 1)]
    assert len(lines) > 8
    assert max(map(len, lines)) <= columns


# ---------------------------------------------------------------- doctor


def test_doctor_tries_each_thing(run, tmp_path, provider, monkeypatch):
    """`doctor` ends with code 0 and changes nothing; a model that refuses has a remedy."""
    provider.answer_with(lambda asked: Reply("ready"))
    model = ("--auxiliary-model", "writer", "--set", f"auxiliary_api_base={provider.base_url}")
    given = ("--model", "gpt-4o", "--window", "8_000", "--store", "new.db", *model)
    done = run("doctor", *given, "--json")
    assert (done.code, done.json["works"]) == (0, True)
    states = {check["name"]: check["state"] for check in done.json["checks"]}
    assert "fail" not in states.values()
    assert [states[name] for name in ("tokenizer", "store", "summaries")] == ["ok"] * 3
    assert f"{tmp_path / 'new.db'}, not made yet" in done.out
    assert re.search(r"all [1-9]\d* names that we replace exist", done.out)
    assert list(tmp_path.rglob("*.db*")) == []
    assert installed() is None
    provider.answer_with(lambda asked: Failure(401, "no such key"))
    monkeypatch.setattr(checks, "DOCTOR_CHECKS", {"summaries": checks.DOCTOR_CHECKS["summaries"]})
    refused = run("doctor", *given)
    assert (refused.code, "fail" in refused.out, "OPENAI_API_KEY" in refused.out) == (1, True, True)


def test_doctor_names_the_ledger_of_an_agents_session(tmp_path, monkeypatch):
    """`doctor` names the ledger that an agent's own session has, and does not create it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    the_store = checks.DOCTOR_CHECKS["store"]
    away = the_store(CompressorConfig(store_url="postgresql://user:secret@127.0.0.1:1/db"))
    assert (away.state, "secret" in away.found) == ("fail", False)
    asked = the_store(CompressorConfig())
    assert (asked.state, str(default_path()) in asked.found) == ("ok", True)
    assert not default_path().exists()
    (tmp_path / "file").touch()
    below = the_store(CompressorConfig(store_url=str(tmp_path / "file" / "ledger.db")))
    assert (below.state, "check the path and its rights" in below.found) == ("fail", True)
    committed(open_store(), "s", talk(4))
    found = the_store(CompressorConfig(namespace=NAMESPACE)).found
    assert f"sqlite:{default_path()}: 1 session in namespace" in found
    for file in default_path().parent.iterdir():
        file.write_bytes(b"no database, " * 1_000)
    assert the_store(CompressorConfig()).state == "fail"


@pytest.mark.parametrize(
    ("moved", "state"),
    [
        ("agent.chat_mixin.ChatMixin._start_stream", checks.FAIL),
        ("workflows.yaml_parser.YAMLWorkflowParser._parse_workflow_data", checks.NOTE),
    ],
)
def test_doctor_names_a_host_that_moved(monkeypatch, moved, state):
    """`doctor` names a place of the host that is gone, as a failure or a note."""
    monkeypatch.delattr(f"praisonaiagents.{moved}")
    found = checks.DOCTOR_CHECKS["host"](CompressorConfig())
    assert (found.state, moved.rpartition(".")[2] in found.found) == (state, True)
    assert installed() is None
