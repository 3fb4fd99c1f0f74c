"""The exam: can a reader go on from a view? Questions on real sessions, read by a strong model.

    python -m tests.benchmarks.exam make OUT FILES [--share .25] [--rounds 1]
    python -m tests.benchmarks.exam ask OUT/25/static-recall 3 search_conversation_archive query=...
    python -m tests.benchmarks.exam mark OUT/25 FILES
    python -m tests.benchmarks.exam table OUT/25 FILES

FILES is `--exam QUESTIONS --corpus SESSIONS`: a JSON list of sessions with id, first_messages and
questions (kind, q, answer, accept), and these sessions, one a line.

`make` writes a folder a method: the views with their questions, and what a reader is to do; a
reader with a fresh context answers into `answers.json` there. `mark` lays the answers side by side
without names, for one marker, who writes `marks.json`. `table` prints what came of it. Readers
and marker are people or strong models: this program calls none.
"""

import argparse
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.messages import Message, text_of, tool_calls_of
from praison_compressor.recall.answers import SCHEMAS, TURN_TOKENS
from tests.benchmarks.common import read_sessions, show

from .views import METHODS, MODEL, ROUNDS_METHODS, STORED, TOKENS, Case, Summaries, view_of


def read_json(path: Path) -> Any:
    """Return the JSON of a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def cases(exam: Path, corpus: Path) -> list[Case]:
    """Return the exam's sessions in its order."""
    sessions = {each["id"]: each["messages"] for each in read_sessions(corpus)}
    all_cases = []
    for number, asked in enumerate(read_json(exam), 1):
        whole, cut = sessions[asked["id"]], asked["first_messages"]
        all_cases.append(Case(number, whole[:cut], whole[cut : cut + 12], asked["questions"]))
    return all_cases


# -------------------------------------------------------------- the recall tools

QUESTIONS = "calls.jsonl"


def calls(log: Path) -> list[dict[str, Any]]:
    """Return the calls of a log."""
    return list(read_sessions(log)) if log.exists() else []


def _describe_tool(function: dict[str, Any]) -> str:
    """Return a tool as a request describes it to an agent."""
    form, lines = function["parameters"], [f"{function['name']}: {function['description']}"]
    for name, each in form["properties"].items():
        needed = "required" if name in form["required"] else "optional"
        lines.append(f"    {name} ({each['type']}, {needed}): {each['description']}")
    return "\n".join(lines)


def ask(folder: Path, number: str, tool: str, pairs: Sequence[str], log: str) -> str:
    """Answer one call of a recall tool; log it with its tokens.

    Going on is one turn: the log's calls are made again first. Each question is a turn of its own.
    """
    arguments = dict(each.split("=", 1) for each in pairs)
    config = CompressorConfig(model=MODEL, recall=True)
    ours = ContextCompressor(config, store=SqlStore(f"sqlite:///{folder / 'store.db'}"))
    is_turn = log != QUESTIONS
    tools = ours.recall_tools(f"exam-{number}", turn_tokens=TURN_TOKENS if is_turn else None)
    made = {each.__name__: each for each in tools}
    for call in calls(folder / log) if is_turn else ():
        if call["session"] == number:
            made[call["tool"]](**call["arguments"])
    missing = _missing_arguments(tool, arguments)
    answer = f"Missing: {', '.join(missing)}" if missing else made[tool](**arguments)
    line = {"session": number, "tool": tool, "arguments": arguments, "tokens": TOKENS.text(answer)}
    with (folder / log).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return answer


def _missing_arguments(tool: str, arguments: dict[str, str]) -> list[str]:
    """Return the required arguments that a call leaves out: a model's API lets it not pass."""
    forms = {each["function"]["name"]: each["function"]["parameters"] for each in SCHEMAS}
    return [name for name in forms[tool]["required"] if name not in arguments]


# -------------------------------------------------------------- the readers' folders

SEED = 20_261_123

