"""Open the store that a command names; find a session in it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..config import CompressorConfig, nearest_name
from ..errors import SessionNotFound, StoreUnavailable
from ..ledger.segments import Session
from ..recall.answers import Recall
from ..tokens.counter import TokenCounter

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

SCREEN_TOKENS = 2_000
"""Tokens of an answer: a screen or two."""

STORED_WHEN = (
    "A session is stored when it is first compressed: by an agent with "
    "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
    "praison-compressor compress FILE --store URL --session ID."
)


@contextlib.contextmanager
def open_ledger(config: CompressorConfig, *, new: bool = False) -> Iterator[SqlStore]:
    """Open the store of the options, the environment, or the user's folder.

    Without `new` a missing ledger is an error, because the path may be mistyped.
    """
    from ..ledger.sql.database import default_path
    from ..ledger.sql.store import open_store

    config = config.with_environment()
    encrypted = config.store_key is not None and not default_path().exists()
    address = config.store_url or default_path(encrypted=encrypted)
    store = open_store(address, key=config.store_key)
    try:
        if not new and not store.exists():
            raise StoreUnavailable(
                f"{store.location}: there is no such file, or no ledger in it; check --store. "
                + STORED_WHEN
            )
        yield store
    finally:
        store.close()


@dataclass(frozen=True)
class Tenant:
    """An open store, and one tenant in it."""

    store: SqlStore
    namespace: str
    url: str | None
    """The store as the command line names it."""

    def find_session(self, name: str) -> Session:
        """Return the stored session of an id or an epoch's id.

        Raises:
            SessionNotFound: there is no such session; the error has the nearest id.
        """
        try:
            self.store.lineage(self.namespace, name)  # `open` makes a session of an unknown name
        except SessionNotFound as error:
            nearest = nearest_name(name, (info.id for info in self.store.sessions(self.namespace)))
            hint = f" (did you mean {nearest!r}?)" if nearest else ""
            raise SessionNotFound(f"{error}{hint}") from error
        return self.store.open(self.namespace, name)

    def find_readable_session(self, name: str) -> Session:
        """Return the stored session unless all of it was forgotten.

        Raises:
            SessionNotFound: there is no such session, or only its tombstones.
        """
        session = self.find_session(name)
        is_gone = session.entries and all(entry.is_forgotten for entry in session.entries)
        if is_gone and not self.store.transcript(session):
            raise SessionNotFound(f"session {name!r} was forgotten; only its tombstones are left")
        return session

    def recall(self, session: Session) -> Recall:
        """Return a Recall whose cut answers name the command to continue."""

        def command_to_read(reference: str) -> str:
            first = reference.partition(",")[0]  # `show` takes one
            words = ["praison-compressor", "show", session.id, first]
            if self.url and "@" not in self.url:  # it may have a password
                words += ["--store", self.url]
            if self.namespace != CompressorConfig.namespace:
                words += ["--namespace", self.namespace]
            return shlex.join(words)

        return Recall(
            lambda: self.store,
            lambda: session,
            TokenCounter(None).text,
            turn_tokens=None,
            read_on=command_to_read,
        )
