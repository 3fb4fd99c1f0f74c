"""Restore the tool steps and first messages that a host dropped.

Pure functions. A host keeps questions and answers, and drops the steps between them when a turn
ends:

    carried    q0 call result a0 | q1 call result call result a1 |
    given      q0             a0 | q1                         a1 | q2
    completed  q0 call result a0 | q1 call result call result a1 | q2

`CarriedHistory` holds the messages that the requests of a conversation carried. An `Exchange` is
one question with its work and its answer. Exchanges of both lists match by question and answer, so
that the work of a deleted or edited exchange is not put back.

Exchanges that are missing at the front were deleted by the user, or cut by a host that bounds its
list. A list counts as bounded if the host says so, or cut it to one length in LEAST_CUTS turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from .digests import CachedMessage, MessageCache
from .shapes import (
    Message,
    has_user_part,
    is_result,
    is_system,
    leading_count,
    makes_calls,
    result_blocks,
    text_of,
    to_plain,
)

LEAST_BOUND = 20  # messages of the shortest list that counts as bounded
LEAST_CUTS = 3  # turns cut to one length before a list counts as bounded: a user may delete twice

ExchangeKey = tuple[str, str]


@dataclass(frozen=True)
class Exchange:
    """One question, the work of its turn, and the answer."""

    question: CachedMessage | None
    """The question; None if the list begins with another message."""
    work: tuple[CachedMessage, ...] = ()
    """All messages between question and answer, in order."""
    rest: tuple[CachedMessage, ...] = ()
    """The answer, and all messages before the next question."""
    is_open: bool = False
    """Whether no answer is known, since the turn runs or was stopped."""
    is_cut: bool = False
    """Whether the host cut the exchange from the front of its bounded list."""
    model: str | None = None
    """The model that made the calls, if known."""

    @property
    def key(self) -> ExchangeKey:
        """Digests of question and answer; "" if missing."""
        answers = (entry.digest for entry in self.rest if not is_system(entry.plain))
        return "" if self.question is None else self.question.digest, next(answers, "")

    @property
    def entries(self) -> tuple[CachedMessage, ...]:
        """All messages, in order."""
        return (*(() if self.question is None else (self.question,)), *self.work, *self.rest)


@dataclass(frozen=True)
class CarriedHistory:
    """The messages that a conversation's requests carried, without leading system messages."""

    exchanges: tuple[Exchange, ...] = ()
    turn: Hashable = None
    """The turn of the newest request."""
    length: int = 0
    """Number of messages in the host's list before the question of that turn."""
    bound: int = 0
    """Most messages in the host's list; 0 means unknown."""
    doubtful: tuple[Exchange, ...] = ()
    """Exchanges missing at the front, deleted by the user or cut by the host."""
    cuts: int = 0
    """Number of successive turns that cut the list to `length`."""

    @property
    def entries(self) -> list[CachedMessage]:
        """All messages."""
        return list(_entries(self.exchanges))

    @property
    def record(self) -> list[CachedMessage]:
        """All messages for a store, doubtful exchanges included."""
        exchanges = _without_cut_end(self.exchanges, self.doubtful)
        return [*_entries(self.doubtful), *_entries(exchanges)]

    @property
    def messages(self) -> list[Message]:
        """All messages, which nobody may edit."""
        return [entry.plain for entry in self.entries]

    @property
    def spoken(self) -> list[Message]:
        """Copies of the messages that a host keeps: questions and answers."""
        exchanges = (replace(exchange, work=()) for exchange in self.exchanges)
        return [to_plain(entry.plain) for entry in _entries(exchanges)]


class CompletedRequest(NamedTuple):
    """A request with the messages that the host dropped."""

    messages: list[Message]
    carried: CarriedHistory
    """The conversation's messages, this request's included."""
    restored: list[Message]
    """Messages that the host dropped."""
    foreign: list[Message]
    """Restored messages that another model than this request's wrote."""


def history_from(transcript: Sequence[Message], cache: MessageCache) -> CarriedHistory:
    """Return the exchanges of a recorded transcript."""
    return CarriedHistory(tuple(_exchanges(cache.all(transcript[leading_count(transcript) :]))))


def complete_request(
    carried: CarriedHistory,
    messages: Sequence[Message],
    cache: MessageCache,
    *,
    turn: Hashable = None,
    bound: int = 0,
    model: str | None = None,
) -> CompletedRequest:
    """Return a request's messages with copies of those that the host dropped.

    Args:
        carried: the messages of earlier requests.
        turn: names the turn that sends the request.
        bound: most messages in the host's list; 0 means unknown.
        model: the model that gets the request.
    """
    leading = leading_count(messages)
    theirs = _exchanges(cache.all(messages[leading:]))
    if turn is not None and turn == carried.turn:
        theirs = _extend_running(theirs, _open_exchange(carried.exchanges))
    matched = _match_exchanges(carried.exchanges, _without_open(theirs))
    front = _find_front(carried, theirs, matched, turn, bound)
    exchanges = [*front.exchanges]
    placed: list[_Placed] = [(message, None) for message in messages[:leading]]
    for exchange in front.exchanges:
        placed += _copies(exchange, exchange.entries)
    own = iter(messages[leading + front.fragment :])
    for at in range(1 if front.fragment else 0, len(theirs)):
        exchanges.append(_join_exchanges(matched.get(at), theirs[at], model))
        placed += _placed_exchange(theirs[at], exchanges[-1], own)
    length = len([*_entries(_without_open(theirs))])
    after = CarriedHistory(
        exchanges=tuple(exchanges),
        turn=turn,
        length=length,
        bound=front.bound,
        doubtful=front.doubtful,
        cuts=front.cuts,
    )
    restored = [(message, exchange.model) for message, exchange in placed if exchange is not None]
    return CompletedRequest(
        messages=[message for message, _ in placed],
        carried=after,
        restored=[message for message, _ in restored],
        foreign=[m for m, writer in restored if writer and model and writer != model],
    )


