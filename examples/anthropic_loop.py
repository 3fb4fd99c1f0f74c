"""A loop of your own on Anthropic's Messages API.

    export ANTHROPIC_API_KEY=...
    python examples/anthropic_loop.py FOLDER "Which file prints the total?"

The transcript and the view have the API's own blocks (`tool_use`, `tool_result`).
`result.recall_schemas_for("messages")` describes the recall tools in the form of this API.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from praison_compressor import CompressorConfig, ContextCompressor

SESSION = "anthropic-loop"
READ_FILE = {
    "name": "read_file",
    "description": "Read a text file of the folder.",
    "input_schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}


class Loop:
    """Answer questions from the files of a folder."""

    def __init__(self, folder: Path, config: CompressorConfig) -> None:
        self.folder = folder
        self.compressor = ContextCompressor(config)
        base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
        headers = {
            "x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""),
            "anthropic-version": "2023-06-01",
        }
        self.client = httpx.Client(base_url=base, headers=headers, timeout=600)
        names = ", ".join(sorted(path.name for path in folder.iterdir()))
        self.system = f"Answer from these files: {names}"
        self.messages: list[dict[str, Any]] = []

    def ask(self, question: str) -> str:
        """Return the model's answer, after its tool calls."""
        self.messages.append({"role": "user", "content": question})
        while True:
            result = self.compressor.compress_sync(self.messages, session_id=SESSION)
            reply = self._create(
                result.messages, [READ_FILE, *result.recall_schemas_for("messages")]
            )
            self.messages.append({"role": "assistant", "content": reply["content"]})
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            if not calls:
                return "".join(block.get("text", "") for block in reply["content"])
            tools: dict[str, Callable[..., str]] = {"read_file": self.read_file}
            tools |= {tool.__name__: tool for tool in result.recall_tools}
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call["id"],
                    "content": tools[call["name"]](**call["input"]),
                }
                for call in calls
            ]
            self.messages.append({"role": "user", "content": results})

    def _create(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
        body = {
            "model": self.compressor.config.model,
            "max_tokens": 2_000,
            "system": self.system,
            "messages": messages,
            "tools": tools,
        }
        return self.client.post("/v1/messages", json=body).raise_for_status().json()

    def read_file(self, name: str) -> str:
        """Return the text of a file, or an error in words."""
        path = self.folder / Path(name).name
        return path.read_text(encoding="utf-8") if path.is_file() else f"{name}: no such file"


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer from the texts of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("question")
    arguments = parser.parse_args()
    config = CompressorConfig(model="claude-sonnet-4-5", recall=True)
    print(Loop(arguments.folder, config).ask(arguments.question))


if __name__ == "__main__":
    main()
