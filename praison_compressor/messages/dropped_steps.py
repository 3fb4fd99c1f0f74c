"""Complete a request with the tool steps and the front that the host left out. Pure functions.

A host keeps questions and answers, and drops the steps between them when a turn ends:

    carried    q0 call result a0 | q1 call result call result a1 |
    given      q0             a0 | q1                         a1 | q2
    completed  q0 call result a0 | q1 call result call result a1 | q2

`Carried` has what the requests of a conversation carried. An `Exchange` is one question with its
work and its answer. Exchanges of both lists match by question and answer, so the work of a deleted
or edited exchange stays away.

Exchanges that are missing at the front were deleted by the user, or cut by a host that bounds its
list. A host's list is bounded if the host says so, or cut it to one length in CUTS turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from .digests import MessageCache, Seen
from .shapes import (
    Message,
    is_result,
    is_spoken,
    is_system,
    leading_in,
    makes_calls,
    result_blocks,
    text_of,
    to_plain,
)

LONG = 20
"""Messages of the shortest list that a host is assumed to bound."""
CUTS = 3
"""After this many turns cut to one length, the list counts as bounded.

A user may delete the first exchange twice."""

Key = tuple[str, str]


@dataclass(frozen=True)
class Exchange:
    """One question, the work of its turn, and the answer."""

    asked: Seen | None
    """The question; None where a list begins with another message."""
    work: tuple[Seen, ...] = ()
    """Calls, results and all else between question and answer, in order."""
    rest: tuple[Seen, ...] = ()
    """The answer, and all else before the next question."""
    is_open: bool = False
    """Whether no answer is known: the turn runs, or was stopped."""
    is_cut: bool = False
    """Whether the host cut the exchange from the front of its bounded list."""
    model: str | None = None
    """The model that made the calls, if known."""

    @property
    def key(self) -> Key:
        """Digests of question and answer; "" for a missing one."""
        answers = (each.digest for each in self.rest if not is_system(each.plain))
        return "" if self.asked is None else self.asked.digest, next(answers, "")

    @property
    def seen(self) -> tuple[Seen, ...]:
        """All messages, in order."""
        return (*(() if self.asked is None else (self.asked,)), *self.work, *self.rest)


@dataclass(frozen=True)
class Carried:
    """What the requests of a conversation carried, without leading system messages."""

    exchanges: tuple[Exchange, ...] = ()
    turn: Hashable = None
    """The turn of the newest request."""
    length: int = 0
    """Messages in the host's list before the question of that turn."""
    bound: int = 0
    """Messages to which the host bounds its list; 0: unknown."""
    doubtful: tuple[Exchange, ...] = ()
    """Exchanges missing at the front, deleted or cut."""
    cuts: int = 0
    """Turns in a row that cut the list to `length`."""

    @property
    def seen(self) -> list[Seen]:
        """All messages."""
        return list(_seen(self.exchanges))

    @property
    def record(self) -> list[Seen]:
        """All messages for a store, with the doubtful ones."""
        exchanges = _without_cut_end(self.exchanges, self.doubtful)
        return [*_seen(self.doubtful), *_seen(exchanges)]

    @property
    def messages(self) -> list[Message]:
        """All messages, which nobody may edit."""
        return [each.plain for each in self.seen]

    @property
    def spoken(self) -> list[Message]:
        """Copies of the messages that a host keeps: questions and answers."""
        each = (replace(exchange, work=()) for exchange in self.exchanges)
        return [to_plain(seen.plain) for seen in _seen(each)]


class Completed(NamedTuple):
    """A request with what the host left out."""

    messages: list[Message]
    carried: Carried
    """What the conversation carried, this request included."""
    back: list[Message]
    """Restored messages."""
    foreign: list[Message]
    """Restored messages that another model than this request's wrote."""


def carried_in(transcript: Sequence[Message], cache: MessageCache) -> Carried:
    """Return what a recorded transcript carried."""
    return Carried(tuple(_exchanges(cache.all(transcript[leading_in(transcript) :]))))


