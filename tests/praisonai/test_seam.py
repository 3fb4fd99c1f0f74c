"""A host with context selectors (`docs/upstream/select-context.patch`) asks us for every view:
no name of it is replaced.

The patch is applied to a copy of the installed host. What runs there, runs in a process of its own,
which is this module called as a script.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import praisonaiagents
import pytest
from praisonaiagents import Agent, ExecutionConfig

from praison_compressor.ledger.recall import SEARCH
from praison_compressor.praisonai import installed, seams, selector
from praison_compressor.testing import Summarizer, Worker
from tests.helpers import hosting
from tests.helpers.hosting import EVERY_PATH, MODES, OPENAI, WINDOW
from tests.helpers.provider import strict_provider

ROOT = Path(__file__).parents[2]
UPSTREAM = ROOT / "praison_compressor" / "docs" / "upstream"
RELEASE = "1.7.17"
TURNS, CALLS = 6, 2
SHOWN = ("chat", "achat", "stream")

of_that_release = pytest.mark.skipif(
    version("praisonaiagents") != RELEASE, reason=f"the patch is made for {RELEASE}"
)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed host with the patch; its `pyproject.toml` is in no wheel."""
    folder = tmp_path_factory.mktemp("host")
    shutil.copytree(Path(praisonaiagents.__file__).parent, folder / "praisonaiagents")
    subprocess.run(
        ["git", "apply", "--exclude=pyproject.toml", str(UPSTREAM / "select-context.patch")],
        cwd=folder,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        check=True,
    )
    return folder


def ran(patched: Path, *command: str, **environment: str) -> str:
    """What a process says in which the patched host is the one that is imported."""
    path = os.pathsep.join([str(patched), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=patched,
        env={**os.environ, "PYTHONPATH": path, "HOME": str(patched), **environment},
        capture_output=True,
        text=True,
        timeout=900,  # what hangs ends
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def report(patched: Path) -> Any:
    """What `main` found on the patched host."""
    return json.loads(ran(patched, "-m", "tests.praisonai.test_seam").strip().splitlines()[-1])


# ------------------------------------------------------------ what is promised


@of_that_release
def test_no_name_is_replaced(report: Any, patched: Path) -> None:
    """One name is added, for users; `uninstall` takes it and the registration away.

    In the package of the host's bots, which names no conversation otherwise, two names are replaced
    and one is added.
    """
    assert report["host"].startswith(str(patched))
    bots = ["BotSessionManager.chat", "BotSessionManager._maybe_fire_session_start"]
    added = ["Agent.context_compressor", "BotSessionManager._compaction_enabled"]
    assert sorted(report["changed"]) == sorted([*added, *bots])
    replaced = [name.partition(".")[2] for name in bots]
    assert (sorted(report["replaced"]), report["lacking"]) == (sorted(replaced), {})
    assert report["left"] == [False, []]


@of_that_release
@pytest.mark.parametrize("mode", SHOWN)
@pytest.mark.parametrize("path", EVERY_PATH)
def test_every_request_is_compressed(report: Any, path: str, mode: str) -> None:
    """On each client and in each way to call an agent, inside its tool loops: nothing is refused,
    and the recall tools come with the first summary, amid a turn."""
    cell = report["cells"][f"{path}, {mode}"]
    assert cell["answers"] == TURNS
    assert cell["refused"] == cell["over"] == 0
    assert cell["status"] == "summarized"
    assert cell["requests"] > TURNS
    assert cell["offered"] == [False, True]
    # The host's OpenAI streams run one round of tools in a turn.
    assert cell["turn_offered"] == ("user" if (path, mode) == (OPENAI, "stream") else "tool")


@of_that_release
@pytest.mark.parametrize("path", EVERY_PATH)
def test_a_refusal_for_its_length_is_sent_again(report: Any, path: str) -> None:
    """The window is learned from the provider's refusal, and the turn goes on."""
    cell = report["cells"][f"{path}, refused"]
    assert cell["answers"] == TURNS
    assert 1 <= cell["refused"] <= 3
    assert cell["status"] == "summarized"


@of_that_release
def test_the_patchs_own_tests_pass(patched: Path) -> None:
    """In the host's manner, with a provider of the standard library."""
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "--rootdir=.")
    told = ran(patched, *command, PYTEST_ADDOPTS="")
    assert re.search(r"\d+ passed, 1 skipped", told)


@of_that_release
def test_the_pages_examples_run(patched: Path) -> None:
    """As they stand on the page."""
    page = (patched / "docs" / "features" / "context-selector.mdx").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with strict_provider(Worker(5)) as provider:
        keys = {"OPENAI_API_KEY": "sk", "OPENAI_BASE_URL": provider.base_url}
        ran(patched, "-c", "\n".join(blocks), **keys)
        assert len(blocks) == 3
        assert len(provider.requests) >= 7
        assert not provider.refused


def test_a_module_of_another_shape_is_no_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has the name and not the thing is served by what is replaced in it."""
    other = ModuleType("praisonaiagents.context.selector")
    monkeypatch.setitem(sys.modules, other.__name__, other)
    assert selector.find() is None
    other.__dict__.update(register_context_selector=print, remove_context_selector=print)
    other.__dict__.update(in_turn=print, SelectionBudget=type("Budget", (), {}))
    assert selector.find() is None


# ------------------------------------------------------------ on the patched host


def cell(path: str, mode: str, window: int = WINDOW) -> dict[str, Any]:
    """An agent at its work, told a window that its model may not have."""
    worker = Worker(CALLS, arguments=hosting.numbered, answer="Noted. " * 12, tool="look_up")
    execution = ExecutionConfig(max_iter=50, max_tool_calls_per_turn=500)
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        strict_provider(worker) as provider,
        hosting.at_home(patch, Path(folder), provider),
    ):
        provider.route("aux", Summarizer(r"L-\d+"))
        provider.set_window(window)
        asked = hosting.context(provider)
        made = hosting.agent(provider, path, asked, tools=[hosting.look_up], execution=execution)
        said = MODES[mode](made, [hosting.turn(n, words=64) for n in range(TURNS)])
        sent = hosting.of_agent(provider)
        offered = [SEARCH in json.dumps(record.body.get("tools")) for record in sent]
        first = sent[offered.index(True)] if True in offered else None
        return {
            "answers": sum(bool(text and text.strip()) for text in said),
            "requests": len(sent),
            "refused": sum(record.status != 200 for record in sent),
            "over": sum(record.over_window for record in sent),
            "status": made.context_compressor.context_status,
            "offered": sorted(set(offered)),
            "turn_offered": first and first.messages[-1]["role"],
        }


def changed_by_install() -> dict[str, Any]:
    """What `install` and `uninstall` do to the host."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        strict_provider(Worker()) as provider,
        hosting.at_home(patch, Path(folder), provider),
    ):
        done = installed()
        changed = [f"{owner.__name__}.{name}" for owner, name, *_ in done.patches]
        replaced = [name for _, name, before, _ in done.patches if before is not seams.ABSENT]
    return {
        "host": praisonaiagents.__file__,
        "changed": changed,
        "replaced": replaced,
        "lacking": done.lacking,
        "left": [hasattr(Agent, "context_compressor"), selector.find()._resolvers],
    }


def main() -> None:
    found = changed_by_install()
    found["cells"] = {f"{path}, {mode}": cell(path, mode) for path in EVERY_PATH for mode in SHOWN}
    for path in EVERY_PATH:
        found["cells"][f"{path}, refused"] = cell(path, "chat", window=3_000)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
