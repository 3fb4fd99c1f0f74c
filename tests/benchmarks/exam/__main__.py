"""The commands of the exam, and the tables of what came of it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from tests.benchmarks.common import show

from .cases import QUESTIONS, Case, ask, calls, cases, loaded
from .sheets import make, mark

SHARED = Path("../shared")


KINDS = ("user", "state", "fact", "why", "newest")


def table(folder: Path, cases: Sequence[Case]) -> None:
    """Print the marks of a folder's exam and of its continuations."""
    if (folder / "marking" / "marks.json").exists():
        asked = Counter(each["kind"] for case in cases for each in case.questions)
        kinds = (f"{kind} {asked[kind]}" for kind in KINDS)
        sums = (f"of {asked.total()}", "%", "false", "calls", "tokens a question", "view tokens")
        show(str(folder), ("view", *kinds, *sums), _answers(folder, cases))
    if (folder / "marking" / "step-marks.json").exists():
        columns = ("continued from", f"of {10 * len(cases)}", "calls, median", "tokens", "most")
        show(str(folder), columns, _steps(folder, cases))


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.exam")
    parser.add_argument("--exam", type=Path, default=SHARED / "bench" / "exam" / "questions.json")
    parser.add_argument("--corpus", type=Path, default=SHARED / "corpus" / "visible.jsonl")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write the readers' folders")
    making.add_argument("out", type=Path)
    making.add_argument("--share", type=float, default=0.25)
    making.add_argument("--rounds", type=int, default=1)
    making.add_argument("--methods", nargs="*", default=())
    for name in ("mark", "table"):
        commands.add_parser(name).add_argument("folder", type=Path)
    asking = commands.add_parser("ask", help="call a recall tool as a reader")
    asking.add_argument("folder", type=Path)
    asking.add_argument("session")
    asking.add_argument("tool")
    asking.add_argument("given", nargs="*", metavar="NAME=VALUE")
    asking.add_argument("--log", default=QUESTIONS)
    given = parser.parse_args()
    if given.command == "ask":
        print(ask(given.folder, given.session, given.tool, given.given, given.log))
        return
    asked = cases(given.exam, given.corpus)
    if given.command == "make":
        made = make(given.out.resolve(), asked, given.share, given.rounds, given.methods)
        if made.missing:
            print(
                f"{made.missing} summaries to write: read {made.folder}/*.request.md, answer each "
                "as *.answer.md beside it, and run this again"
            )
    elif given.command == "mark":
        mark(given.folder, asked)
    else:
        table(given.folder, asked)


if __name__ == "__main__":
    main()
