"""What is remembered of sessions between turns: in memory, bounded and evicted in one place.

A transcript comes back whole every turn. How it was laid out the last time is remembered, so that
a turn to which nothing has to be done costs one comparison and its new messages; whatever is
unusual takes the full way. All else that a turn leaves to the next is here too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InvalidMessages
from ..ledger.segments import Segment, Session, Usage
from ..messages import Message, is_result, read
from ..messages.digests import MessageCache
from ..messages.forks import renewed
from ..summaries.protocol import Written
from ..tokens.counter import TokenCounter
from ..view.budget import Budget
from ..view.layout import lay, lay_masks, shown
from .call import Look
from .projection import renderings
from .result import CompressResult

REMEMBERED_SESSIONS = 64

Key = tuple[str, str]
"""Namespace and session."""


@dataclass(frozen=True)
class Placeholder:
    """Texts that stand, uncommitted, for a part of a session while a model's are being written.

    They stay the same from turn to turn, so that the provider's cache stays warm, and go when the
    session is written to.
    """

    session: Session
    """As it was when they were made."""
    segments: tuple[Segment, ...]
    untold: tuple[Written, ...] = ()
    """Its texts, until a result has told of them."""


@dataclass
class Memory:
    """What one session left to its next turn."""

    last_turn: LastTurn | None = None
    """How its newest transcript was laid out."""
    placeholder: Placeholder | None = None
    """What stands for a part of it meanwhile."""
    told: dict[str, str] = field(default_factory=dict)
    """By the reason of a skip, since when it has been told."""
    owed: Usage = field(default_factory=Usage)


class Sessions:
    """What the newest sessions left to their next turns; thread-safe."""

    def __init__(self) -> None:
        self._lock = renewed(threading.RLock())
        self._known: OrderedDict[Key, Memory] = OrderedDict()
        self._flying: dict[Key, Future[None]] = {}
        renewed(self)

    def _at_fork_reinit(self) -> None:
        self._flying = {}  # those at work are not in the child

    def of(self, key: Key) -> Memory:
        """What is known of the session, which is the newest now."""
        with self._lock:
            found = self._known.setdefault(key, Memory())
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED_SESSIONS:
                self._known.popitem(last=False)
            return found

    def knows(self, key: Key) -> bool:
        """Whether the session was seen in this process and is remembered."""
        with self._lock:
            return key in self._known

    def last_turns(self) -> list[LastTurn]:
        """Those of all sessions that are remembered."""
        with self._lock:
            return [each.last_turn for each in self._known.values() if each.last_turn]

    def is_news(self, key: Key, reason: str, since: str) -> bool:
        """Whether the session has not been told this; from now on it has."""
        with self._lock:
            told = self.of(key).told
            is_news = told.get(reason) != since
            told[reason] = since
            return is_news

    def owe(self, key: Key, usage: Usage) -> None:
        """Have it on the bill of the session's next result."""
        with self._lock:
            self.of(key).owed += usage

    def take_owed(self, key: Key) -> Usage:
        """What is owed, once."""
        with self._lock:
            known = self.of(key)
            owed, known.owed = known.owed, Usage()
            return owed

    # -------------------------------------------------------------- at work

    def enter(self, key: Key) -> Future[None] | None:
        """Return None if the caller now works on the session and must call `leave`, else the
        future of whoever does: wait for it, then look again."""
        with self._lock:
            flying = self._flying.get(key)
            if flying is None:
                ours: Future[None] = Future()
                # Running: one waiter's cancellation must not cancel what all the others wait for.
                ours.set_running_or_notify_cancel()
                self._flying[key] = ours
            return flying

    def leave(self, key: Key) -> None:
        """Let those go on who wait."""
        with self._lock:
            done = self._flying.pop(key, None)
        if done is not None:  # else this is a child, forked in mid-flight
            done.set_result(None)


# -------------------------------------------------------------- the last turn


