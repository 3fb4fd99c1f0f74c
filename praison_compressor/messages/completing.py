"""Complete a request with the tool steps and the front that the host left out: pure functions.

A host keeps questions and answers and drops what a turn did between them. The transcript of a
conversation is what its requests carried. `completed` aligns the messages of a request with that
transcript, exchange by exchange, and puts the work of each exchange back in its place.

The work of an exchange whose question or answer is gone stays away. A missing front was deleted,
unless the host keeps a bounded list: the list has the length at which the host is known to cut, or
it lost its front in `CUTS` turns running at one length of at least `LONG` messages.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .digests import MessageCache, Seen
from .shapes import (
    Message,
    is_result,
    is_spoken,
    is_system,
    makes_calls,
    result_blocks,
    text_of,
    to_plain,
)

LONG = 20
"""Messages of a list that a host may be assumed to bound."""
CUTS = 3
"""Turns that cut a list at one length before the host is assumed to bound it: a user may delete the
first exchange twice."""

Key = tuple[str, str]


@dataclass(frozen=True)
class Exchange:
    """One question, the work of its turn, and what the host kept as the answer."""

    asked: Seen | None
    """The question; None where a list begins with another message."""
    work: tuple[Seen, ...] = ()
    """What the turn's requests carried between question and answer, in order."""
    rest: tuple[Seen, ...] = ()
    """The answer, with all else that the host keeps before the next question."""
    is_open: bool = False
    """Whether no answer is known: the turn runs, or was stopped."""
    slid: bool = False
    """Whether it slid out of the host's bounded list."""
    model: str | None = None
    """The model that made the tool calls, if known."""

    @property
    def key(self) -> Key:
        """The digests of the question and of its answer, "" for one that is missing."""
        answers = (each.digest for each in self.rest if not is_system(each.plain))
        return "" if self.asked is None else self.asked.digest, next(answers, "")

    @property
    def seen(self) -> tuple[Seen, ...]:
        """All of its messages, in order."""
        return (*(() if self.asked is None else (self.asked,)), *self.work, *self.rest)


@dataclass(frozen=True)
class Carried:
    """What the requests of a conversation have carried, without leading system messages."""

    exchanges: tuple[Exchange, ...] = ()
    turn: Hashable = None
    """The turn of the newest request."""
    length: int = 0
    """Messages of the host's list before that turn's question."""
    bound: int = 0
    """Messages to which the host was found to bound its list; 0: unknown."""
    doubtful: tuple[Exchange, ...] = ()
    """The front that went missing in the newest turns."""
    cuts: int = 0
    """The number of those turns."""

    @property
    def seen(self) -> list[Seen]:
        """All messages."""
        return list(_seen(self.exchanges))

    @property
    def record(self) -> list[Seen]:
        """All messages that a record needs: a doubtful front may come back."""
        exchanges = _whole(self.exchanges, self.doubtful) if self.exchanges else ()
        return [*_seen(self.doubtful), *_seen(exchanges)]

    @property
    def messages(self) -> list[Message]:
        """All messages, which nobody may edit."""
        return [each.plain for each in self.seen]

    @property
    def spoken(self) -> list[Message]:
        """The messages that a host keeps: questions and answers."""
        each = (replace(exchange, work=()) for exchange in self.exchanges)
        return [to_plain(seen.plain) for seen in _seen(each)]


class Completed(NamedTuple):
    """A request with what the host left out."""

    messages: list[Message]
    carried: Carried
    """What the conversation has carried, this request included."""
    back: list[Message]
    """Those of the messages that came back."""
    foreign: list[Message]
    """Those of them that another model than this request's wrote."""


def carried_in(transcript: Sequence[Message], cache: MessageCache) -> Carried:
    """Return what was carried, from a recorded transcript."""
    leading = _leading(transcript)
    return Carried(tuple(_exchanges(cache.all(transcript[leading:]))))


def completed(
    carried: Carried,
    given: Sequence[Message],
    cache: MessageCache,
    *,
    turn: Hashable = None,
    bound: int = 0,
    model: str | None = None,
) -> Completed:
    """Return the given messages with the work and the front that the host left out.

    `turn` names the agent's turn that sends the messages to `model`; `bound` is the length to which
    the host is known to cut its list, 0 where that is unknown. Messages that come back are copies.
    """
    leading = _leading(given)
    theirs = _exchanges(cache.all(given[leading:]))
    if turn is not None and turn == carried.turn:
        theirs = _with_running(theirs, carried)
    matched = _matched(carried.exchanges, _history(theirs))
    front = _front(carried, theirs, matched, turn, bound)
    length = _length(theirs)
    # What follows the front: each exchange of the host's, with the work that was carried for it.
    first = 1 if front.fragment else 0
    new = [_joined(matched.get(at), theirs[at], model) for at in range(first, len(theirs))]
    found = _Assembly(model, given[:leading])
    for exchange in front.exchanges:
        found.add_back(exchange, exchange.seen)
    own = iter(given[leading + front.fragment :])
    for exchange, host in zip(new, theirs[first:], strict=True):
        found.messages += itertools.islice(own, exchange.asked is not None)
        there = list(itertools.islice(own, len(host.work)))
        if exchange.work is host.work:
            found.messages += there
        else:
            found.add_back(exchange, exchange.work)
        found.messages += itertools.islice(own, len(host.rest))
    exchanges = (*front.exchanges, *new)
    after = Carried(exchanges, turn, length, front.bound, front.doubtful, front.cuts)
    return Completed(found.messages, after, found.back, found.foreign)


