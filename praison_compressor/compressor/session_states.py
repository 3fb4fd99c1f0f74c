"""`SessionStates`: remember the newest sessions between turns.

A `SessionState` is frozen, except for the session's `Account`. Only `SessionStates` replaces a
state, by one method for each transition.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from ..concurrency import renew_after_fork
from ..ledger.segments import Session, Usage
from ..summaries.protocol import SegmentText
from ..tokens.counter import TokenCounter
from ..view.costs import Costs
from ..view.view import View
from .account import Account
from .decision import RememberedPreview, costs_of
from .projection import LastTurn
from .request import Request, SessionKey
from .result import CompressResult, usage_of

REMEMBERED_SESSIONS = 64

LEAST_REQUESTS = 4
"""With fewer requests the pace of a session is unknown."""

NEWEST_SHARE = 0.25
"""Weight of the newest request in the average growth."""


@dataclass(frozen=True)
class SessionState:
    """The state of one session between two turns."""

    account: Account
    last_turn: LastTurn | None = None
    """The newest view that needed no compression."""
    placeholder: View | None = None
    """The view with static texts that is sent while a model writes the summary. It is the same in
    every turn, so that the provider's cache stays warm."""
    previewed: RememberedPreview | None = None
    reported: Mapping[str, str] = field(default_factory=dict)
    """Subject -> epoch of its newest report."""
    is_ledger_readable: bool = True
    """Whether the newest fallback view could use the ledger."""
    silence: str = ""
    """Epoch and last request of the newest call of `summarize_if_cold`."""
    unreported: Usage = field(default_factory=Usage)
    """Cost of texts that no result has reported yet."""
    requests: int = 0
    cold_requests: int = 0
    is_cold: bool = False
    """Whether the last request found the provider's cache cold."""
    last_tokens: int = 0
    last_added_tokens: int = 0
    last_saved_tokens: int = 0
    """Tokens that compression saved in the last request."""
    growth_tokens: float = 0.0
    """Tokens that a request adds, as a moving average."""

    def costs(self, request: Request) -> Costs | None:
        """Return a request's prices, with the session's pace once known."""
        bill = self.account.bill
        is_paced = self.requests >= LEAST_REQUESTS and self.growth_tokens > 0
        was_read = bill.usage.cache_read_tokens > 0
        is_cached = not is_paced or bill.requests < LEAST_REQUESTS or was_read
        costs = costs_of(request, is_cached=is_cached)
        if costs is None or not is_paced:
            return costs
        return replace(
            costs, growth=self.growth_tokens, cold_share=self.cold_requests / self.requests
        )

    def extend_last_turn(
        self, request: Request, session: Session, limit: int, tokens: TokenCounter
    ) -> tuple[LastTurn, CompressResult] | None:
        """Return turn and result if the request only adds messages and fits."""
        turn = self.last_turn
        preview = self.previewed
        if (
            turn is None
            or request.wants_compression
            or not session.is_unchanged_since(turn.session)
        ):
            return None
        # A turn that is not forced leaves a forced preview uncommitted.
        commits_preview = preview is not None and not preview.decision.request.force
        return None if commits_preview else turn.extend(request, limit, tokens)


