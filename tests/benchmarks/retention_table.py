"""What survives without a model, by source: recorded sessions, the oracle's line.

    python -m tests.benchmarks.retention_table --file CORPUS/visible.jsonl [--budgets .1,.25,.5]
        [--cuts .25,.3,.35]
    python -m tests.benchmarks.retention_table --recorded CORPUS/recorded_compactions.jsonl

Beside `--file` lies `../bench` with the benchmark's own `retention.py` and `baselines.py`; else say
`--bench FOLDER`. Rows: ours; ours told which identifiers will be needed (the oracle: nobody can
know).
Intervals: 95 %, conversations drawn with replacement.
A file of recorded compactions is cut too, before each compaction: no weight was ever fitted to
those sessions (`--fast` leaves out the oracle).
`--cuts` takes more places than the benchmark's three: few conversations need much from their
middle, and one idea's worth is best judged on many cuts.

`--recorded` takes real compactions, each with the summary that a model wrote: it stands for the
auxiliary model and stays whole, within 1, 1.25 and 1.5 times its own tokens. The oracle's line is
what our audit would repair if it knew what will be needed. At 1 x a summary and what frames it do
not fit: the view is without a model. `whole` counts the views that hold the summary to its end.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor
from praison_compressor.messages import text_of
from tests.benchmarks import retention

Message = dict[str, Any]

FEASIBLE = 0.6
"""Cuts where what every method keeps takes more of the budget are no test of a summary."""
CUTS = (0.4, 0.6, 0.8)
"""Where the benchmark cuts a session, as shares of its tokens."""
MEASURES = ("deep", "deep_bound", "user")
DRAWS = 1_000
SEED = 20_261_122


@dataclass(frozen=True)
class Case:
    """One cut of one session."""

    name: str
    source: str
    messages: Sequence[Message]
    cut: int
    tokens: int
    floor: int
    """Tokens of what every method keeps."""

    @property
    def before(self) -> list[Message]:
        return list(self.messages[: self.cut])


@dataclass(frozen=True)
class Compaction(Case):
    """A cut where a model summarized; `tokens` are those of its summary."""

    summary: str
    bare: Sequence[Message]
    """What every method keeps, and that summary."""


@dataclass
class Bench:
    """The benchmark's own modules: they count, cut and score."""

    retention: Any
    baselines: Any
    needed: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def cases(self, path: Path, cuts: Sequence[float] = CUTS) -> Iterator[Case]:
        """Every cut of every session with tools, at these shares of its tokens."""
        for session in self.retention.load(str(path)):
            # Of a session that was compacted only what came before is cut: behind it the agent
            # knew no more than the summary.
            uncut = session.get("messages") or session["pre"]
            messages = uncut + session.get("post", [])
            if not any(message.get("tool_calls") for message in uncut):
                continue
            for cut in self.retention.pick_cuts(uncut, cuts):
                before = messages[:cut]
                floor = self.retention.conv_tokens(self.baselines.floor(before, 0))
                tokens = self.retention.conv_tokens(before)
                yield Case(session["id"], session["source"], messages, cut, tokens, floor)

    def needed_in(self, case: Case) -> set[str]:
        """The identifiers that the session needed after the cut, as they may be written."""
        key = (case.name, case.cut)
        if key not in self.needed:
            self.needed[key] = self.retention.needed(case.messages, case.cut)[0]
        found = self.needed[key].items()
        return {way for name, how in found for way in self.retention.variants(name, how["kind"])}

    def score(self, case: Case, view: list[Message], budget: int) -> dict[str, Any]:
        """The benchmark's figures for a view; `gates` is whether it holds all of them."""
        found = self.retention.score(case.messages, view, case.cut, budget)
        kept = ("within_budget", "system_intact", "task_intact", "tail_intact", "tail_quarter")
        flaws = found["openai"] or found["anthropic"] or not found["pairs"]["ok"]
        gates = all(found[name] for name in kept) and not flaws
        return {**found, "gates": gates, "name": case.name, "source": case.source}

    def compactions(self, path: Path) -> Iterator[Compaction]:
        """Every recorded compaction, as a cut where it happened."""
        for found in self.retention.load(str(path)):
            before, summary = found["pre"], found["summary"]
            floor = self.baselines.floor(before, 0)
            said = self.retention.conv_tokens([{"role": "user", "content": summary}])
            yield Compaction(
                name=found["id"],
                source=found["source"],
                messages=before + found["post"],
                cut=len(before),
                tokens=said,
                floor=self.retention.conv_tokens(floor),
                summary=summary,
                bare=[*floor[:1], {"role": "user", "content": summary}, *floor[1:]],
            )


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


# ---------------------------------------------------------------- the ways to compress

Way = Callable[[Case, int], list[Message]]


def ours(case: Case, budget: int) -> list[Message]:
    """As it is shipped."""
    return retention.static(case.before, budget)


def told_of(needed: set[str]) -> CompressorConfig:
    """Settings to which these identifiers are a domain's own: they are worth all there is."""
    names = sorted(needed, key=len, reverse=True)
    pattern = "|".join(map(re.escape, names))
    told = {"needed": rf"(?<!\w)(?:{pattern})(?!\w)"} if names else {}
    return replace(retention.CONFIG, fact_patterns=told)


def foreseeing(bench: Bench) -> Way:
    """Ours, told which identifiers will be needed: as a domain's own they come first."""

    def way(case: Case, budget: int) -> list[Message]:
        config = told_of(bench.needed_in(case))
        compressor = ContextCompressor(config, tokens=retention.TOKENS)
        try:
            return compressor.compress_sync(case.before, target_tokens=budget).messages
        except BudgetTooSmall:
            return compressor.best_view(case.before, target_tokens=budget)

    return way