class _Assembly:
    """The messages of a request, as they are put together."""

    def __init__(self, model: str | None, system: Sequence[Message]) -> None:
        self.messages = [*system]
        self.back: list[Message] = []
        self.foreign: list[Message] = []
        self._model = model

    def add_back(self, exchange: Exchange, seen: Iterable[Seen]) -> None:
        copies = [to_plain(each.plain) for each in seen]
        self.messages += copies
        self.back += copies
        if None not in (exchange.model, self._model) and exchange.model != self._model:
            self.foreign += copies


def _joined(ours: Exchange | None, theirs: Exchange, model: str | None) -> Exchange:
    """Return the host's exchange with the work that was carried for it."""
    running = model if theirs.is_open else None
    made_by = running if ours is None else ours.model
    return replace(theirs, work=_work(ours, theirs), model=made_by)


def called(carried: Carried, message: Seen) -> Carried:
    """Return what was carried with the calls that the model makes in the open exchange."""
    last = carried.exchanges[-1:]
    if not (last and last[0].is_open):
        return carried
    running = replace(last[0], work=(*last[0].work, message))
    return replace(carried, exchanges=(*carried.exchanges[:-1], running))


def failed(carried: Carried) -> Carried:
    """Return what was carried without the work of the open exchange."""
    last = [replace(each, work=()) if each.is_open else each for each in carried.exchanges[-1:]]
    return replace(carried, exchanges=(*carried.exchanges[:-1], *last))


def answered(carried: Carried, history: Sequence[Message], cache: MessageCache) -> Carried:
    """Return what was carried with the answer that the host's history has for the open question.

    The host may record a question in other words than it sent: the recorded ones count from then.
    """
    last, theirs = carried.exchanges[-1:], _exchanges(cache.all(history))[-1:]
    if not (last and last[0].is_open and theirs and theirs[0].rest):
        return carried
    asked, recorded = last[0].asked, theirs[0].asked
    if asked is None or recorded is None or not _is_same_question(asked, recorded):
        return carried
    closed = _joined(last[0], theirs[0], None)
    return replace(carried, exchanges=(*carried.exchanges[:-1], closed))


def _is_same_question(sent: Seen, recorded: Seen) -> bool:
    return sent.digest == recorded.digest or text_of(recorded.plain) in text_of(sent.plain)


# -------------------------------------------------------------- exchanges


def _leading(messages: Sequence[Message]) -> int:
    return sum(1 for _ in itertools.takewhile(is_system, messages))


def _seen(exchanges: Iterable[Exchange]) -> Iterator[Seen]:
    return (each for exchange in exchanges for each in exchange.seen)


def _exchanges(seen: Sequence[Seen]) -> list[Exchange]:
    """Return the exchanges of a list; the last one is open where no answer ends it."""
    starts = [i for i, each in enumerate(seen) if _is_question(each.plain)]
    bounds = [0, *(i for i in starts if i), len(seen)]
    found = [_exchange(seen[a:b]) for a, b in itertools.pairwise(bounds) if a < b]
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
    """Return the place behind the last call or result."""
    places = (i for i in range(len(seen), 0, -1) if _is_tools(seen[i - 1].plain))
    return next(places, 0)


def _is_tools(message: Message) -> bool:
    return makes_calls(message) or is_result(message) or bool(result_blocks(message))


def _with_running(theirs: list[Exchange], carried: Carried) -> list[Exchange]:
    """Return the exchanges with all that follows the running turn's question as its work.

    Hosts put words in the user's role into a running turn: notes, pictures, requests to end.
    """
    running = carried.exchanges[-1] if carried.exchanges else None
    if running is None or running.asked is None or not running.is_open:
        return theirs
    name = running.asked.digest
    places = (i for i in range(len(theirs), 0, -1) if _asks(theirs[i - 1], name))
    place = next(places, 0) - 1
    if place < 0:
        return theirs
    asked, *work = _seen(theirs[place:])
    return [*theirs[:place], Exchange(asked, tuple(work), is_open=True)]


def _asks(exchange: Exchange, name: str) -> bool:
    return exchange.asked is not None and exchange.asked.digest == name


def _history(theirs: list[Exchange]) -> list[Exchange]:
    """Return the exchanges without the one that is being answered."""
    return theirs[:-1] if theirs and theirs[-1].is_open else theirs


def _length(theirs: list[Exchange]) -> int:
    return sum(1 for _ in _seen(_history(theirs)))


