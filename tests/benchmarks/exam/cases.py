"""The sessions of the exam with their questions, the budget of a view, and the recall tools on a
stored session, with a log of what they cost."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.ledger.recall import TURN_TOKENS
from praison_compressor.ledger.sql.store import SqlStore
from tests.benchmarks.common import recorded

Message = dict[str, Any]
MODEL = "gpt-4o"
TOKENS = TokenCounter(MODEL)
EXTRA_SHARE = 0.15
"""Of a session's tokens, for a summary, where what no view may drop fills the budget alone."""


@dataclass(frozen=True)
class Case:
    """One session, cut where an agent is about to go on."""

    number: int
    id: str
    messages: Sequence[Message]
    coming: Sequence[Message]
    """What came next in the recorded session."""
    questions: Sequence[dict[str, str]]

    def budget(self, share: float, upto: int | None = None) -> int:
        """Tokens of a view of the first messages: a share of theirs, as far as that is possible."""
        messages = list(self.messages[:upto])
        whole = TOKENS.messages(messages)
        budget = int(share * whole)
        ours = ContextCompressor(CompressorConfig(model=MODEL))
        try:
            ours.compress_sync(messages, target_tokens=budget, force=True)
        except BudgetTooSmall as error:
            return error.needed + int(EXTRA_SHARE * whole)
        return budget


def loaded(path: Path) -> Any:
    """The JSON of a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def cases(exam: Path, corpus: Path) -> list[Case]:
    """The exam's sessions in its order."""
    sessions = {each["id"]: each["messages"] for each in recorded(corpus)}
    found = []
    for number, asked in enumerate(loaded(exam), 1):
        whole, cut = sessions[asked["id"]], asked["first_messages"]
        case = Case(number, asked["id"], whole[:cut], whole[cut : cut + 12], asked["questions"])
        found.append(case)
    return found


# -------------------------------------------------------------- the recall tools

QUESTIONS = "calls.jsonl"


def tools(folder: Path, number: str, turn_tokens: int | None) -> dict[str, Callable[..., str]]:
    """The recall tools of a method's session, by name, from its real store."""
    config = CompressorConfig(model=MODEL, recall=True)
    ours = ContextCompressor(config, store=SqlStore(f"sqlite:///{folder / 'store.db'}"))
    made = ours.recall_tools(f"exam-{number}", turn_tokens=turn_tokens)
    return {tool.__name__: tool for tool in made}


def calls(log: Path) -> list[dict[str, Any]]:
    """What a log has."""
    return list(recorded(log)) if log.exists() else []


def described() -> str:
    """Names, parameters and descriptions of the tools, as an agent is given them."""
    ours = ContextCompressor(CompressorConfig(model=MODEL))
    shown = []
    for tool in ours.recall_tools():
        parameters = ", ".join(map(str, inspect.signature(tool).parameters.values()))
        shown.append(f"{tool.__name__}({parameters})\n{inspect.getdoc(tool)}")
    return "\n\n".join(shown)


def ask(folder: Path, number: str, tool: str, given: Sequence[str], log: str) -> str:
    """The answer of one call, logged with its tokens.

    Going on is one turn, with one turn's budget; each question is a turn of its own.
    """
    arguments = dict(each.split("=", 1) for each in given)
    left = None
    if log != QUESTIONS:
        left = TURN_TOKENS - sum(c["tokens"] for c in calls(folder / log) if c["session"] == number)
    answer = tools(folder, number, left)[tool](**arguments)
    line = {"session": number, "tool": tool, "arguments": arguments, "tokens": TOKENS.text(answer)}
    with (folder / log).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return answer
