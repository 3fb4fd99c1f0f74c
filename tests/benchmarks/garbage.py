"""What is refused as a summary: garbage against real segments, and true summaries against theirs.

    python -m tests.benchmarks.garbage --file COMPACTIONS.jsonl

One {"pre": messages, "summary": text} a line: what a real model wrote of a real session. True are
the summaries and each of their numbered sections of 200 characters and more. To reach: no kind of
garbage taken, no true summary refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from praison_compressor import SummaryRejected, SummaryReply
from praison_compressor.summaries.prompts import rendering, request
from praison_compressor.summaries.validation import accept, is_about
from tests.benchmarks.common import options, recorded
from tests.summaries.test_garbage import GARBAGE

SECTION = re.compile(r"^\s*(?:\d+\.|#+) +(?=[A-Z*][^\n]{3,60}$)", re.MULTILINE)


def is_taken(text: str, asked: list[dict[str, Any]]) -> bool:
    """Whether the text may stand for what was asked."""
    try:
        return is_about(accept(SummaryReply(text), asked), asked)
    except SummaryRejected:
        return False


def parts(summary: str) -> Iterator[str]:
    """The summary and its sections."""
    yield summary
    cuts = [found.start() for found in SECTION.finditer(summary)]
    for start, end in zip(cuts, [*cuts[1:], len(summary)], strict=True):
        if end - start >= 200:
            yield summary[start:end].strip()


def main() -> None:
    rows = list(recorded(options(__doc__, file=Path).file))
    true = taken = false = 0
    for row in rows:
        asked = request(rendering(row["pre"]), target_tokens=750)
        found = [is_taken(text, asked) for text in parts(row["summary"])]
        true, taken = true + len(found), taken + sum(found)
        false += sum(is_taken(text, asked) for text in GARBAGE.values())
    print(f"true summaries refused: {true - taken} of {true}, of {len(rows)} segments")
    print(f"garbage taken: {false} of {len(GARBAGE)} kinds x {len(rows)} segments")


if __name__ == "__main__":
    main()
