"""Run each example with real agents and tools, against a strict local provider."""

import json
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from praison_compressor import CompressorConfig, open_store
from praison_compressor.testing import Asked, Call, LocalProvider, Reply, SummaryModel, Worker
from tests.helpers.hosting import at_home
from tests.helpers.processes import ROOT, install_plugin, own_environment, python

EXAMPLES = ROOT / "examples"
WINDOW = 6_000


def example(name: str) -> SimpleNamespace:
    """Return the names of an example."""
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))


@pytest.fixture
def home(provider, monkeypatch, tmp_path):
    """Yield a provider where the examples' agents look for OpenAI."""
    with at_home(monkeypatch, tmp_path, provider):
        provider.route(is_summary, SummaryModel(facts=r"FACT-\d+|page_\d+\.py|vol\d+\.txt:\d+"))
        yield provider


def is_summary(asked: Asked) -> bool:
    return "working memory of an AI agent" in str(asked.messages[0].get("content"))


def project(folder: Path) -> Path:
    """Write a package with a bug, and more source than a small window takes."""
    (folder / "shop").mkdir(parents=True)
    for number in range(10):
        lines = [f"def price_{number}_{i}(cents):\n    return cents + {i}\n" for i in range(40)]
        (folder / "shop" / f"page_{number}.py").write_text("\n".join(lines))
    (folder / "shop" / "total.py").write_text("def total(cents):\n    return sum(cents) - 1\n")
    (folder / "test_total.py").write_text(
        "import unittest\n\nfrom shop.total import total\n\n\n"
        "class Total(unittest.TestCase):\n"
        "    def test_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    )
    return folder


def repairs() -> list[Reply]:
    """Return a coding agent's replies: tests, reading, the repair, tests again."""
    repair = {"path": "shop/total.py", "old": "sum(cents) - 1", "new": "sum(cents)"}
    reading = [f"shop/{name}.py" for name in (*(f"page_{n}" for n in range(10)), "total")]
    steps = [("list_files", {}), ("run_tests", {})]
    steps += [("read_file", {"path": path}) for path in reading]
    steps += [("replace_text", repair), ("run_tests", {})]
    calls = [Call(*step, id=f"call_{number}") for number, step in enumerate(steps)]
    return [*(Reply(calls=(call,)) for call in calls), Reply("total() took one cent off.")]


def test_the_coding_agent_repairs_a_large_project(home, tmp_path):
    """The coding agent repairs a project that its window does not hold."""
    folder = project(tmp_path / "project")
    home.answer_with(repairs())
    given = {"context_window": WINDOW, "protect_last_n_tokens": 1_500}
    agent = example("coding_agent").coding_agent(folder, **given)

    assert agent.chat("make the tests pass") == "total() took one cent off."
    assert "sum(cents)\n" in (folder / "shop" / "total.py").read_text()
    assert [record.error for record in home.refused] == []
    result = agent.context_compressor.last_result
    assert result.tokens_before > WINDOW
    assert result.context_status in ("masked", "summarized")
    last = home.requests[-1]
    assert "exit code 0" in str(last.messages[-1]["content"])
    assert "page_0.py" in last.text


def test_the_coding_agents_tools_stay_in_the_project(tmp_path):
    """A path that leads out of the project is refused."""
    tools = {tool.__name__: tool for tool in example("coding_agent").tools_for(tmp_path)}
    with pytest.raises(ValueError, match="outside the project"):
        tools["read_file"]("../secret.txt")


def test_an_agent_of_several_turns_reads_a_file_once(home, tmp_path):
    """The second turn's first request has the file that the first turn read."""
    (tmp_path / "parser.py").write_text("LIMIT = 4711  # FACT-1\n")
    reads = Reply(calls=(Call("read_file", {"path": "parser.py"}),))
    home.answer_with([reads, "The limit is too small.", "I set LIMIT to 9000."])
    agent = example("several_turns").agent_for(tmp_path, context_window=WINDOW)
    agent.chat("Read the parser and propose a fix.")
    assert agent.chat("Good, build it.") == "I set LIMIT to 9000."
    assert "LIMIT = 4711" in home.requests[-1].text
    assert home.requests[-1].messages[-1]["content"] == "Good, build it."
    assert "kept from earlier turns: 1 step," in str(agent.context_compressor.status())


def texts(folder: Path) -> Path:
    """Write nine volumes; each question of the test takes three of them."""
    folder.mkdir()
    for number in range(9):
        lines = [f"Chapter {i} of volume {number} speaks of tides and harbours." for i in range(80)]
        lines[30] = f"The harbour of volume {number} was built under permit FACT-{1000 + number}."
        (folder / f"vol{number}.txt").write_text("\n".join(lines))
    return folder


def test_the_research_agent_reports_compressions(home, tmp_path):
    """The research agent answers past its window with a notice of its compressions."""
    module = example("research_agent")
    agent = module.research_agent(
        texts(tmp_path / "texts"),
        context_window=4_000,
        protect_last_n_tokens=1_000,
        auxiliary_api_base=home.base_url,
    )
    part, shown, answers = 0, list[str | None](), []
    home.answer_with(
        Worker(
            calls=3,
            tool="read_text",
            arguments=lambda _, n: {"name": f"vol{3 * part + n}.txt"},
            answer=lambda asked: " ".join(re.findall(r"FACT-\d+", asked.text)),
        )
    )
    agent.context_compressor.subscribe(lambda event: shown.append(module.notice_of(event)))
    for part in range(3):
        answers.append(agent.chat(f"Which permits are in part {part}?"))

    assert [record.error for record in home.refused] == []
    assert "FACT-1002" in answers[0]
    assert "FACT-1008" in answers[2]
    assert any("tokens" in line for line in shown if line)


def test_the_library_example_needs_nothing_else(capsys):
    """Without an agent or a model the example prints the quotes of its work."""
    result = example("no_model").main()
    assert result.summary_method == "static"
    assert result.tokens_after < result.tokens_before / 2
    shown = capsys.readouterr().out
    for quoted in (
        "Never edit prices.py: the order desk writes it.",
        "orders.py: edit_file -> edited orders.py",
        "python -m unittest -q test_orders (newest of 2) -> exit code 0: Ran 1 test in",
        *(f"read_file letters/{number}.txt" for number in range(4102, 4118)),
    ):
        assert quoted in shown
    assert "No model was called" in shown


@pytest.mark.parametrize(
    "called",
    ["coding_agent", "several_turns x", "research_agent no/such/folder", "own_loop"],
)
def test_an_example_that_is_called_wrongly_says_how_it_is_called(called, monkeypatch, capsys):
    """A wrongly called example prints its usage without a traceback."""
    name, *arguments = called.split()
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        example(name).main()
    said = capsys.readouterr()
    assert (said.out, said.err.startswith(f"usage: {name}.py")) == ("", True)


def test_the_recall_example_reads_the_original_back(capsys):
    """A summarized message comes back word for word by the reference that search gave."""
    original = example("recall_tool").main()
    assert "Day 23: the Marigold, with a broken mast, 14 crates of tea." in original
    assert "search says" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["own_loop", "anthropic_loop", "responses_loop"])