def completed(
    carried: Carried,
    given: Sequence[Message],
    cache: MessageCache,
    *,
    turn: Hashable = None,
    bound: int = 0,
    model: str | None = None,
) -> Completed:
    """Return a request's messages with what the host left out.

    Args:
        carried: what earlier requests carried.
        given: the host's messages; restored messages are copies.
        cache: of messages.
        turn: names the turn that sends the request.
        bound: messages to which the host bounds its list; 0: unknown.
        model: the model that gets the request.
    """
    leading = leading_in(given)
    theirs = _exchanges(cache.all(given[leading:]))
    if turn is not None and turn == carried.turn:
        theirs = _with_running(theirs, carried)
    matched = _matched(carried.exchanges, _closed(theirs))
    front = _front(carried, theirs, matched, turn, bound)
    messages, back, foreign = [*given[:leading]], [], []

    def restore(exchange: Exchange, seen: Iterable[Seen]) -> None:
        copies = [to_plain(each.plain) for each in seen]
        messages.extend(copies)
        back.extend(copies)
        if None not in (exchange.model, model) and exchange.model != model:
            foreign.extend(copies)

    for exchange in front.exchanges:
        restore(exchange, exchange.seen)
    exchanges = [*front.exchanges]
    own = iter(given[leading + front.fragment :])
    for at in range(1 if front.fragment else 0, len(theirs)):
        host, exchange = theirs[at], _joined(matched.get(at), theirs[at], model)
        exchanges.append(exchange)
        messages += islice(own, exchange.asked is not None)
        work = [*islice(own, len(host.work))]
        if exchange.work is host.work:
            messages += work
        else:
            restore(exchange, exchange.work)
        messages += islice(own, len(host.rest))
    length = len([*_seen(_closed(theirs))])
    after = Carried(tuple(exchanges), turn, length, front.bound, front.doubtful, front.cuts)
    return Completed(messages, after, back, foreign)


def _joined(ours: Exchange | None, theirs: Exchange, model: str | None) -> Exchange:
    """Return the host's exchange with the carried work.

    Work in the host's list is used instead, unless it is a part of the carried work.
    """
    if ours is None:
        return replace(theirs, model=model if theirs.is_open else None)
    carried = ours.work[: _end_of_work(ours.work)]
    left = iter(each.digest for each in carried)
    is_part = all(each.digest in left for each in theirs.work)
    is_more = is_part and len(carried) > len(theirs.work)
    return replace(theirs, work=carried if is_more else theirs.work, model=ours.model)


# -------------------------------------------------------------- the running turn


def called(carried: Carried, message: Seen) -> Carried:
    """Add a message with calls to the open exchange."""
    if not (carried.exchanges and carried.exchanges[-1].is_open):
        return carried
    last = carried.exchanges[-1]
    return _with_last(carried, replace(last, work=(*last.work, message)))


def failed(carried: Carried) -> Carried:
    """Drop the work of the open exchange."""
    if not (carried.exchanges and carried.exchanges[-1].is_open):
        return carried
    return _with_last(carried, replace(carried.exchanges[-1], work=()))


def answered(carried: Carried, history: Sequence[Message], cache: MessageCache) -> Carried:
    """Add the answer in the host's history to the open exchange.

    The question in the history replaces the sent one, which may have more text around it.
    """
    last, theirs = carried.exchanges[-1:], _exchanges(cache.all(history))[-1:]
    if not (last and last[0].is_open and theirs and theirs[0].rest):
        return carried
    asked, recorded = last[0].asked, theirs[0].asked
    if asked is None or recorded is None:
        return carried
    if asked.digest != recorded.digest and text_of(recorded.plain) not in text_of(asked.plain):
        return carried
    return _with_last(carried, _joined(last[0], theirs[0], None))


def _with_last(carried: Carried, exchange: Exchange) -> Carried:
    return replace(carried, exchanges=(*carried.exchanges[:-1], exchange))


def _with_running(theirs: list[Exchange], carried: Carried) -> list[Exchange]:
    """Return the exchanges; what follows the running question is work.

    Hosts put notes, pictures and requests to end into a running turn, in the user's role.
    """
    running = carried.exchanges[-1] if carried.exchanges else None
    if running is None or running.asked is None or not running.is_open:
        return theirs
    for place in range(len(theirs) - 1, -1, -1):
        if _asks(theirs[place], running.asked):
            asked, *work = _seen(theirs[place:])
            return [*theirs[:place], Exchange(asked, tuple(work), is_open=True)]
    return theirs


# -------------------------------------------------------------- exchanges


def _seen(exchanges: Iterable[Exchange]) -> Iterator[Seen]:
    return (each for exchange in exchanges for each in exchange.seen)


def _exchanges(seen: Sequence[Seen]) -> list[Exchange]:
    """Return a list's exchanges; the last is open without an answer."""
    starts = [i for i, each in enumerate(seen) if _is_question(each.plain)]
    bounds = [0, *(i for i in starts if i), len(seen)]
    found = [_exchange(seen[a:b]) for a, b in pairwise(bounds) if a < b]
    if found and found[-1].asked is not None and not found[-1].key[1]:
        found[-1] = replace(found[-1], is_open=True)
    return found