_ANSWER = """\
You sit an exam. In this folder are {count} files, session-1.md to session-{count}.md. Each shows
the context of an agent that is about to go on with its work, and then questions.

Answer each question from the session's own text alone{tools}. Where it does not say, answer
"not found". One or two sentences each, with exact names, numbers and paths; no guessing.
Read nothing but this folder. Write your answers to answers.json in this folder:

    {{"1": ["answer to question 1 of session 1", "... 2", ...], "2": [...], ...}}

and check that it is valid JSON with {questions} answers a session.
"""
_CONTINUE = """\
In this folder are {count} files, session-1.md to session-{count}.md. Each shows the context of an
agent that is about to go on with its work (leave out the questions at its end). For each session
you are that agent: write its next four steps, each with the tool and its exact arguments (for an
edit the exact old and new text) or the exact words to the user; what is done already and must not
be done again; and which rules bind you. Use only what the context says{tools}.
Read nothing but this folder. Write to steps.json in this folder:

    {{"1": {{"steps": ["...", "...", "...", "..."], "done": ["..."], "rules": ["..."]}}, ...}}
"""
_TOOLS = """, or what the agent's two
recall tools return. Call them so, from the folder {cwd}:

    python -m tests.benchmarks.exam ask {folder} N TOOL NAME=VALUE ...{log}

where N is the session's number. The tools:

{described}
"""
_MARK = """\
You mark an exam. Each file question-N.md here holds, for one session, its questions with their
keys, and beside each the answers of several readers, whose names are hidden behind letters. Mark
each answer: 1 right by the key, 0.5 partly and nothing wrong, 0 not found (or nothing of use),
-1 a false belief (it says something untrue as if it knew). Write marks.json here:

    {"1": [{"A": 1, "B": 0.5, ...}, ... one for each question], "2": [...], ...}
"""
_MARK_STEPS = """\
Each file steps-N.md here holds a whole session up to a point, what really came next, and then how
several readers, hidden behind letters, would have gone on. Mark each from 0 to 10, against an
agent that had everything in view (10: as good as that). Take off for work done twice, ids or edit
texts that are wrong or invented, rules broken, threads lost, false claims. A different but sound
way is no fault. Write step-marks.json here: {"1": {"A": 8, "B": 9.5, ...}, "2": ...}, and what
you took off to step-notes.md.
"""


def make(
    out: Path, cases: Sequence[Case], share: float, rounds: int, methods: Sequence[str]
) -> Summaries:
    """Write each method's folder; the result counts the summaries that are still missing."""
    label = f"{round(share * 100)}" + (f"x{rounds}" if rounds > 1 else "")
    summaries = Summaries(out / "summaries", label)
    for method in methods or (METHODS if rounds == 1 else ROUNDS_METHODS):
        folder = out / label / method
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        sizes = {}
        for case in cases:
            view = view_of(method, case, share, rounds, folder, summaries)
            sizes[str(case.number)] = TOKENS.messages(view)
            asked = "\n".join(f"{n}. {each['q']}" for n, each in enumerate(case.questions, 1))
            end = f"{'=' * 30} QUESTIONS (not part of the session)\n{asked}"
            _write(folder / f"session-{case.number}.md", f"{render(view)}\n\n{end}")
        _write(folder / "sizes.json", json.dumps(sizes))
        _instruct(folder, cases, recall=method in STORED)
    return summaries


def render(messages: Sequence[Message]) -> str:
    """Return messages as a reader sees them: index, role, content, calls."""
    shown = []
    for index, message in enumerate(messages):
        lines = [f"=== [{index}] {message['role']}", text_of(message)]
        lines += [f"-> calls {call.name}({call.arguments})" for call in tool_calls_of(message)]
        shown.append("\n".join(line for line in lines if line))
    return "\n\n".join(shown)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _instruct(folder: Path, cases: Sequence[Case], *, recall: bool) -> None:
    counts = {"count": len(cases), "questions": len(cases[0].questions)}
    described = "\n\n".join(_describe_tool(schema["function"]) for schema in SCHEMAS)
    names = {"cwd": Path.cwd(), "folder": folder, "described": described}
    for name, text, log in (
        ("ANSWER.md", _ANSWER, ""),
        ("CONTINUE.md", _CONTINUE, " --log steps-calls.jsonl"),
    ):
        tools = _TOOLS.format(**names, log=log) if recall else ""
        _write(folder / name, text.format(**counts, tools=tools))


# -------------------------------------------------------------- the marker's


def mark(folder: Path, cases: Sequence[Case]) -> None:
    """Lay the readers' answers and steps side by side, without their names."""
    marking = folder / "marking"
    marking.mkdir(exist_ok=True)
    for kind, file, text, sheet in (
        ("question", "answers.json", _MARK, _answer_sheet),
        ("steps", "steps.json", _MARK_STEPS, _steps_sheet),
    ):
        answers = {path.parent.name: read_json(path) for path in sorted(folder.glob(f"*/{file}"))}
        if not answers:
            continue
        letters = _letters(list(answers))
        _write(folder / f"letters-{file}", json.dumps(letters))
        _write(marking / ("MARK.md" if kind == "question" else "MARK-STEPS.md"), text)
        hidden = {letters[method]: of_method for method, of_method in answers.items()}
        for case in cases:
            _write(marking / f"{kind}-{case.number}.md", sheet(case, hidden))


def _letters(methods: list[str]) -> dict[str, str]:
    letters = [chr(ord("A") + number) for number in range(len(methods))]
    random.Random(SEED + len(methods)).shuffle(letters)
    return dict(zip(methods, letters, strict=True))


