"""Whatever a summarizer does: a valid view, the right fallback, nothing bad stored, one bill."""

from __future__ import annotations

import pytest

from tests.hostile.faults import Fault, expected_row, faults, observe


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_summarizer_that_misbehaves(fault: Fault) -> None:
    """The row of the table: method, calls, no second bill, the fallback model, nothing stored."""
    observed = observe(fault)
    assert observed.row() == expected_row(fault)
    assert fault.reason.lower() in observed.reason.lower()
    assert bool(observed.reason) == bool(fault.reason)
