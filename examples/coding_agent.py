"""A coding agent that reads, edits and tests a project until its tests pass.

    export OPENAI_API_KEY=...
    python examples/coding_agent.py PROJECT "make the tests pass"

A tool loop of a coding agent fills its window within one turn: every file that it reads and every
test run stays in the conversation. The one line that changes this is `context=`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from praisonaiagents import Agent, ExecutionConfig

from praison_compressor.praisonai import CompressorContext

INSTRUCTIONS = """\
You repair Python projects. Run the tests, read what you need, change one thing at a time, and run
the tests again. Stop when they pass, and say in one sentence what was wrong."""


def tools_for(project: Path) -> list[Callable[..., str]]:
    """Return the agent's tools, which work inside the project's folder."""

    def inside(path: str) -> Path:
        target = (project / path).resolve()
        if not target.is_relative_to(project.resolve()):
            raise ValueError(f"{path} is outside the project")
        return target

    def list_files() -> str:
        """List the project's Python files."""
        return "\n".join(str(path.relative_to(project)) for path in sorted(project.rglob("*.py")))

    def read_file(path: str) -> str:
        """Read a file of the project.

        Args:
            path: relative to the project
        """
        return inside(path).read_text(encoding="utf-8")

    def replace_text(path: str, old: str, new: str) -> str:
        """Replace a text that occurs once in a file.

        Args:
            path: relative to the project
            old: the text as it stands
            new: what to put there
        """
        text = inside(path).read_text(encoding="utf-8")
        if text.count(old) != 1:
            return f"Error: the text occurs {text.count(old)} times in {path}; nothing was changed"
        inside(path).write_text(text.replace(old, new), encoding="utf-8")
        return f"changed {path}"

    def run_tests() -> str:
        """Run the project's tests."""
        command = [sys.executable, "-m", "unittest", "discover", "-v"]
        finished = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
        return f"exit code {finished.returncode}\n{finished.stdout}{finished.stderr}"

    return [list_files, read_file, replace_text, run_tests]


def coding_agent(project: Path, *, model: str = "gpt-4o-mini", **options: Any) -> Agent:
    """Return the agent; `options` are those of `CompressorConfig`."""
    return Agent(
        name="coder",
        instructions=INSTRUCTIONS,
        llm=model,
        tools=tools_for(project),
        context=CompressorContext(**options),
        execution=ExecutionConfig(max_iter=60, max_tool_calls_per_turn=60),
        output="silent",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Repair a project until its tests pass.")
    parser.add_argument("project", type=Path, help="its folder; unittest finds the tests")
    parser.add_argument("task", nargs="*", default=["make", "the", "tests", "pass"])
    arguments = parser.parse_args()
    if not arguments.project.is_dir():
        parser.error(f"{arguments.project} is not a folder")
    agent = coding_agent(arguments.project)
    print(agent.chat(" ".join(arguments.task)))
    result = agent.context_compressor.last_result
    print(f"context: {result.context_status}, {result.tokens_saved:,} tokens saved at the end")


if __name__ == "__main__":
    main()
