"""`Sessions`: remember the newest sessions between turns, in bounded memory.

A client sends the whole transcript at every turn. With the last view in memory, a turn that only
adds messages costs one comparison and the new messages. Any other turn is read in full.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from ..concurrency import renewed
from ..errors import InvalidMessages
from ..ledger.segments import Segment, Session, Usage
from ..ledger.stores import Store
from ..messages import Message, is_result, read
from ..messages.digests import MessageCache
from ..messages.thinking import signatures
from ..tokens.counter import TokenCounter
from ..view.view import Tile, View, lay, lay_masks, shown
from .bills import Account, Bill, RequestUsage, uncompressed
from .choices import Draft
from .projection import renderings
from .request import Key, Mode, Pace, Request
from .result import CompressResult

REMEMBERED_SESSIONS = 64

LEAST_REQUESTS = 4
"""Requests before the pace of a session shows."""

NEWEST_SHARE = 0.25
"""Weight of the newest request in the average growth."""


@dataclass
class Memory:
    """The state of one session between turns."""

    account: Account
    last_turn: LastTurn | None = None
    """The newest view that needed no compression."""
    placeholder: View | None = None
    """The view with uncommitted texts that is sent while a model writes a summary.

    The texts stay the same from turn to turn, so that the provider's cache stays warm. A commit to
    the session discards them.
    """
    draft: Draft | None = None
    """The newest preview's compression."""
    said: dict[str, str] = field(default_factory=dict)
    """Subject -> epoch in which it was last reported."""
    owed: Usage = field(default_factory=Usage)
    requests: int = 0
    cold_requests: int = 0
    """Requests that found the provider's cache cold."""
    tokens: int = 0
    """Tokens of the last request's messages."""
    growth: float = 0.0
    """Tokens that a request adds, as a moving average."""
    added: int = 0
    """Tokens that the last request added."""
    saved: int = 0
    """Tokens that compression saved in the last request."""
    is_cold: bool = False
    """Whether the last request found the provider's cache cold."""

    @property
    def pace(self) -> Pace | None:
        """Return the pace of the session, or None before it shows."""
        if self.requests < LEAST_REQUESTS or not self.growth:
            return None
        bill = self.account.bill
        is_cached = bill.requests < LEAST_REQUESTS or bill.usage.cached > 0
        return Pace(self.growth, self.cold_requests / self.requests, is_cached)

    def quiet(
        self, request: Request, session: Session, trigger: int, tokens: TokenCounter
    ) -> CompressResult | None:
        """Return the result if the turn only adds to the last one and fits, else None."""
        last, is_asked = self.last_turn, self.draft and not self.draft.request.force
        if last is None or request.is_asked or is_asked or not session.is_as(last.session):
            return None
        found = added_to(last, request, trigger, tokens)
        if found is not None and request.mode is not Mode.FALLBACK:
            self.last_turn = found[0]
        return found and found[1]

    def begun(self, now: float, *, is_cold: bool) -> None:
        """Record the time of a request."""
        self.account.requested = now
        self.requests += 1
        self.cold_requests += is_cold
        self.is_cold = is_cold

    def answered(self, result: CompressResult) -> None:
        """Record the size and the cost of a result."""
        before, self.tokens = self.tokens, result.tokens_before
        self.added, self.saved = self.tokens - before, result.tokens_saved
        if before and self.added > 0:  # neither the first request nor a shorter transcript
            weight = NEWEST_SHARE if self.growth else 1
            self.growth += (self.added - self.growth) * weight
        self.account.add(Bill(summaries=result.usage))

    def paid(self, usage: RequestUsage, model: str | None) -> None:
        """Add what the provider reports for the last request to the bill."""
        is_warm = not self.is_cold and bool(usage.cached or self.account.bill.usage.cached)
        whole = uncompressed(usage, self.saved, self.added, is_warm=is_warm)
        self.account.add(Bill.of(usage, whole, model))


