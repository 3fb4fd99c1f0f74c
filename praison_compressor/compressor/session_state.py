"""`Sessions`: remember the newest sessions between turns, in bounded memory.

A client sends the whole transcript at every turn. With the last view in memory, a turn that only
adds messages costs one comparison and the new messages. Any other turn is read in full.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from ..concurrency import renew_after_fork
from ..errors import InvalidMessages
from ..ledger.segments import Segment, Session, Usage
from ..ledger.stores import Store
from ..messages import Message, is_result, read_transcript
from ..messages.digests import MessageCache
from ..messages.thinking import signatures
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..view.budget import Costs
from ..view.view import Tile, View, lay_masks, lay_summaries, replace_runs
from .bills import Account, Bill, RequestUsage, uncompressed_usage
from .decision import Decision, costs_of
from .projection import renderings
from .request import Mode, Request, SessionKey
from .result import CompressResult, extend_result, usage_of

REMEMBERED_SESSIONS = 64

LEAST_REQUESTS = 4
"""Requests before the pace of a session shows."""

NEWEST_SHARE = 0.25
"""Weight of the newest request in the average growth."""


@dataclass
class SessionState:
    """The state of one session between turns."""

    account: Account
    last_turn: LastTurn | None = None
    """The newest view that needed no compression."""
    placeholder: View | None = None
    """The view with uncommitted texts that is sent while a model writes a summary: always the same,
    so that the provider's cache stays warm."""
    previewed: Decision | None = None
    """The newest preview's decision."""
    said: dict[str, str] = field(default_factory=dict)
    """Subject -> epoch in which it was last reported."""
    owed: Usage = field(default_factory=Usage)
    """Cost of texts that no result has reported yet."""
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

    def costs(self, request: Request, writer: str | None) -> Costs | None:
        """Return a request's prices, with the session's pace once that shows."""
        if self.requests < LEAST_REQUESTS or not self.growth:
            return costs_of(request, writer, None, 0.0, cached=True)
        bill, cold = self.account.bill, self.cold_requests / self.requests
        is_cached = bill.requests < LEAST_REQUESTS or bill.usage.cached > 0
        return costs_of(request, writer, self.growth, cold, cached=is_cached)

    def extend_last_turn(
        self, request: Request, session: Session, trigger: int, tokens: TokenCounter
    ) -> tuple[LastTurn, CompressResult] | None:
        """Return turn and result if the turn only adds and fits."""
        last, is_asked = self.last_turn, self.previewed and not self.previewed.request.force
        if (
            last is None
            or request.is_asked
            or is_asked
            or not session.is_unchanged_since(last.session)
        ):
            return None
        return extend_turn(last, request, trigger, tokens)

    def begin(self, now: float, *, is_cold: bool) -> None:
        """Record the time of a request."""
        self.account.requested = now
        self.requests += 1
        self.cold_requests += is_cold
        self.is_cold = is_cold

    def answer(self, tokens: int, saved: int, usage: Usage) -> None:
        """Record the size, the saving and the cost of a result."""
        before, self.tokens = self.tokens, tokens
        self.added, self.saved = tokens - before, saved
        if before and self.added > 0:  # neither the first request nor a shorter transcript
            weight = NEWEST_SHARE if self.growth else 1
            self.growth += (self.added - self.growth) * weight
        self.account.add(Bill(summaries=usage))

    def charge(self, usage: RequestUsage, model: str | None) -> None:
        """Add what the provider reports for the last request to the bill."""
        is_warm = not self.is_cold and bool(usage.cached or self.account.bill.usage.cached)
        whole = uncompressed_usage(usage, self.saved, self.added, is_warm=is_warm)
        self.account.add(Bill.of(usage, whole, model))


