"""Print a session's cost and write its page: `bill`, `report`.

A life is read from a store, or found by sending a transcript again as it grew. The page asks for
nothing on the network, and nothing of a transcript in it is markup.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..compressor.bills import Bill, stored_bill
from ..compressor.context_compressor import ContextCompressor
from ..compressor.preview import Preview
from ..config import CompressorConfig
from ..errors import SessionNotFound, StoreUnavailable
from ..ledger.memory_store import MemoryStore
from ..ledger.outlines import in_order
from ..ledger.segments import Entry, Epoch, Segment, Usage
from ..ledger.stores import Store
from ..messages import Message, content_digest, read, text_of
from ..messages.display import clean, counted, when
from ..summaries.prompts import rendering
from ..tokens.counter import TokenCounter
from ..tokens.models import input_price, model_limits
from ..view.budget import Budget
from ..view.frame import is_framed, unframe
from . import parameters as par
from .compressing import summary_of
from .stored import FOLDED, IN_VIEW, family, states
from .terminal import Unusable, answer, money, number, progress, unlogged
from .transcripts import put, read_one

WHOLE = "The transcript that the store has; each answer of the model ends a request."

ARCHIVED = "The store has not the whole transcript, so its size over time is not shown."

MOST_POINTS = 600
"""Points of the chart: a screen has no more columns, and each costs a call of the compressor."""

LONGEST_TEXT = 20_000
"""Characters of one original on the page."""


@par.command
@par.argument("what", metavar="SESSION|FILE")
@par.option("--out", "FILE", "Write the page there; - is stdout.", default="report.html")
@par.CONVERSATION
@par.configured
@par.AS_JSON
def report(
    what: str, out: str, conversation: int | None, config: CompressorConfig, as_json: bool
) -> None:
    """Write one self-contained page that shows the life of a session.

    Context size over time with each compression, each summary beside its originals, masked outputs,
    lineage, cost. FILE is a transcript as `compress` takes it. The transcript is replayed turn by
    turn to the compressor with these options. Without an auxiliary model no model is called.

    $ praison-compressor report talk.jsonl --window 32k --out page.html
    """
    is_file = os.path.isfile(what)  # never raises, whatever a session is called
    with unlogged():
        if is_file:
            # Not the user's store: a report leaves no session behind.
            compressor = ContextCompressor(par.with_window(config), store=MemoryStore())
            messages = read_one(what, conversation)
            with progress("Sending it as it grew", len(requests_in(messages))) as step:
                life = life_of_transcript(messages, compressor, title=Path(what).name, step=step)
        else:
            life = _of_session(what, config)
    put(out, render(life), source=what if is_file else "-")
    value = {
        "out": out,
        "requests": life.requests,
        "compressions": life.compressions,
        "summaries": len(life.cards),
        "masks": len(life.masks),
        "tokens_whole": life.tokens,
        "tokens_view": life.last.view,
        "tokens_not_sent": life.not_sent,
        "bill": asdict(life.bill),
    }
    written = "" if out == "-" else f"Written to {out}; "
    shown = [f"{written}{counted(life.compressions, 'compression')}", *life.bill_lines]
    answer(value, shown, as_json, file=sys.stderr if out == "-" else None)


@par.command
@par.argument("session")
@par.tenant
@par.AS_JSON
def bill(session: str, tenant: par.Tenant, as_json: bool) -> None:
    """Show what a session has cost, and the same without us.

    The figures are those that a provider reported to the agent, or that an application passed to
    `record_usage`.

    $ praison-compressor bill audit --store ledger.db
    """
    with par.ledger(tenant.store) as opened:
        found = stored_bill(opened, par.remembered(opened, tenant.namespace, session))
    none = f"No request of {session} is known. An agent's requests are billed, and those that an "
    none += "application passes to `record_usage`; `compress` sends none."
    answer(asdict(found), found.lines() if found.requests else [none], as_json)


def _of_session(what: str, config: CompressorConfig) -> Life:
    """Return the life of a stored session.

    Raises:
        Unusable: the name looks like a file, and neither file nor session exists.
    """
    try:
        with par.ledger(config.store_url) as opened:
            par.remembered(opened, config.namespace, what)
            found = life_of_session(opened, config.namespace, what, TokenCounter(config.model))
            found = replace(found, lines=_lines(config))
            if not found.lines or not found.points:
                return found
            messages = opened.transcript(opened.open(config.namespace, what))
            return with_next(found, messages, ContextCompressor(config, store=opened), what)
    except (SessionNotFound, StoreUnavailable) as error:
        if os.sep not in what and not what.endswith((".json", ".jsonl")):
            raise
        raise Unusable(f"{what}: there is no such file, and no session of that name") from error


# ---------------------------------------------------------------- what the page shows


@dataclass(frozen=True)
class Point:
    """The context at one request, in tokens."""

    request: int
    """Its number, from 1 on."""
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

        A folded segment yields nothing: the segment that replaced it has the same originals.
        """
        if self.standing:
            texts = rendering([dict(message) for message in self.messages])
            names = in_order(self.number, self.messages)
            for name, message, text in zip(names, self.messages, texts, strict=True):
                cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
                yield name, str(message.get("role")), cut.partition("\n")[2] or cut


