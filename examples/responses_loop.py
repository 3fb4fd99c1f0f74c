"""A loop of your own on OpenAI's Responses API.

    export OPENAI_API_KEY=...
    python examples/responses_loop.py FOLDER "Which file prints the total?"

`to_messages` converts the API's items to chat messages, and `to_items` converts a view back.
`result.recall_schemas_for("responses")` describes the recall tools in the form of this API.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openai import OpenAI

from praison_compressor import CompressorConfig, ContextCompressor, to_items, to_messages

SESSION = "responses-loop"
READ_FILE = {
    "type": "function",
    "name": "read_file",
    "description": "Read a text file of the folder.",
    "parameters": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}


class Loop:
    """An agent that reads the files of a folder."""

    def __init__(self, folder: Path, config: CompressorConfig) -> None:
        self.folder = folder
        self.client = OpenAI()
        self.compressor = ContextCompressor(config)
        names = ", ".join(sorted(path.name for path in folder.iterdir()))
        self.instructions = f"Answer from these files: {names}"
        self.items: list[Any] = []

    def ask(self, question: str) -> str:
        """Return the model's answer, after its tool calls."""
        self.items.append({"role": "user", "content": question})
        while True:
            messages = to_messages(self.instructions, self.items)
            result = self.compressor.compress_sync(messages, session_id=SESSION)
            instructions, items = to_items(result.messages)
            tools: list[Any] = [READ_FILE, *result.recall_schemas_for("responses")]
            reply = self.client.responses.create(
                model=str(self.compressor.config.model),
                instructions=instructions,
                input=items,  # type: ignore[arg-type]
                tools=tools,
                store=False,
            )
            self.items += [item.model_dump(exclude_none=True) for item in reply.output]
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return reply.output_text
            functions: dict[str, Callable[..., str]] = {"read_file": self.read_file}
            functions |= {tool.__name__: tool for tool in result.recall_tools}
            for call in calls:
                output = functions[call.name](**json.loads(call.arguments))
                self.items.append(
                    {"type": "function_call_output", "call_id": call.call_id, "output": output}
                )

    def read_file(self, name: str) -> str:
        """Return the text of a file, or why there is none."""
        path = self.folder / Path(name).name
        return path.read_text(encoding="utf-8") if path.is_file() else f"{name}: no such file"


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer from the texts of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("question")
    arguments = parser.parse_args()
    config = CompressorConfig(model="gpt-4o-mini", auxiliary_model="gpt-4o-mini", recall=True)
    print(Loop(arguments.folder, config).ask(arguments.question))


if __name__ == "__main__":
    main()
