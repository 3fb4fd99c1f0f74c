"""Collect a session's size over time, summaries and cost for a report.

The session is read from a store, or a transcript is replayed request by request.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..compressor.account import stored_bill
from ..compressor.bills import Bill
from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Preview
from ..config import CompressorConfig
from ..ledger.segments import Epoch, Segment, Session, Usage
from ..ledger.stores import DurableStore, Store
from ..messages import Message, content_digest, read_transcript, text_of
from ..recall.outlines import references_in_order
from ..summaries.prompts import render_messages
from ..tokens.counter import TokenCounter
from ..tokens.models import model_limits, prices_of
from ..view.budget import Budget
from ..view.frame import is_framed, unframe
from .show import FOLDED, IN_VIEW, UNDONE, segment_states

REPLAY_NOTE = "The transcript, sent again as it grew, with these options."

STORED_NOTE = "The transcript that the store has; each answer of the model ends a request."

UNDONE_NOTE = "Undone compressions are not drawn, so a request may look larger than it was."

PARTIAL_NOTE = "The store has not the whole transcript, so its size over time is not shown."

MOST_POINTS = 600
"""The chart has at most this number of points: each point costs a call of the compressor."""

MOST_TEXT_CHARS = 20_000
"""The page cuts an original to this number of characters."""


# ---------------------------------------------------------------- what the page shows


@dataclass(frozen=True)
class Point:
    """The context at one request, in tokens."""

    request: int
    """Number of the request, from 1 on."""
    messages: int
    whole: int
    """Tokens of the transcript so far."""
    view: int
    """Tokens of what was sent."""
    is_compressed: bool = False


@dataclass(frozen=True)
class Card:
    """A segment with its originals."""

    number: int
    segment: Segment
    epoch: str
    is_in_view: bool
    """False if a later summary replaced the segment."""
    text: str
    messages: Sequence[Message]

    def originals(self) -> Iterator[tuple[str, str, str]]:
        """Yield reference, role and text of each original.

        A folded segment yields nothing, because the later segment has the same originals.
        """
        if self.is_in_view:
            texts = render_messages([dict(message) for message in self.messages])
            names = references_in_order(self.number, self.messages)
            for name, message, text in zip(names, self.messages, texts, strict=True):
                cut = text if len(text) <= MOST_TEXT_CHARS else text[:MOST_TEXT_CHARS] + " …"
                yield name, str(message.get("role")), cut.partition("\n")[2] or cut


@dataclass(frozen=True)
class ReportData:
    """A session's size over time, its summaries and its cost."""

    title: str
    note: str
    messages: int = 0
    tokens: int = 0
    """Tokens of the whole transcript."""
    points: tuple[Point, ...] = ()
    """A point for each request; empty without the whole transcript."""
    cards: tuple[Card, ...] = ()
    """Summaries."""
    masks: tuple[Card, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    compressions: int = 0
    """Number of compressions, including undone compressions."""
    undone: int = 0
    forgotten: int = 0
    """Segments whose text was erased."""
    usage: Usage = field(default_factory=Usage)
    bill: Bill = field(default_factory=Bill)
    """Empty for a transcript in a file."""
    price: float | None = None
    """Listed price of one input token, in US dollars."""
    epoch_requests: Mapping[str, int] = field(default_factory=dict)
    """Epoch → the request at which the epoch began."""
    next: Preview | None = None
    """The compression that `/compact` would make now; None if it would gain nothing."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Tokens of "window" and "trigger", if known."""

    @property
    def bill_lines(self) -> list[str]:
        """The bill in lines, or [] without a request."""
        return self.bill.lines() if self.bill.requests else []

    @property
    def last(self) -> Point:
        """The last request, or zeros."""
        return self.points[-1] if self.points else Point(0, 0, 0, 0)

    @property
    def requests(self) -> int:
        """The number of requests, from the bill if any."""
        return self.bill.requests or self.last.request

    @property
    def summaries_cost(self) -> Usage:
        """The summaries' cost, from the bill if any."""
        return self.bill.summaries if self.bill.requests else self.usage

    @property
    def secrets(self) -> int:
        """Number of secrets that were redacted in segments of the view."""
        cards = (*self.cards, *self.masks)
        return sum(card.segment.secrets for card in cards if card.is_in_view)

    @property
    def tokens_not_sent(self) -> int:
        """Tokens that compression kept out of requests."""
        return sum(point.whole - point.view for point in self.points)

    @property
    def dollars_not_paid(self) -> float | None:
        """US dollars for the tokens not sent, at the listed price."""
        return self.price * self.tokens_not_sent if self.price and self.points else None


def data_of_transcript(
    messages: Sequence[Any], compressor: ContextCompressor, *, title: str
) -> ReportData:
    """Replay the transcript through the compressor; return the session's data.

    Raises:
        CompressorError: as `ContextCompressor.compress`.
    """
    session = compressor.session_id
    for end in requests_in(messages).values():
        compressor.compress_sync(messages[:end], session_id=session)
    compressor.save(messages, session_id=session)
    return replace(data_of_session(compressor, session), title=title, note=REPLAY_NOTE)


def data_of_session(compressor: ContextCompressor, session_id: str) -> ReportData:
    """Return the data of a session in the compressor's store.

    Raises:
        LedgerError: the store cannot be read, or has no such session.
    """
    session = compressor.store.open(compressor.config.namespace, session_id)
    data = _ledger_data(compressor, session)
    messages = _whole_transcript(compressor.store, session, (*data.cards, *data.masks))
    if messages is None:
        return replace(data, note=PARTIAL_NOTE)
    data = _with_points(data, messages, compressor.tokens)
    if not data.limits:
        return data
    preview = compressor.preview(messages, session_id=session_id, force=True)
    return replace(data, next=preview if preview.would_compress else None)


def _ledger_data(compressor: ContextCompressor, session: Session) -> ReportData:
    store, namespace = compressor.store, compressor.config.namespace
    states = segment_states(session.entries)
    cards = list(_cards(store, session, states))
    undos = sum(entry.segment.kind == "undo" for entry in session.entries)
    # A database lists the forks too; a memory store has only the chain.
    read_epochs = store.tree if isinstance(store, DurableStore) else store.lineage
    return ReportData(
        title=session.id,
        note=f"{STORED_NOTE} {UNDONE_NOTE}" if UNDONE in states else STORED_NOTE,
        cards=tuple(card for card in cards if card.segment.kind == "summary"),
        masks=tuple(card for card in cards if card.segment.replaces_result),
        epochs=tuple(read_epochs(namespace, session.id)),
        compressions=len({entry.epoch for entry in session.entries}) - undos,
        undone=undos,
        forgotten=sum(entry.is_forgotten for entry in session.entries),
        usage=sum((entry.segment.usage for entry in session.entries), Usage()),
        bill=stored_bill(store, session),
        price=prices_of(compressor.tokens.model).input,
        limits=_window_and_trigger(compressor.config),
    )


def _cards(store: Store, session: Session, states: Sequence[str]) -> Iterator[Card]:
    for number, (entry, state) in enumerate(zip(session.entries, states, strict=True), 1):
        if state in (IN_VIEW, FOLDED):
            rendered = entry.segment.rendered
            text = unframe(rendered) if is_framed(rendered) else text_of(rendered)
            originals = store.originals(session, entry) or []
            is_in_view = state == IN_VIEW
            yield Card(number, entry.segment, entry.epoch, is_in_view, text.strip(), originals)


def _whole_transcript(
    store: Store, session: Session, cards: Sequence[Card]
) -> list[Message] | None:
    """Return the recorded transcript, or None if segments have more messages."""
    messages = store.transcript(session)
    lengths = [card.segment.transcript_length for card in cards]
    is_partial = not messages or 0 in lengths or max(lengths, default=0) > len(messages)
    return None if is_partial else messages


def _window_and_trigger(config: CompressorConfig) -> dict[str, int]:
    if config.context_window is None and config.model is None:
        return {}
    window = model_limits(config.model, config.context_window).window
    return {"window": window, "trigger": Budget.of(config, window).trigger}


# ---------------------------------------------------------------- its size over time


def requests_in(messages: Sequence[Message]) -> dict[int, int]:
    """Return request number -> messages in it, for at most MOST_POINTS requests.

    An assistant message answers a request. Messages after the last answer are one more request.
    """
    transcript = read_transcript(messages)
    starts = (step[0] for step in transcript.steps)
    answers = [start for start in starts if transcript.messages[start].get("role") == "assistant"]
    origins = [transcript.origins[answer] for answer in answers]
    ends = [end for end in origins if end]  # a repair's message has no origin
    if not ends or messages[-1].get("role") != "assistant":
        ends.append(len(messages))
    stride = -(-len(ends) // MOST_POINTS)
    return dict([*enumerate(ends, 1)][::-stride][::-1])


def _with_points(data: ReportData, messages: Sequence[Message], tokens: TokenCounter) -> ReportData:
    cards = sorted((*data.cards, *data.masks), key=lambda card: card.number)
    whole = [*itertools.accumulate(map(tokens.message, messages), initial=tokens.messages([]))]
    written = list(_transcript_lengths(messages, cards))
    requests = requests_in(messages)
    if written and written[-1][0] > max(requests.values()):
        # Compressed after the last answer: one more request shows it.
        requests[max(requests) + 1] = len(messages)
    numbers, ends = list(requests), list(requests.values())
    new_cards: dict[int, list[Card]] = {number: [] for number in numbers}
    for length, card in written:
        new_cards[numbers[bisect_left(ends, length)]].append(card)
    return replace(
        data,
        messages=len(messages),
        tokens=whole[-1],
        points=tuple(_points(requests, new_cards, whole, tokens)),
        epoch_requests={card.epoch: n for n in reversed(numbers) for card in new_cards[n]},
    )


def _points(
    requests: Mapping[int, int],
    new_cards: Mapping[int, Sequence[Card]],
    whole: Sequence[int],
    tokens: TokenCounter,
) -> Iterator[Point]:
    """Yield each request's point; `whole` has the transcript's tokens by length."""
    saved: dict[frozenset[str], int] = {}
    for request, end in requests.items():
        for card in new_cards[request]:
            run = frozenset(card.segment.run)
            saved = {other: size for other, size in saved.items() if not other <= run}
            saved[run] = sum(map(tokens.message, card.messages)) - card.segment.tokens
        view = whole[end] - sum(saved.values())
        yield Point(request, end, whole[end], view, bool(new_cards[request]))


def _transcript_lengths(
    messages: Sequence[Message], cards: Sequence[Card]
) -> Iterator[tuple[int, Card]]:
    """Yield each segment with the transcript's length when it was written.

    A segment is left out if one of its originals was edited since.
    """
    digests = set(map(content_digest, messages))
    length = 0
    for card in cards:
        if card.messages and digests.issuperset(map(content_digest, card.messages)):
            length = max(length, card.segment.transcript_length)
            yield length, card