def test_a_loop_on_an_api_finds_what_its_view_lacks(home, tmp_path, monkeypatch, name):
    """A loop, also a restarted one, finds by the API's tool calls what its view lacks."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", home.url)
    home.set_window(WINDOW + 1_000)  # the example reserves 1,000 tokens, and asks for 2,000
    module, folder = example(name), texts(tmp_path / "texts")
    config = CompressorConfig(
        model="gpt-4o-mini",
        context_window=WINDOW,
        output_reserve=1_000,
        store_url=f"sqlite:///{tmp_path / 'ledger.db'}",
        recall=True,
    )
    reading = Worker(calls=9, tool="read_file", arguments=lambda _, n: {"name": f"vol{n}.txt"})
    home.answer_with(reading)
    loop = module.Loop(folder, config)
    loop.ask("What do these say of harbours?")
    search = Call("search_conversation_archive", {"query": "FACT-1000"})
    home.answer_with([Reply(calls=(search,)), Reply("FACT-1000 is the permit of volume 0.")])
    again = module.Loop(folder, config) if name == "own_loop" else loop
    assert vars(again).get("messages") == vars(loop).get("messages")
    assert "FACT-1000" in again.ask("Which permit was that of volume 0?")
    asked = home.requests[-1]
    assert "was built under permit FACT-1000" in str(asked.messages[-1])
    assert "read_conversation_archive" in str(asked.tools)
    assert [record.error for record in home.refused] == []


def test_an_own_loop_keeps_a_session_that_was_never_compressed(home, tmp_path):
    """A loop that was stopped after one short turn has its messages again."""
    module, folder = example("own_loop"), texts(tmp_path / "texts")
    config = CompressorConfig(model="gpt-4o-mini", store_url=f"sqlite:///{tmp_path / 'ledger.db'}")
    home.answer_with(Worker(answer="Of harbours."))
    first = module.Loop(folder, config)
    first.ask("What do these say?")
    again = module.Loop(folder, config).messages
    assert (again, again[1]["content"]) == (first.messages, "What do these say?")


# ---------------------------------------------------------------- the web service

SERVICE_WINDOW = 4_000
SESSION = "shop-1"
CALLERS = 4


@contextmanager
def service(database: str, provider: LocalProvider, log: Path) -> Iterator[str]:
    """Run the service with two workers; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = own_environment(
        OPENAI_BASE_URL=provider.base_url,
        DATABASE_URL=database,
        CONTEXT_WINDOW=str(SERVICE_WINDOW),
        SUMMARY_MODEL="openai/aux",
    )
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES)]
    command += ["fastapi_service:create_app", "--factory", "--workers", "2", "--port", str(port)]
    with log.open("w") as out:
        running = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address, running, log)
            yield address
        finally:
            running.terminate()
            running.wait(30)


