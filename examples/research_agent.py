"""A research agent that answers question after question from a folder of texts.

    export OPENAI_API_KEY=...
    python examples/research_agent.py FOLDER

The conversation grows over many turns. `auxiliary_model` names the model that writes the summaries.
`summary_instructions` names what the summaries must keep. `subscribe` reports each compression.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from praisonaiagents import Agent

from praison_compressor import Event
from praison_compressor.praisonai import CompressorContext

INSTRUCTIONS = "You answer from the texts in the folder, and name the text and the line."
WHAT_MATTERS = "Keep every source with its line numbers, and which questions are still open."


def tools_for(folder: Path) -> list[Callable[..., str]]:
    """Return the agent's tools, which read the texts."""

    def search_texts(word: str) -> str:
        """Find a word in all texts.

        Args:
            word: what to look for
        """
        return "\n".join(_hits(folder, word)) or f"{word}: not found"

    def read_text(name: str) -> str:
        """Read a whole text.

        Args:
            name: the file's name
        """
        return (folder / Path(name).name).read_text(encoding="utf-8")

    return [search_texts, read_text]


def _hits(folder: Path, word: str) -> Iterator[str]:
    for path in sorted(folder.glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if word.lower() in line.lower():
                yield f"{path.name}:{number}: {line}"


def research_agent(
    folder: Path,
    *,
    model: str = "gpt-4o-mini",
    summaries_by: str = "gpt-4o-mini",
    **options: Any,
) -> Agent:
    """Return the agent; `options` are those of `CompressorConfig`."""
    return Agent(
        name="researcher",
        instructions=INSTRUCTIONS,
        llm=model,
        tools=tools_for(folder),
        context=CompressorContext(
            auxiliary_model=summaries_by,
            summary_instructions=WHAT_MATTERS,
            # A mask would lose the middle of a text; a summary reads it.
            tool_policies={"read_text": "summarize"},
            **options,
        ),
        output="silent",
    )


def notice_of(event: Event) -> str | None:
    """Return the notice of a compression, or None for another event."""
    if event.name != "committed":
        return None
    numbers = event.data
    return f"[context: {numbers['tokens_before']:,} -> {numbers['tokens_after']:,} tokens]"


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer questions, a line each, from texts.")
    parser.add_argument("folder", type=Path, help="where the texts are, as *.txt")
    folder = parser.parse_args().folder
    if not folder.is_dir():
        parser.error(f"{folder} is not a folder")
    agent = research_agent(folder)
    agent.context_compressor.subscribe(lambda event: notice_of(event) and print(notice_of(event)))
    for line in sys.stdin:
        if line.strip():
            print(agent.chat(line.strip()))


if __name__ == "__main__":
    main()
