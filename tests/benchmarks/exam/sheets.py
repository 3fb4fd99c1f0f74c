"""The folders for readers and marker."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from praison_compressor.messages import text_of, tool_calls_of

from .cases import TOKENS, Case, Message, described, loaded
from .views import METHODS, ROUNDS_METHODS, STORED, Summaries, view_of

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
recall tools return, as an economical agent would use them (each call costs). Call them so, from
the folder {cwd}:

    {python} -m tests.benchmarks.exam ask {folder} N TOOL NAME=VALUE ...{steps}

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
    """Write each method's folder; says by the result how many summaries are still to be written."""
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
            sheet = f"{printed(view)}\n\n{_questions(case)}"
            (folder / f"session-{case.number}.md").write_text(sheet, encoding="utf-8")
        (folder / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
        _instruct(folder, cases, recall=method in STORED)
    return summaries


def printed(messages: Sequence[Message]) -> str:
    """Messages as a reader sees them: index, role, content, calls."""
    shown = []
    for index, message in enumerate(messages):
        lines = [f"=== [{index}] {message['role']}", text_of(message)]
        lines += [f"-> calls {call.name}({call.arguments})" for call in tool_calls_of(message)]
        shown.append("\n".join(line for line in lines if line))
    return "\n\n".join(shown)


def _questions(case: Case) -> str:
    asked = [f"{n}. {each['q']}" for n, each in enumerate(case.questions, 1)]
    return "=" * 30 + " QUESTIONS (not part of the session)\n" + "\n".join(asked)


def _instruct(folder: Path, cases: Sequence[Case], *, recall: bool) -> None:
    for name, text, steps in (
        ("ANSWER.md", _ANSWER, ""),
        ("CONTINUE.md", _CONTINUE, " --log steps-calls.jsonl"),
    ):
        tools = ""
        if recall:
            tools = _TOOLS.format(
                cwd=Path.cwd(), python="python", folder=folder, steps=steps, described=described()
            )
        questions = len(cases[0].questions)
        whole = text.format(count=len(cases), questions=questions, tools=tools)
        (folder / name).write_text(whole, encoding="utf-8")


# -------------------------------------------------------------- the marker's


def mark(folder: Path, cases: Sequence[Case]) -> None:
    """Lay the readers' answers and steps side by side, without their names."""
    marking = folder / "marking"
    marking.mkdir(exist_ok=True)
    for name, text in (("answers.json", _MARK), ("steps.json", _MARK_STEPS)):
        given = {path.parent.name: loaded(path) for path in sorted(folder.glob(f"*/{name}"))}
        if not given:
            continue
        letters = _letters(list(given))
        hidden = {letters[method]: answers for method, answers in given.items()}
        kept = folder / f"letters-{name}"
        kept.write_text(json.dumps(letters), encoding="utf-8")
        is_steps = name == "steps.json"
        (marking / ("MARK-STEPS.md" if is_steps else "MARK.md")).write_text(text, encoding="utf-8")
        for case in cases:
            sheet = _steps_sheet(case, hidden) if is_steps else _answer_sheet(case, hidden)
            kind = "steps" if is_steps else "question"
            (marking / f"{kind}-{case.number}.md").write_text(sheet, encoding="utf-8")


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
    parts = [printed(case.messages), "#### WHAT REALLY CAME NEXT", printed(case.coming)]
    for letter in sorted(hidden):
        steps = json.dumps(hidden[letter][str(case.number)], indent=1, ensure_ascii=False)
        parts.append(f"#### READER {letter}\n{steps}")
    return "\n\n".join(parts)
