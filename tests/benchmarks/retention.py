"""What survives of recorded sessions, with and without the summary that a model wrote.

    python -m tests.benchmarks.retention --file CORPUS/visible.jsonl [--budgets .1,.25,.5]
    python -m tests.benchmarks.retention --recorded CORPUS/recorded_compactions.jsonl

`../bench` beside the file's folder, or `--bench FOLDER`, has the benchmark's own `retention.py` and
`baselines.py`: they count, cut and score. With `--recorded` the recorded summary is the model's
answer, within 1, 1.25 and 1.5 times its own tokens. `whole` counts the views that hold the summary
to its end. The benchmark's own programs take `tests.benchmarks.retention:static` and
`:with_summary` as methods.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import text_of, tool_calls_of
from praison_compressor.messages.digests import MessageCache
from tests.benchmarks.common import options, show

Message = dict[str, Any]
Scores = Sequence[dict[str, Any]]

IMAGES = ("image_url", "image", "input_image")
FEASIBLE = 0.6
"""Share of the budget that the floor may take at most: else the cut tests no summary."""
CUTS = (0.4, 0.6, 0.8)
"""Where the benchmark cuts a session, as shares of its tokens."""
MEASURES = ("deep", "deep_bound", "user")
GATES = ("within_budget", "system_intact", "task_intact", "tail_intact", "tail_quarter")


class BenchCounter(TokenCounter):
    """Counts as the benchmark does: 4 a message, 8 a call, 1000 an image, cl100k_base texts."""

    def __init__(self) -> None:
        super().__init__("gpt-4", cache=MessageCache())

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        return sum(map(self.message, messages))

    def count(self, message: Message) -> int:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        images = sum(isinstance(p, dict) and p.get("type") in IMAGES for p in parts)
        calls = tool_calls_of(message)
        named = sum(8 + self.text(call.name) + self.text(call.arguments) for call in calls)
        return 4 + 1000 * images + self.text(text_of(message)) + named


# `head_tokens=0`: the benchmark's floor has the task, not the first step after it.
CONFIG = CompressorConfig(head_tokens=0, tool_policies={"*": "summarize"})
TOKENS = BenchCounter()


def static(messages: list[Message], budget: int) -> list[Message]:
    """Return a view of at most `budget` tokens without a model."""
    ours = ContextCompressor(CONFIG, tokens=TOKENS)
    try:
        return ours.compress_sync(messages, target_tokens=budget).messages
    except BudgetTooSmall:  # a newest user message that no summary may replace: it is shortened
        return ours.best_view(messages, target_tokens=budget)


def with_summary(messages: list[Message], summary: str, budget: int) -> list[Message]:
    """Return a view with a recorded summary as the model's answer."""

    async def recorded(request: list[Message]) -> str:
        return summary

    ours = ContextCompressor(CONFIG, tokens=TOKENS, summarizer=recorded)
    given = {"protect_last_n_tokens": 0, "summary_target_tokens": TOKENS.text(summary)}
    return ours.compress_sync(messages, target_tokens=budget, **given).messages


@dataclass(frozen=True)
class Case:
    """One cut of one session."""

    messages: Sequence[Message]
    cut: int
    tokens: int
    """Before the cut; of a recorded compaction those of its summary."""
    floor: list[Message]
    """What every method keeps."""
    kept: int
    """Tokens of the floor."""
    summary: str = ""

    def view(self, budget: int) -> list[Message]:
        """Return our view, with the recorded summary where there is one."""
        before = list(self.messages[: self.cut])
        return (
            with_summary(before, self.summary, budget) if self.summary else static(before, budget)
        )


