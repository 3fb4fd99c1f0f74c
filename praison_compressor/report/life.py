"""Collects a session's life from a ledger, or from a transcript by living it again."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compressor import ContextCompressor
from ..facts import coverage, extract
from ..ledger import Entry, Epoch, Segment, Store, Usage
from ..messages import Message, read, text_of
from ..prompts import is_framed, rendering, unframe
from ..static import ADDED
from ..tokens import TokenCounter

__all__ = ["Card", "Life", "Point", "life_of_session", "life_of_transcript"]

MOST_POINTS = 600
"""A screen has no more columns, and a transcript lived again costs a call for each."""

LONGEST_TEXT = 20_000
"""Characters of one original on the page; a store keeps the rest."""


@dataclass(frozen=True)
class Point:
    """The context at one time, in tokens."""

    messages: int
    whole: int
    """Of everything said so far."""
    view: int
    """Of what was sent."""
    compressed: bool = False


@dataclass(frozen=True)
class Fact:
    """One kind of fact in a segment, and how many of them its text holds."""

    kind: str
    alone: int
    """In the model's own words."""
    held: int
    """With what a program added."""
    total: int


@dataclass(frozen=True)
class Card:
    """One segment beside what it stands for."""

    number: int
    epoch: str
    segment: Segment
    text: str
    added: str
    """What was added to a model's text because it lacked it."""
    originals: tuple[tuple[str, str], ...]
    """Role and text."""
    facts: tuple[Fact, ...] = ()
    standing: bool = True
    """Whether it is in the view now; a later summary may have taken its place."""

    @property
    def saved(self) -> int:
        """Tokens fewer than what it stands for."""
        return self.segment.source_tokens - self.segment.tokens


@dataclass(frozen=True)
class Life:
    """Everything the page tells."""

    title: str
    note: str
    points: tuple[Point, ...]
    cards: tuple[Card, ...]
    masks: tuple[Card, ...]
    epochs: tuple[Epoch, ...]
    forgotten: int = 0
    requests: bool = True
    """Whether the points are requests, so that their tokens add up to what was sent."""
    usage: Usage = field(default_factory=Usage)

    @property
    def compressions(self) -> int:
        """How often something was compressed."""
        return len({card.epoch for card in (*self.cards, *self.masks)})

    @property
    def not_sent(self) -> int:
        """Tokens that all requests together would have had more."""
        return sum(point.whole - point.view for point in self.points) if self.requests else 0


# ---------------------------------------------------------------- a transcript, lived again


def life_of_transcript(
    messages: Sequence[Any],
    compressor: ContextCompressor,
    *,
    title: str,
    session_id: str | None = None,
) -> Life:
    """The transcript sent as it grew, step by step, through the compressor.

    Raises:
        CompressorError: as `ContextCompressor.compress`.
    """
    session = session_id or compressor.session_id
    points = []
    epoch: str | None = None
    for end in _ends(messages):
        done = compressor.compress_sync(messages[:end], session_id=session)
        is_new = epoch is not None and done.session_id != epoch
        epoch = done.session_id
        points.append(Point(end, done.tokens_before, done.tokens_after, is_new))
    namespace = compressor.config.namespace
    note = "The transcript, sent again as it grew, with these options."
    life = life_of_session(compressor.store, namespace, session, compressor.tokens, title=title)
    return Life(
        title=title,
        note=note,
        points=tuple(points),
        cards=life.cards,
        masks=life.masks,
        epochs=life.epochs,
        forgotten=life.forgotten,
        usage=life.usage,
    )