def _answer_sheet(case: Case, hidden: dict[str, Any]) -> str:
    lines = []
    for number, each in enumerate(case.questions):
        lines += [f"\n## {number + 1}. {each['q']}", f"KEY: {each['answer']}"]
        lines += [f"ACCEPT: {each['accept']}"]
        for letter in sorted(hidden):
            lines.append(f"- {letter}: {hidden[letter][str(case.number)][number]}")
    return "\n".join(lines)


def _steps_sheet(case: Case, hidden: dict[str, Any]) -> str:
    parts = [render(case.messages), "#### WHAT REALLY CAME NEXT", render(case.coming)]
    for letter in sorted(hidden):
        steps = json.dumps(hidden[letter][str(case.number)], indent=1, ensure_ascii=False)
        parts.append(f"#### READER {letter}\n{steps}")
    return "\n\n".join(parts)


# -------------------------------------------------------------- the tables


def table(folder: Path, cases: Sequence[Case]) -> None:
    """Print the marks of a folder's exam and of its continuations."""
    if (folder / "marking" / "marks.json").exists():
        asked = Counter(each["kind"] for case in cases for each in case.questions)
        kinds = (f"{kind} {number}" for kind, number in asked.items())
        sums = (f"of {asked.total()}", "%", "false", "calls", "tokens a question", "view tokens")
        show(str(folder), ("view", *kinds, *sums), _answers(folder, cases))
    if (folder / "marking" / "step-marks.json").exists():
        columns = ("continued from", f"of {10 * len(cases)}", "calls, median", "tokens", "most")
        show(str(folder), columns, _steps(folder, cases))


def _answers(folder: Path, cases: Sequence[Case]) -> Iterator[Sequence[object]]:
    marks = read_json(folder / "marking" / "marks.json")
    for method, letter in read_json(folder / "letters-answers.json").items():
        marked = [
            (question["kind"], by_letter[letter])
            for case in cases
            for question, by_letter in zip(case.questions, marks[str(case.number)], strict=True)
        ]
        kinds = [
            sum(mark for kind, mark in marked if kind == each)
            for each in dict.fromkeys(kind for kind, _ in marked)
        ]
        asked = calls(folder / method / QUESTIONS)
        yield (
            method,
            *(f"{mark:g}" for mark in kinds),
            f"{sum(kinds):g}",
            f"{100 * sum(kinds) / len(marked):.0f}",
            sum(mark < 0 for _, mark in marked),
            len(asked),
            f"{sum(each['tokens'] for each in asked) / len(marked):.0f}",
            sum(read_json(folder / method / "sizes.json").values()),
        )


def _steps(folder: Path, cases: Sequence[Case]) -> Iterator[Sequence[object]]:
    marks = read_json(folder / "marking" / "step-marks.json")
    names = [str(case.number) for case in cases]
    for method, letter in read_json(folder / "letters-steps.json").items():
        made = calls(folder / method / "steps-calls.jsonl")
        of_each = [[each["tokens"] for each in made if each["session"] == name] for name in names]
        tokens = [sum(each) for each in of_each]
        whole = sum(marks[name][letter] for name in names)
        number = median(map(len, of_each))
        yield method, f"{whole:g}", f"{number:g}", f"{median(tokens):,.0f}", max(tokens)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.exam")
    files = argparse.ArgumentParser(add_help=False)
    for name in ("--exam", "--corpus"):
        files.add_argument(name, type=Path, required=True, metavar="FILE")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", parents=[files], help="write the readers' folders")
    making.add_argument("out", type=Path)
    making.add_argument("--share", type=float, default=0.25)
    making.add_argument("--rounds", type=int, default=1)
    making.add_argument("--methods", nargs="*", default=())
    for name in ("mark", "table"):
        commands.add_parser(name, parents=[files]).add_argument("folder", type=Path)
    asking = commands.add_parser("ask", help="call a recall tool as a reader")
    asking.add_argument("folder", type=Path)
    asking.add_argument("session")
    asking.add_argument("tool")
    asking.add_argument("pairs", nargs="*", metavar="NAME=VALUE")
    asking.add_argument("--log", default=QUESTIONS)
    return parser


def main() -> None:
    args = _parser().parse_args()
    if args.command == "ask":
        print(ask(args.folder, args.session, args.tool, args.pairs, args.log))
        return
    asked = cases(args.exam, args.corpus)
    if args.command == "make":
        made = make(args.out.resolve(), asked, args.share, args.rounds, args.methods)
        if made.missing:
            print(f"{made.missing} summaries to write: answer each {made.folder}/*.request.md as")
            print("*.answer.md beside it, and run this again")
    else:
        (mark if args.command == "mark" else table)(args.folder, asked)


if __name__ == "__main__":
    main()
