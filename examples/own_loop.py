"""A loop of your own: an agent with tools on any OpenAI-compatible API, without a framework.

    export OPENAI_API_KEY=...
    python examples/own_loop.py FOLDER "Which file prints the total?"

The loop keeps the whole transcript and sends the view. Its ledger is a file beside the folder, so
the next run continues the conversation, also after a crash.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openai import OpenAI

from praison_compressor import CompressorConfig, ContextCompressor, SessionNotFound

SESSION = "own-loop"
READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a text file of the folder.",
        "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}


class Loop:
    """Answer questions from the files of a folder."""

    def __init__(self, folder: Path, config: CompressorConfig) -> None:
        self.folder = folder
        self.client = OpenAI()
        self.compressor = ContextCompressor(config)
        self.schemas: list[Any] = [READ_FILE]
        try:
            self.messages = self.compressor.verbatim(session_id=SESSION)
        except SessionNotFound:
            names = ", ".join(sorted(path.name for path in folder.iterdir()))
            self.messages = [{"role": "system", "content": f"Answer from these files: {names}"}]

    def ask(self, question: str) -> str:
        """Return the model's answer, after its tool calls."""
        self.messages.append({"role": "user", "content": question})
        while True:
            result = self.compressor.compress_sync(
                self.messages,
                session_id=SESSION,
                overhead_tokens=self.compressor.tokens.tools(self.schemas),
            )
            # Once something was compressed, the model may search and read the originals.
            self.schemas = [READ_FILE, *result.recall_schemas]
            reply = self.client.chat.completions.create(
                model=str(self.compressor.config.model),
                messages=result.messages,  # type: ignore[arg-type]
                tools=self.schemas,
            )
            message = reply.choices[0].message
            self.messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                self.compressor.save(self.messages, session_id=SESSION)
                return message.content or ""
            tools: dict[str, Callable[..., str]] = {"read_file": self.read_file}
            tools |= {tool.__name__: tool for tool in result.recall_tools}
            for call in message.tool_calls:
                if call.type == "function":
                    arguments = json.loads(call.function.arguments)
                    output = tools[call.function.name](**arguments)
                    self.messages.append(
                        {"role": "tool", "tool_call_id": call.id, "content": output}
                    )

    def read_file(self, name: str) -> str:
        """Return the text of a file, or an error in words."""
        path = self.folder / Path(name).name
        return path.read_text(encoding="utf-8") if path.is_file() else f"{name}: no such file"


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer from the texts of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("question")
    arguments = parser.parse_args()
    config = CompressorConfig(
        model="gpt-4o-mini",
        auxiliary_model="gpt-4o-mini",
        # Beside the folder: the model reads every file inside.
        store_url=str(arguments.folder.resolve().with_suffix(".ledger.db")),
        recall=True,
    )
    print(Loop(arguments.folder, config).ask(arguments.question))


if __name__ == "__main__":
    main()