def wait_for(address: str, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240
    while running.poll() is None and time.monotonic() < deadline:
        with suppress(httpx.HTTPError):
            httpx.get(f"{address}/openapi.json").raise_for_status()
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def say(address: str, number: int) -> dict[str, Any]:
    words = f"Delivery FACT-{100 + number}: " + "boxes of pears went to the cold room. " * 100
    # A connection of its own for each turn: the worker that is free takes it.
    done = httpx.post(f"{address}/sessions/{SESSION}", json={"text": words}, timeout=240)
    assert done.status_code == 200, done.text
    return dict(done.json())


def test_two_workers_share_one_ledger(postgres, tmp_path):
    """Two workers that serve one session at once pay for each summary once."""
    database = postgres.empty()
    with LocalProvider(window=SERVICE_WINDOW) as provider:
        provider.set_window(128_000, "aux")
        provider.route(is_summary, SummaryModel(facts=r"FACT-\d+"))
        provider.answer_with(lambda asked: Reply("Noted."))
        with (
            service(database, provider, tmp_path / "log.txt") as address,
            ThreadPoolExecutor(CALLERS) as callers,
        ):
            turns = list(callers.map(lambda number: say(address, number), range(12)))
        asked = [record for record in provider.requests if record.model == "aux"]
        assert provider.refused == []
    store = open_store(database)
    entries = store.open("default", SESSION).entries
    store.close()
    written = [entry for entry in entries if entry.segment.method == "model"]

    assert len({turn["worker"] for turn in turns}) == 2
    assert turns[-1]["context_status"] == "summarized"
    assert turns[-1]["tokens_of_all"] > 2 * SERVICE_WINDOW > turns[-1]["tokens"]
    assert len(asked) == len(written) > 1
    assert all("FACT-" in str(entry.segment.rendered) for entry in written)


# ---------------------------------------------------------------- without Python

RUN_WORKFLOW = """
import json
from praisonaiagents.workflows.yaml_parser import YAMLWorkflowParser

workflow = YAMLWorkflowParser().parse_file("workflow.yaml")
done = workflow.run("begin with LEDGER-7")
(step,) = workflow.steps
config = (getattr(step, "agent", None) or step).context_compressor.config
print(json.dumps([done["status"], config.protect_last_n_tokens, config.summary_instructions]))
"""


def test_the_yaml_example_needs_no_python(provider, tmp_path):
    """The workflow runs with the plugin and the options of the configuration beside it."""
    folder = tmp_path / "yaml_only"
    shutil.copytree(EXAMPLES / "yaml_only", folder)
    environment = own_environment(
        OPENAI_BASE_URL=provider.base_url, PYTHONPATH=install_plugin(tmp_path), HOME=str(tmp_path)
    )
    done = python("-c", RUN_WORKFLOW, folder=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    status, kept, words = json.loads(done.stdout.strip().splitlines()[-1])
    assert (status, kept) == ("completed", 10_000)
    assert "whether it balances" in words
    assert "LEDGER-7" in provider.requests[0].text
    assert provider.refused == []


def test_every_example_is_tested_and_named_in_the_readme():
    """No example lacks its test or its name in the README."""
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    paths = (ROOT / "tests").rglob("test_*.py")
    tests = "\n".join(path.read_text("utf-8") for path in paths)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in names if name not in tests] == []
    assert {name for name in names if f"examples/{name}.py" not in readme} == set()
