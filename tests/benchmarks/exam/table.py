"""What came of an exam: sums, kinds, false beliefs, calls and tokens a question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from .asking import calls
from .cases import Case

KINDS = ("user", "state", "fact", "why", "newest")


def show(folder: Path, cases: Sequence[Case]) -> None:
    """Print the marks of a folder's exam and of its continuations."""
    if (folder / "marking" / "marks.json").exists():
        Console().print(_answers(folder, cases))
    if (folder / "marking" / "step-marks.json").exists():
        Console().print(_steps(folder, cases))


def _answers(folder: Path, cases: Sequence[Case]) -> Table:
    marks = _load(folder / "marking" / "marks.json")
    letters = _load(folder / "letters-answers.json")
    asked = Counter(each["kind"] for case in cases for each in case.questions)
    columns = ["view", *(f"{kind} {asked[kind]}" for kind in KINDS), f"of {asked.total()}"]
    table = Table(*columns, "%", "false", "calls", "tokens a question", "tokens of views")
    for method, letter in letters.items():
        kinds: Counter[str] = Counter()
        false = 0
        for case in cases:
            pairs = zip(case.questions, marks[str(case.number)], strict=True)
            for question, marked in pairs:
                kinds[question["kind"]] += marked[letter]
                false += marked[letter] < 0
        whole = sum(kinds.values())
        asked_for = calls(folder / method / "calls.jsonl")
        table.add_row(
            method,
            *(f"{kinds[kind]:g}" for kind in KINDS),
            f"{whole:g}",
            f"{100 * whole / asked.total():.0f}",
            str(false),
            str(len(asked_for)),
            f"{sum(each['tokens'] for each in asked_for) / asked.total():.0f}",
            f"{sum(_load(folder / method / 'sizes.json').values()):,}",
        )
    return table


def _steps(folder: Path, cases: Sequence[Case]) -> Table:
    marks = _load(folder / "marking" / "step-marks.json")
    letters = _load(folder / "letters-steps.json")
    table = Table(
        "continued from", f"of {10 * len(cases)}", "calls: median", "tokens: median, most"
    )
    for method, letter in letters.items():
        made = calls(folder / method / "steps-calls.jsonl")
        number = [sum(c["session"] == str(case.number) for c in made) for case in cases]
        tokens = [
            sum(c["tokens"] for c in made if c["session"] == str(case.number)) for case in cases
        ]
        whole = sum(marks[str(case.number)][letter] for case in cases)
        size = f"{median(tokens):,.0f}, {max(tokens):,}"
        table.add_row(method, f"{whole:g}", f"{median(number):g}", size)
    return table


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
