"""Restore the tool steps and first messages that a host dropped.

An exchange is a question, the work of its turn (calls and results), and the answer. A host keeps
questions and answers, and drops the steps between them when a turn ends:

    carried    q0 call result a0 | q1 call result call result a1 |
    listed     q0             a0 | q1                         a1 | q2
    completed  q0 call result a0 | q1 call result call result a1 | q2

`carried` are the exchanges of earlier requests, `listed` those of the host's next request.

If exchanges are missing at the front, the user deleted them or the host cut its list. The host cut
its list if the list has the length of its bound, or had the same length in LEAST_CUT_TURNS turns in
a row. Until then the exchanges are in doubt.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from .digests import CachedMessage, MessageCache
from .shapes import Message, leading_count, text_of, to_plain
from .transcript import (
    Exchange,
    cached_messages,
    closed_exchanges,
    end_of_work,
    ends_with,
    match_exchanges,
    open_exchange,
    read_exchanges,
)

LEAST_BOUND_MESSAGES = 20
"""A shorter list has no bound."""
LEAST_CUT_TURNS = 3
"""Turns in a row that cut the list to the same length. Fewer turns show no bound: a user may delete
twice."""


@dataclass(frozen=True)
class CarriedHistory:
    """A conversation's messages so far, without leading system messages."""

    exchanges: tuple[Exchange, ...] = ()
    turn: Hashable = None
    length: int = 0
    """Messages in the host's list before that turn's question."""
    bound: int = 0
    """Upper bound of the messages in the host's list; 0: unknown."""
    doubtful: tuple[Exchange, ...] = ()
    """Missing exchanges that either the user deleted or the host cut; more turns decide."""
    cuts: int = 0
    """Consecutive turns that cut the list to `length`."""

    @property
    def cached(self) -> list[CachedMessage]:
        """All messages."""
        return cached_messages(self.exchanges)

    @property
    def record(self) -> list[CachedMessage]:
        """All messages for a store, with the doubtful exchanges."""
        exchanges = _without_cut_end(self.exchanges, self.doubtful)
        return cached_messages((*self.doubtful, *exchanges))

    @property
    def messages(self) -> list[Message]:
        """All messages; nobody may edit them."""
        return [item.plain for item in self.cached]

    @property
    def without_work(self) -> list[Message]:
        """Copies of the questions and answers."""
        exchanges = (replace(exchange, work=()) for exchange in self.exchanges)
        return [to_plain(item.plain) for item in cached_messages(exchanges)]


class CompletedRequest(NamedTuple):
    """A request with the messages that the host dropped."""

    messages: list[Message]
    carried: CarriedHistory
    """The conversation's messages, with this request's."""
    restored: list[Message]
    foreign: list[Message]
    """Restored messages by another model."""


def history_from(transcript: Sequence[Message], cache: MessageCache) -> CarriedHistory:
    """Return the exchanges of a recorded transcript."""
    return CarriedHistory(tuple(read_exchanges(cache.all(transcript[leading_count(transcript) :]))))


def complete_request(
    carried: CarriedHistory,
    messages: Sequence[Message],
    cache: MessageCache,
    *,
    turn: Hashable = None,
    bound: int = 0,
    model: str | None = None,
) -> CompletedRequest:
    """Return a request with the messages that the host dropped.

    Args:
        carried: the messages of earlier requests.
        turn: names the turn that sends the request.
        bound: upper bound of the messages in the host's list; 0: unknown.
        model: the model that gets the request.
    """
    leading = leading_count(messages)
    listed = read_exchanges(cache.all(messages[leading:]))
    if turn is not None and turn == carried.turn:
        listed = _extend_running(listed, open_exchange(carried.exchanges))
    closed = closed_exchanges(listed)
    matched = match_exchanges(closed, carried.exchanges)
    new = CarriedHistory(turn=turn, length=len(cached_messages(closed)), bound=carried.bound)
    front, fragment = _find_front(carried, new, listed, matched, bound)
    pairs = [
        (exchange, _join_exchanges(matched.get(at), exchange, model))
        for at, exchange in enumerate(listed)
        if at or not fragment
    ]
    placed: list[_Placed] = [(message, None) for message in messages[:leading]]
    for exchange in front.exchanges:
        placed += _copies(exchange, exchange.cached)
    placed += _place_messages(pairs, messages[leading + fragment :])
    exchanges = (*front.exchanges, *(joined for _, joined in pairs))
    return _request_from(placed, replace(front, exchanges=exchanges), model)


_Placed = tuple[Message, Exchange | None]
"""A message, and the carried exchange that it comes from, if any."""


def _request_from(
    placed: Sequence[_Placed], carried: CarriedHistory, model: str | None
) -> CompletedRequest:
    restored = [(message, exchange.model) for message, exchange in placed if exchange is not None]
    return CompletedRequest(
        messages=[message for message, _ in placed],
        carried=carried,
        restored=[message for message, _ in restored],
        foreign=[m for m, writer in restored if writer and model and writer != model],
    )


def _place_messages(
    pairs: Iterable[tuple[Exchange, Exchange]], messages: Sequence[Message]
) -> Iterator[_Placed]:
    """Yield the host's messages with the dropped work restored.

    `pairs`: (exchange as the host lists it, exchange with its work).
    """
    rest = iter(messages)
    for listed, joined in pairs:
        yield from ((message, None) for message in islice(rest, listed.question is not None))
        work: list[_Placed] = [(message, None) for message in islice(rest, len(listed.work))]
        yield from work if joined.work is listed.work else _copies(joined, joined.work)
        yield from ((message, None) for message in islice(rest, len(listed.answer)))


