"""The recall tools on a stored session of the exam, with a log of calls and their tokens."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.ledger.recall import TURN_TOKENS
from praison_compressor.ledger.sql.store import SqlStore
from tests.benchmarks.common import recorded

from .cases import MODEL, TOKENS

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
