"""The retention table: what it counts, and what it says where there is nothing to count."""

from __future__ import annotations

from tests.benchmarks import retention
from tests.benchmarks.retention_table import average, told_of


def rows(*values):
    return [{"name": name, "deep": value} for name, value in values]


def test_a_cut_without_the_measure_does_not_count():
    """Nothing was needed there: neither a hit nor a miss."""
    found = rows(("a", None), ("b", 0.5), ("c", 1.0))
    assert average(found, "deep") == 0.75
    assert average(rows(("a", None)), "deep") is None


def test_the_oracle_is_told_what_will_be_needed_and_keeps_it():
    """The line that nobody can pass: what is told survives where ours, untold, spends its room on
    other names."""
    names = [f"handle_{word}_request" for word in "alpha beta gamma delta omega".split()]
    asked = [{"role": "user", "content": f"Look into part {n}."} for n in range(200)]
    talk = [{"role": "system", "content": "You are a coding agent."}]
    for n, question in enumerate(asked):
        said = f"Part {n} uses {names[n % 5]}_{n} and its neighbours for the queue of part {n}."
        talk += [question, {"role": "assistant", "content": said * 4}]
    talk.append({"role": "user", "content": "Go on."})
    wanted = "handle_gamma_request_17"
    summary = "Parts were looked into. " * 4
    budget = 400
    untold = str(retention.with_summary(talk, summary, budget))
    told = str(retention.with_summary(talk, summary, budget, told_of({wanted})))
    assert wanted not in untold
    assert wanted in told