class Sessions:
    """The memories of the newest sessions; thread-safe."""

    def __init__(self) -> None:
        self._lock = renew_after_fork(threading.RLock())
        self._known: OrderedDict[SessionKey, SessionState] = OrderedDict()
        self._flying: dict[SessionKey, Future[None]] = {}
        self._stable: OrderedDict[SessionKey, SessionKey] = OrderedDict()
        """Key of an epoch's id -> its session's key."""
        self._evicted: list[Account] = []
        renew_after_fork(self)

    def _at_fork_reinit(self) -> None:
        self._flying = {}  # their threads are not in the child

    def of(self, key: SessionKey) -> SessionState:
        """Return the memory of a session, and mark it the newest."""
        with self._lock:
            found = self._known.setdefault(key, SessionState(Account(key)))
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED_SESSIONS:
                _, gone = self._known.popitem(last=False)
                self._evicted.append(gone.account)
            return found

    def stable(self, key: SessionKey) -> SessionKey:
        """Return the key of the session that an opened id names."""
        return self._stable.get(key, key)

    def link_id(self, key: SessionKey, session: Session) -> None:
        """Remember the session that the id of an epoch names."""
        with self._lock:
            if key != session.key:
                self._stable[key] = session.key
                self._stable.move_to_end(key)
            while len(self._stable) > REMEMBERED_SESSIONS:
                self._stable.popitem(last=False)

    def last_turns(self) -> list[LastTurn]:
        """Return the last turns of all remembered sessions."""
        with self._lock:
            return [each.last_turn for each in self._known.values() if each.last_turn]

    def settle(self, store: Store, key: SessionKey | None = None) -> None:
        """Write a session's bill, or all; the evicted sessions' too."""
        with self._lock:
            accounts, self._evicted = self._evicted, []
            if key is None:
                accounts += [known.account for known in self._known.values()]
        for account in accounts:
            account.settle(store, always=True)
        if key is not None:
            self.of(key).account.settle(store)

    def report_once(self, key: SessionKey, subject: str, epoch: str) -> bool:
        """Note a subject's report; return whether the epoch had none."""
        with self._lock:
            said = self.of(key).said
            before, said[subject] = said.get(subject), epoch
            return before != epoch

    def last_request(self, session: Session, store: Store, now: float) -> float:
        """Return the time of the session's last request; 0: unknown."""
        account = self.of(session.key).account
        account.look(store, lambda: session, now)
        return max(account.requested, session.updated)

    def show(
        self, key: SessionKey, decision: Decision | None, used: Sequence[SegmentText] = ()
    ) -> None:
        """Remember a preview's decision; owe the last one's unused texts."""
        with self._lock:
            known = self.of(key)
            before, known.previewed = known.previewed, decision
        if before is not None:
            lost = [text for text in before.texts if not any(text is u for u in used)]
            self.owe(key, usage_of(lost))

    def commit(self, key: SessionKey, texts: Sequence[SegmentText]) -> None:
        """Forget preview and placeholder after a commit with these texts."""
        self.show(key, None, texts)
        self.of(key).placeholder = None

    def owe(self, key: SessionKey, usage: Usage) -> None:
        """Charge the session's next result with texts that no result reports."""
        with self._lock:
            self.of(key).owed += usage

    def take_owed(self, key: SessionKey) -> Usage:
        """Return the usage owed to the session, and reset it."""
        with self._lock:
            known = self.of(key)
            owed, known.owed = known.owed, Usage()
            return owed

    # -------------------------------------------------------------- at work

    def enter(self, key: SessionKey) -> Future[None] | None:
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

    def leave(self, key: SessionKey) -> None:
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
    basis: tuple[TokenCounter, float, int, Segment | None]
    """Counter, its ratio, tokens of the head, pinned texts: the next turn needs the same."""
    sent: tuple[Tile, ...]
    """Runs of the transcript with their segments."""
    watched: frozenset[str]
    """Digests that would change the view: a new message may have none of them."""
    result: CompressResult
    """The result, without its messages."""


def last_turn_of(
    request: Request, view: View, result: CompressResult, tokens: TokenCounter
) -> LastTurn | None:
    """Return the last turn of a recorded view, or None.

    None if the next turn may do more than add messages, or if `==` may miss an edit.
    """
    own, given = view.own_messages, request.messages
    if len(view.segments) > len(view.session.entries):
        return None
    is_as_given = len(own) == len(given) and all(map(operator.is_, own, given))
    if request.mode in (Mode.FALLBACK, Mode.PREVIEW) or not is_as_given:
        return None
    watched = _watched_digests(view, tokens.cache)
    if watched is None or not view.given_messages.comparable or view.signed:
        return None
    return LastTurn(
        session=view.session,
        known=list(view.transcript.messages),
        basis=_basis(request, tokens),
        sent=view.sent_tiles,
        watched=watched,
        result=replace(result, messages=[]),
    )


def extend_turn(
    last: LastTurn, request: Request, trigger: int, tokens: TokenCounter
) -> tuple[LastTurn, CompressResult] | None:
    """Return turn and result if the messages extend the last turn's."""
    messages, large, old = request.messages, request.budget.large, len(last.known)
    if type(messages) is not list or len(messages) < old:
        return None
    if last.basis != _basis(request, tokens):
        return None
    try:
        # One comparison in C is the whole cost of a quiet turn.
        new = messages[old:]
        if messages[:old] != last.known or not _starts_cleanly(new):
            return None
        seen = tokens.cache.all(new)
    except (AttributeError, TypeError, InvalidMessages):
        return None
    if any(entry.digest in last.watched or not entry.comparable for entry in seen):
        return None
    if any(signatures(entry.plain) for entry in seen):
        return None  # the marks are others, and thinking may have to be left out
    added = sum(tokens.each(seen))
    if large is not None and added > large:
        return None
    result = extend_result(last.result, added, replace_runs(messages, last.sent))
    pinned = request.pinned.tokens if request.pinned is not None and last.sent else 0
    if result.tokens_after - tokens.messages([]) - pinned > trigger:
        return None
    known = [*last.known, *(entry.plain for entry in seen)]
    # The view has the caller's own messages: the caller may edit it.
    return replace(last, known=known, result=replace(result, messages=[])), result


def _basis(
    request: Request, tokens: TokenCounter
) -> tuple[TokenCounter, float, int, Segment | None]:
    return tokens, tokens.ratio, request.budget.head, request.pinned


def _watched_digests(view: View, cache: MessageCache) -> frozenset[str] | None:
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
        may_go if n <= task else n not in view.chosen for n, may_go in enumerate(view.replaceable)
    ]
    if tuple(lay_summaries(view.digests, segments, everywhere)) != view.tiles:
        return None
    if lay_masks(view.digests, segments, everywhere) != view.result_segments:
        return None
    laid = [tile.segment for tile in view.tiles]
    unlaid = {found for s in segments if s not in laid for found in (*s.run, *s.aliases())}
    if view.digests[-1] in unlaid:
        return None
    return frozenset(unlaid.union(renderings(view.session, cache)))


def _starts_cleanly(new: list[Message]) -> bool:
    """Return whether new messages are valid and answer no earlier call."""
    if new and is_result(new[0]):
        return False
    got = read_transcript(new)
    return all(a is b for a, b in zip(got.messages, new, strict=False)) and not got.stub_count