@dataclass
class Bench:
    """The benchmark's own modules."""

    retention: Any
    baselines: Any

    def cases(self, path: Path) -> Iterator[Case]:
        """Yield every cut of every session with tools."""
        for session in self.retention.load(str(path)):
            # Of a session that was compacted only what came before is cut: behind it the agent
            # knew no more than the summary.
            uncut = session.get("messages") or session["pre"]
            if any(message.get("tool_calls") for message in uncut):
                for cut in self.retention.pick_cuts(uncut, CUTS):
                    yield self._case(uncut + session.get("post", []), cut)

    def compactions(self, path: Path) -> Iterator[Case]:
        """Yield every recorded compaction, as a cut where it happened."""
        for found in self.retention.load(str(path)):
            before, after = found["pre"], found["post"]
            yield self._case(before + after, len(before), found["summary"])

    def _case(self, messages: list[Message], cut: int, summary: str = "") -> Case:
        floor = self.baselines.floor(messages[:cut], 0)
        counted = [{"role": "user", "content": summary}] if summary else messages[:cut]
        tokens, kept = map(self.retention.conv_tokens, (counted, floor))
        return Case(messages, cut, tokens, floor, kept, summary)

    def score(self, case: Case, view: list[Message], budget: int) -> dict[str, Any]:
        """Score a view; add whether it holds all gates and the whole summary."""
        found = self.retention.score(case.messages, view, case.cut, budget)
        flaws = found["openai"] or found["anthropic"] or not found["pairs"]["ok"]
        gates = all(found[name] for name in GATES) and not flaws
        whole = any(case.summary.strip() in text_of(message) for message in view)
        return {**found, "gates": gates, "whole": whole}


def bench_of(path: Path, folder: Path | None) -> Bench:
    """Import the benchmark.

    Raises:
        SystemExit: the file or the benchmark is missing.
    """
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; it should hold recorded sessions, one a line")
    folder = folder or path.resolve().parent.parent / "bench"
    for name in ("retention.py", "baselines.py"):
        if not (folder / name).is_file():
            raise SystemExit(f"{folder / name}: no such file; --bench names the benchmark's folder")
    sys.path.insert(0, str(folder))
    return Bench(importlib.import_module("retention"), importlib.import_module("baselines"))


# ---------------------------------------------------------------- the tables


def row(name: str, scores: Scores, last: str) -> tuple[object, ...]:
    """Return the means over the cuts that have a measure."""
    shown = []
    for measure in MEASURES:
        values = [score[measure] for score in scores if score[measure] is not None]
        shown.append(f"{mean(values):.3f}" if values else "-")
    return name, len(scores), *shown, f"{mean(score[last] for score in scores):.0%}"


def cut_at(bench: Bench, cases: Sequence[Case], share: float) -> Iterator[tuple[object, ...]]:
    """Yield our row, where the budget is a test."""
    fit = [(c, int(c.tokens * share)) for c in cases if c.kept <= FEASIBLE * share * c.tokens]
    yield row("ours", [bench.score(case, case.view(room), room) for case, room in fit], "gates")


def beside_quotes(bench: Bench, cases: Sequence[Case]) -> Iterator[tuple[object, ...]]:
    """Yield the recorded summaries alone, and with quotes beside them."""
    bare = []
    for case in cases:
        view = [*case.floor[:1], {"role": "user", "content": case.summary}, *case.floor[1:]]
        bare.append(bench.score(case, view, case.kept + case.tokens))
    yield row("the summary, and what all keep", bare, "whole")
    for times in (1, 1.25, 1.5):
        rooms = [(case, int(case.kept + case.tokens * times)) for case in cases]
        scores = [bench.score(case, case.view(room), room) for case, room in rooms]
        yield row(f"{times} x: ours", scores, "whole")


def main() -> None:
    given = options(__doc__, file=Path, recorded=Path, bench=Path, budgets=".1,.25,.5")
    path = given.file or given.recorded
    if path is None:
        raise SystemExit("--file or --recorded names recorded sessions")
    bench = bench_of(path, given.bench)
    logging.disable(logging.WARNING)
    columns = ("", "cuts", "deep", "deep + bound", "user")
    if given.recorded:
        rows = beside_quotes(bench, list(bench.compactions(path)))
        show("recorded summaries as the model's", (*columns, "whole"), rows)
        return
    cases = list(bench.cases(path))
    for share in map(float, given.budgets.split(",")):
        title = f"{share:.0%} of the tokens"
        show(title, (*columns, "gates"), cut_at(bench, cases, share))


if __name__ == "__main__":
    main()
