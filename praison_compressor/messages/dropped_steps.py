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
list. A list counts as bounded if the host says so, or cut it to one length in CUTS turns.
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
        answers = (each.digest for each in self.rest if not is_system(each.plain))
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
        return [each.plain for each in self.entries]

    @property
    def spoken(self) -> list[Message]:
        """Copies of the messages that a host keeps: questions and answers."""
        each = (replace(exchange, work=()) for exchange in self.exchanges)
        return [to_plain(seen.plain) for seen in _entries(each)]


class CompletedRequest(NamedTuple):
    """A request with the messages that the host dropped."""

    messages: list[Message]
    carried: CarriedHistory
    """The conversation's messages, this request's included."""
    back: list[Message]
    """Messages put back."""
    foreign: list[Message]
    """Messages put back that another model than this request's wrote."""


def history_from(transcript: Sequence[Message], cache: MessageCache) -> CarriedHistory:
    """Return the exchanges of a recorded transcript."""
    return CarriedHistory(tuple(_exchanges(cache.all(transcript[leading_count(transcript) :]))))


def complete_request(
    carried: CarriedHistory,
    given: Sequence[Message],
    cache: MessageCache,
    *,
    turn: Hashable = None,
    bound: int = 0,
    model: str | None = None,
) -> CompletedRequest:
    """Return a request's messages with copies of those that the host dropped.

    Args:
        carried: the messages of earlier requests.
        given: the host's messages.
        cache: the cache of messages.
        turn: names the turn that sends the request.
        bound: most messages in the host's list; 0 means unknown.
        model: the model that gets the request.
    """
    leading = leading_count(given)
    theirs = _exchanges(cache.all(given[leading:]))
    if turn is not None and turn == carried.turn:
        theirs = _extend_running(theirs, _open_exchange(carried.exchanges))
    matched = _match_exchanges(carried.exchanges, _without_open(theirs))
    front = _restore_front(carried, theirs, matched, turn, bound)
    placed = _own_messages(given[:leading])
    for exchange in front.exchanges:
        placed += _restored_messages(exchange, exchange.entries)
    exchanges = [*front.exchanges]
    own = iter(given[leading + front.fragment :])
    for at in range(1 if front.fragment else 0, len(theirs)):
        host, exchange = theirs[at], _join_exchanges(matched.get(at), theirs[at], model)
        exchanges.append(exchange)
        placed += _own_messages(islice(own, host.question is not None))
        work = _own_messages(islice(own, len(host.work)))
        placed += (
            work if exchange.work is host.work else _restored_messages(exchange, exchange.work)
        )
        placed += _own_messages(islice(own, len(host.rest)))
    length = len([*_entries(_without_open(theirs))])
    after = CarriedHistory(tuple(exchanges), turn, length, front.bound, front.doubtful, front.cuts)
    back = [(message, source.model) for message, source in placed if source is not None]
    foreign = [m for m, writer in back if None not in (writer, model) and writer != model]
    return CompletedRequest([m for m, _ in placed], after, [m for m, _ in back], foreign)


_Sourced = list[tuple[Message, Exchange | None]]
"""Messages of a request, and the exchange of those that are put back."""


def _own_messages(messages: Iterable[Message]) -> _Sourced:
    return [(message, None) for message in messages]


def _restored_messages(exchange: Exchange, seen: Iterable[CachedMessage]) -> _Sourced:
    return [(to_plain(each.plain), exchange) for each in seen]


def _join_exchanges(ours: Exchange | None, theirs: Exchange, model: str | None) -> Exchange:
    """Return the host's exchange, with the carried work if that is more."""
    if ours is None:
        return replace(theirs, model=model if theirs.is_open else None)
    carried = ours.work[: _end_of_work(ours.work)]
    left = iter(each.digest for each in carried)
    is_part = all(each.digest in left for each in theirs.work)
    is_more = is_part and len(carried) > len(theirs.work)
    return replace(theirs, work=carried if is_more else theirs.work, model=ours.model)


# -------------------------------------------------------------- the running turn


def add_call(carried: CarriedHistory, message: CachedMessage) -> CarriedHistory:
    """Return `carried` with a message with calls in the open exchange."""
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
    asked, recorded = running.question, theirs[0].question
    if asked is None or recorded is None:
        return carried
    if asked.digest != recorded.digest and text_of(recorded.plain) not in text_of(asked.plain):
        return carried
    return _with_last(carried, _join_exchanges(running, theirs[0], None))


def _open_exchange(exchanges: Sequence[Exchange]) -> Exchange | None:
    """Return the open exchange, or None."""
    return exchanges[-1] if exchanges and exchanges[-1].is_open else None


def _with_last(carried: CarriedHistory, exchange: Exchange) -> CarriedHistory:
    return replace(carried, exchanges=(*carried.exchanges[:-1], exchange))


