"""What a report tells of a session: its size over time, its summaries with their facts, its cost.

Read from a store, or found by sending a transcript again as it grew.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...compressor.context_compressor import ContextCompressor
from ...errors import SessionNotFound
from ...facts import coverage, extract
from ...ledger.outlines import in_order
from ...ledger.segments import FORGOTTEN, Entry, Epoch, Segment, Store, Usage, in_force
from ...messages import Message, content_digest, read, text_of
from ...messages.display import kind_in_words
from ...summaries.prompts import rendering
from ...summaries.static import ADDED
from ...summaries.validation import marks_of
from ...tokens.counter import TokenCounter
from ...tokens.models import input_price
from ...view.frame import is_framed, unframe

WHOLE = "The transcript that the store has, each step of it taken for a request."

ARCHIVED = "The store has not the whole transcript, so its size over time is not shown."

MOST_POINTS = 600
"""A screen has no more columns, and a transcript sent again costs a call for each."""

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


class Fact(NamedTuple):
    """One kind of fact in a segment: how many its text holds, and in the model's own words."""

    kind: str
    alone: int
    held: int
    total: int


@dataclass(frozen=True)
class Card:
    """One entry of the ledger beside what it stands for."""

    number: int
    segment: Segment
    epoch: str
    """The epoch that it opened."""
    standing: bool
    """Whether it is in the view now; a later summary may have taken its place."""
    text: str
    added: str
    """What was added to a model's text because it lacked it."""
    messages: Sequence[Message]
    """What it stands for."""
    facts: tuple[Fact, ...]
    marks: Sequence[tuple[str, str]] = ()
    """Claims that the originals do not bear out, each with its mark."""

    def originals(self) -> Iterator[tuple[str, str, str]]:
        """Reference, role and text of each message, where it is in the view.

        What a later summary took over is shown there: a page must not hold everything twice.
        """
        if self.standing:
            texts = rendering([dict(message) for message in self.messages])
            names = in_order(self.number, self.messages)
            for name, message, text in zip(names, self.messages, texts, strict=True):
                cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
                yield name, str(message.get("role")), cut.partition("\n")[2] or cut