def repaired(bench: Bench, case: Compaction, times: float, oracle: bool) -> dict[str, Any]:
    """The scores of a recorded summary, repaired within so many times its tokens."""
    budget = int(case.floor + case.tokens * times)
    config = told_of(bench.needed_in(case)) if oracle else retention.CONFIG
    view = retention.with_summary(case.before, case.summary, budget, config)
    whole = any(case.summary.strip() in text_of(message) for message in view)
    return {**bench.score(case, view, budget), "whole": whole}


# ---------------------------------------------------------------- the table


def average(rows: Sequence[dict[str, Any]], measure: str) -> float | None:
    """The mean over the cuts that have the measure."""
    values = [row[measure] for row in rows if row[measure] is not None]
    return mean(values) if values else None


def interval(rows: Sequence[dict[str, Any]], measure: str) -> tuple[float, float] | None:
    """The middle 95 % of the mean, conversations drawn with replacement; None for one alone."""
    by_name: dict[str, list[float]] = {}
    for row in rows:
        if row[measure] is not None:
            by_name.setdefault(row["name"], []).append(row[measure])
    groups = list(by_name.values())
    if len(groups) < 2:
        return None
    chance = random.Random(SEED)
    means = []
    for _ in range(DRAWS):
        drawn = [value for _ in groups for value in chance.choice(groups)]
        means.append(mean(drawn))
    means.sort()
    return means[int(DRAWS * 0.025)], means[int(DRAWS * 0.975) - 1]


def shown(rows: Sequence[dict[str, Any]], measure: str, *, spread: bool = True) -> str:
    """A mean with its interval, for a cell."""
    middle = average(rows, measure)
    if middle is None:
        return "-"
    between = interval(rows, measure) if spread else None
    return f"{middle:.3f}" + (f" [{between[0]:.2f}, {between[1]:.2f}]" if between else "")


def table_of(budget: float, found: dict[str, list[dict[str, Any]]]) -> Table:
    """One budget's table: ours by source, then all ways over all sources."""
    first = next(iter(found))
    table = Table("sessions", "cuts", "deep", "deep + bound", "user", "gates")
    table.title = f"{budget:.0%} of the tokens"
    for source in sorted({row["source"] for row in found[first]}):
        rows = [row for row in found[first] if row["source"] == source]
        table.add_row(source, *_cells(rows))
    table.add_section()
    for name, rows in found.items():
        table.add_row(f"all: {name}", *_cells(rows))
    oracle = found.get("oracle")
    if oracle is not None:
        far = [_distance(oracle, found[first], measure) for measure in MEASURES]
        table.add_row("from the oracle's line", "", *far, "")
    return table


def _cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    gates = mean(row["gates"] for row in rows)
    return [str(len(rows)), *_measures(rows), f"{gates:.0%}"]


def _measures(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [shown(rows, measure) for measure in MEASURES]


def _distance(best: Sequence[dict[str, Any]], have: Sequence[dict[str, Any]], measure: str) -> str:
    top, low = average(best, measure), average(have, measure)
    return "-" if top is None or low is None else f"{low - top:+.3f}"


def measured(
    bench: Bench, cases: Sequence[Case], ways: dict[str, Way], budget: float
) -> dict[str, list[dict[str, Any]]]:
    """Every way's scores at one budget, over the cuts where the budget is a test."""
    fit = [case for case in cases if case.floor <= FEASIBLE * budget * case.tokens]
    return {
        name: [
            bench.score(case, way(case, int(case.tokens * budget)), int(case.tokens * budget))
            for case in fit
        ]
        for name, way in ways.items()
    }


def recorded_table(bench: Bench, cases: Sequence[Compaction]) -> Table:
    """Recorded summaries: bare, repaired, and repaired by who knows what will be needed."""
    table = Table("view", "deep", "deep + bound", "user", "whole")
    table.title = f"{len(cases)} recorded summaries as the model's"
    bare = [bench.score(case, list(case.bare), case.floor + case.tokens) for case in cases]
    table.add_row("the summary, and what all keep", *_measures(bare))
    for times in (1, 1.25, 1.5):
        table.add_section()
        ours = [repaired(bench, case, times, oracle=False) for case in cases]
        best = [repaired(bench, case, times, oracle=True) for case in cases]
        for name, rows in (("ours", ours), ("oracle", best)):
            whole = sum(row["whole"] for row in rows)
            table.add_row(f"{times} x: {name}", *_measures(rows), str(whole))
        far = [_distance(best, ours, measure) for measure in MEASURES]
        table.add_row("from the oracle's line", *far)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--file", type=Path, help="recorded sessions, to be cut")
    which.add_argument("--recorded", type=Path, help="recorded compactions with their summaries")
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--budgets", default=".1,.25,.5")
    parser.add_argument("--fast", action="store_true", help="ours alone, without the oracle")
    parser.add_argument("--cuts", default=",".join(map(str, CUTS)), help="shares of a session")
    given = parser.parse_args()
    bench = bench_of(given.file or given.recorded, given.bench)
    logging.disable(logging.WARNING)
    if given.recorded:
        compactions = list(bench.compactions(given.recorded))
        Console(width=130).print(recorded_table(bench, compactions))
        return
    cases = list(bench.cases(given.file, tuple(map(float, given.cuts.split(",")))))
    ways: dict[str, Way] = {"ours": ours}
    if not given.fast:
        ways["oracle"] = foreseeing(bench)
    for budget in map(float, given.budgets.split(",")):
        Console(width=130).print(table_of(budget, measured(bench, cases, ways, budget)))


if __name__ == "__main__":
    main()
