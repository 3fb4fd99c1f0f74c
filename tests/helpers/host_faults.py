"""Expect the faults of older hosts, each by the tests that meet it.

`host_faults.tsv` has the newest tested release with a fault, whether a test that meets it may wait
for ever, the test's id below `tests/` (without parameters for all of a test's), and what the host
does wrong. A listed test must fail on those hosts (strict), so that the list cannot outlive its
faults; one that may wait for ever is not run there. `.ci/run hosts` runs every test of the host.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

_LINES = Path(__file__).with_suffix(".tsv").read_text("utf-8").splitlines()
FAULTS = [line.split("\t") for line in _LINES]


def is_old(until: str = "1.7.10") -> bool:
    """Whether the installed host is that release or one before it."""
    return Version(version("praisonaiagents")) <= Version(until)


def expect(items: Sequence[pytest.Item]) -> None:
    """Mark the collected tests that must fail on the installed host."""
    for until, hangs, test, reason in FAULTS:
        why = f"praisonaiagents <= {until}: {reason}"
        mark = pytest.mark.xfail(reason=why, strict=True, run=hangs != "hangs")
        for item in items if is_old(until) else ():
            name = item.nodeid.removeprefix("tests/")
            if test in (name, name.partition("[")[0]):
                item.add_marker(mark)
