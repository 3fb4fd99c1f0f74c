"""The library alone: no agent, no model, no network.

    python examples/no_model.py

Any loop that keeps a list of chat messages can use it: append to the full list, send the view.
The list itself is never changed. Here a loop repairs a small shop in a temporary folder and reads
its letters. The files are read and edited and the tests run; only the model is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor

Message = dict[str, Any]

compressor = ContextCompressor(
    CompressorConfig(
        model="gpt-4o",
        context_window=6_000,
        protect_last_n_tokens=500,
    )
)

# ---------------------------------------------------------------- the work

FILES = {
    "prices.py": "PRICES = {'desk': 19900, 'chair': 4900, 'lamp': 2900}  # cents\n",
    "orders.py": "from prices import PRICES\n\n\ndef total(articles):\n"
    "    return sum(PRICES[name] for name in articles) - 1\n",
    "test_orders.py": "import unittest\n\nfrom orders import total\n\n\n"
    "class Orders(unittest.TestCase):\n    def test_total(self):\n"
    "        self.assertEqual(total(['desk', 'lamp']), 22800)\n",
    **{
        f"letters/{number}.txt": f"ORD-{number} for pier {number % 12}: {number % 7 + 2} desks.\n\n"
        f"{'They come by the north gate, and are signed for at the office. ' * 20}\n"
        for number in range(4101, 4119)
    },
}
TESTS = "python -m unittest -q test_orders"


def work() -> Iterator[str | tuple[Any, dict[str, str]]]:
    """Yield the user's messages and a model's calls, each a tool with its arguments."""
    letters = [name for name in FILES if name.startswith("letters/")]
    yield "Read the letters, one by one. Pier 7 is closed: its orders go to pier 8."
    yield from ((read_file, {"path": name}) for name in letters[:9])
    yield "First make the tests pass. Never edit prices.py: the order desk writes it."
    yield run_command, {"command": TESTS}
    yield read_file, {"path": "test_orders.py"}
    yield read_file, {"path": "orders.py"}
    yield edit_file, {"path": "orders.py", "old": " - 1\n", "new": "\n"}
    yield run_command, {"command": TESTS}
    yield "Good. Go on with the letters."
    yield from ((read_file, {"path": name}) for name in letters[9:])


def conversation(folder: Path) -> list[Message]:
    """Return the messages of the work, each call with its result."""
    messages: list[Message] = [{"role": "system", "content": "You keep the shop's orders."}]
    for number, act in enumerate(work()):
        if isinstance(act, str):
            messages.append({"role": "user", "content": act})
            continue
        tool, arguments = act
        function = {"name": tool.__name__, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        output = tool(folder, **arguments)
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": output},
        ]
    return messages


def read_file(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8")


def edit_file(folder: Path, path: str, old: str, new: str) -> str:
    (folder / path).write_text(read_file(folder, path).replace(old, new), encoding="utf-8")
    return f"edited {path}"


def run_command(folder: Path, command: str) -> str:
    words = [sys.executable, *command.split()[1:]]
    finished = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return f"exit code {finished.returncode}\n{finished.stdout}{finished.stderr}"


# ---------------------------------------------------------------- the compression


def main() -> CompressResult:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "letters").mkdir()
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        messages = conversation(Path(folder))
    result = compressor.compress_sync(messages, session_id="shop")
    print(f"{len(messages)} messages, {result.tokens_before:,} tokens")
    print(
        f"{len(result.messages)} to send, {result.tokens_after:,} tokens: {result.context_status}"
    )
    print("\nThe first and newest messages are sent word for word. The others are replaced by:\n")
    for segment in result.segments:
        print(segment.rendered["content"])
    print(
        "\nThe user's words, the edited file, the newest run of the tests and the letters that were"
        "\nread are quoted. No model was called."
    )
    return result


if __name__ == "__main__":
    main()