def _extend_running(theirs: list[Exchange], running: Exchange | None) -> list[Exchange]:
    """Return the exchanges; the running question's work is all that follows it.

    Hosts put notes, pictures and requests to end into a running turn, in the user's role.
    """
    for place in range(len(theirs) - 1, -1, -1):
        if _asks_alike(theirs[place], running):
            asked, *work = _entries(theirs[place:])
            return [*theirs[:place], Exchange(asked, tuple(work), is_open=True)]
    return theirs


# -------------------------------------------------------------- exchanges


def _entries(exchanges: Iterable[Exchange]) -> Iterator[CachedMessage]:
    return (each for exchange in exchanges for each in exchange.entries)


def _exchanges(seen: Sequence[CachedMessage]) -> list[Exchange]:
    """Return a list's exchanges; a last one without an answer is open."""
    starts = [i for i, each in enumerate(seen) if _is_question(each.plain)]
    bounds = [0, *(i for i in starts if i), len(seen)]
    found = [_exchange(seen[a:b]) for a, b in pairwise(bounds) if a < b]
    if found and found[-1].question is not None and not found[-1].key[1]:
        found[-1] = replace(found[-1], is_open=True)
    return found


def _exchange(seen: Sequence[CachedMessage]) -> Exchange:
    asked = seen[0] if _is_question(seen[0].plain) else None
    after = tuple(seen[asked is not None :])
    end = _end_of_work(after)
    return Exchange(asked, after[:end], after[end:])


def _is_question(message: Message) -> bool:
    return message.get("role") == "user" and has_user_part(message)


def _end_of_work(seen: Sequence[CachedMessage]) -> int:
    """Return the place after the last call or result."""
    for end in range(len(seen), 0, -1):
        message = seen[end - 1].plain
        if makes_calls(message) or is_result(message) or result_blocks(message):
            return end
    return 0


def _asks_alike(exchange: Exchange, other: Exchange | None) -> bool:
    """Return whether both exchanges have the same question."""
    if other is None or exchange.question is None or other.question is None:
        return False
    return exchange.question.digest == other.question.digest


def _without_open(theirs: list[Exchange]) -> list[Exchange]:
    """Return the exchanges without an open one."""
    return theirs[:-1] if _open_exchange(theirs) else theirs


def _match_exchanges(ours: Sequence[Exchange], history: Sequence[Exchange]) -> dict[int, Exchange]:
    """Return place in the history → carried exchange."""
    closed = [exchange for exchange in ours if not exchange.is_open]
    keys, known = [each.key for each in history], [each.key for each in closed]
    found = {theirs: closed[place] for theirs, place in _align_keys(keys, known)}
    running = _open_exchange(ours)
    after = range(max(found, default=-1) + 1, len(history))
    place = next((i for i in after if _asks_alike(history[i], running)), None)
    return found if place is None or running is None else {**found, place: running}


def common_length(one: Sequence[object], two: Sequence[object]) -> int:
    """Return how many leading items are equal in both."""
    pairs = zip(one, two, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _align_keys(
    theirs: Sequence[ExchangeKey], ours: Sequence[ExchangeKey]
) -> Iterator[tuple[int, int]]:
    """Yield the places of equal keys, in the order of both lists."""
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
    """Number of the given messages that are the end of the last of these exchanges."""


def _restore_front(
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
    start = next(i for i, each in enumerate(ours) if each is matched[first])
    known = next((i for i, each in enumerate(ours) if not each.is_cut), len(ours))
    before, missing = ours[: min(known, start)], ours[known:start]
    end = theirs[0].entries if first else ()
    if end and not _ends_with([*before, *missing], end):
        return nothing
    if not missing:
        is_same = turn is not None and turn == carried.turn
        doubt = (carried.doubtful, carried.cuts) if is_same else ((), 0)
        return _Front(before, carried.bound, *doubt, len(end))
    length, cuts = len([*_entries(_without_open(theirs))]), 1
    if carried.doubtful and length == carried.length >= LEAST_BOUND:
        missing = (*carried.doubtful, *_without_cut_end(missing, carried.doubtful))
        cuts = carried.cuts + 1
    if cuts >= LEAST_CUTS or length in (bound, carried.bound):
        cut = [replace(each, is_cut=True) for each in (*before, *missing)]
        return _Front(cut, length, fragment=len(end))
    return _Front(before, carried.bound, missing, cuts)


def _ends_with(exchanges: Sequence[Exchange], end: Sequence[CachedMessage]) -> bool:
    last = exchanges[-1].entries[-len(end) :] if exchanges else ()
    return [each.digest for each in last] == [each.digest for each in end]


def _without_cut_end(
    exchanges: tuple[Exchange, ...], before: Sequence[Exchange]
) -> tuple[Exchange, ...]:
    """Return the exchanges; drop a first one that `before` ends with."""
    is_end = exchanges[:1] and exchanges[0].question is None
    return exchanges[1:] if is_end and _ends_with(before, exchanges[0].entries) else exchanges
