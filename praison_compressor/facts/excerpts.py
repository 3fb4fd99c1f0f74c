"""Cuts a transcript into verbatim clauses, each with the identifiers that it binds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .identifiers import Classifier
from .model import Excerpt
from .reading import Passage

CLAUSE_CHARS = 240
# What a tool prints before each line: a number that means nothing away from the file.
_GUTTER = re.compile(r"^\s*\d+(?:→|\t|[:|-](?=\s))\s?", re.M)
_BREAK = re.compile(r"(?<=[.;!?])\s+|(?<=,)\s+|(?<=[}\])])\s*,")


def clauses(passage: Passage) -> Iterator[str]:
    """The passage in verbatim runs of at most CLAUSE_CHARS, cut where a line or sentence ends.

    Neighbouring lines stay together: the words that explain a name often stand on the next line.
    """
    text = f"{passage.lead} {passage.text}" if passage.lead else passage.text
    if passage.source == "result":
        text = _GUTTER.sub("", text)
    run = ""
    for line in text.splitlines():
        flat = " ".join(line.split())
        if not flat:
            continue
        if len(run) + len(flat) < CLAUSE_CHARS:
            run = f"{run} {flat}" if run else flat
            continue
        if run:
            yield run
        if len(flat) > CLAUSE_CHARS:
            *whole, flat = _pieces(flat)
            yield from whole
        run = flat
    if run:
        yield run


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > CLAUSE_CHARS:
        window = line[start : start + CLAUSE_CHARS]
        cut = max((found.end() for found in _BREAK.finditer(window)), default=0)
        if cut < CLAUSE_CHARS // 3:
            cut = window.rfind(" ") + 1 or CLAUSE_CHARS
        yield line[start : start + cut].strip()
        start += cut
    yield line[start:].strip()


def excerpts_of(
    passage: Passage, classifier: Classifier
) -> Iterator[tuple[Excerpt, dict[str, str]]]:
    """The clauses of the passage that hold an identifier, with the kind of each."""
    for text in clauses(passage):
        names = classifier.names(text)
        if names:
            yield Excerpt(passage.at, passage.source, text, tuple(names)), names
