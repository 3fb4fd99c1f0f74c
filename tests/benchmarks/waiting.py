"""Measure `inspect` and `compress` of long transcripts against one tokenization.

    python -m tests.benchmarks.waiting [--lines 9000] [--megabytes 48] [--rounds 3]

Each is a process of its own, so all have the start of Python and the reading of the file. Seconds
are of the processor (user and system), the best of several rounds: other load does not count.
Python keeps its bytecode, as that of an installed command does.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from praison_compressor.messages import Message
from tests.benchmarks.common import options, show, words
from tests.helpers.transcripts import step

MOST = 2.0
"""The limit, in tokenizations."""

TOKENIZE = """
import json, sys
from praison_compressor import TokenCounter
with open(sys.argv[1]) as file:
    print(TokenCounter("gpt-4o").messages([json.loads(line) for line in file]))
"""


def transcript(chance: random.Random, size: int) -> Iterator[Message]:
    """Yield a task, and calls without end whose results have some `size` words."""
    yield {"role": "user", "content": "Read every ledger."}
    number = 0
    while True:
        number += 1
        yield from step(f"call_{number}", words(chance, size), "read_ledger", ledger=number)
        yield {"role": "assistant", "content": words(chance, 20)}


def write_transcript(
    path: Path, messages: Iterator[Message], *, lines: int, characters: int
) -> Path:
    """Write messages until the file has that many lines or characters."""
    size = 0
    with path.open("w", encoding="utf-8") as file:
        for _, message in zip(range(lines), messages, strict=False):
            size += file.write(json.dumps(message) + "\n")
            if size > characters:
                break
    return path


def seconds(command: list[str], rounds: int) -> float:
    """Return the least processor seconds of a command; the first round compiles the sources."""
    times = []
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir(), "waiting-bytecode"))
    for _ in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    """Print a row for each file and command."""
    args = options(__doc__, lines=9_000, megabytes=48, rounds=3)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, size, lines, characters in (
            (f"{args.lines:,} lines", 60, args.lines, sys.maxsize),
            (f"{args.megabytes} MB", 3_000, sys.maxsize, args.megabytes * 1_000_000),
        ):
            messages = transcript(random.Random(1), size)
            file = Path(folder, "talk.jsonl")
            path = str(write_transcript(file, messages, lines=lines, characters=characters))
            once = seconds(["-c", TOKENIZE, path], args.rounds)
            for command in ("inspect", "compress"):
                ours = ["-m", "praison_compressor", command, path, "--model", "gpt-4o"]
                took = seconds(ours, args.rounds)
                rows.append((name, command, f"{once:.2f}", f"{took:.2f}", f"{took / once:.2f}"))
    columns = ("transcript", "command", "tokenization, s", "command, s", f"times, at most {MOST}")
    show("Waiting", columns, rows)


if __name__ == "__main__":
    main()
