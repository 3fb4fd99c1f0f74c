"""Collect what a report shows of a session: its size over time, its summaries, its cost.

Read from a store, or found by sending a transcript again as it grew.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...compressor.context_compressor import ContextCompressor
from ...errors import SessionNotFound
from ...ledger.outlines import in_order
from ...ledger.segments import FORGOTTEN, Entry, Epoch, Segment, Store, Usage, in_force
from ...messages import Message, content_digest, read, text_of, tool_calls_of
from ...messages.completing import carried_in
from ...summaries.prompts import rendering
from ...tokens.counter import TokenCounter
from ...tokens.models import input_price
from ...view.frame import is_framed, unframe
from ..sessions import in_view

WHOLE = "The transcript that the store has, each step of it taken for a request."

ARCHIVED = "The store has not the whole transcript, so its size over time is not shown."

MOST_POINTS = 600
"""Points of the chart: a screen has no more columns, and each costs a call of the compressor."""

LONGEST_TEXT = 20_000
"""Characters of one original on the page."""


@dataclass(frozen=True)
class Point:
    """The context at one request, in tokens."""

    messages: int
    whole: int
    """Tokens of the transcript so far."""
    view: int
    """Tokens of what was sent."""
    compressed: bool = False


@dataclass(frozen=True)
class Card:
    """One segment of the ledger beside its originals."""

    number: int
    segment: Segment
    epoch: str
    """The epoch that the segment opened."""
    standing: bool
    """Whether the segment is in the view now: neither folded nor forgotten."""
    text: str
    messages: Sequence[Message]
    """The originals."""

    def originals(self) -> Iterator[tuple[str, str, str]]:
        """Yield reference, role and text of each original.

        The originals of a folded segment are shown with the later one: a page must not hold
        everything twice.
        """
        if self.standing:
            texts = rendering([dict(message) for message in self.messages])
            names = in_order(self.number, self.messages)
            for name, message, text in zip(names, self.messages, texts, strict=True):
                cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
                yield name, str(message.get("role")), cut.partition("\n")[2] or cut


@dataclass(frozen=True)
class Life:
    """What the page shows."""

    title: str
    note: str
    points: tuple[Point, ...] = ()
    """One for each request; none where the store has only what was compressed."""
    cards: tuple[Card, ...] = ()
    """Summaries."""
    masks: tuple[Card, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    forgotten: int = 0
    usage: Usage = field(default_factory=Usage)
    price: float | None = None
    """US dollars that the reading model's provider lists for one input token."""
    kept_steps: int = 0
    """Steps of finished turns in the transcript; a host drops these when a turn ends."""
    kept_tokens: int = 0
    requests_of: Mapping[str, int] = field(default_factory=dict)
    """Epoch → the request at which the epoch began."""

    @property
    def last(self) -> Point:
        """The last request; zeros where none is known."""
        return self.points[-1] if self.points else Point(0, 0, 0)

    @property
    def compressions(self) -> int:
        """How often something was compressed."""
        return len({card.epoch for card in (*self.cards, *self.masks)})

    @property
    def secrets(self) -> int:
        """How many secrets are masked in the originals of the view."""
        cards = (*self.cards, *self.masks)
        return sum(card.segment.secrets for card in cards if card.standing)

    @property
    def not_sent(self) -> int:
        """Tokens that compression kept out of all requests together."""
        return sum(point.whole - point.view for point in self.points)

    @property
    def not_paid(self) -> float | None:
        """US dollars for the tokens not sent, at the listed price."""
        return self.price * self.not_sent if self.price and self.points else None


# ---------------------------------------------------------------- where it is read from


def life_of_transcript(
    messages: Sequence[Any], compressor: ContextCompressor, *, title: str
) -> Life:
    """Send the transcript as it grew, step by step, through the compressor.

    Raises:
        CompressorError: as `ContextCompressor.compress`.
    """
    session = compressor.session_id
    ends, stride = request_ends(messages)
    for end in ends:
        compressor.compress_sync(messages[:end], session_id=session)
    every = f", every {stride} steps" if stride > 1 else ""
    note = f"The transcript, sent again as it grew{every}, with these options."
    found = Life("", "")
    with contextlib.suppress(SessionNotFound):  # what was never compressed is not stored
        found = _collected(compressor.store, compressor.config.namespace, session)
    return _drawn(replace(found, title=title, note=note), messages, compressor.tokens)


def life_of_session(store: Store, namespace: str, session_id: str, tokens: TokenCounter) -> Life:
    """Read the life of a stored session.

    Raises:
        LedgerError: the store cannot be read, or has no such session.
    """
    found = _collected(store, namespace, session_id)
    messages = store.transcript(store.open(namespace, session_id))
    lengths = [card.segment.transcript_length for card in (*found.cards, *found.masks)]
    if not messages or 0 in lengths or max(lengths, default=0) > len(messages):
        return replace(found, note=ARCHIVED, price=input_price(tokens.model))
    return _drawn(replace(found, note=WHOLE), messages, tokens)


def request_ends(messages: Sequence[Message]) -> tuple[list[int], int]:
    """Return where requests ended, and after how many steps each.

    A request ends after each step; in a long transcript after every few. A message that was put in
    as a repair ends no step.
    """
    transcript = read(messages)
    steps = ([transcript.origins[index] for index in step] for step in transcript.steps)
    given = ([origin for origin in step if origin is not None] for step in steps)
    ends = [max(origins) + 1 for origins in given if origins]
    stride = max(1, -(-len(ends) // MOST_POINTS))
    return sorted({*ends[::stride], len(messages)}), stride


# ---------------------------------------------------------------- its size over time


def _drawn(found: Life, messages: Sequence[Message], tokens: TokenCounter) -> Life:
    """Add the points and the price to a life."""
    cards = sorted((*found.cards, *found.masks), key=lambda card: card.number)
    points, begun = _curve(messages, cards, tokens)
    price = input_price(tokens.model)
    turns = carried_in(messages, tokens.cache).exchanges
    work = [seen.plain for turn in turns if not turn.is_open for seen in turn.work]
    return replace(
        found,
        points=tuple(points),
        requests_of=begun,
        price=price,
        kept_steps=sum(bool(tool_calls_of(message)) for message in work),
        kept_tokens=sum(map(tokens.message, work)),
    )


def _curve(
    messages: Sequence[Message], cards: Sequence[Card], tokens: TokenCounter
) -> tuple[list[Point], dict[str, int]]:
    """Return the points, and the request at which each epoch began."""
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
    """Yield each segment with the number of messages at its time.

    That number is at least the place of its last original. A segment is left out where one of its
    originals was edited away since.
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
    """Collect all but the points."""
    # A database knows the whole family; the store in memory only the chain.
    epochs = getattr(store, "tree", store.lineage)(namespace, session_id)
    session = store.open(namespace, session_id)
    found = zip(session.entries, in_force(session.entries), in_view(session.entries), strict=True)
    # What was taken back is paid for, and not shown.
    cards = [
        _card(n, entry, standing, store.originals(session, entry) or [])
        for n, (entry, segment, standing) in enumerate(found, 1)
        if segment.kind != FORGOTTEN.kind
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


def _card(number: int, entry: Entry, standing: bool, messages: Sequence[Message]) -> Card:
    rendered = entry.segment.rendered
    text = unframe(rendered) if is_framed(rendered) else text_of(rendered)
    return Card(number, entry.segment, entry.epoch, standing, text.strip(), messages)
