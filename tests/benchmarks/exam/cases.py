"""The sessions of the exam, their questions with keys, and the budget of a view."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, TokenCounter
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
