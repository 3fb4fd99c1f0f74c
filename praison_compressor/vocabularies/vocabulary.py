"""What counts a text's tokens: one vocabulary, in bounded time whatever the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .threads import CountAll, Counting

__all__ = ["EXACT_CHARS", "PIECE_CHARS", "Count", "CountAll", "Vocabulary", "pieces"]

Count = Callable[[str], int]
"""Tokens of a text; literal special tokens in it are ordinary text."""

PIECE_CHARS = 65_536
"""Longer texts are cut: tiktoken panics on a million spaces, and slows on other long runs."""

EXACT_CHARS = 4_000_000
"""Beyond this (about a million tokens, more than a window) a text is sampled, not read whole."""

SAMPLES = 16


@dataclass(frozen=True)
class Vocabulary:
    """How a model's text becomes tokens."""

    source: str
    """For a person: which vocabulary, and whether it is the model's own."""
    exact: bool
    """Whether it is the model's own."""
    count_piece: Count
    """Counts at most PIECE_CHARS characters at once."""
    by: str = ""
    """For a person: the library that counts. Counts do not depend on it."""
    count_pieces: CountAll | None = None
    """Counts many of such texts; None: it has no way that is sooner."""

    def count(self, text: str) -> int:
        """Tokens of `text`, in bounded time; literal special tokens are ordinary text."""
        if len(text) <= PIECE_CHARS:
            return self.count_piece(text)
        if len(text) > EXACT_CHARS:
            return self._sampled(text)
        return sum(map(self.count_piece, pieces(text)))

    def begin(self, texts: Sequence[str]) -> Counting:
        """Begin to count each of them, in other threads while this one has something to do."""
        return Counting(texts, self._count_share)

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """`count` of each of them."""
        return self.begin(texts).counts()

    def _count_share(self, texts: Sequence[str]) -> list[int]:
        if self.count_pieces is None:
            return list(map(self.count, texts))
        counts = iter(self.count_pieces([text for text in texts if len(text) <= PIECE_CHARS]))
        return [next(counts) if len(text) <= PIECE_CHARS else self.count(text) for text in texts]

    def _sampled(self, text: str) -> int:
        step = len(text) // SAMPLES
        samples = [text[start : start + PIECE_CHARS] for start in range(0, len(text), step)]
        tokens = sum(map(self.count_piece, samples))
        return round(tokens * len(text) / sum(map(len, samples)))


# Here a vocabulary's own pattern always starts a new piece, so that a cut changes no count:
# before a word at the start of a line; between a word and one mark that leads the next word;
# between letters and digits.
_SEAM = re.compile(
    r"(?<=\n)(?=[^\W_])"
    r"|(?<=[^\W_])(?=[ ,.;:、。，；：！？(-][^\W\d_])"
    r"|(?<=[^\W\d_])(?=\d)"
)


def pieces(text: str) -> Iterator[str]:
    """`text` in parts of at most PIECE_CHARS, cut where a token ends if there is such a place."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = _last_seam(text, start, start + PIECE_CHARS)
        yield text[start:end]
        start = end
    yield text[start:]


def _last_seam(text: str, start: int, end: int) -> int:
    reach = 256
    while reach < PIECE_CHARS:
        seams = [m.start() for m in _SEAM.finditer(text, end - reach, end)]
        if seams:
            return seams[-1]
        reach *= 16
    return end
