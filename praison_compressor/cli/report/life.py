"""A session's life collected from a ledger, or from a transcript by living it again."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...compressor.context_compressor import ContextCompressor
from ...facts import Coverage, coverage, extract
from ...ledger.segments import Entry, Epoch, Segment, Store, Usage
from ...messages import Message, content_digest, read, text_of
from ...messages.display import kind_in_words
from ...summaries.prompts import rendering
from ...summaries.protocol import Written
from ...summaries.static import ADDED
from ...tokens.counter import TokenCounter
from ...tokens.models import input_price
from ...view.frame import is_framed, unframe

__all__ = [
    "Card",
    "Curve",
    "Kept",
    "Life",
    "Line",
    "Point",
    "curve",
    "life_of_session",
    "life_of_transcript",
    "lines",
    "request_ends",
]


# -------------------------------------------------------------- curve


MOST_POINTS = 600
"""A screen has no more columns, and a transcript lived again costs a call for each."""


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
class Kept:
    """An entry of the ledger with what it stands for, read once."""

    number: int
    entry: Entry
    originals: Sequence[Message]
    run: frozenset[str]


@dataclass(frozen=True)
class Curve:
    """The points, and at which of them each epoch began."""

    points: tuple[Point, ...] = ()
    begun: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = False
    """Whether the points are requests: the store has the transcript, not only what was compressed
    of it."""


def request_ends(messages: Sequence[Message]) -> tuple[list[int], int]:
    """Where a request would have been sent, after each step of the transcript (not of a stub), or
    after every so many: how many."""
    transcript = read(messages)
    ends = []
    for step in transcript.steps:
        origins = [o for o in (transcript.origins[index] for index in step) if o is not None]
        if origins:
            ends.append(max(origins) + 1)
    stride = max(1, -(-len(ends) // MOST_POINTS))
    return sorted({*ends[::stride], len(messages)}), stride


def curve(messages: Sequence[Message], kept: Sequence[Kept], tokens: TokenCounter) -> Curve:
    """The transcript as it grew, and what was sent of it after each compression."""
    if not kept:
        return Curve()
    told = max(one.entry.segment.transcript_length for one in kept)
    is_whole = 0 < told <= len(messages)
    opens = tokens.messages([])
    whole = [*itertools.accumulate(map(tokens.message, messages), initial=opens)]
    waiting = list(_cuts(messages, kept, is_whole=is_whole))
    standing: dict[frozenset[str], int] = {}
    points = []
    begun: dict[str, int] = {}
    for number, end in enumerate(request_ends(messages)[0], 1):
        now = [one for cut, one in waiting if cut <= end]
        del waiting[: len(now)]
        for one in now:
            saved = sum(map(tokens.message, one.originals)) - one.entry.segment.tokens
            standing = {run: size for run, size in standing.items() if not run <= one.run}
            standing[one.run] = saved
            begun.setdefault(one.entry.epoch, number)
        points.append(Point(end, whole[end], whole[end] - sum(standing.values()), bool(now)))
    return Curve(tuple(points), begun, is_whole)


def _cuts(
    messages: Sequence[Message], kept: Sequence[Kept], *, is_whole: bool
) -> Iterator[tuple[int, Kept]]:
    """In the chain's order, each entry whose messages are all there still, and how many messages
    there were when it was written; at least those that it stands for."""
    first: dict[str, int] = {}
    for index, message in enumerate(messages):
        first.setdefault(content_digest(message), index)
    before = 0
    for one in kept:
        places = [first.get(content_digest(message)) for message in one.originals]
        found = [place for place in places if place is not None]
        if not found or len(found) < len(places):
            continue  # edited away since
        told = one.entry.segment.transcript_length if is_whole else 0
        before = max(before, told, max(found) + 1)
        yield before, one


# -------------------------------------------------------------- family


@dataclass(frozen=True)
class Line:
    """One epoch: how far it is moved in, and how it came about."""

    depth: int
    how: str
    """ "began", "compressed" or "fork"."""
    epoch: Epoch


def lines(epochs: Iterable[Epoch]) -> Iterator[Line]:
    """The epochs in their order, each after its parent."""
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        before = last.get(epoch.session_id)
        is_fork = before is None and epoch.parent_id in depth
        above = depth.get(before or epoch.parent_id or "", 0)
        depth[epoch.id] = above + is_fork
        last[epoch.session_id] = epoch.id
        yield Line(
            depth[epoch.id], "compressed" if before else "fork" if is_fork else "began", epoch
        )


# -------------------------------------------------------------- life


WHOLE = "The transcript that the store has, each step of it taken for a request."


ARCHIVED = "What was compressed. What stays word for word in the view is not counted here."


LONGEST_TEXT = 20_000
"""Characters of one original on the page; a store keeps the rest."""


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
    price: float | None = None
    """US dollars that the reading model's provider lists for one input token."""
    requests_of: Mapping[str, int] = field(default_factory=dict)
    """The request at which each epoch began, where the points are requests."""

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
        return sum(point.whole - point.view for point in self.points) if self.requests else 0

    @property
    def not_paid(self) -> float | None:
        """US dollars for those tokens at the listed price: a prompt cache makes them cheaper."""
        return self.price * self.not_sent if self.price and self.requests else None


