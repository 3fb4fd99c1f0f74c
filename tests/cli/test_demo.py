"""`demo` and `doctor` do what they show."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from praison_compressor import CompressorConfig, TokenCounter
from praison_compressor.cli import doctor as checks
from praison_compressor.cli.demo.agent import FACT, MODEL, WINDOW
from praison_compressor.ledger.sql.database import default_path
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.praisonai import installed
from praison_compressor.testing import Failure, LocalProvider, Reply
from tests.helpers.command import Run, runner
from tests.helpers.talks import NAMESPACE, committed, talk


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command in an empty folder and home, with a key that must not be used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    return runner(monkeypatch, capfd)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every name that is looked up but this machine's."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: object, *arguments: object, **options: object) -> object:
        if host not in ("127.0.0.1", "localhost", None):
            asked.append(str(host))
        return real(host, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("mode", [(), ("--static",)], ids=["model", "static"])
def test_the_demo_needs_no_network_and_refuses_nothing(
    mode: tuple[str, ...], run: Run, no_network: list[str]
) -> None:
    """The agent goes on past its window, and finds in its archive what no request holds any more:
    the answer to the last question is the line of the log."""
    before = dict(os.environ)
    done = run("demo", *mode, "--json")
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
    assert bool(done.json["summary_requests"]) == bool(done.json["totals"]["cost"]) == (not mode)
    assert done.json["totals"]["cost_saved"] > done.json["totals"]["cost"]
    assert done.json["totals"]["cached_tokens"] > done.json["totals"]["sent_tokens"] / 2
    assert TokenCounter(MODEL).exact  # its figures are counts
    assert no_network == []
    changed = {name for name, value in os.environ.items() if before.get(name) != value}
    assert changed <= {"TIKTOKEN_CACHE_DIR"}  # litellm sets it, where it had not been imported yet
    assert installed() is None


# ---------------------------------------------------------------- doctor


def states(done: object) -> dict[str, str]:
    return {check["name"]: check["state"] for check in done.json["checks"]}  # type: ignore[attr-defined]


def test_doctor_finds_a_plain_installation_sound(run: Run) -> None:
    """Exit code 0; the host is put back as it was."""
    done = run("doctor", "--model", "gpt-4o", "--json")
    assert done.code == 0
    assert done.json["works"]
    assert "fail" not in states(done).values()
    assert states(done)["tokenizer"] == "ok"
    assert installed() is None


def test_doctor_tries_the_model_that_writes_summaries(run: Run, provider: LocalProvider) -> None:
    """It answers: ok. It refuses: fail, exit code 1, and what to do about it."""
    provider.answer_with(lambda asked: Reply("ready"))
    model = ("--auxiliary-model", "writer", "--api-base", provider.base_url)
    assert states(run("doctor", *model, "--json"))["summaries"] == "ok"
    provider.answer_with(lambda asked: Failure(401, "no such key"))
    refused = run("doctor", *model)
    assert refused.code == 1
    assert "fail" in refused.out
    assert "OPENAI_API_KEY" in refused.out


def test_doctor_says_where_the_ledger_of_an_agents_own_session_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a URL too: nothing is made by asking; what is damaged or away is a failure."""
    away = run("doctor", "--store", "postgresql://user:secret@127.0.0.1:1/db", "--json")
    assert (away.code, states(away)["store"], "secret" in away.out) == (1, "fail", False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (the_store,) = (check for check in checks.CHECKS if check.__name__ == "_store")
    asked = the_store(CompressorConfig())
    assert (asked.state, str(default_path()) in asked.found) == ("ok", True)
    new = run("doctor", "--store", "new.db", "--json")
    assert (new.json["checks"][6]["state"], "new.db, not made yet" in new.out) == ("ok", True)
    assert not default_path().exists()
    assert list(tmp_path.rglob("*.db*")) == []
    Path("file").touch()
    assert the_store(CompressorConfig(store_url="file/ledger.db")).state == "fail"
    committed(open_store(), "s", talk(4))
    found = the_store(CompressorConfig(namespace=NAMESPACE)).found
    assert f"sqlite:{default_path()}: 1 sessions in namespace" in found
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
def test_doctor_names_a_host_that_moved(
    monkeypatch: pytest.MonkeyPatch, moved: str, state: str
) -> None:
    """A place that is gone is named: a failure, or a note of the part that is left out."""
    monkeypatch.delattr(f"praisonaiagents.{moved}")
    found = {check.name: check for check in (one(CompressorConfig()) for one in checks.CHECKS)}
    assert found["host"].state == state
    assert moved.rpartition(".")[2] in found["host"].found
    assert installed() is None
