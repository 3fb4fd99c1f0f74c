"""What survives of recorded sessions, with and without the summary that a model wrote.

    python -m tests.benchmarks.retention_table --file CORPUS/visible.jsonl [--budgets .1,.25,.5]
    python -m tests.benchmarks.retention_table --recorded CORPUS/recorded_compactions.jsonl

Beside the file lies `../bench` with the benchmark's own `retention.py` and `baselines.py`; else say
`--bench FOLDER`. With `--recorded` the recorded summary replaces the auxiliary model's, within 1,
1.25 and 1.5 times its own tokens. `whole` counts the views that hold the summary to its end.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from praison_compressor.messages import text_of
from tests.benchmarks import retention
from tests.benchmarks.common import options, show

Message = dict[str, Any]
Rows = Sequence[dict[str, Any]]

FEASIBLE = 0.6
"""Cuts where what every method keeps takes more of the budget are no test of a summary."""
CUTS = (0.4, 0.6, 0.8)
"""Where the benchmark cuts a session, as shares of its tokens."""
MEASURES = ("deep", "deep_bound", "user")


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
    """Tokens of that."""
    summary: str = ""

    @property
    def before(self) -> list[Message]:
        return list(self.messages[: self.cut])


@dataclass
class Bench:
    """The benchmark's own modules: they count, cut and score."""

    retention: Any
    baselines: Any

    def cases(self, path: Path) -> Iterator[Case]:
        """Every cut of every session with tools."""
        for session in self.retention.load(str(path)):
            # Of a session that was compacted only what came before is cut: behind it the agent
            # knew no more than the summary.
            uncut = session.get("messages") or session["pre"]
            if any(message.get("tool_calls") for message in uncut):
                for cut in self.retention.pick_cuts(uncut, CUTS):
                    yield self._case(uncut + session.get("post", []), cut)

    def compactions(self, path: Path) -> Iterator[Case]:
        """Every recorded compaction, as a cut where it happened."""
        for found in self.retention.load(str(path)):
            before, after = found["pre"], found["post"]
            yield self._case(before + after, len(before), found["summary"])

    def _case(self, messages: list[Message], cut: int, summary: str = "") -> Case:
        floor = self.baselines.floor(messages[:cut], 0)
        counted = [{"role": "user", "content": summary}] if summary else messages[:cut]
        tokens, kept = map(self.retention.conv_tokens, (counted, floor))
        return Case(messages, cut, tokens, floor, kept, summary)

    def score(self, case: Case, view: list[Message], budget: int) -> dict[str, Any]:
        """The benchmark's figures for a view; `gates` is whether it holds all of them."""
        found = self.retention.score(case.messages, view, case.cut, budget)
        kept = ("within_budget", "system_intact", "task_intact", "tail_intact", "tail_quarter")
        flaws = found["openai"] or found["anthropic"] or not found["pairs"]["ok"]
        gates = all(found[name] for name in kept) and not flaws
        return {**found, "gates": gates}

    def view_score(self, case: Case, budget: int) -> dict[str, Any]:
        """Return the scores of our view, with the recorded summary where there is one."""
        config = retention.CONFIG
        if case.summary:
            view = retention.with_summary(case.before, case.summary, budget, config)
        else:
            view = retention.static(case.before, budget, config)
        whole = any(case.summary.strip() in text_of(message) for message in view)
        return {**self.score(case, view, budget), "whole": whole}


def bench_of(path: Path, folder: Path | None) -> Bench:
    """The benchmark beside the file.

    Raises:
        SystemExit: file or benchmark are not there.
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


def average(rows: Rows, measure: str) -> float | None:
    """The mean over the cuts that have the measure."""
    values = [row[measure] for row in rows if row[measure] is not None]
    return mean(values) if values else None


def _shown(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"


def _row(name: str, rows: Rows, last: str) -> tuple[object, ...]:
    share = mean(row[last] for row in rows)
    return (
        name,
        len(rows),
        *(_shown(average(rows, measure)) for measure in MEASURES),
        f"{share:.0%}",
    )


def cut_at(bench: Bench, cases: Sequence[Case], share: float) -> Iterator[tuple[object, ...]]:
    """Yield our row, where the budget is a test."""
    fit = [case for case in cases if case.kept <= FEASIBLE * share * case.tokens]
    ours = [bench.view_score(case, int(case.tokens * share)) for case in fit]
    yield _row("ours", ours, "gates")


def beside_quotes(bench: Bench, cases: Sequence[Case]) -> Iterator[tuple[object, ...]]:
    """Yield the recorded summaries alone, and with quotes beside them."""
    bare = []
    for case in cases:
        said = {"role": "user", "content": case.summary}
        view = [*case.floor[:1], said, *case.floor[1:]]
        bare.append({**bench.score(case, view, case.kept + case.tokens), "whole": True})
    yield _row("the summary, and what all keep", bare, "whole")
    for times in (1, 1.25, 1.5):
        scores = [bench.view_score(c, int(c.kept + c.tokens * times)) for c in cases]
        yield _row(f"{times} x: ours", scores, "whole")


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
