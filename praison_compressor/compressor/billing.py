"""`Billing`: charge requests and summaries to the sessions' bills."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..concurrency import run_off_loop
from ..errors import ConfigError
from ..ledger.segments import Session
from ..ledger.stores import Store
from .account import Account
from .bills import Bill, RequestUsage, is_report, read_whole_usage
from .decision import is_cold
from .request import Request, RequestReader
from .result import CompressResult
from .session_states import SessionState, SessionStates


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
        """Return a session's bill, with the costs of other processes."""
        account = self.account(session_id)
        opener = functools.partial(self.store.open, *self.requests.key(session_id))
        account.refresh(self.store, opener, self.clock(), always=True)
        return account.bill

    def record(self, answer: Any, session_id: str | None) -> Bill:
        """Add the usage of a provider's answer; return the bill.

        Raises:
            ConfigError: `answer` is neither None nor an answer nor a usage.
        """
        if not is_report(answer):
            raise ConfigError(
                f"answer is {type(answer).__name__}; expected a provider's response, its usage, or "
                "None"
            )
        usage = read_whole_usage(answer)
        state = self._state(session_id)
        account = state.account
        if usage is not None:
            was_read = bool(usage.cache_read_tokens or account.bill.usage.cache_read_tokens)
            is_warm = was_read and not state.is_cold
            sizes = state.last_saved_tokens, state.last_added_tokens
            whole = uncompressed_usage(usage, *sizes, is_warm=is_warm)
            account.add(Bill.of(usage, whole, self.requests.config.model))
            run_off_loop(functools.partial(account.save, self.store))
        return account.bill

    def save_all(self) -> None:
        """Write the bills of all sessions to the store."""
        accounts = (state.account for state in self.sessions.states())
        self._save_whole([*self.sessions.take_evicted(), *accounts])

    def _save_whole(self, accounts: Iterable[Account]) -> None:
        for account in accounts:
            account.save(self.store, always=True)

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
        self._save_whole(self.sessions.take_evicted())
        self.sessions.state(session.key).account.save(self.store)

    def charge_result(self, session: Session, result: CompressResult) -> CompressResult:
        """Return the result with the session's bill and unreported cost."""
        self.sessions.record_sizes(session.key, result)
        usage = result.usage + self.sessions.take_unreported_usage(session.key)
        account = self.sessions.touch(session.key).account
        account.add(Bill(summaries=usage))
        if result.written or result.newly_masked:
            run_off_loop(functools.partial(account.save, self.store, always=True))
        return replace(result, usage=usage, bill=account.bill)


def uncompressed_usage(
    usage: RequestUsage, saved: int, added: int, *, is_warm: bool
) -> RequestUsage:
    """Return the usage of a request with its whole transcript.

    Args:
        saved: tokens that compression saved in this request.
        added: tokens that the transcript gained since the previous request.
        is_warm: whether the provider's cache had the previous request.
    """
    whole = usage.prompt_tokens + max(0, saved)
    cached = max(0, whole - max(0, added)) if is_warm else 0
    written = whole - cached if usage.cache_write_tokens else 0
    hour = whole - cached if usage.cache_write_1h_tokens and not written else 0
    return RequestUsage(whole, cached, written, hour, usage.completion_tokens)