class SessionStates:
    """Hold the states of the newest sessions and their workers; thread-safe."""

    def __init__(self) -> None:
        self._lock = renew_after_fork(threading.RLock())
        self._states: OrderedDict[SessionKey, SessionState] = OrderedDict()
        self._workers: dict[SessionKey, Future[None]] = {}
        self._stable: OrderedDict[SessionKey, SessionKey] = OrderedDict()
        """Key of an epoch's id -> its session's key."""
        self._evicted: list[Account] = []
        renew_after_fork(self)

    def _at_fork_reinit(self) -> None:
        self._workers = {}  # their threads are not in the child

    # -------------------------------------------------------------- read

    def state(self, key: SessionKey) -> SessionState:
        """Return the state of a session, blank if it is not remembered."""
        with self._lock:
            return self._states.get(key) or SessionState(Account(key))

    def stable_key(self, key: SessionKey) -> SessionKey:
        """Return the key of the session that an epoch's id names."""
        return self._stable.get(key, key)

    def states(self) -> list[SessionState]:
        """Return the states of all remembered sessions."""
        with self._lock:
            return list(self._states.values())

    def take_evicted(self) -> list[Account]:
        """Return the accounts of sessions no longer remembered, each once."""
        with self._lock:
            evicted, self._evicted = self._evicted, []
            return evicted

    # -------------------------------------------------------------- a request

    def touch(self, key: SessionKey) -> SessionState:
        """Remember the session as the newest; return its state."""
        with self._lock:
            state = self._states[key] = self.state(key)
            self._states.move_to_end(key)
            while len(self._states) > REMEMBERED_SESSIONS:
                _, oldest = self._states.popitem(last=False)
                self._evicted.append(oldest.account)
            return state

    def begin_request(self, request: Request, session: Session, now: float) -> None:
        """Record a request's start; map its session id to the stable one."""
        with self._lock:
            if request.key != session.key:
                self._stable[request.key] = session.key
                self._stable.move_to_end(request.key)
            while len(self._stable) > REMEMBERED_SESSIONS:
                self._stable.popitem(last=False)
            state = self.touch(session.key)
            cold = state.cold_requests + request.is_cold
            counts = {"requests": state.requests + 1, "cold_requests": cold}
            self._change(session.key, **counts, is_cold=request.is_cold)
        state.account.touch(now)

    def remember_turn(self, turn: LastTurn) -> None:
        """Remember the newest view that needed no compression."""
        self._change(turn.session.key, last_turn=turn)

    def record_sizes(self, key: SessionKey, result: CompressResult) -> None:
        """Record a result's sizes; update the session's average growth."""
        with self._lock:
            state = self.state(key)
            added = result.tokens_before - state.last_tokens
            growth = state.growth_tokens
            if state.last_tokens and added > 0:  # neither the first request nor a shorter one
                growth += (added - growth) * (NEWEST_SHARE if growth else 1)
            self._change(
                key,
                last_tokens=result.tokens_before,
                last_added_tokens=added,
                last_saved_tokens=result.tokens_saved,
                growth_tokens=growth,
            )

    # -------------------------------------------------------------- a compression

    def hold_placeholder(self, view: View) -> None:
        """Remember the view to send until its summary is written."""
        self._change(view.session.key, placeholder=view)

    def remember_preview(
        self, key: SessionKey, previewed: RememberedPreview | None, used: Sequence[SegmentText] = ()
    ) -> None:
        """Remember a preview; charge the previous one's unused texts."""
        with self._lock:
            earlier = self.state(key).previewed
            texts = () if earlier is None else earlier.decision.texts
            unused = [t for t in texts if not any(t is u for u in used)]
            self.add_unreported_usage(key, usage_of(unused))
            self._change(key, previewed=previewed)

    def end_preview_and_placeholder(self, key: SessionKey, texts: Sequence[SegmentText]) -> None:
        """Forget preview and placeholder after a commit with these texts."""
        with self._lock:
            self.remember_preview(key, None, texts)
            self._change(key, placeholder=None)

    def add_unreported_usage(self, key: SessionKey, usage: Usage) -> None:
        """Add the usage of texts that no result reports."""
        with self._lock:
            self._change(key, unreported=self.state(key).unreported + usage)

    def take_unreported_usage(self, key: SessionKey) -> Usage:
        """Return the session's unreported usage, and reset it."""
        with self._lock:
            unreported = self.state(key).unreported
            self._change(key, unreported=Usage())
            return unreported

    def report_once(self, key: SessionKey, subject: str, epoch: str) -> bool:
        """Record a report; return whether it is the epoch's first."""
        with self._lock:
            reported = self.state(key).reported
            self._change(key, reported={**reported, subject: epoch})
            return reported.get(subject) != epoch

    def begin_silence(self, key: SessionKey, silence: str) -> bool:
        """Record the silence; return whether it differs from the recorded silence."""
        with self._lock:
            is_first = self.state(key).silence != silence
            self._change(key, silence=silence)
            return is_first

    def record_ledger(self, key: SessionKey, *, is_readable: bool) -> bool:
        """Record whether a session's ledger can be read; return whether this changed."""
        with self._lock:
            is_changed = self.state(key).is_ledger_readable != is_readable
            if is_changed:  # a change makes the session the newest
                self._change(key, is_ledger_readable=is_readable)
            return is_changed

    def _change(self, key: SessionKey, **changes: Any) -> None:
        with self._lock:
            self._states[key] = replace(self.touch(key), **changes)

    # -------------------------------------------------------------- at work

    def enter(self, key: SessionKey) -> Future[None] | None:
        """Return None if the session is free, else its worker's future.

        After None the caller must call `leave`. After a future the caller waits and calls again.
        """
        with self._lock:
            worker = self._workers.get(key)
            if worker is None:
                ours: Future[None] = Future()
                # The future is marked as running: the cancellation of one waiter must not cancel
                # other waiters.
                ours.set_running_or_notify_cancel()
                self._workers[key] = ours
            return worker

    def leave(self, key: SessionKey) -> None:
        """Wake up the threads that wait for the session."""
        with self._lock:
            done = self._workers.pop(key, None)
        if done is not None:  # None in a child that was forked meanwhile
            done.set_result(None)
