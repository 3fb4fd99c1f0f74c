"""Learn from a provider's reports by which factor our counts are wrong."""

from __future__ import annotations

import logging
from typing import NamedTuple

logger = logging.getLogger(__name__)

EXACT_TOLERANCE = 0.02  # share by which reports differ from the count of a model's own vocabulary
LEAST_RATIO = 0.75
"""Lowest ratio of a report to our count that another tokenizer explains.

Lower reports leave out a cached part, or what the server cut off."""
MOST_RATIO = 4
"""Highest ratio that one report may teach; a higher one needs a second report."""

FLAT_REPORTS, FLAT_GROWTH = 3, 1.02
"""Equal reports that show a truncating server, each for a request larger by this factor."""


class _Run(NamedTuple):
    """Equal reports of a provider for growing requests."""

    reported: int
    counted: int
    """Our count of the newest request."""
    length: int
    sums_before: tuple[float, float]


class Calibration:
    """The factor between a provider's reports and our counts, else 1.0."""

    def __init__(self, exact: bool) -> None:
        """Create one; `exact` if we count by the model's own vocabulary."""
        self.factor = 1.0
        self._exact = exact
        # Of our counts and the provider's reports; older ones weigh less.
        self._sums = (0.0, 0.0)
        self._doubted = False
        self._run: _Run | None = None

    def learn(self, counted: int, reported: int) -> int | None:
        """Learn from a report; return the size of cut requests, or None.

        The newest report weighs most. A report that no tokenizer explains is ignored: below
        LEAST_RATIO of the count, below the count by the model's own vocabulary, or the first above
        MOST_RATIO. Equal reports for growing requests come from a server that silently cuts
        requests: they correct nothing.
        """
        run = self._extend_run(counted, reported)
        if run.length > 1:
            return run.reported if run.length >= FLAT_REPORTS else None
        least = 1 - EXACT_TOLERANCE if self._exact else LEAST_RATIO
        was_doubted, self._doubted = self._doubted, reported > counted * MOST_RATIO
        if reported < counted * least or (self._doubted and not was_doubted):
            logger.debug("%d counted, %d reported: not learned", counted, reported)
            return None
        # Earlier reports are no measure if this one is far above them.
        is_measure = reported <= counted * MOST_RATIO * self.factor
        counts, reports = self._sums if is_measure else (0.0, 0.0)
        self._correct((counts / 2 + counted, reports / 2 + reported))
        return None

    def _extend_run(self, counted: int, reported: int) -> _Run:
        """Return the run of equal reports that ends with this one."""
        run = self._run
        if run is None or abs(reported - run.reported) > max(1, reported // 500):
            run = _Run(reported, counted, 1, self._sums)
        elif counted > run.counted * FLAT_GROWTH:
            run = run._replace(counted=counted, length=run.length + 1)
            self._correct(run.sums_before)
        self._run = run
        return run

    def _correct(self, sums: tuple[float, float]) -> None:
        counts, reports = self._sums = sums
        factor = reports / counts if counts else 1.0
        # An exact counter lacks only what the provider adds; a factor near 1 would be noise.
        self.factor = 1.0 if self._exact and factor < 1 + EXACT_TOLERANCE else factor
