"""`demo` and `doctor` do what they show."""

import json
import os
import re
import socket
from typing import Any

import pytest

from praison_compressor import CompressorConfig, TokenCounter
from praison_compressor.cli import doctor as checks
from praison_compressor.cli.demo import picture
from praison_compressor.cli.demo_agent import FACT, MODEL, WINDOW, RecordedRequest
from praison_compressor.ledger.sql.database import default_path
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.praisonai import installed
from praison_compressor.testing import Failure, Reply
from tests.helpers.command import runner
from tests.helpers.processes import own_environment, python
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


def test_the_demo_needs_no_network_and_leaves_no_trace(run, no_network, tmp_path):
    """The demo has no effect outside itself."""
    before = dict(os.environ)
    assert run("demo").code == 0
    assert no_network == []
    changed = {name for name, value in os.environ.items() if before.get(name) != value}
    assert changed <= {"TIKTOKEN_CACHE_DIR"}  # litellm sets it, where it had not been imported yet
    assert installed() is None
    assert list(tmp_path.rglob("*.py")) == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return the demo's answer, from a process of its own."""
    given = {"folder": tmp_path_factory.mktemp("demo"), "environment": own_environment()}
    done = python("-m", "praison_compressor", "demo", "--json", **given)
    return json.loads(done.stdout)


def test_the_demos_agent_finds_a_fact_that_its_view_lacks(demo):
    """The demo's agent finds in its archive what its view has lost."""
    turns = demo["turns"]
    requests = [request for turn in turns for request in turn["requests"]]
    assert {request["refused"] for request in requests} == {None}
    assert max(request["sent_tokens"] for request in requests) < WINDOW
    assert {request["compressed"] for request in requests} >= {None, "summarized"}
    assert turns[-1]["answer"] == f"The log says: {FACT}."
    last = turns[-1]["requests"][0]
    assert (FACT in str(last["view"]), last["transcript_tokens"] > WINDOW) == (False, True)
    assert demo["check"] == {
        "fact": FACT,
        "in_view": False,
        "in_transcript": True,
        "found_by": "search_conversation_archive",
        "right": True,
    }


def test_the_demos_totals_show_the_saving(demo):
    """The demo's totals show a saving in exact counts."""
    assert TokenCounter(MODEL).exact
    totals = demo["totals"]
    assert totals["summary_requests"] > 0
    assert totals["cost_saved"] > totals["cost"] > 0
    assert totals["cached_tokens"] > totals["sent_tokens"] / 2


@pytest.mark.parametrize("columns", [60, 80])
def test_the_demos_picture_fits_the_terminal(columns):
    """Each line of the two halves has at most the terminal's columns."""
    talk = [{"role": "user", "content": "Read the log. " * 40}] * 9
    sent = RecordedRequest(talk, talk[:4], 123_456, 12_345, 0)
    lines = [*picture(sent, TokenCounter(MODEL), columns // 2 - 1)]
    assert len(lines) > 8
    assert max(map(len, lines)) <= columns


# ---------------------------------------------------------------- doctor


def test_doctor_tries_each_thing(run, tmp_path, provider):
    """`doctor` tries each part of a working installation without changing it."""
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


def test_doctor_has_a_remedy_for_a_model_that_refuses(provider):
    """`doctor` names the variable that a refused key is read from."""
    provider.answer_with(lambda asked: Failure(401, "no such key"))
    config = CompressorConfig(auxiliary_model="writer", auxiliary_api_base=provider.base_url)
    refused = checks.run_check("summaries", config)
    assert (refused.state, "OPENAI_API_KEY" in f"{refused}") == ("fail", True)


@pytest.fixture
def check_store(tmp_path, monkeypatch):
    """Return the check of a store, and keep an agent's own in an empty folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return lambda **options: checks.run_check("store", CompressorConfig(**options))


def test_doctor_hides_a_stores_password(check_store):
    """`doctor` names an unreachable store without its password."""
    away = check_store(store_url="postgresql://user:secret@127.0.0.1:1/db")
    assert (away.state, "secret" in away.found) == ("fail", False)


def test_doctor_names_the_ledger_of_an_agents_session(check_store):
    """`doctor` names the ledger of an agent's own session without creating it."""
    asked = check_store()
    assert (asked.state, str(default_path()) in asked.found) == ("ok", True)
    assert not default_path().exists()
    committed(open_store(), "s", talk(4))
    found = check_store(namespace=NAMESPACE).found
    assert f"sqlite:{default_path()}: 1 session in namespace" in found


def test_doctor_has_a_remedy_for_a_stores_bad_path(check_store, tmp_path):
    """`doctor` asks to check a path below a file."""
    (tmp_path / "file").touch()
    below = check_store(store_url=str(tmp_path / "file" / "ledger.db"))
    assert (below.state, "check the path and its rights" in below.found) == ("fail", True)


def test_doctor_fails_on_a_damaged_store(check_store):
    """`doctor` fails on a file that is no database."""
    default_path().parent.mkdir(parents=True)
    default_path().write_bytes(b"no database, " * 1_000)
    assert check_store().state == "fail"


@pytest.mark.parametrize(
    ("moved", "state"),
    [
        ("agent.chat_mixin.ChatMixin._start_stream", checks.FAIL),
        ("workflows.yaml_parser.YAMLWorkflowParser._parse_workflow_data", checks.NOTE),
    ],
)
def test_doctor_names_a_host_that_moved(monkeypatch, moved, state):
    """`doctor` reports a missing name of the host by its severity."""
    monkeypatch.delattr(f"praisonaiagents.{moved}")
    found = checks.run_check("host", CompressorConfig())
    assert (found.state, moved.rpartition(".")[2] in found.found) == (state, True)
    assert installed() is None
