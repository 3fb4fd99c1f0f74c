"""The user's own words, verbatim; a later correction overrides an earlier value and says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .corrections import supersede
from .model import Said
from .reading import Passage
from .tongues import STANDING

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_UNSPACED_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


PASTE_CHARS = 1_500
PASTE_LINES = 15
PASTE_KEPT_CHARS = 2_000
OPENING_SENTENCES = 4


def sentences(text: str) -> list[str]:
    """The text's sentences and lines, whitespace flattened, empty ones left out."""
    ending = _SENTENCE if text.isascii() else _UNSPACED_SENTENCE
    parts = (" ".join(part.split()) for part in ending.split(text))
    return [part for part in parts if part]


def said(passages: Iterable[Passage]) -> tuple[Said, ...]:
    """One record per sentence of the user's, superseded ones marked."""
    out = [
        record for passage in passages if passage.source == "user" for record in _records(passage)
    ]
    return supersede(out)


def _records(passage: Passage) -> Iterator[Said]:
    """A long paste is the user's material, not the user's words: it comes after them."""
    long = len(passage.text) > PASTE_CHARS or passage.text.count("\n") > PASTE_LINES
    seen = 0
    for number, sentence in enumerate(sentences(passage.text)):
        seen += len(sentence) + 1
        pasted = 0 if not long or number < OPENING_SENTENCES else 1 + (seen > PASTE_KEPT_CHARS)
        if pasted and sentence.count(" ") < 2 and sentence.isascii():
            continue
        standing = not pasted and bool(STANDING.search(sentence))
        yield Said(passage.at, sentence, standing, pasted)