# ---------------------------------------------------------------- a transcript, lived again
def life_of_transcript(
    messages: Sequence[Any],
    compressor: ContextCompressor,
    *,
    title: str,
    session_id: str | None = None,
    on_request: Callable[[int, int], None] | None = None,
) -> Life:
    """The transcript sent as it grew, step by step, through the compressor.

    `on_request` hears after each request how many of how many there were.

    Raises:
        CompressorError: as `ContextCompressor.compress`.
    """
    session = session_id or compressor.session_id
    points = []
    facts: dict[str, tuple[Fact, ...]] = {}
    epochs = {session: 1}
    ends, stride = request_ends(messages)
    for number, end in enumerate(ends, 1):
        done = compressor.compress_sync(messages[:end], session_id=session)
        is_new = done.session_id not in epochs
        points.append(Point(end, done.tokens_before, done.tokens_after, is_new))
        epochs.setdefault(done.session_id, len(points))
        facts.update(_counted(done.written))
        if on_request is not None:
            on_request(number, len(ends))
    told = Life(title, "", (), (), (), ())
    if len(epochs) > 1:  # a store knows no session that was never compressed
        told, _ = _told(compressor.store, compressor.config.namespace, session, facts)
    every = f", every {stride} steps" if stride > 1 else ""
    note = f"The transcript, sent again as it grew{every}, with these options."
    return replace(
        told,
        title=title,
        note=note,
        points=tuple(points),
        requests=True,
        requests_of=epochs,
        price=input_price(compressor.config.model),
    )


def _counted(written: Iterable[Written]) -> Iterator[tuple[str, tuple[Fact, ...]]]:
    """The facts as they were counted when the summaries were written, by their text."""
    for text in written:
        if text.after is not None:
            yield text_of(text.message), tuple(_facts(text.before or text.after, text.after))


# ---------------------------------------------------------------- a ledger
def life_of_session(
    store: Store, namespace: str, session_id: str, tokens: TokenCounter, *, title: str = ""
) -> Life:
    """What the ledger tells of a session.

    Raises:
        LedgerError: the store cannot be read, or has no such session.
    """
    told, kept = _told(store, namespace, session_id, {})
    messages = store.transcript(store.open(namespace, session_id))
    found = curve(messages, kept, tokens)
    return replace(
        told,
        title=title or told.title,
        note=WHOLE if found.is_whole else ARCHIVED,
        points=found.points,
        requests=found.is_whole,
        requests_of=found.begun if found.is_whole else {},
        price=input_price(tokens.model),
    )


def _told(
    store: Store, namespace: str, session_id: str, facts: Mapping[str, tuple[Fact, ...]]
) -> tuple[Life, list[Kept]]:
    """All but the points; `facts` are those that were counted before, by the summary's text."""
    # A store for one machine or many knows the whole family; the one in memory only the chain.
    epochs = getattr(store, "tree", store.lineage)(namespace, session_id)
    session = store.open(namespace, session_id)
    kept = [
        Kept(n, entry, store.originals(session, entry) or [], frozenset(entry.segment.run))
        for n, entry in enumerate(session.entries, 1)
        if not entry.forgotten
    ]
    cards = _cards(kept, facts)
    life = Life(
        title=session.id,
        note="",
        points=(),
        cards=tuple(card for card in cards if card.segment.kind == "summary"),
        masks=tuple(card for card in cards if card.segment.kind != "summary"),
        epochs=tuple(epochs),
        forgotten=len(session.entries) - len(kept),
        requests=False,
        usage=functools.reduce(Usage.__add__, (k.entry.segment.usage for k in kept), Usage()),
    )
    return life, kept


def _cards(kept: Sequence[Kept], facts: Mapping[str, tuple[Fact, ...]]) -> list[Card]:
    later: list[frozenset[str]] = []
    cards = []
    for one in reversed(kept):
        cards.append(_card(one, facts, standing=not any(one.run <= run for run in later)))
        if one.entry.segment.kind == "summary":
            later.append(one.run)
    return cards[::-1]


def _card(one: Kept, facts: Mapping[str, tuple[Fact, ...]], *, standing: bool) -> Card:
    segment = one.entry.segment
    framed = is_framed(segment.rendered)
    whole = unframe(segment.rendered) if framed else text_of(segment.rendered)
    text, _, added = whole.partition(ADDED) if segment.method == "model" else (whole, "", "")
    counted = facts.get(text_of(segment.rendered))
    if counted is None and framed and standing:
        found = extract(one.originals)
        counted = tuple(_facts(coverage(found, text), coverage(found, whole)))
    return Card(
        number=one.number,
        epoch=one.entry.epoch,
        segment=segment,
        text=text.strip(),
        added=added.strip(),
        # What a later summary took over is shown there: a page must not hold everything twice,
        # nor read it again for each summary that once stood for it.
        originals=tuple(_shown(one.originals)) if standing else (),
        facts=counted or (),
        standing=standing,
    )


def _shown(originals: Sequence[Message]) -> Iterator[tuple[str, str]]:
    texts = rendering([dict(message) for message in originals])
    for message, text in zip(originals, texts, strict=True):
        cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
        yield str(message.get("role")), cut.partition("\n")[2] or cut


def _facts(alone: Coverage, whole: Coverage) -> Iterator[Fact]:
    for kind, (held, total) in whole.by_kind.items():
        yield Fact(kind_in_words(kind), alone.by_kind.get(kind, (0, 0))[0], held, total)
