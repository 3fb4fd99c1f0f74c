"""`Billing`: charge sessions with their requests and summaries; return their bills."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..concurrency import run_off_loop
from ..ledger.segments import Session
from ..ledger.stores import Store
from .account import Account
from .bills import Bill, read_whole_usage, uncompressed_usage
from .prices import is_cold
from .request import Request, RequestReader
from .result import CompressResult
from .session_state import SessionState, SessionStates


@dataclass(frozen=True)
class Billing:
    """The accounts of one store's sessions; thread-safe."""

    store: Store
    requests: RequestReader
    sessions: SessionStates
    clock: Callable[[], float]

    def account(self, session_id: str | None) -> Account:
        """Return the account of a session."""
        return self._state(session_id).account

    def bill(self, session_id: str | None) -> Bill:
        """Return a session's bill with what other processes wrote."""
        account = self.account(session_id)
        opener = functools.partial(self.store.open, *self.requests.key(session_id))
        account.refresh(self.store, opener, self.clock(), always=True)
        return account.bill

    def record(self, answer: Any, session_id: str | None) -> Bill:
        """Add the usage of a provider's answer; return the bill."""
        usage = read_whole_usage(answer)
        state = self._state(session_id)
        account = state.account
        if usage is not None:
            is_warm = not state.is_cold and bool(usage.cached or account.bill.usage.cached)
            sizes = state.last_saved_tokens, state.last_added_tokens
            whole = uncompressed_usage(usage, *sizes, is_warm=is_warm)
            account.add(Bill.of(usage, whole, self.requests.config.model))
            run_off_loop(functools.partial(account.save, self.store))
        return account.bill

    def _state(self, session_id: str | None) -> SessionState:
        key = self.requests.key(session_id)
        return self.sessions.touch(self.sessions.stable_key(key))

    # -------------------------------------------------------------- one request

    def last_request(self, session: Session) -> float:
        """Return the time of the session's last request; 0: unknown."""
        account = self.sessions.touch(session.key).account
        account.refresh(self.store, lambda: session, self.clock())
        return max(account.requested, session.updated)

    def is_cold(self, request: Request, session: Session) -> bool:
        """Return whether the provider's cache lost the session's last request."""
        return is_cold(request, self.last_request(session), self.clock())

    def begin(self, request: Request, session: Session) -> None:
        """Record a request's start; write the bills that are due."""
        self.sessions.begin_request(request, session, self.clock())
        self.sessions.save_evicted_bills(self.store)
        self.sessions.state(session.key).account.save(self.store)

    def charge_result(self, session: Session, result: CompressResult) -> CompressResult:
        """Return the result with unreported cost and bill; write a changed bill."""
        self.sessions.record_sizes(session.key, result)
        usage = result.usage + self.sessions.take_unreported_usage(session.key)
        account = self.sessions.touch(session.key).account
        account.add(Bill(summaries=usage))
        if result.written or result.newly_masked:
            run_off_loop(functools.partial(account.save, self.store, always=True))
        return replace(result, usage=usage, bill=account.bill)
