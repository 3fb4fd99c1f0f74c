"""The views that readers are given: ours, and those of two peers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    ContextCompressor,
    SummarizerUnavailable,
    TokenCounter,
)
from praison_compressor.ledger.sql.store import SqlStore
from praison_compressor.messages import Message, read_transcript, text_of

MODEL = "gpt-4o"
TOKENS = TokenCounter(MODEL)
EXTRA_SHARE = 0.15
"""Share of a session's tokens for a summary, where what no view may drop fills the budget."""


@dataclass(frozen=True)
class Case:
    """One session, cut where an agent is about to go on."""

    number: int
    messages: Sequence[Message]
    coming: Sequence[Message]
    """What came next in the recorded session."""
    questions: Sequence[dict[str, str]]

    def budget(self, share: float, upto: int | None = None) -> int:
        """Return the tokens of a view of the first messages: a share of theirs, where possible."""
        messages = list(self.messages[:upto])
        whole = TOKENS.messages(messages)
        budget = int(share * whole)
        try:
            ContextCompressor(CompressorConfig(model=MODEL)).compress_sync(
                messages, target_tokens=budget, force=True
            )
        except BudgetTooSmall as error:
            return error.needed + int(EXTRA_SHARE * whole)
        return budget


METHODS = ("static", "static-recall", "model", "model-recall", "masking", "plain")
ROUNDS_METHODS = METHODS[:4]
STORED = ("static-recall", "model-recall")
"""Methods whose reader has the recall tools."""


@dataclass
class Summaries:
    """A folder of requests for a summary and the answers that a strong model wrote to them.

    The `n`th request of a session has one answer, whatever it says, so that the same texts serve
    two versions of the package. With the tools another length is asked for than without them.
    """

    folder: Path
    label: str
    missing: int = 0

    def path(self, case: Case, number: int, kind: str, *, recall: bool = False) -> Path:
        name = f"{self.label}-{case.number}-{number}" + ("-recall" if recall else "")
        return self.folder / f"{name}.{kind}.md"

    def summarizer(self, case: Case, *, recall: bool) -> Any:
        """Return an auxiliary model that answers from the folder."""
        calls = 0

        async def answer(messages: list[Message]) -> str:
            nonlocal calls
            calls += 1
            written = self.path(case, calls, "answer", recall=recall)
            if written.exists():
                return written.read_text(encoding="utf-8")
            asked = "\n\n".join(f"[{m['role']}]\n{text_of(m)}" for m in messages)
            self.folder.mkdir(parents=True, exist_ok=True)
            request = self.path(case, calls, "request", recall=recall)
            request.write_text(asked, encoding="utf-8")
            self.missing += 1
            raise SummarizerUnavailable(f"{written} is not written yet", kind="provider")

        return answer


def view_of(
    method: str, case: Case, share: float, rounds: int, folder: Path, summaries: Summaries
) -> list[Message]:
    """Return the view of a case by a method; recall's store lies in `folder`."""
    if method == "masking":
        return masked(list(case.messages), case.budget(share))
    if method == "plain":
        answer = summaries.path(case, 1, "answer")
        if not answer.exists():
            return []
        return plain(list(case.messages), answer.read_text(encoding="utf-8"), case.budget(share))
    recall = method in STORED
    config = CompressorConfig(model=MODEL, summary_max_retries=0, recall=recall or None)
    store = SqlStore(f"sqlite:///{folder / 'store.db'}") if recall else None
    asks = method.startswith("model")
    summarizer = summaries.summarizer(case, recall=recall) if asks else None
    ours = ContextCompressor(config, summarizer=summarizer, store=store)
    view: list[Message] = []
    for number in range(1, rounds + 1):
        view = _compressed(ours, case, share, len(case.messages) * number // rounds)
    return view


def _compressed(ours: ContextCompressor, case: Case, share: float, cut: int) -> list[Message]:
    messages, budget = list(case.messages[:cut]), case.budget(share, cut)
    try:
        return ours.compress_sync(
            messages, session_id=f"exam-{case.number}", target_tokens=budget, force=True
        ).messages
    except BudgetTooSmall:
        return ours.fallback_view(messages, target_tokens=budget).messages


# -------------------------------------------------------------- peers


def _parts(messages: list[Message]) -> tuple[list[Message], list[list[Message]]]:
    """Return system and task; then the steps."""
    end = next(i for i, m in enumerate(messages) if m["role"] == "user") + 1
    steps = read_transcript(messages).steps
    later = [messages[step.start : step.stop] for step in steps if step.start >= end]
    return messages[:end], later


def _newest(steps: Sequence[list[Message]], room: int) -> list[Message]:
    kept: list[Message] = []
    for step in reversed(steps):
        size = TOKENS.messages(step)
        if kept and size > room:
            break
        kept, room = [*step, *kept], room - size
    return kept


def masked(messages: list[Message], budget: int) -> list[Message]:
    """Replace old tool outputs by a line each; then drop the oldest messages."""
    shown = list(messages)
    for index, message in enumerate(shown[:-1]):
        if TOKENS.messages(shown) <= budget:
            return shown
        if message["role"] == "tool" and TOKENS.messages([message]) > 30:
            lines = text_of(message).count("\n") + 1
            shown[index] = {**message, "content": f"[{lines} lines of old tool output omitted]"}
    head, steps = _parts(shown)
    return [*head, *_newest(steps, budget - TOKENS.messages(head))]


def plain(messages: list[Message], summary: str, budget: int) -> list[Message]:
    """Return system, task, the model's summary as it wrote it, and the newest messages."""
    head, steps = _parts(messages)
    said = {"role": "user", "content": f"Summary of the conversation so far:\n{summary}"}
    head = [*head, said]
    return [*head, *_newest(steps, budget - TOKENS.messages(head))]
