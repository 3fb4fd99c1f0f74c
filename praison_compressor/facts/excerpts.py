"""Cuts a transcript into verbatim clauses, each with the identifiers that it binds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .identifiers import Classifier
from .model import Excerpt
from .reading import Passage

CLAUSE_CHARS = 180
# What a tool prints before each line: a number that means nothing away from the file.
_GUTTER = re.compile(r"^\s*\d+(?:→|\t|[:|-](?=\s))\s?")
_BREAK = re.compile(r"(?<=[.;!?])\s+|(?<=,)\s+|(?<=[}\])])\s*,")


def clauses(passage: Passage) -> Iterator[str]:
    """The passage's lines without gutters; a long line in pieces of at most CLAUSE_CHARS."""
    for line in passage.text.splitlines():
        if passage.source == "result":
            line = _GUTTER.sub("", line)
        line = " ".join(line.split())
        if len(line) <= CLAUSE_CHARS:
            if line:
                yield line
        else:
            yield from _pieces(line)


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > CLAUSE_CHARS:
        window = line[start : start + CLAUSE_CHARS]
        cut = max((found.end() for found in _BREAK.finditer(window)), default=0)
        if cut < CLAUSE_CHARS // 3:
            cut = window.rfind(" ") + 1 or CLAUSE_CHARS
        yield line[start : start + cut].strip()
        start += cut
    if line[start:].strip():
        yield line[start:].strip()


def excerpts_of(passage: Passage, classifier: Classifier) -> Iterator[Excerpt]:
    """The clauses of the passage that hold at least one identifier."""
    for text in clauses(passage):
        keys = dict.fromkeys(key for key, _, _, _ in classifier.keys(text))
        if keys:
            yield Excerpt(passage.index, passage.source, text, tuple(keys))
