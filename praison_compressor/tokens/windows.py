"""Learn a model's window from passed and refused requests.

A refusal is answered by one smaller request. If the smaller request passes, the refusal teaches a
window; otherwise it teaches nothing. A window that no refusal confirmed is tried upward later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt

from .refusals import SMALLEST_WINDOW, Overflow

UPWARD_AFTER = 50
"""Passing requests before a larger window is tried; quadrupled after each try."""


def taught_window(refusal: Overflow, sent: int, answer_tokens: int = 0, passed: int = 0) -> int:
    """Return the window that a refusal teaches, in tokens by our count.

    Without a number in the refusal: the answer's tokens, and half of the request. If `passed`, the
    largest passed request, exceeds this half: the middle between `passed` and the request.
    """
    if refusal.window is not None:
        return round(refusal.window * sent / (refusal.prompt_tokens or sent))
    return (sent + (passed if passed < sent < 2 * passed else 0)) // 2 + answer_tokens


class LearnedWindows:
    """The smallest window that refusals taught, by model."""

    def __init__(self) -> None:
        self._windows: dict[str | None, int] = {}

    def of(self, model: str | None) -> int | None:
        """Return the model's learned window, or None."""
        return self._windows.get(model)

    def learn(self, model: str | None, window: int) -> None:
        """Lower the model's window to this one, if it is smaller."""
        # Two summaries of one model may be refused at once.
        self._windows[model] = min(window, self._windows.get(model, window))


@dataclass(frozen=True)
class Trial:
    """A smaller window that is being tried after a refusal."""

    former_window: int
    """The window before the first refusal."""
    refusal: Overflow
    sent: int
    """Our count of the refused request."""
    prompt_tokens: int | None
    """The provider's count of the first refused request."""


class LearnedWindow:
    """One model's window, in tokens by our corrected count."""

    def __init__(self, listed: int) -> None:
        self.window = self.listed = listed
        self.floor = min(SMALLEST_WINDOW, listed // 2)
        self.trial: Trial | None = None
        self._largest = 0  # of the requests that passed
        self._named: int | None = None
        self._is_confirmed = True
        self._upward_after = self._passes_left = UPWARD_AFTER

    def learn_refusal(self, refusal: Overflow, sent: int) -> int | None:
        """Return the window to try after a refusal, or None.

        An uncertain refusal gets one smaller request. If that is refused too, and was at least
        twice the largest passed size, a request at the floor decides whether length was the cause.
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
            # Between bounds far apart the middle would mostly be refused again.
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
        """Halve the window until it refuses the request, or is the floor."""
        while self.window > self.floor and not refuses(self.window):
            self.window = max(self.window // 2, self.floor)

    def cancel_trial(self) -> None:
        """Return to the window before a trial that did not pass."""
        if self.trial is not None:
            self.window, self.trial = self.trial.former_window, None

    def learn_truncation(self, window: int) -> None:
        """Take the size to which a server silently cuts its requests."""
        self.window, self._is_confirmed = min(window, self.window), True