# -------------------------------------------------------------- alignment


def _matched(ours: Sequence[Exchange], history: Sequence[Exchange]) -> dict[int, Exchange]:
    """Return, by its place in the history, the exchange that was carried for it."""
    closed = [exchange.key for exchange in ours if not exchange.is_open]
    places = common([exchange.key for exchange in history], closed)
    found = {theirs: ours[place] for theirs, place in places.items()}
    running = ours[-1] if ours and ours[-1].is_open else None
    if running is not None and running.asked is not None:
        after = range(max(places, default=-1) + 1, len(history))
        asked = (i for i in after if _asks(history[i], running.asked.digest))
        found |= dict.fromkeys(itertools.islice(asked, 1), running)
    return found


def common(theirs: Sequence[Key], ours: Sequence[Key]) -> dict[int, int]:
    """Return the places of a longest common subsequence, the earliest of ours first."""
    pairs_in_place = zip(theirs, ours, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], pairs_in_place))
    places: defaultdict[Key, list[int]] = defaultdict(list)
    for place in range(len(ours) - 1, same - 1, -1):
        places[ours[place]].append(place)
    # Hunt and Szymanski: the longest rising run of pairs, each with the pair before it.
    ends: list[int] = []
    pairs: list[_Pair] = []
    for place in range(same, len(theirs)):
        for other in places.get(theirs[place], ()):
            length = bisect_left(ends, other)
            pair = _Pair(place, other, pairs[length - 1] if length else None)
            ends[length : length + 1], pairs[length : length + 1] = [other], [pair]
    found = {place: place for place in range(same)}
    last = pairs[-1] if pairs else None
    while last is not None:
        found[last.theirs] = last.ours
        last = last.before
    return found


class _Pair(NamedTuple):
    theirs: int
    ours: int
    before: _Pair | None


def _work(ours: Exchange | None, theirs: Exchange) -> tuple[Seen, ...]:
    """Return the work that stands between this question and its answer.

    Work that the host gives itself is the host's, unless it is a part of what was carried.
    """
    if ours is None:
        return theirs.work
    carried = ours.work[: _end_of_work(ours.work)]
    left = iter(each.digest for each in carried)
    is_part = all(each.digest in left for each in theirs.work)
    return carried if is_part and len(carried) > len(theirs.work) else theirs.work


# -------------------------------------------------------------- the front


class _Front(NamedTuple):
    """What comes back in front of the given messages."""

    exchanges: tuple[Exchange, ...] = ()
    bound: int = 0
    doubtful: tuple[Exchange, ...] = ()
    cuts: int = 0
    fragment: int = 0
    """Given messages that are the end of the newest of these exchanges."""


def _front(
    carried: Carried,
    theirs: list[Exchange],
    matched: Mapping[int, Exchange],
    turn: Hashable,
    bound: int,
) -> _Front:
    """Return the front that slid out of the host's list, and what is known of a missing one."""
    ours = carried.exchanges
    first = min(matched, default=-1)
    # Something else stands in front: a summary of the host, or another beginning.
    if first < 0 or first > 1 or (first == 1 and theirs[0].asked is not None):
        return _Front(bound=carried.bound)
    start = next(i for i, each in enumerate(ours) if each is matched[first])
    gone = next((i for i, each in enumerate(ours) if not each.slid), len(ours))
    missing, before = ours[gone:start], ours[: min(gone, start)]
    cut = theirs[0] if first else None
    if cut is not None and not _ends_with([*before, *missing], cut):
        return _Front(bound=carried.bound)
    if not missing:
        front = _slid(before, carried.bound, cut)
        is_same = turn is not None and turn == carried.turn
        return front._replace(doubtful=carried.doubtful, cuts=carried.cuts) if is_same else front
    length, cuts = _length(theirs), 1
    if carried.doubtful and length == carried.length >= LONG:
        missing, cuts = (*carried.doubtful, *_whole(missing, carried.doubtful)), carried.cuts + 1
    if cuts >= CUTS or length in (bound, carried.bound):
        return _slid((*before, *missing), length, cut)
    return _Front(before, carried.bound, missing, cuts)


def _slid(front: Sequence[Exchange], bound: int, cut: Exchange | None) -> _Front:
    exchanges = tuple(replace(each, slid=True) for each in front)
    return _Front(exchanges, bound, fragment=0 if cut is None else len(cut.seen))


def _ends_with(exchanges: Sequence[Exchange], cut: Exchange) -> bool:
    """Return whether `cut` is the end of the newest exchange."""
    end = [each.digest for each in cut.seen]
    last = [each.digest for each in exchanges[-1].seen] if exchanges else []
    return cut.asked is None and last[-len(end) :] == end


def _whole(missing: Sequence[Exchange], before: Sequence[Exchange]) -> Sequence[Exchange]:
    """Drop the first exchange if it is only the end of the previous one."""
    return missing[1:] if _ends_with(before, missing[0]) else missing
