"""`Account`: keep a session's bill in the ledger's store.

Each process adds its own cost. While the store fails, the cost waits in the process.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from ..concurrency import renew_after_fork
from ..errors import LedgerCorrupt, LedgerError
from ..ledger.segments import Session
from ..ledger.stores import NoteStore, Store
from .bills import Bill
from .request import SessionKey

logger = logging.getLogger(__name__)

PACE_SECONDS = 30.0
"""Least seconds between two writes of a long session's bill."""

YOUNG_SHARE = 0.1
"""New requests above this share of the stored requests are written at once."""


class Account:
    """Keep a session's bill and the time of its last request; thread-safe."""

    def __init__(self, key: SessionKey) -> None:
        self._session = Session(*key, tip=key[1], parent=None)
        self.requested = 0.0
        """Seconds since 1970 of the last known request; 0: none."""
        self._lock = renew_after_fork(threading.Lock())
        self._at_store = renew_after_fork(threading.Lock())  # one thread reads or writes the store
        self._stored = self._written = self._due = Bill()
        """Parts of the bill: `_stored` is in the store, `_written` is being written, `_due`
        waits."""
        self._stored_request = 0.0
        """Time of the newest request in the store; 0: none."""
        self._opened_at = self._read_at = 0.0
        """Times of the first and the last reading of the store."""
        renew_after_fork(self)

    def _at_fork_reinit(self) -> None:
        self._written = self._due = Bill()  # the parent process writes these parts

    @property
    def bill(self) -> Bill:
        """The bill, as this process knows it."""
        with self._lock:
            return self._stored + self._written + self._due

    def touch(self, now: float) -> None:
        """Record the time of a request."""
        with self._lock:
            self.requested = now

    def add(self, bill: Bill) -> None:
        """Add a cost that the store does not have yet."""
        with self._lock:
            self._due += bill

    def refresh(
        self, store: Store, opener: Callable[[], Session], now: float, *, always: bool = False
    ) -> None:
        """Read other processes' costs, at most every `PACE_SECONDS`."""
        if not (always or now - self._read_at >= PACE_SECONDS) or not isinstance(store, NoteStore):
            return
        with self._at_store_alone(waits=always) as is_alone:
            if is_alone:
                self._session = opener()
                self._apply_note(store.note(self._session), self._written)
                self._read_at, self._opened_at = now, self._opened_at or now

    def save(self, store: Store, *, always: bool = False) -> None:
        """Write unstored costs if they are many or older than `PACE_SECONDS`."""
        if not (always or self._is_write_due()) or not isinstance(store, NoteStore):
            return
        with self._at_store_alone(waits=always) as is_alone:
            if is_alone:
                self._write(store)

    def _write(self, store: NoteStore) -> None:
        with self._lock:
            # What an earlier write could not store is still in `_written`.
            self._written, self._due = self._written + self._due, Bill()
            due, requested = self._written, self.requested
        if due == Bill() and requested <= self._stored_until():
            return

        def change(note: str) -> str:
            before, bill = _parse_note(note)
            values = {"requested": max(before, requested), "bill": asdict(bill + due)}
            return json.dumps(values, separators=(",", ":"))

        self._apply_note(store.change_note(self._session, change), Bill())

    @contextmanager
    def _at_store_alone(self, *, waits: bool) -> Iterator[bool]:
        """Yield whether this thread may use the store; log the store's failure."""
        is_alone = self._at_store.acquire(blocking=waits)
        try:
            yield is_alone
        except LedgerError as error:
            logger.debug("a bill is not in the store yet: %s", error)
        finally:
            if is_alone:
                self._at_store.release()

    def _is_write_due(self) -> bool:
        with self._lock:
            is_late = self.requested - self._stored_until() >= PACE_SECONDS
            due = self._written.requests + self._due.requests
            return is_late or due > YOUNG_SHARE * self._stored.requests

    def _stored_until(self) -> float:
        return self._stored_request or self._opened_at

    def _apply_note(self, note: str, written: Bill) -> None:
        requested, stored = _parse_note(note)
        with self._lock:
            self._stored, self._written = stored, written
            self.requested = max(self.requested, requested)
            self._stored_request = requested


def stored_bill(store: Store, session: Session) -> Bill:
    """Return the stored bill of a session.

    Raises:
        LedgerError: the store cannot be read.
    """
    return _parse_note(store.note(session))[1] if isinstance(store, NoteStore) else Bill()


def _parse_note(note: str) -> tuple[float, Bill]:
    try:
        values = json.loads(note) if note else {}
        return values.get("requested", 0.0), Bill.from_mapping(values["bill"]) if values else Bill()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerCorrupt("a session's note is no bill") from error
