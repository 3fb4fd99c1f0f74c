"""Figures that are counts, not times: what the benchmarks print is also a promise."""

import pkgutil
import re
import runpy
import sys
from dataclasses import replace

import pytest

from praison_compressor import Bill, CompressorConfig, RequestUsage, Usage
from praison_compressor.compressor.decision import SOFT_RATIO
from praison_compressor.view.budget import CROWDED_SHARE, Budget
from tests import benchmarks
from tests.benchmarks import oracle, rounds
from tests.helpers.readme_tables import DOCS, HOW
from tests.helpers.transcripts import find_repairs


def test_an_oracle_is_shown_every_planted_fact_and_none_is_lost():
    """With an oracle every planted fact survives two rounds: first exchange, user, tool results."""
    first, second = oracle.rounds(oracle.oracle)
    assert oracle.count_kept(first) == ("2/2", "30/30", "30/30")
    assert oracle.count_kept(second) == ("2/2", "30/30", "30/30")
    assert oracle.count_kept(second, 2) == ("2/2", "30/30", "30/30")
    assert find_repairs(first) == find_repairs(second) == []


@pytest.mark.parametrize("setting", rounds.SETTINGS)
def test_nine_rounds_lose_no_constraint_and_no_file_of_the_first(setting):
    """Nine rounds in any setting keep constraints, files and originals of the first."""
    results, ours = rounds.play(rounds.SETTINGS[setting])
    constraints, files = rounds.score(results[-1].messages)
    assert constraints == len(rounds.CONSTRAINTS)
    assert files >= 0.95 * len(rounds.planted_files())
    assert ours.verbatim(results[-1].messages) == rounds.session(rounds.ROUNDS)


def test_the_marks_of_the_page_are_those_of_the_code():
    """Each mark of how-it-works.md has the tokens of the default options at a window of 128,000."""
    config = CompressorConfig()
    budget = Budget.of(config, window=128_000)
    marks = {
        "usable window": budget.limit,
        "end of waiting": (budget.trigger + budget.limit) // 2,
        "trigger": budget.trigger,
        "background": int(budget.trigger * SOFT_RATIO),
        "masks": budget.mark_at(budget.mask_reach),
        "crowded": int(budget.trigger * CROWDED_SHARE),
        "target": budget.target,
        "cold trigger": int(budget.trigger * config.idle_trigger_ratio),
    }
    rows = re.findall(r"^\| \**([a-z ]+)\** \| ([\d,]+) \|", HOW.read_text("utf-8"), re.M)
    assert {name: int(tokens.replace(",", "")) for name, tokens in rows} == marks


def test_the_bill_of_the_page_is_what_a_bill_prints():
    """The example of costs.md is the text of a bill with its numbers."""
    paid = RequestUsage(1_900_000, 1_600_000, completion_tokens=21_000)
    alone = RequestUsage(5_100_000, 4_700_000, completion_tokens=21_000)
    bill = replace(Bill.of(paid, alone, "gpt-4o-mini"), requests=42)
    bill = replace(bill, summaries=Usage(180_000, 3_100, cost=0.0289))
    lines = re.findall(r"^    (.*)", (DOCS / "costs.md").read_text("utf-8"), re.M)
    assert lines == bill.lines()


BENCHMARKS = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)} - {"common"}


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_benchmark_prints_its_options(name, monkeypatch, capsys):
    """Each benchmark prints its options."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, f"tests.benchmarks.{name}", raising=False)
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module(f"tests.benchmarks.{name}", run_name="__main__")
    assert f"python -m tests.benchmarks.{name}" in capsys.readouterr().out
