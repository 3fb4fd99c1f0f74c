"""Learn a model's window, and a correction of our counts.

After a refusal a smaller request is tried. If the smaller request passes, the window is lowered. An
unconfirmed window is raised later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import NamedTuple

from .refusals import SMALLEST_WINDOW, Overflow

logger = logging.getLogger(__name__)

UPWARD_AFTER_REQUESTS = 50
"""Passed requests before a larger window is tried; quadrupled after each try."""


def taught_window(refusal: Overflow, sent: int, answer_tokens: int = 0, passed: int = 0) -> int:
    """Return the window that a refusal teaches, in tokens by our count.

    Without a number the window is half of `sent`. If `passed` is between this half and `sent`, the
    window is the mean of `passed` and `sent`. `answer_tokens` are added.
    """
    if refusal.window is not None:
        return round(refusal.window * sent / (refusal.prompt_tokens or sent))
    return (sent + (passed if passed < sent < 2 * passed else 0)) // 2 + answer_tokens


class SummarizerWindows:
    """The smallest window that refusals taught, by model."""

    def __init__(self) -> None:
        self._windows: dict[str | None, int] = {}

    def of(self, model: str | None) -> int | None:
        """Return the model's learned window, or None."""
        return self._windows.get(model)

    def learn(self, model: str | None, window: int) -> None:
        """Lower the model's window."""
        # The smaller window counts: two summaries of one model may be refused at once.
        self._windows[model] = min(window, self._windows.get(model, window))


@dataclass(frozen=True)
class Trial:
    """A smaller window, tried after a refusal."""

    former_window: int
    refusal: Overflow
    sent: int
    prompt_tokens: int | None
    """The provider's count of the first refused request."""


class WindowLearner:
    """Learn one model's window, in tokens by our count."""

    def __init__(self, listed: int) -> None:
        self.window = self.listed = listed
        self.floor = min(SMALLEST_WINDOW, listed // 2)
        self.trial: Trial | None = None
        self._largest = 0  # tokens of the largest request that passed
        self._named: int | None = None
        self._is_confirmed = True
        self._upward_after = self._passes_left = UPWARD_AFTER_REQUESTS

    def learn_refusal(self, refusal: Overflow, sent: int) -> int | None:
        """Return the window to try after a refusal, or None.

        After an uncertain refusal a smaller request is tried, then perhaps a request as small as
        the floor. If the last request is refused too, length was not the cause.
        """
        is_last_try = self.trial is not None and not refusal.certain
        if is_last_try and (self.window <= self.floor or sent < 2 * self._largest):
            return None
        window = self.floor if is_last_try else taught_window(refusal, sent, passed=self._largest)
        first = self.trial or Trial(self.window, refusal, sent, refusal.prompt_tokens)
        self.trial = replace(first, refusal=refusal, sent=sent)
        self.window = max(min(window, self.window), self.floor)
        return self.window

    def learn_pass(self, sent: int) -> int | None:
        """Learn from a request that passed; return the window if that changed."""
        trial, self.trial = self.trial, None
        before, self._largest = self._largest, max(self._largest, sent)
        if trial is not None:
            named = trial.refusal.window
            low = max(sent, before if before < trial.sent else 0)
            # The geometric mean is tried: with distant bounds the arithmetic mean is usually
            # refused again.
            window = isqrt(low * trial.sent) if named is None else named
            self._is_confirmed = trial.refusal.confirmed or (
                named is not None and named == self._named
            )
            self._named, self._passes_left = named, self._upward_after
        elif not self._is_confirmed and self.window < self.listed:
            self._passes_left -= 1
            if self._passes_left > 0:
                return None
            self._upward_after *= 4
            self._passes_left, window = self._upward_after, 2 * self.window
        else:
            return None
        self.window = max(min(window, self.listed), self.floor)
        return self.window

    def lower_until(self, refuses: Callable[[int], bool]) -> None:
        """Halve the window until `refuses(window)`, down to the floor."""
        while self.window > self.floor and not refuses(self.window):
            self.window = max(self.window // 2, self.floor)

    def cancel_trial(self) -> None:
        """Return to the window before the trial."""
        if self.trial is not None:
            self.window, self.trial = self.trial.former_window, None

    def learn_truncation(self, window: int) -> None:
        """Learn the size to which a server cuts requests."""
        self.window, self._is_confirmed = min(window, self.window), True


# -------------------------------------------------------------- the factor of our counts

EXACT_TOLERANCE = 0.02
"""Largest deviation of a report's ratio from 1 if we count exactly."""
LEAST_RATIO = 0.75
"""Lowest ratio of a report to our count; lower reports leave out a cached or truncated part."""
MOST_RATIO = 4
"""A higher ratio of a report to our count needs a second report."""

FLAT_REPORTS, FLAT_GROWTH = 3, 1.02
"""A server truncates if this many reports are equal while requests grow by this factor."""


class _Run(NamedTuple):
    """Equal reports for growing requests."""

    reported: int
    counted: int
    """Our count of the newest request."""
    length: int
    sums_before: tuple[float, float]


class Calibration:
    """Learn the factor from our counts to a provider's reports."""

    def __init__(self, exact: bool) -> None:
        """Create one; `exact`: whether the vocabulary is the model's own."""
        self.factor = 1.0
        self._exact = exact
        # Sums of counts and of reports; older counts and reports have less weight.
        self._sums = (0.0, 0.0)
        self._doubted = False
        self._run: _Run | None = None

    def learn(self, counted: int, reported: int) -> int | None:
        """Learn from a report; return the size of truncated requests, or None.

        The newest report weighs most. An implausible report (`LEAST_RATIO`, `MOST_RATIO`) corrects
        nothing, nor does a report of a server that truncates requests.
        """
        run = self._extend_run(counted, reported)
        if run.length > 1:
            return run.reported if run.length >= FLAT_REPORTS else None
        least = 1 - EXACT_TOLERANCE if self._exact else LEAST_RATIO
        was_doubted, self._doubted = self._doubted, reported > counted * MOST_RATIO
        if reported < counted * least or (self._doubted and not was_doubted):
            logger.debug("%d counted, %d reported: not learned", counted, reported)
            return None
        # A report far above the earlier reports replaces them.
        is_measure = reported <= counted * MOST_RATIO * self.factor
        counts, reports = self._sums if is_measure else (0.0, 0.0)
        self._correct((counts / 2 + counted, reports / 2 + reported))
        return None

    def _extend_run(self, counted: int, reported: int) -> _Run:
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
        # For an exact vocabulary a factor near 1 is noise.
        self.factor = 1.0 if self._exact and factor < 1 + EXACT_TOLERANCE else factor