@dataclass(frozen=True)
class LastTurn:
    """A layout under the trigger, to which the next turn need only add."""

    session: Session
    known: list[Message]
    """Private copies of its messages."""
    counted: tuple[TokenCounter, float]
    """By what, and the ratio by which it corrected its counts then."""
    head_tokens: int
    standing: tuple[tuple[int, int, Segment], ...]
    """Stretches of the transcript, and what stands for them in the view."""
    watched: frozenset[str]
    """Digests that a new message must not have: a segment of the ledger could begin with it."""
    result: CompressResult
    """What the next one differs from in its messages and their tokens."""


def last_turn_of(look: Look, result: CompressResult, tokens: TokenCounter) -> LastTurn | None:
    """What to remember of a look with nothing to do; None where more than adding may happen,
    or `==` with a copy does not find every edit."""
    call = look.call
    seen = call.reading.seen
    if look.reading is not call.reading or not call.extends or not call.reading.is_as_given:
        return None
    watched = _watched(look, tokens.cache)
    if watched is None or not all(entry.comparable for entry in seen):
        return None
    return LastTurn(
        session=replace(look.session, id=call.key[1]),
        known=[entry.plain for entry in seen],
        counted=(tokens, tokens.ratio),
        head_tokens=call.budget.head,
        standing=tuple(look.layout.standing()),
        watched=watched,
        result=replace(
            result, messages=[], summary_method="reused" if result.segments else None, written=()
        ),
    )


def added_to(
    last: LastTurn, messages: Any, budget: Budget, tokens: TokenCounter
) -> tuple[LastTurn, CompressResult] | None:
    """The turn with these messages and its result, where they are those of the last one and more.

    None: read them in full. Nothing is assumed: every old message is compared.
    """
    old = len(last.known)
    if type(messages) is not list or len(messages) < old:
        return None
    if last.counted != (tokens, tokens.ratio) or last.head_tokens != budget.head:
        return None
    try:
        # One comparison in C: the whole cost of a quiet turn.
        new = messages[old:]
        if messages[:old] != last.known or not _is_sound(new):
            return None
        seen = tokens.cache.all(new)
    except (AttributeError, TypeError, InvalidMessages):
        return None
    if any(entry.digest in last.watched or not entry.comparable for entry in seen):
        return None
    added = sum(tokens.each(seen))
    if budget.large is not None and added > budget.large:
        return None
    result = replace(
        last.result,
        tokens_before=last.result.tokens_before + added,
        tokens_after=last.result.tokens_after + added,
    )
    if result.tokens_after - tokens.messages([]) > budget.trigger:
        return None
    known = [*last.known, *(entry.plain for entry in seen)]
    # The view is built anew for every caller, from the messages of his call: his to edit.
    view = shown(messages, last.standing)
    result = replace(result, origin=replace(result.origin, messages=known))
    return replace(last, known=known, result=result), replace(result, messages=view)


def _watched(look: Look, cache: MessageCache) -> frozenset[str] | None:
    """What a new message must not be for the layout to stay; None: it may change anyway.

    It may where the newest messages hide a segment that shows when they are no longer the newest,
    or where they are the beginning of one.
    """
    layout = look.layout
    segments, users = layout.segments, layout.transcript.users
    if not users:
        return None
    # Up to the task what stays stays for good; after it only the newest does, for now.
    fixed = layout.allowed[: users[0] + 1]
    everywhere = [*fixed, *[True] * (len(layout.tokens) - len(fixed))]
    if tuple(lay(layout.digests, segments, everywhere)) != layout.tiles:
        return None
    if lay_masks(layout.digests, segments, everywhere) != layout.replaced:
        return None
    laid = [tile.segment for tile in layout.tiles]
    unlaid = {found for s in segments if s not in laid for found in (*s.run, *s.aliases())}
    if layout.digests[-1] in unlaid:
        return None
    return frozenset(unlaid.union(renderings(look.session, cache)))


def _is_sound(new: list[Message]) -> bool:
    """Whether messages can be added as they are: valid, and no result of an earlier call."""
    if new and is_result(new[0]):
        return False
    got = read(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.repaired