def _ends(messages: Sequence[Any]) -> list[int]:
    """Where a request would have been sent: after each step of the transcript, not of a stub."""
    transcript = read(messages)
    ends = []
    for step in transcript.steps:
        origins = [o for o in (transcript.origins[index] for index in step) if o is not None]
        if origins:
            ends.append(max(origins) + 1)
    stride = -(-len(ends) // MOST_POINTS)
    return sorted({*ends[::stride], len(messages)}) if ends else [len(messages)]


# ---------------------------------------------------------------- a ledger


def life_of_session(
    store: Store, namespace: str, session_id: str, tokens: TokenCounter, *, title: str = ""
) -> Life:
    """What the ledger tells of a session.

    Raises:
        LedgerError: the store cannot be read, or has no such session.
    """
    # A store for one machine or many knows the whole family; the one in memory only the chain.
    epochs = getattr(store, "tree", store.lineage)(namespace, session_id)
    session = store.open(namespace, session_id)
    known = {
        number: (entry, store.originals(session, entry) or [])
        for number, entry in enumerate(session.entries, 1)
        if not entry.forgotten
    }
    found = [
        _card(number, entry, originals, session.entries)
        for number, (entry, originals) in known.items()
    ]
    usages = [entry.segment.usage for entry, _ in known.values()]
    return Life(
        title=title or session.id,
        note="What was compressed; the first exchange and the newest messages are in no store.",
        points=tuple(_archived_points(list(known.values()), tokens)),
        cards=tuple(card for card in found if card.segment.kind == "summary"),
        masks=tuple(card for card in found if card.segment.kind != "summary"),
        epochs=tuple(epochs),
        forgotten=len(session.entries) - len(known),
        requests=False,
        usage=functools.reduce(Usage.__add__, usages, Usage()),
    )


def _archived_points(
    entries: Sequence[tuple[Entry, Sequence[Message]]], tokens: TokenCounter
) -> Iterator[Point]:
    """The archive as it grew, message by message, and what stood for it after each entry."""
    standing: list[Segment] = []
    messages = whole = view = 0
    for entry, originals in entries:
        new = entry.segment
        known = {name for segment in standing for name in segment.run}
        for size in _sizes(new, originals, known, tokens):
            messages, whole, view = messages + 1, whole + size, view + size
            yield Point(messages, whole, view)
        standing = [s for s in standing if not set(s.run) <= set(new.run)] + [new]
        view = sum(segment.tokens for segment in standing)
        yield Point(messages, whole, view, compressed=True)


def _sizes(
    segment: Segment, originals: Sequence[Message], known: set[str], tokens: TokenCounter
) -> list[int]:
    """Tokens of each message that the segment is the first to represent."""
    if len(originals) != len(segment.run):  # a stub that repair put in has no original
        return [] if known & set(segment.run) else [segment.source_tokens]
    pairs = zip(segment.run, originals, strict=True)
    return [tokens.message(message) for name, message in pairs if name not in known]


def _card(
    number: int, entry: Entry, originals: Sequence[Message], entries: Sequence[Entry]
) -> Card:
    segment = entry.segment
    framed = is_framed(segment.rendered)
    whole = unframe(segment.rendered) if framed else text_of(segment.rendered)
    text, _, added = whole.partition(ADDED) if segment.method == "model" else (whole, "", "")
    standing = not any(_covers(other, segment) for other in entries[number:])
    return Card(
        number=number,
        epoch=entry.epoch,
        segment=segment,
        text=text.strip(),
        added=added.strip(),
        # What a later summary took over is shown there: a page must not hold everything twice.
        originals=tuple(_shown(originals)) if standing else (),
        facts=tuple(_facts(originals, text, whole)) if framed else (),
        standing=standing,
    )


def _covers(other: Entry, segment: Segment) -> bool:
    is_summary = not other.forgotten and other.segment.kind == "summary"
    return is_summary and set(segment.run) <= set(other.segment.run)


def _shown(originals: Sequence[Message]) -> Iterator[tuple[str, str]]:
    texts = rendering([dict(message) for message in originals])
    for message, text in zip(originals, texts, strict=True):
        cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
        yield str(message.get("role")), cut.partition("\n")[2] or cut


def _facts(originals: Sequence[Message], alone: str, whole: str) -> Iterator[Fact]:
    found = extract(list(originals))
    first, last = coverage(found, alone).by_kind, coverage(found, whole).by_kind
    for kind, (held, total) in last.items():
        yield Fact(kind.replace("_", " "), first.get(kind, (0, 0))[0], held, total)
