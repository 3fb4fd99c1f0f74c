"""Switched on by the host's own configuration: entry point, environment, file, YAML."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ENTRY_POINT = "praison-compressor = praison_compressor.praisonai.plugin:plugin"

SAY = """
import json
from praisonaiagents import Agent

def asked(context):
    agent = Agent(instructions="x", context=context, output="silent")
    found = getattr(agent, "context_compressor", None)
    return None if found is None else {
        "auxiliary_model": found.config.auxiliary_model,
        "protect_last_n_tokens": found.config.protect_last_n_tokens,
    }
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with our entry point as an installed package has it."""
    info = tmp_path / "site" / "praison_compressor-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: praison-compressor\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[praisonai.plugins]\n{ENTRY_POINT}\n")
    return tmp_path


def told(folder: Path, script: str, **environment: str) -> Any:
    """What a process of its own says: the host loads plugins once in a process."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PRAISON", "OPENAI"))}
    path = os.pathsep.join([str(folder / "site"), str(ROOT)])
    variables = {"PYTHONPATH": path, "HOME": str(folder), "OPENAI_API_KEY": "sk", **environment}
    done = subprocess.run(
        [sys.executable, "-c", SAY + textwrap.dedent(script)],
        cwd=folder,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=600,  # what hangs ends; a busy machine imports litellm in a minute
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


ONE = 'print(json.dumps(asked("summarize")))'
DEFAULT = {"auxiliary_model": None, "protect_last_n_tokens": 20_000}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PRAISONAI_PLUGINS": "praison-compressor"}, DEFAULT),
        ({"PRAISONAI_PLUGINS": "true"}, DEFAULT),
        ({"PRAISONAI_PLUGINS": "something_else"}, None),
        ({}, None),
        ({"PRAISONAI_PLUGINS": "praison-compressor", "PRAISONAI_NO_PLUGINS": "1"}, None),
    ],
)
def test_the_environment_switches_it_on(
    elsewhere: Path, environment: dict[str, str], expected: Any
) -> None:
    """Named, or with all; not beside another one, not unasked, and not where it is forbidden."""
    assert told(elsewhere, ONE, **environment) == expected


def test_options_from_the_hosts_file(elsewhere: Path) -> None:
    """`.praisonai/config.yaml` switches it on and gives defaults, which an agent may overrule."""
    (elsewhere / ".praisonai").mkdir()
    (elsewhere / ".praisonai" / "config.yaml").write_text(
        "plugins:\n  praison-compressor:\n    auxiliary_model: aux\n    protect_last_n_tokens: 77\n"
    )
    script = """
        own = asked({"strategy": "summarize", "protect_last_n_tokens": 99})
        print(json.dumps([asked("summarize"), own, asked("truncate")]))
    """
    assert told(elsewhere, script) == [
        {"auxiliary_model": "aux", "protect_last_n_tokens": 77},
        {"auxiliary_model": "aux", "protect_last_n_tokens": 99},
        None,
    ]


def test_it_can_be_switched_off_and_on_again(elsewhere: Path) -> None:
    """The host tells no plugin that it was disabled: it is asked at each turn."""
    script = """
        from praisonaiagents import plugins
        agent = Agent(instructions="x", context="summarize", output="silent")
        states = [agent.context_compressor is not None]
        plugins.disable(["praison-compressor"])
        states.append(agent.context_compressor is not None)
        states.append(type(agent.context_manager).__name__)
        plugins.enable(["praison-compressor"])
        agent = Agent(instructions="x", context="summarize", output="silent")
        states.append(agent.context_compressor is not None)
        print(json.dumps(states))
    """
    said = told(elsewhere, script, PRAISONAI_PLUGINS="praison-compressor")
    assert said == [True, False, "ContextManager", True]