def _copies(exchange: Exchange, cached: Iterable[CachedMessage]) -> Iterator[_Placed]:
    return ((to_plain(item.plain), exchange) for item in cached)


def _join_exchanges(carried: Exchange | None, listed: Exchange, model: str | None) -> Exchange:
    """Return the listed exchange, with the carried work if that is longer."""
    if carried is None:
        return replace(listed, model=model if listed.is_open else None)
    work = carried.work[: end_of_work(carried.work)]
    digests = iter(item.digest for item in work)
    is_part = all(item.digest in digests for item in listed.work)
    is_more = is_part and len(work) > len(listed.work)
    return replace(listed, work=work if is_more else listed.work, model=carried.model)


# -------------------------------------------------------------- the running turn


def add_call(carried: CarriedHistory, message: CachedMessage) -> CarriedHistory:
    """Return `carried` with one more message in the open exchange."""
    running = open_exchange(carried.exchanges)
    if running is None:
        return carried
    return _replace_last(carried, replace(running, work=(*running.work, message)))


def drop_work(carried: CarriedHistory) -> CarriedHistory:
    """Return `carried` without the open exchange's work."""
    running = open_exchange(carried.exchanges)
    return carried if running is None else _replace_last(carried, replace(running, work=()))


def add_answer(
    carried: CarriedHistory, history: Sequence[Message], cache: MessageCache
) -> CarriedHistory:
    """Return `carried` with the open exchange as in the host's history."""
    running, last = open_exchange(carried.exchanges), read_exchanges(cache.all(history))[-1:]
    if running is None or not (last and last[0].answer):
        return carried
    sent, recorded = running.question, last[0].question
    if sent is None or recorded is None:
        return carried
    if sent.digest != recorded.digest and text_of(recorded.plain) not in text_of(sent.plain):
        return carried
    return _replace_last(carried, _join_exchanges(running, last[0], None))


def _replace_last(carried: CarriedHistory, exchange: Exchange) -> CarriedHistory:
    return replace(carried, exchanges=(*carried.exchanges[:-1], exchange))


def _extend_running(listed: list[Exchange], running: Exchange | None) -> list[Exchange]:
    """Return the exchanges; exchanges after the running question become its work.

    Hosts add notes and pictures in the user's role to a running turn.
    """
    for at in range(len(listed) - 1, -1, -1):
        if listed[at].asks_like(running):
            question, *work = cached_messages(listed[at:])
            return [*listed[:at], Exchange(question, tuple(work), is_open=True)]
    return listed


# -------------------------------------------------------------- the front


def _find_front(
    carried: CarriedHistory,
    new: CarriedHistory,
    listed: list[Exchange],
    matched: Mapping[int, Exchange],
    bound: int,
) -> tuple[CarriedHistory, int]:
    """Return `new` with the exchanges missing at the front, and a count.

    The count is the number of messages of a cut exchange that the host's list still has.
    """
    first = min(matched, default=-1)
    # Before the first match there may be the end of a cut exchange.
    if first < 0 or first > 1 or (first == 1 and listed[0].question is not None):
        return new, 0
    exchanges = carried.exchanges
    start = next(at for at, exchange in enumerate(exchanges) if exchange is matched[first])
    uncut = (at for at, exchange in enumerate(exchanges) if not exchange.is_cut)
    first_uncut = next(uncut, len(exchanges))
    before, missing = exchanges[: min(first_uncut, start)], exchanges[first_uncut:start]
    end = listed[0].cached if first else ()
    if end and not ends_with([*before, *missing], end):
        return new, 0
    front = replace(new, exchanges=before)
    if missing:
        judged = _judge_missing(carried, front, missing, bound)
        # While this is in doubt, the request keeps the end that the host lists: nothing replaces
        # it.
        return judged, 0 if judged.doubtful else len(end)
    if new.turn is not None and new.turn == carried.turn:
        return replace(front, doubtful=carried.doubtful, cuts=carried.cuts), len(end)
    return front, len(end)


def _judge_missing(
    carried: CarriedHistory, front: CarriedHistory, missing: tuple[Exchange, ...], bound: int
) -> CarriedHistory:
    """Return `front` with the missing exchanges as cut or doubtful."""
    doubtful, cuts = missing, 1
    if carried.doubtful and front.length == carried.length >= LEAST_BOUND_MESSAGES:
        doubtful = (*carried.doubtful, *_without_cut_end(missing, carried.doubtful))
        cuts = carried.cuts + 1
    if cuts < LEAST_CUT_TURNS and front.length not in (bound, carried.bound):
        return replace(front, doubtful=doubtful, cuts=cuts)
    cut = tuple(replace(exchange, is_cut=True) for exchange in (*front.exchanges, *doubtful))
    return replace(front, exchanges=cut, bound=front.length)


def _without_cut_end(
    exchanges: tuple[Exchange, ...], before: Sequence[Exchange]
) -> tuple[Exchange, ...]:
    """Return the exchanges.

    A first exchange that only repeats the end of `before` is left out.
    """
    is_end = exchanges[:1] and exchanges[0].question is None
    return exchanges[1:] if is_end and ends_with(before, exchanges[0].cached) else exchanges
