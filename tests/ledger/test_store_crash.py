"""Writers that are killed, and writers that race: a short share of `tests/benchmarks`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.crash import crash
from tests.benchmarks.races import race

pytest_plugins = ["tests.helpers.stores"]


def test_a_killed_writer_leaves_a_whole_ledger(store_url: str) -> None:
    """What was acknowledged is there, nothing is half there, and the next writer goes on."""
    outcome = crash(store_url, kills=8, seed=7, every=4)
    assert outcome.lost == []
    assert outcome.faults == []
    assert outcome.without_archive == 0
    assert outcome.acknowledged >= 8


@pytest.mark.parametrize(("processes", "sessions"), [(4, 1), (2, 4)])
def test_a_segment_costs_one_call_however_many_race(
    store_url: str, tmp_path: Path, processes: int, sessions: int
) -> None:
    """Processes that send the same conversations pay once for each segment and see one view."""
    found = race(store_url, processes, sessions, tmp_path)
    assert found.sessions == sessions
    assert found.calls == found.segments > 0
    assert found.views == 1
    assert found.faults == []
