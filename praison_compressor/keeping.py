"""Outputs that a policy keeps verbatim yield to the window: the oldest first, as few as it asks.

Pure. A policy is a wish, the window is not; what is still wanted most is the newest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from .errors import BudgetTooSmall
from .layout import Layout
from .plan import Plan

__all__ = ["planned"]

Decide = Callable[[Layout], "Plan | None"]


def planned(layout: Layout, decide: Decide) -> Plan | None:
    """What `decide` says of the layout; where the window would burst, with fewer messages kept.

    So many yield that the view comes down to its target: were it only to the limit, each of the
    next turns would be a compression of its own.

    Raises:
        BudgetTooSmall: what cannot be dropped exceeds the limit.
    """
    if not layout.kept:
        return decide(layout)
    steps = _kept_steps(layout)

    def without(oldest: int) -> Layout:
        return replace(layout, kept=frozenset(chain.from_iterable(steps[oldest:])))

    def is_enough(oldest: int) -> bool:
        with suppress(BudgetTooSmall):
            found = decide(without(oldest))
            return found is None or not found.is_short
        return False

    # The more yield, the lower the view comes: the fewest that are enough are found by halves.
    fewest = 0 if is_enough(0) else bisect_left(range(1, len(steps)), True, key=is_enough) + 1
    return decide(without(fewest))


def _kept_steps(layout: Layout) -> list[range]:
    """The steps that are kept, the oldest first; none that a summary stands for already."""
    gone = {i for t in layout.tiles if t.segment is not None for i in range(t.start, t.end)}
    return [
        step
        for step in layout.transcript.steps
        if step.start in layout.kept and gone.isdisjoint(step)
    ]