class Sessions:
    """The memories of the newest sessions; thread-safe."""

    def __init__(self) -> None:
        self._lock = renewed(threading.RLock())
        self._known: OrderedDict[Key, Memory] = OrderedDict()
        self._flying: dict[Key, Future[None]] = {}
        self._evicted: list[Account] = []
        renewed(self)

    def _at_fork_reinit(self) -> None:
        self._flying = {}  # their threads are not in the child

    def of(self, key: Key) -> Memory:
        """Return the memory of a session, and mark it the newest."""
        with self._lock:
            found = self._known.setdefault(key, Memory(Account(key)))
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED_SESSIONS:
                _, gone = self._known.popitem(last=False)
                self._evicted.append(gone.account)
            return found

    def last_turns(self) -> list[LastTurn]:
        """Return the last turns of all remembered sessions."""
        with self._lock:
            return [each.last_turn for each in self._known.values() if each.last_turn]

    def settle(self, store: Store, key: Key | None = None) -> None:
        """Write a session's bill at its pace, or all bills, and those of evicted sessions."""
        with self._lock:
            accounts, self._evicted = self._evicted, []
            if key is None:
                accounts += [known.account for known in self._known.values()]
        for account in accounts:
            account.settle(store, always=True)
        if key is not None:
            self.of(key).account.settle(store)

    def is_first(self, key: Key, subject: str, epoch: str) -> bool:
        """Return True the first time in an epoch; remember it."""
        with self._lock:
            said = self.of(key).said
            is_first = said.get(subject) != epoch
            said[subject] = epoch
            return is_first

    def seconds_since(self, key: Key, session: Session, now: float) -> float | None:
        """Return the seconds since the session's last known request, or None.

        The store has the newest write and the last request of other processes.
        """
        last = max(self.of(key).account.requested, session.updated)
        return now - last if last else None

    def owe(self, key: Key, usage: Usage) -> None:
        """Add the usage to the bill of the session's next result."""
        with self._lock:
            self.of(key).owed += usage

    def take_owed(self, key: Key) -> Usage:
        """Return the usage owed to the session, and reset it."""
        with self._lock:
            known = self.of(key)
            owed, known.owed = known.owed, Usage()
            return owed

    # -------------------------------------------------------------- at work

    def enter(self, key: Key) -> Future[None] | None:
        """Return None if the session is free, else its worker's future.

        After None the caller must call `leave`. After a future the caller waits and looks again.
        """
        with self._lock:
            flying = self._flying.get(key)
            if flying is None:
                ours: Future[None] = Future()
                # A running future: one waiter's cancellation must not cancel the others' wait.
                ours.set_running_or_notify_cancel()
                self._flying[key] = ours
            return flying

    def leave(self, key: Key) -> None:
        """Wake up the threads that wait for the session."""
        with self._lock:
            done = self._flying.pop(key, None)
        if done is not None:  # None in a child that was forked meanwhile
            done.set_result(None)


# -------------------------------------------------------------- the last turn


@dataclass(frozen=True)
class LastTurn:
    """A view below the trigger, which the next turn may only extend."""

    session: Session
    known: list[Message]
    """Private copies of the view's original messages."""
    counted: tuple[TokenCounter, float]
    """The counter, and the counter's ratio at that turn."""
    head_tokens: int
    pinned: Segment | None
    sent: tuple[Tile, ...]
    """Runs of the transcript with their segments."""
    watched: frozenset[str]
    """Digests that would change the view: a new message may have none of them."""
    result: CompressResult
    """The result; the next one has other messages and tokens."""


def last_turn_of(
    request: Request, view: View, result: CompressResult, tokens: TokenCounter
) -> LastTurn | None:
    """Return the last turn of a recorded view, or None.

    None if the next turn may do more than add messages, or if `==` may miss an edit.
    """
    own, given = view.own, request.messages
    if len(view.segments) > len(view.session.entries):
        return None
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
    """Return turn and result if the messages extend the last turn's.

    Every old message is compared.
    """
    messages, budget, old = request.messages, request.budget, len(last.known)
    if type(messages) is not list or len(messages) < old:
        return None
    if last.counted != (tokens, tokens.ratio) or last.head_tokens != budget.head:
        return None
    if last.pinned != request.pinned:
        return None
    try:
        # One comparison in C is the whole cost of a quiet turn.
        new = messages[old:]
        if messages[:old] != last.known or not _is_sound(new):
            return None
        seen = tokens.cache.all(new)
    except (AttributeError, TypeError, InvalidMessages):
        return None
    if any(entry.digest in last.watched or not entry.comparable for entry in seen):
        return None
    if any(signatures(entry.plain) for entry in seen):
        return None  # the marks are others, and thinking may have to be left out
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
    # The view has the caller's own messages: the caller may edit it.
    view = shown(messages, last.sent)
    return replace(last, known=known, result=result), replace(result, messages=view)


def _beside(last: LastTurn, tokens: TokenCounter) -> int:
    """Return the view's tokens outside the trigger."""
    pinned = last.pinned if last.pinned is not None and last.sent else None
    return tokens.messages([]) + (pinned.tokens if pinned else 0)


def _watched(view: View, cache: MessageCache) -> frozenset[str] | None:
    """Return the digests of messages that would change the view.

    None if any new message may change the view: it may uncover a segment that the newest messages
    hide, or complete one that they begin.
    """
    segments, users = view.segments, view.transcript.users
    if not users:
        return None
    # Messages up to the task always stay; of the later ones only the newest do.
    task = users[0]
    everywhere = [
        may_go if n <= task else n not in view.chosen for n, may_go in enumerate(view.allowed)
    ]
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
    """Return whether new messages are valid and answer no earlier call."""
    if new and is_result(new[0]):
        return False
    got = read(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.repaired
