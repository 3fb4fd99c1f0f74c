"""Many texts counted side by side, by a library that works without the interpreter's lock."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

__all__ = ["CountAll", "Counting"]

logger = logging.getLogger(__name__)

CountAll = Callable[[Sequence[str]], "list[int]"]
"""Tokens of each of many texts."""

MOST_WORKERS = 4

LEAST_SHARE = 16_384
"""Characters: about a millisecond's work. A thread that comes back from less waits for the lock."""


def _workers() -> int:
    """How many threads may count at once."""
    return min(os.cpu_count() or 1, MOST_WORKERS)


class Counting:
    """Texts that threads of their own count, while whoever began it has something else to do.

    As many threads as may count at once, so that it waits for no work of its own: a system leaves
    one new thread on its maker's processor for long. Whoever reads messages meanwhile holds the
    interpreter's lock, and a thread that wants it back waits 5 ms: so the shares are large at
    first, and small at the end, for none to wait long for the last one.
    """

    def __init__(self, texts: Sequence[str], count_all: CountAll) -> None:
        self._texts = texts
        self._count_all = count_all
        self._sizes = [0] * len(texts)
        self._failures: deque[BaseException] = deque()
        threads = _workers()
        self._shares = deque(_shares([len(text) for text in texts], 2 * threads))
        wanted = min(threads, len(self._shares))
        self._threads = list(self._started(wanted)) if wanted > 1 else []

    def _started(self, number: int) -> Iterator[threading.Thread]:
        for n in range(number):
            name = f"praison-compressor-tokens-{n}"
            # No daemon: one that an interpreter's end cuts off inside a library can abort it.
            thread = threading.Thread(target=self._work, name=name)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads, or the interpreter is about to end
                logger.debug("texts are counted without a thread: %s", error)
                return
            yield thread

    def counts(self) -> list[int]:
        """Tokens of each text, in their order.

        Raises:
            BaseException: whatever the library raised.
        """
        for thread in self._threads:
            thread.join()
        self._work()  # all that is left where no thread could be had
        if self._failures:
            raise self._failures[0]
        return self._sizes

    def by_text(self) -> dict[str, int]:
        """The same, by text.

        Raises:
            BaseException: whatever the library raised.
        """
        return dict(zip(self._texts, self.counts(), strict=True))

    def _work(self) -> None:
        try:
            while (share := self._next()) is not None:
                self._sizes[share] = self._count_all(self._texts[share])
        except BaseException as error:
            self._failures.append(error)

    def _next(self) -> slice | None:
        try:
            return self._shares.popleft()
        except IndexError:
            return None


def _shares(lengths: Sequence[int], divisor: int) -> Iterator[slice]:
    """Stretches of the texts, each a part of what is left of them: large first, small at last."""
    left, start, taken = sum(lengths), 0, 0
    for end, reached in enumerate(accumulate(lengths), 1):
        if reached - taken >= max(LEAST_SHARE, (left - taken) // divisor):
            yield slice(start, end)
            start, taken = end, reached
    if start < len(lengths):
        yield slice(start, len(lengths))
