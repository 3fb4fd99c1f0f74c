"""The commands of the exam."""

from __future__ import annotations

import argparse
from pathlib import Path

from .asking import QUESTIONS, ask
from .cases import cases
from .sheets import make, mark
from .table import show

SHARED = Path("../shared")


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
        show(given.folder, asked)


if __name__ == "__main__":
    main()
