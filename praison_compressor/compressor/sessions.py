"""What is remembered of sessions between turns: in memory, bounded and evicted in one place.

A transcript comes back whole every turn. The last view is remembered, so that a turn to which
nothing has to be done costs one comparison and its new messages; whatever is unusual takes the full
way.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from ..errors import InvalidMessages
from ..ledger.segments import Segment, Session, Usage
from ..messages import Message, is_result, read
from ..messages.digests import MessageCache
from ..messages.forks import renewed
from ..summaries.protocol import Written
from ..tokens.counter import TokenCounter
from ..view.view import Tile, View, lay, lay_masks, shown
from .projection import renderings
from .request import Key, Mode, Request
from .result import CompressResult

REMEMBERED_SESSIONS = 64


@dataclass(frozen=True)
class Placeholder:
    """Texts that fill in, uncommitted, while a model writes.

    They stay the same from turn to turn, so that the provider's cache stays warm, and go when the
    session is written to.
    """

    session: Session
    """As it was when they were made."""
    segments: tuple[Segment, ...]
    unreported: tuple[Written, ...] = ()
    """Texts not yet reported in a result."""


@dataclass
class Memory:
    """What one session left to its next turn."""

    last_turn: LastTurn | None = None
    """The newest view to which nothing had to be done."""
    placeholder: Placeholder | None = None
    said: dict[str, str] = field(default_factory=dict)
    """Subject -> epoch in which it was last reported."""
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
        """Return the memory of a session, which is the newest now."""
        with self._lock:
            found = self._known.setdefault(key, Memory())
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED_SESSIONS:
                self._known.popitem(last=False)
            return found

    def knows(self, key: Key) -> bool:
        """Return whether this process remembers the session."""
        with self._lock:
            return key in self._known

    def last_turns(self) -> list[LastTurn]:
        """Return the last turns of all sessions that are remembered."""
        with self._lock:
            return [each.last_turn for each in self._known.values() if each.last_turn]

    def is_first(self, key: Key, subject: str, epoch: str) -> bool:
        """Return True the first time in an epoch; remember it."""
        with self._lock:
            said = self.of(key).said
            is_first = said.get(subject) != epoch
            said[subject] = epoch
            return is_first

    def owe(self, key: Key, usage: Usage) -> None:
        """Add the usage to the bill of the session's next result."""
        with self._lock:
            self.of(key).owed += usage

    def take_owed(self, key: Key) -> Usage:
        """Return what is owed, once."""
        with self._lock:
            known = self.of(key)
            owed, known.owed = known.owed, Usage()
            return owed

    # -------------------------------------------------------------- at work

    def enter(self, key: Key) -> Future[None] | None:
        """Return None if the caller now works on the session and must call `leave`.

        Otherwise return the future of the one that does: wait for it, then look again.
        """
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
    """A view under the trigger, to which the next turn need only add."""

    session: Session
    known: list[Message]
    """Private copies of its messages."""
    counted: tuple[TokenCounter, float]
    """The counter, and the ratio by which it corrected its counts then."""
    head_tokens: int
    pinned: Segment | None
    sent: tuple[Tile, ...]
    """Runs of the transcript with what replaces them."""
    watched: frozenset[str]
    """Digests that a new message must not have: a segment of the ledger could begin with it."""
    result: CompressResult
    """The next result differs from it in messages and tokens."""


def last_turn_of(
    request: Request, view: View, result: CompressResult, tokens: TokenCounter
) -> LastTurn | None:
    """Return what to remember of a view with nothing to do.

    None where the next turn may have to do more than add, or where `==` with a copy does not find
    every edit.
    """
    own, given = view.own, request.messages
    is_as_given = len(own) == len(given) and all(map(operator.is_, own, given))
    if request.mode in (Mode.FALLBACK, Mode.PREVIEW) or not is_as_given:
        return None
    watched = _watched(view, tokens.cache)
    if watched is None or not view.given.comparable or view.signed:
        return None
    return LastTurn(
        session=replace(view.session, id=request.key[1]),
        known=list(view.transcript.messages),
        counted=(tokens, tokens.ratio),
        head_tokens=request.budget.head,
        pinned=view.pinned,
        sent=view.sent,
        watched=watched,
        result=replace(
            result, messages=[], summary_method="reused" if result.segments else None, written=()
        ),
    )


def added_to(
    last: LastTurn, request: Request, trigger: int, tokens: TokenCounter
) -> tuple[LastTurn, CompressResult] | None:
    """Return the turn and its result, if the messages are those of the last one and more.

    None: read the messages in full. Nothing is assumed: every old message is compared.
    """
    messages, budget, old = request.messages, request.budget, len(last.known)
    if type(messages) is not list or len(messages) < old:
        return None
    if last.counted != (tokens, tokens.ratio) or last.head_tokens != budget.head:
        return None
    if last.pinned != request.pinned:
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
    if result.tokens_after - _beside(last, tokens) > trigger:
        return None
    known = [*last.known, *(entry.plain for entry in seen)]
    # The view is built for every caller from the messages of the call: the caller may edit it.
    view = shown(messages, last.sent)
    return replace(last, known=known, result=result), replace(result, messages=view)


def _beside(last: LastTurn, tokens: TokenCounter) -> int:
    """Return the tokens of a result that its budget has set aside."""
    pinned = last.pinned if last.pinned is not None and last.sent else None
    return tokens.messages([]) + (pinned.tokens if pinned else 0)


def _watched(view: View, cache: MessageCache) -> frozenset[str] | None:
    """Return what a new message must not be for the view to stay; None: it may change anyway.

    It may where the newest messages hide a segment that shows when they are no longer the newest,
    or where they are the beginning of one.
    """
    segments, users = view.segments, view.transcript.users
    if not users:
        return None
    # Up to the task what stays stays for good; after it only the newest does, for now.
    fixed = view.allowed[: users[0] + 1]
    everywhere = [*fixed, *[True] * (len(view.tokens) - len(fixed))]
    if tuple(lay(view.digests, segments, everywhere)) != view.tiles:
        return None
    if lay_masks(view.digests, segments, everywhere) != view.replaced:
        return None
    laid = [tile.segment for tile in view.tiles]
    unlaid = {found for s in segments if s not in laid for found in (*s.run, *s.aliases())}
    if view.digests[-1] in unlaid:
        return None
    return frozenset(unlaid.union(renderings(view.session, cache)))


def _is_sound(new: list[Message]) -> bool:
    """Return whether messages can be added as they are: valid, and no result of an earlier call."""
    if new and is_result(new[0]):
        return False
    got = read(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.repaired