@dataclass(frozen=True)
class Life:
    """Everything the page tells."""

    title: str
    note: str
    points: tuple[Point, ...] = ()
    """Of each request; none where the store has only what was compressed."""
    cards: tuple[Card, ...] = ()
    """Summaries."""
    masks: tuple[Card, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    forgotten: int = 0
    usage: Usage = field(default_factory=Usage)
    price: float | None = None
    """US dollars that the reading model's provider lists for one input token."""
    requests_of: Mapping[str, int] = field(default_factory=dict)
    """The request at which each epoch began."""

    @property
    def last(self) -> Point:
        """The last request; nothing where none is known."""
        return self.points[-1] if self.points else Point(0, 0, 0)

    @property
    def compressions(self) -> int:
        """How often something was compressed."""
        return len({card.epoch for card in (*self.cards, *self.masks)})

    @property
    def secrets(self) -> int:
        """How many keys and tokens are masked in the archive of what is in the view now."""
        cards = (*self.cards, *self.masks)
        return sum(card.segment.secrets for card in cards if card.standing)

    @property
    def not_sent(self) -> int:
        """Tokens that all requests together would have had more."""
        return sum(point.whole - point.view for point in self.points)

    @property
    def not_paid(self) -> float | None:
        """US dollars for those tokens at the listed price: a prompt cache makes them cheaper."""
        return self.price * self.not_sent if self.price and self.points else None


# ---------------------------------------------------------------- where it is read from


def life_of_transcript(
    messages: Sequence[Any], compressor: ContextCompressor, *, title: str
) -> Life:
    """The transcript sent as it grew, step by step, through the compressor.

    Raises:
        CompressorError: as `ContextCompressor.compress`.
    """
    session = compressor.session_id
    ends, stride = request_ends(messages)
    for end in ends:
        compressor.compress_sync(messages[:end], session_id=session)
    every = f", every {stride} steps" if stride > 1 else ""
    note = f"The transcript, sent again as it grew{every}, with these options."
    told = Life("", "")
    with contextlib.suppress(SessionNotFound):  # what was never compressed is not stored
        told = _collected(compressor.store, compressor.config.namespace, session)
    return _drawn(replace(told, title=title, note=note), messages, compressor.tokens)


def life_of_session(store: Store, namespace: str, session_id: str, tokens: TokenCounter) -> Life:
    """What the ledger tells of a session.

    Raises:
        LedgerError: the store cannot be read, or has no such session.
    """
    told = _collected(store, namespace, session_id)
    messages = store.transcript(store.open(namespace, session_id))
    lengths = [card.segment.transcript_length for card in (*told.cards, *told.masks)]
    if not 0 < max(lengths, default=0) <= len(messages):
        return replace(told, note=ARCHIVED, price=input_price(tokens.model))
    return _drawn(replace(told, note=WHOLE), messages, tokens)


def request_ends(messages: Sequence[Message]) -> tuple[list[int], int]:
    """Where requests would have been sent: after each step, or after every so many of them.

    The second value is how many. A message that was put in as a repair ends no step.
    """
    transcript = read(messages)
    steps = ([transcript.origins[index] for index in step] for step in transcript.steps)
    given = ([origin for origin in step if origin is not None] for step in steps)
    ends = [max(origins) + 1 for origins in given if origins]
    stride = max(1, -(-len(ends) // MOST_POINTS))
    return sorted({*ends[::stride], len(messages)}), stride


# ---------------------------------------------------------------- its size over time


def _drawn(told: Life, messages: Sequence[Message], tokens: TokenCounter) -> Life:
    """The life with its points, and the price of what was not sent."""
    cards = sorted((*told.cards, *told.masks), key=lambda card: card.number)
    points, begun = _curve(messages, cards, tokens)
    price = input_price(tokens.model)
    return replace(told, points=tuple(points), requests_of=begun, price=price)


def _curve(
    messages: Sequence[Message], cards: Sequence[Card], tokens: TokenCounter
) -> tuple[list[Point], dict[str, int]]:
    """The transcript as it grew and what was sent of it; the request at which each epoch began."""
    sizes = map(tokens.message, messages)
    whole = [*itertools.accumulate(sizes, initial=tokens.messages([]))]
    waiting = list(_cuts(messages, cards))
    saved: dict[frozenset[str], int] = {}
    points = []
    begun: dict[str, int] = {}
    for number, end in enumerate(request_ends(messages)[0], 1):
        now = [card for cut, card in waiting if cut <= end]
        del waiting[: len(now)]
        for card in now:
            run = frozenset(card.segment.run)
            saved = {other: size for other, size in saved.items() if not other <= run}
            saved[run] = sum(map(tokens.message, card.messages)) - card.segment.tokens
            begun.setdefault(card.epoch, number)
        points.append(Point(end, whole[end], whole[end] - sum(saved.values()), bool(now)))
    return points, begun


def _cuts(messages: Sequence[Message], cards: Sequence[Card]) -> Iterator[tuple[int, Card]]:
    """How many messages there were when each entry was written, at least those it stands for.

    In the chain's order; entries of which a message was edited away since are left out.
    """
    first: dict[str, int] = {}
    for index, message in enumerate(messages):
        first.setdefault(content_digest(message), index)
    before = 0
    for card in cards:
        places = [first.get(content_digest(message), -1) for message in card.messages]
        if places and min(places) >= 0:
            before = max(before, card.segment.transcript_length, max(places) + 1)
            yield before, card


# ---------------------------------------------------------------- summaries and masks


def _collected(store: Store, namespace: str, session_id: str) -> Life:
    """All but the points."""
    # A store for one machine or many knows the whole family; the one in memory only the chain.
    epochs = getattr(store, "tree", store.lineage)(namespace, session_id)
    session = store.open(namespace, session_id)
    numbered = enumerate(zip(session.entries, in_force(session.entries), strict=True), 1)
    # What was taken back is paid for, and not shown.
    kept = [(n, entry) for n, (entry, found) in numbered if found.kind != FORGOTTEN.kind]
    segments = [entry.segment for _, entry in kept]
    cards = [
        _card(n, entry, stands, store.originals(session, entry) or [])
        for (n, entry), stands in zip(kept, _standing(segments), strict=True)
    ]
    return Life(
        title=session.id,
        note="",
        cards=tuple(card for card in cards if card.segment.kind == "summary"),
        masks=tuple(card for card in cards if card.segment.kind != "summary"),
        epochs=tuple(epochs),
        forgotten=sum(entry.forgotten for entry in session.entries),
        usage=sum((entry.segment.usage for entry in session.entries), Usage()),
    )


def _standing(segments: Sequence[Segment]) -> list[bool]:
    """Of each segment whether it is in the view: no later one has taken over all its messages."""
    later: list[frozenset[str]] = []
    found = []
    for segment in reversed(segments):
        run = frozenset(segment.run)
        found.append(not any(run <= other for other in later))
        later.append(run)
    return found[::-1]


def _card(number: int, entry: Entry, stands: bool, messages: Sequence[Message]) -> Card:
    segment = entry.segment
    framed = is_framed(segment.rendered)
    whole = unframe(segment.rendered) if framed else text_of(segment.rendered)
    text, _, added = whole.partition(ADDED) if segment.method == "model" else (whole, "", "")
    facts: tuple[Fact, ...] = ()
    if framed and stands:  # else every message is read again for each summary it once was in
        found = extract(messages)
        alone, held = coverage(found, text), coverage(found, whole)
        facts = tuple(
            Fact(kind_in_words(kind), alone.by_kind.get(kind, (0, 0))[0], *of_all)
            for kind, of_all in held.by_kind.items()
        )
    marks = marks_of(text) if segment.method == "model" else []
    shown = text.strip(), added.strip()
    return Card(number, segment, entry.epoch, stands, *shown, messages, facts, marks)