def _exchange(seen: Sequence[Seen]) -> Exchange:
    asked = seen[0] if _is_question(seen[0].plain) else None
    after = tuple(seen[asked is not None :])
    end = _end_of_work(after)
    return Exchange(asked, after[:end], after[end:])


def _is_question(message: Message) -> bool:
    return message.get("role") == "user" and is_spoken(message)


def _end_of_work(seen: Sequence[Seen]) -> int:
    """Return the place after the last call or result."""
    places = (i for i in range(len(seen), 0, -1) if _is_tools(seen[i - 1].plain))
    return next(places, 0)


def _is_tools(message: Message) -> bool:
    return makes_calls(message) or is_result(message) or bool(result_blocks(message))


def _asks(exchange: Exchange, question: Seen) -> bool:
    return exchange.asked is not None and exchange.asked.digest == question.digest


def _closed(theirs: list[Exchange]) -> list[Exchange]:
    """Return the exchanges without a last open one."""
    return theirs[:-1] if theirs and theirs[-1].is_open else theirs


def _matched(ours: Sequence[Exchange], history: Sequence[Exchange]) -> dict[int, Exchange]:
    """Return place in the history → carried exchange."""
    closed = [exchange for exchange in ours if not exchange.is_open]
    keys, known = [each.key for each in history], [each.key for each in closed]
    found = {theirs: closed[place] for theirs, place in _aligned(keys, known)}
    running = ours[-1] if ours and ours[-1].is_open else None
    if running is not None and running.asked is not None:
        after = range(max(found, default=-1) + 1, len(history))
        asked = (i for i in after if _asks(history[i], running.asked))
        found |= dict.fromkeys(islice(asked, 1), running)
    return found


def _aligned(theirs: Sequence[Key], ours: Sequence[Key]) -> Iterator[tuple[int, int]]:
    """Yield the places of equal keys, in the order of both lists."""
    pairs = zip(theirs, ours, strict=False)
    same = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
    yield from zip(range(same), range(same), strict=True)
    matcher = SequenceMatcher(None, theirs[same:], ours[same:], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        yield from ((same + a + i, same + b + i) for i in range(size))


# -------------------------------------------------------------- the front


class _Front(NamedTuple):
    """Exchanges in front of the given messages, and the next `Carried`'s fields."""

    exchanges: Sequence[Exchange] = ()
    bound: int = 0
    doubtful: tuple[Exchange, ...] = ()
    cuts: int = 0
    fragment: int = 0
    """Number of given messages that end the newest exchange."""


def _front(
    carried: Carried,
    theirs: list[Exchange],
    matched: Mapping[int, Exchange],
    turn: Hashable,
    bound: int,
) -> _Front:
    """Return the cut and the doubtful exchanges of the front."""
    ours, nothing = carried.exchanges, _Front(bound=carried.bound)
    first = min(matched, default=-1)
    # Before the first match may stand the end of a cut exchange, nothing else.
    if first < 0 or first > 1 or (first == 1 and theirs[0].asked is not None):
        return nothing
    start = next(i for i, each in enumerate(ours) if each is matched[first])
    known = next((i for i, each in enumerate(ours) if not each.is_cut), len(ours))
    before, missing = ours[: min(known, start)], ours[known:start]
    end = theirs[0].seen if first else ()
    if end and not _ends_with([*before, *missing], end):
        return nothing
    if not missing:
        is_same = turn is not None and turn == carried.turn
        doubt = (carried.doubtful, carried.cuts) if is_same else ((), 0)
        return _Front(before, carried.bound, *doubt, len(end))
    length, cuts = len([*_seen(_closed(theirs))]), 1
    if carried.doubtful and length == carried.length >= LONG:
        missing = (*carried.doubtful, *_without_cut_end(missing, carried.doubtful))
        cuts = carried.cuts + 1
    if cuts >= CUTS or length in (bound, carried.bound):
        cut = [replace(each, is_cut=True) for each in (*before, *missing)]
        return _Front(cut, length, fragment=len(end))
    return _Front(before, carried.bound, missing, cuts)


def _ends_with(exchanges: Sequence[Exchange], end: Sequence[Seen]) -> bool:
    last = exchanges[-1].seen[-len(end) :] if exchanges else ()
    return [each.digest for each in last] == [each.digest for each in end]


def _without_cut_end(
    exchanges: tuple[Exchange, ...], before: Sequence[Exchange]
) -> tuple[Exchange, ...]:
    """Drop the first exchange if it repeats `before`'s end."""
    is_end = exchanges[:1] and exchanges[0].asked is None
    return exchanges[1:] if is_end and _ends_with(before, exchanges[0].seen) else exchanges
