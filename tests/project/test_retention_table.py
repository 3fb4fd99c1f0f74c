"""The retention table: what it counts, and what it says where there is nothing to count."""

from __future__ import annotations

from tests.benchmarks.retention_table import average


def rows(*values):
    return [{"name": name, "deep": value} for name, value in values]


def test_a_cut_without_the_measure_does_not_count():
    """Nothing was needed there: neither a hit nor a miss."""
    found = rows(("a", None), ("b", 0.5), ("c", 1.0))
    assert average(found, "deep") == 0.75
    assert average(rows(("a", None)), "deep") is None