@dataclass(frozen=True)
class Life:
    """The size of a session over time, its summaries, its cost."""

    title: str
    note: str
    messages: int = 0
    tokens: int = 0
    """Of the whole transcript."""
    points: tuple[Point, ...] = ()
    """One for each request; none where the store has only what was compressed."""
    cards: tuple[Card, ...] = ()
    """Summaries."""
    masks: tuple[Card, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    forgotten: int = 0
    usage: Usage = field(default_factory=Usage)
    bill: Bill = field(default_factory=Bill)
    """What the session has cost; nothing of a transcript."""
    price: float | None = None
    """US dollars that the reading model's provider lists for one input token."""
    requests_of: Mapping[str, int] = field(default_factory=dict)
    """Epoch → the request at which the epoch began."""
    next: Preview | None = None
    """The compression that `/compact` would make now; None if nothing is to gain."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Tokens of "window" and "trigger", where they are known."""

    @property
    def bill_lines(self) -> list[str]:
        """Return the bill in lines, none without a request."""
        return self.bill.lines() if self.bill.requests else []

    @property
    def last(self) -> Point:
        """Return the last request; zeros where none is known."""
        return self.points[-1] if self.points else Point(0, 0, 0, 0)

    @property
    def requests(self) -> int:
        """Return the number of requests: the bill's, where there is one."""
        return self.bill.requests or self.last.request

    @property
    def summaries_cost(self) -> Usage:
        """Return what the summaries cost: by the bill, where there is one."""
        return self.bill.summaries if self.bill.requests else self.usage

    @property
    def compressions(self) -> int:
        """Count the epochs that compressed."""
        return len({card.epoch for card in (*self.cards, *self.masks)})

    @property
    def secrets(self) -> int:
        """Count the secrets masked in the originals of the view."""
        cards = (*self.cards, *self.masks)
        return sum(card.segment.secrets for card in cards if card.standing)

    @property
    def not_sent(self) -> int:
        """Count the tokens that compression kept out of all requests together."""
        return sum(point.whole - point.view for point in self.points)

    @property
    def not_paid(self) -> float | None:
        """Return US dollars for the tokens not sent, at the listed price."""
        return self.price * self.not_sent if self.price and self.points else None


def life_of_transcript(
    messages: Sequence[Any],
    compressor: ContextCompressor,
    *,
    title: str,
    step: Callable[[], None] = lambda: None,
) -> Life:
    """Send the transcript as it grew through the compressor.

    `step` is called after each request.

    Raises:
        CompressorError: as `ContextCompressor.compress`.
    """
    session = compressor.session_id
    for end in requests_in(messages).values():
        compressor.compress_sync(messages[:end], session_id=session)
        step()
    note = "The transcript, sent again as it grew, with these options."
    found = Life("", "")
    with contextlib.suppress(SessionNotFound):  # what was never compressed is not stored
        found = _collected(compressor.store, compressor.config.namespace, session)
    found = replace(found, title=title, note=note, lines=_lines(compressor.config))
    return with_points(with_next(found, messages, compressor, session), messages, compressor.tokens)


def with_next(
    life: Life, messages: Sequence[Any], compressor: ContextCompressor, session: str
) -> Life:
    """Return the life with the compression to come."""
    seen = compressor.preview(messages, session_id=session, force=True)
    return replace(life, next=seen if seen.would_compress else None)


def _lines(config: CompressorConfig) -> dict[str, int]:
    """Return window and trigger; nothing where neither window nor model is known."""
    if config.context_window is None and config.model is None:
        return {}
    window = model_limits(config.model, config.context_window).window
    return {"window": window, "trigger": Budget.of(config, window).trigger}


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
    return with_points(replace(found, note=WHOLE), messages, tokens)


def _collected(store: Store, namespace: str, session_id: str) -> Life:
    """Return a session's life without points."""
    # A database knows the whole family; the store in memory only the chain.
    epochs = getattr(store, "tree", store.lineage)(namespace, session_id)
    session = store.open(namespace, session_id)
    found = enumerate(zip(session.entries, states(session.entries), strict=True), 1)
    # An undone segment counts as paid for, and is not shown.
    cards = [
        _card(n, entry, state == IN_VIEW, store.originals(session, entry) or [])
        for n, (entry, state) in found
        if state in (IN_VIEW, FOLDED)
    ]
    return Life(
        title=session.id,
        note="",
        cards=tuple(card for card in cards if card.segment.kind == "summary"),
        masks=tuple(card for card in cards if card.segment.kind in ("mask", "excerpt")),
        epochs=tuple(epochs),
        forgotten=sum(entry.forgotten for entry in session.entries),
        usage=sum((entry.segment.usage for entry in session.entries), Usage()),
        bill=stored_bill(store, session),
    )


def _card(number: int, entry: Entry, standing: bool, messages: Sequence[Message]) -> Card:
    rendered = entry.segment.rendered
    text = unframe(rendered) if is_framed(rendered) else text_of(rendered)
    return Card(number, entry.segment, entry.epoch, standing, text.strip(), messages)


# ---------------------------------------------------------------- its size over time


def requests_in(messages: Sequence[Message]) -> dict[int, int]:
    """Return requests by number; thin them in a long transcript.

    An assistant message answers a request. What comes after the last answer waits for one.
    """
    transcript = read(messages)
    firsts = (step[0] for step in transcript.steps)
    answers = [at for at in firsts if transcript.messages[at].get("role") == "assistant"]
    found = [transcript.origins[at] for at in answers]
    ends = [end for end in found if end]  # a repair answers none
    if not ends or messages[-1].get("role") != "assistant":
        ends.append(len(messages))
    stride = -(-len(ends) // MOST_POINTS)
    return dict([*enumerate(ends, 1)][::-stride][::-1])


def with_points(found: Life, messages: Sequence[Message], tokens: TokenCounter) -> Life:
    """Return the life with its points and the price of a token."""
    cards = sorted((*found.cards, *found.masks), key=lambda card: card.number)
    sizes = map(tokens.message, messages)
    whole = [*itertools.accumulate(sizes, initial=tokens.messages([]))]
    waiting, requests = list(_cuts(messages, cards)), requests_in(messages)
    if waiting and waiting[-1][0] > max(requests.values()):
        # Compressed behind the last answer: the next request will show it.
        requests[max(requests) + 1] = len(messages)
    saved: dict[frozenset[str], int] = {}
    points: list[Point] = []
    begun: dict[str, int] = {}
    for request, end in requests.items():
        now = [card for cut, card in waiting if cut <= end]
        del waiting[: len(now)]
        for card in now:
            run = frozenset(card.segment.run)
            saved = {other: size for other, size in saved.items() if not other <= run}
            saved[run] = sum(map(tokens.message, card.messages)) - card.segment.tokens
            begun.setdefault(card.epoch, request)
        points.append(Point(request, end, whole[end], whole[end] - sum(saved.values()), bool(now)))
    return replace(
        found,
        messages=len(messages),
        tokens=whole[-1],
        points=tuple(points),
        requests_of=begun,
        price=input_price(tokens.model),
    )


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


# ---------------------------------------------------------------- the page


def render(life: Life) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined  # the other commands do not wait for it

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        clean=clean, number=number, counted=counted, when=when, share=_share, money=money
    )
    template = environment.from_string(_part("page.html"))
    return template.render(
        life=life,
        last=life.last,
        largest=max((point.view for point in life.points), default=0),
        columns=_columns(life),
        standing=[card for card in life.cards if card.standing],
        folded=[card for card in life.cards if not card.standing],
        family=list(family(life.epochs)),
        next=[(part, summary_of(part)) for part in life.next.parts] if life.next else [],
        style=_part("page.css") + _part("uPlot.min.css"),
        library=_part("uPlot.iife.min.js"),
        script=_part("page.js"),
    )


def _part(name: str) -> Markup:
    """Read a file of ours, which the page does not escape."""
    return Markup((files(__package__) / "page" / name).read_text(encoding="utf-8"))


def _columns(life: Life) -> dict[str, Any]:
    """Return the chart's data, column by column."""
    return {
        "requests": [point.request for point in life.points],
        "whole": [point.whole for point in life.points],
        "view": [point.view for point in life.points],
        "lines": dict(life.lines),
        "compressed": [n for n, point in enumerate(life.points) if point.compressed],
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