_Placed = tuple[Message, Exchange | None]
"""A message of a request, and the exchange from which it is restored, or None."""


def _placed_exchange(
    host: Exchange, exchange: Exchange, own: Iterator[Message]
) -> Iterator[_Placed]:
    """Yield the host's next messages, with copies in place of shorter work."""
    for message in islice(own, host.question is not None):
        yield message, None
    work: list[_Placed] = [(message, None) for message in islice(own, len(host.work))]
    yield from work if exchange.work is host.work else _copies(exchange, exchange.work)
    for message in islice(own, len(host.rest)):
        yield message, None


def _copies(exchange: Exchange, entries: Iterable[CachedMessage]) -> Iterator[_Placed]:
    return ((to_plain(entry.plain), exchange) for entry in entries)


def _join_exchanges(ours: Exchange | None, theirs: Exchange, model: str | None) -> Exchange:
    """Return the host's exchange, with the carried work if that is more."""
    if ours is None:
        return replace(theirs, model=model if theirs.is_open else None)
    carried = ours.work[: _end_of_work(ours.work)]
    left = iter(entry.digest for entry in carried)
    is_part = all(entry.digest in left for entry in theirs.work)
    is_more = is_part and len(carried) > len(theirs.work)
    return replace(theirs, work=carried if is_more else theirs.work, model=ours.model)


# -------------------------------------------------------------- the running turn


def add_call(carried: CarriedHistory, message: CachedMessage) -> CarriedHistory:
    """Return `carried` with one more message in the open exchange."""
    running = _open_exchange(carried.exchanges)
    if running is None:
        return carried
    return _with_last(carried, replace(running, work=(*running.work, message)))


def drop_work(carried: CarriedHistory) -> CarriedHistory:
    """Return `carried` without the work of the open exchange."""
    running = _open_exchange(carried.exchanges)
    return carried if running is None else _with_last(carried, replace(running, work=()))


def add_answer(
    carried: CarriedHistory, history: Sequence[Message], cache: MessageCache
) -> CarriedHistory:
    """Return `carried` with the open exchange as in the host's history.

    There the question may have less text around it than was sent.
    """
    running, theirs = _open_exchange(carried.exchanges), _exchanges(cache.all(history))[-1:]
    if running is None or not (theirs and theirs[0].rest):
        return carried
    sent, recorded = running.question, theirs[0].question
    if sent is None or recorded is None:
        return carried
    if sent.digest != recorded.digest and text_of(recorded.plain) not in text_of(sent.plain):
        return carried
    return _with_last(carried, _join_exchanges(running, theirs[0], None))


def _open_exchange(exchanges: Sequence[Exchange]) -> Exchange | None:
    return exchanges[-1] if exchanges and exchanges[-1].is_open else None


def _with_last(carried: CarriedHistory, exchange: Exchange) -> CarriedHistory:
    return replace(carried, exchanges=(*carried.exchanges[:-1], exchange))


def _extend_running(theirs: list[Exchange], running: Exchange | None) -> list[Exchange]:
    """Return the exchanges; the running question's work is all that follows it.

    Hosts put notes, pictures and requests to end into a running turn, in the user's role.
    """
    for at in range(len(theirs) - 1, -1, -1):
        if _asks_alike(theirs[at], running):
            question, *work = _entries(theirs[at:])
            return [*theirs[:at], Exchange(question, tuple(work), is_open=True)]
    return theirs


# -------------------------------------------------------------- exchanges


def _entries(exchanges: Iterable[Exchange]) -> Iterator[CachedMessage]:
    return (entry for exchange in exchanges for entry in exchange.entries)


def _exchanges(entries: Sequence[CachedMessage]) -> list[Exchange]:
    """Return a list's exchanges; a last one without an answer is open."""
    starts = [at for at, entry in enumerate(entries) if at and _is_question(entry.plain)]
    bounds = [0, *starts, len(entries)]
    exchanges = [_exchange(entries[a:b]) for a, b in pairwise(bounds) if a < b]
    if exchanges and exchanges[-1].question is not None and not exchanges[-1].key[1]:
        exchanges[-1] = replace(exchanges[-1], is_open=True)
    return exchanges


