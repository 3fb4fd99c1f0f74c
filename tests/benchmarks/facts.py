"""Time of facts and static summary beside one exact tokenization of the same session.

    python -m tests.benchmarks.facts [--file TRANSCRIPTS.jsonl]

To reach: at most 5 times the tokenization by tiktoken. Without a file the session
is made up; with one, its conversations ({"messages": [...]} a line) are strung together to 400,000
tokens.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor import TokenCounter
from praison_compressor.facts import extract
from praison_compressor.messages import read
from praison_compressor.summaries.static import static_summary
from tests.helpers.transcripts import session

TOKENS = 400_000
ROUNDS = 9


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


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of one run: one thread works, and the machine's other programs do not count."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path)
    messages = transcript(parser.parse_args().file)
    count = TokenCounter("gpt-4o").text
    tokens = TokenCounter("gpt-4o").messages(messages)
    works: list[Callable[[], Any]] = [
        lambda: TokenCounter("gpt-4o").messages(messages),
        lambda: extract(messages),
        lambda: static_summary(messages, budget_tokens=20_000, count=count),
    ]
    # One after the other in each round: a machine's speed drifts, a round's ratio does not.
    rounds = [[seconds(work) for work in works] for _ in range(ROUNDS)]
    names = (
        f"tokenize {tokens:,} tokens by tiktoken",
        "facts",
        "facts + static, 20,000 tokens",
    )
    table = Table("measure", "CPU seconds", "of one tokenization, median (least, most)", "to reach")
    for column, (name, limit) in enumerate(zip(names, ("", "", "5"), strict=True)):
        ratios = sorted(times[column] / times[0] for times in rounds)
        middle = statistics.median(ratios)
        spread = f"{middle:.1f} ({ratios[0]:.1f}, {ratios[-1]:.1f})"
        table.add_row(name, f"{min(times[column] for times in rounds):.3f}", spread, limit)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
