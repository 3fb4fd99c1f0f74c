"""What auxiliary models can read: as their tables say, less where one of them has refused.

A table may not know a deployment: a proxy, a server started with a smaller context. What the
provider says about it is believed for as long as the compressor lives.
"""

from __future__ import annotations

import logging
import threading

from .forks import renewed
from .overflow import overflow_of

__all__ = ["Windows"]

logger = logging.getLogger(__name__)

LEAST_WINDOW = 2_000
"""Tokens below which the question and the answer leave no room for a part worth its call: a refusal
that says so is about something else, or this model is of no use."""


class Windows:
    """The windows that refusals told of, by model; thread-safe."""

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._learned: dict[str | None, int] = {}

    def of(self, model: str | None, listed: int | None) -> int | None:
        """Tokens that the model reads and writes at most; None: any number.

        `listed` is what its table says.
        """
        with self._lock:
            learned = self._learned.get(model)
        known = [window for window in (learned, listed) if window is not None]
        return min(known, default=None)

    def learn(self, model: str | None, error: Exception, *, sent: int, most: int) -> None:
        """Take a smaller window from the refusal of a request that was too long.

        `sent` are the tokens that we counted in it, `most` those that its answer might have.
        """
        window = _told(error, sent, most)
        if window is None or window < LEAST_WINDOW:
            return
        with self._lock:
            before = self._learned.get(model)
            if before is not None and before <= window:
                return
            self._learned[model] = window
        logger.warning(
            "%s refused a request of %d tokens as too long; its window is now taken as %d tokens",
            model or "the auxiliary model",
            sent,
            window,
        )


def _told(error: Exception, sent: int, most: int) -> int | None:
    """The window that a refusal tells of, in tokens as we count them; None: it is about other
    things.

    Where it names none, or one that the request was within: room for half of what was sent.
    """
    refused = overflow_of(error)
    if refused is None:
        return None
    half = sent // 2 + most
    window = refused.window
    if window is None:
        return half
    # Models that think are allowed a longer answer than we reckon with.
    window -= max(0, (refused.answer or 0) - most)
    if refused.asked is not None and refused.asked > sent:
        window = window * sent // refused.asked  # it counts more in the same words than we do
    return window if 0 < window < sent + most else half
