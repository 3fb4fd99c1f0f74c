"""Time of facts and static summary beside one exact tokenization of the same session.

    python -m tests.benchmarks.facts [--file TRANSCRIPTS.jsonl]

To reach: at most 5 times the tokenization. Without a file the session is made up; with one, its
conversations ({"messages": [...]} a line) are strung together to 400,000 tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor import TokenCounter
from praison_compressor.facts import extract
from praison_compressor.messages import read
from praison_compressor.static import static_summary

from ..transcripts import session

TOKENS = 400_000
ROUNDS = 3


def transcript(path: Path | None) -> list[dict[str, Any]]:
    """About 400,000 tokens of messages."""
    if path is None:
        return session(290, words=130)
    counter, found, size = TokenCounter("gpt-4o"), [], 0
    for line in filter(None, path.read_text("utf-8").split("\n")):
        found += json.loads(line)["messages"]
        size = counter.messages(found)
        if size >= TOKENS:
            break
    return list(read(found).messages)


def best(work: Callable[[], Any]) -> float:
    """The shortest of a few runs, in seconds: what the work itself takes."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path)
    messages = transcript(parser.parse_args().file)
    count = TokenCounter("gpt-4o").text
    count("warm")
    tokens = TokenCounter("gpt-4o").messages(messages)
    tokenize = best(lambda: TokenCounter("gpt-4o").messages(messages))
    facts = best(lambda: extract(messages))
    both = best(lambda: static_summary(messages, budget_tokens=20_000, count=count))
    table = Table("measure", "seconds", "of one tokenization", "to reach")
    table.add_row(f"tokenize {tokens:,} tokens", f"{tokenize:.3f}", "1.0", "")
    table.add_row("facts", f"{facts:.3f}", f"{facts / tokenize:.1f}", "")
    table.add_row("facts + static, 20,000 tokens", f"{both:.3f}", f"{both / tokenize:.1f}", "5")
    Console().print(table)


if __name__ == "__main__":
    main()
