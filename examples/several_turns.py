"""An agent that still has in its second turn what it read in the first.

    export OPENAI_API_KEY=...
    python examples/several_turns.py PROJECT "read the parser and propose a fix" "good, build it"

The host drops every tool call and result when a turn ends, so the second turn would read the files
again. With `context=CompressorContext()` they stay in the agent's requests, and are compressed when
the window fills. `keep_tool_steps=False` drops them as the host does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from praisonaiagents import Agent

from praison_compressor.praisonai import CompressorContext


def tools_for(project: Path) -> list[Callable[..., str]]:
    """Return the agent's tools, which read inside the project's folder."""

    def list_files() -> str:
        """List the project's files."""
        paths = (path for path in sorted(project.rglob("*")) if path.is_file())
        return "\n".join(str(path.relative_to(project)) for path in paths)

    def read_file(path: str) -> str:
        """Read a file of the project.

        Args:
            path: relative to the project
        """
        target = (project / path).resolve()
        if not target.is_relative_to(project.resolve()):
            raise ValueError(f"{path} is outside the project")
        return target.read_text(encoding="utf-8")

    return [list_files, read_file]


def agent_for(project: Path, *, model: str = "gpt-4o-mini", **options: Any) -> Agent:
    """Return the agent; `options` are those of `CompressorConfig`."""
    return Agent(
        name="reader",
        instructions="Answer from the project's files. Read a file once.",
        llm=model,
        tools=tools_for(project),
        context=CompressorContext(**options),
        output="silent",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Talk about a project over several turns.")
    parser.add_argument("project", type=Path, help="its folder")
    parser.add_argument("turn", nargs="+", help="what is asked, a turn each")
    arguments = parser.parse_args()
    if not arguments.project.is_dir():
        parser.error(f"{arguments.project} is not a folder")
    agent = agent_for(arguments.project)
    for question in arguments.turn:
        print(agent.chat(question))
        print(f"  ({agent.context_compressor.status()})")


if __name__ == "__main__":
    main()