def _exchange(entries: Sequence[CachedMessage]) -> Exchange:
    question = entries[0] if _is_question(entries[0].plain) else None
    after = tuple(entries[question is not None :])
    end = _end_of_work(after)
    return Exchange(question, after[:end], after[end:])


def _is_question(message: Message) -> bool:
    return message.get("role") == "user" and has_user_part(message)


def _end_of_work(entries: Sequence[CachedMessage]) -> int:
    """Return the place after the last call or result."""
    for end in range(len(entries), 0, -1):
        message = entries[end - 1].plain
        if makes_calls(message) or is_result(message) or result_blocks(message):
            return end
    return 0


def _asks_alike(exchange: Exchange, other: Exchange | None) -> bool:
    return other is not None and exchange.key[0] == other.key[0] != ""


def _without_open(theirs: list[Exchange]) -> list[Exchange]:
    return theirs[:-1] if _open_exchange(theirs) else theirs


def _match_exchanges(ours: Sequence[Exchange], history: Sequence[Exchange]) -> dict[int, Exchange]:
    """Return place in the history -> carried exchange."""
    closed = [exchange for exchange in ours if not exchange.is_open]
    pairs = _align_keys(
        [exchange.key for exchange in history], [exchange.key for exchange in closed]
    )
    matched = {theirs: closed[place] for theirs, place in pairs}
    running = _open_exchange(ours)
    after = range(max(matched, default=-1) + 1, len(history))
    place = next((at for at in after if _asks_alike(history[at], running)), None)
    return matched if place is None or running is None else {**matched, place: running}


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the number of leading items that are equal in both."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _align_keys(
    theirs: Sequence[ExchangeKey], ours: Sequence[ExchangeKey]
) -> Iterator[tuple[int, int]]:
    """Yield the places of equal keys in both lists, in order."""
    same = common_length(theirs, ours)
    yield from zip(range(same), range(same), strict=True)
    matcher = SequenceMatcher(None, theirs[same:], ours[same:], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        yield from ((same + a + i, same + b + i) for i in range(size))


# -------------------------------------------------------------- the front


class _Front(NamedTuple):
    """Exchanges to prepend, and fields of the next `CarriedHistory`."""

    exchanges: Sequence[Exchange] = ()
    bound: int = 0
    doubtful: tuple[Exchange, ...] = ()
    cuts: int = 0
    fragment: int = 0
    """Number of the host's first messages that end the last of these exchanges."""


def _find_front(
    carried: CarriedHistory,
    theirs: list[Exchange],
    matched: Mapping[int, Exchange],
    turn: Hashable,
    bound: int,
) -> _Front:
    """Return the cut and the doubtful exchanges of the front."""
    ours, nothing = carried.exchanges, _Front(bound=carried.bound)
    first = min(matched, default=-1)
    # Before the first match only the end of a cut exchange is allowed.
    if first < 0 or first > 1 or (first == 1 and theirs[0].question is not None):
        return nothing
    start = next(i for i, exchange in enumerate(ours) if exchange is matched[first])
    uncut = (i for i, exchange in enumerate(ours) if not exchange.is_cut)
    first_known = next(uncut, len(ours))
    before, missing = ours[: min(first_known, start)], ours[first_known:start]
    end = theirs[0].entries if first else ()
    if end and not _ends_with([*before, *missing], end):
        return nothing
    if missing:
        length = len([*_entries(_without_open(theirs))])
        return _judge_missing(carried, before, missing, length, bound=bound, fragment=len(end))
    is_same = turn is not None and turn == carried.turn
    return _Front(
        exchanges=before,
        bound=carried.bound,
        doubtful=carried.doubtful if is_same else (),
        cuts=carried.cuts if is_same else 0,
        fragment=len(end),
    )


def _judge_missing(
    carried: CarriedHistory,
    before: Sequence[Exchange],
    missing: tuple[Exchange, ...],
    length: int,
    *,
    bound: int,
    fragment: int,
) -> _Front:
    """Return the missing exchanges as cut by the host, or as doubtful.

    `length` is that of the host's list before the turn's question.
    """
    cuts = 1
    if carried.doubtful and length == carried.length >= LEAST_BOUND:
        missing = (*carried.doubtful, *_without_cut_end(missing, carried.doubtful))
        cuts = carried.cuts + 1
    if cuts < LEAST_CUTS and length not in (bound, carried.bound):
        return _Front(exchanges=before, bound=carried.bound, doubtful=missing, cuts=cuts)
    cut = [replace(exchange, is_cut=True) for exchange in (*before, *missing)]
    return _Front(exchanges=cut, bound=length, fragment=fragment)


def _ends_with(exchanges: Sequence[Exchange], end: Sequence[CachedMessage]) -> bool:
    last = exchanges[-1].entries[-len(end) :] if exchanges else ()
    return [entry.digest for entry in last] == [entry.digest for entry in end]


def _without_cut_end(
    exchanges: tuple[Exchange, ...], before: Sequence[Exchange]
) -> tuple[Exchange, ...]:
    """Return the exchanges; drop a first one that `before` ends with."""
    is_end = exchanges[:1] and exchanges[0].question is None
    return exchanges[1:] if is_end and _ends_with(before, exchanges[0].entries) else exchanges
