"""What came of an exam: sums, kinds, false beliefs, calls and tokens a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from tests.benchmarks import common

from .asking import QUESTIONS, calls
from .cases import Case, loaded

KINDS = ("user", "state", "fact", "why", "newest")


def show(folder: Path, cases: Sequence[Case]) -> None:
    """Print the marks of a folder's exam and of its continuations."""
    if (folder / "marking" / "marks.json").exists():
        asked = Counter(each["kind"] for case in cases for each in case.questions)
        kinds = (f"{kind} {asked[kind]}" for kind in KINDS)
        sums = (f"of {asked.total()}", "%", "false", "calls", "tokens a question", "view tokens")
        common.show(str(folder), ("view", *kinds, *sums), _answers(folder, cases))
    if (folder / "marking" / "step-marks.json").exists():
        columns = ("continued from", f"of {10 * len(cases)}", "calls, median", "tokens", "most")
        common.show(str(folder), columns, _steps(folder, cases))


def _answers(folder: Path, cases: Sequence[Case]) -> Iterator[Sequence[object]]:
    marks = loaded(folder / "marking" / "marks.json")
    for method, letter in loaded(folder / "letters-answers.json").items():
        marked = [
            (question["kind"], given[letter])
            for case in cases
            for question, given in zip(case.questions, marks[str(case.number)], strict=True)
        ]
        kinds = [sum(mark for kind, mark in marked if kind == each) for each in KINDS]
        asked = calls(folder / method / QUESTIONS)
        yield (
            method,
            *(f"{mark:g}" for mark in kinds),
            f"{sum(kinds):g}",
            f"{100 * sum(kinds) / len(marked):.0f}",
            sum(mark < 0 for _, mark in marked),
            len(asked),
            f"{sum(each['tokens'] for each in asked) / len(marked):.0f}",
            sum(loaded(folder / method / "sizes.json").values()),
        )


def _steps(folder: Path, cases: Sequence[Case]) -> Iterator[Sequence[object]]:
    marks = loaded(folder / "marking" / "step-marks.json")
    names = [str(case.number) for case in cases]
    for method, letter in loaded(folder / "letters-steps.json").items():
        made = calls(folder / method / "steps-calls.jsonl")
        of_each = [[each["tokens"] for each in made if each["session"] == name] for name in names]
        tokens = [sum(each) for each in of_each]
        whole = sum(marks[name][letter] for name in names)
        number = median(map(len, of_each))
        yield method, f"{whole:g}", f"{number:g}", f"{median(tokens):,.0f}", max(tokens)
