"""Define the protocols of a store, and what their methods return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..config import NAME
from ..messages import Message
from .segments import Entry, Epoch, Segment, Session, Skeleton
from .words import Hit

ALL_MESSAGES = slice(None)


@runtime_checkable
class Store(Protocol):
    """Keeps ledgers, by namespace and session.

    The methods may do I/O: the compressor calls them off the event loop.
    """

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        """Return the session of a stable or epoch id, perhaps new.

        Raises:
            ConfigError: a name that `check_names` refuses.
        """

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        skeleton: Skeleton | None = None,
    ) -> Session:
        """Archive the originals and append the segments, in one transaction.

        Segments open a new epoch. `skeleton` replaces the recorded transcript. Without a `skeleton`
        the originals are appended to the recorded transcript.

        Raises:
            LedgerConflict: the session has changed since it was read.
            StoreUnavailable: nothing was written.
        """

    def record_transcript(self, session: Session, skeleton: Skeleton) -> bool:
        """Replace the recorded transcript; return False if the session has changed."""

    def transcript(self, session: Session) -> list[Message]:
        """Return the recorded transcript.

        A segment with dropped originals is returned as its rendered message.
        """

    def originals(
        self, session: Session, entry: Entry, wanted: slice = ALL_MESSAGES
    ) -> list[Message] | None:
        """Return an entry's archived messages, or None if forgotten.

        A dropped message is `DROPPED`, one outside `wanted` is `{}`.
        """

    def lineage(self, namespace: str, session_id: str) -> list[Epoch]:
        """Return the epochs from the root to the named epoch.

        A stable id means the newest epoch.

        Raises:
            SessionNotFound: no such session in this namespace.
        """

    def search(
        self,
        namespace: str,
        query: str,
        session_id: str | None = None,
        limit: int = 10,
        *,
        archived_only: bool = False,
    ) -> list[Hit]:
        """Return messages with words of the query, best first.

        A `session_id` limits the search to that session and the messages that it inherits.
        `archived_only` leaves out messages that no segment has replaced.

        Raises:
            ConfigError: a limit below 1.
            SessionNotFound: no such session in this namespace.
        """

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        """Take the summary lease; return False if another holder has it."""

    def release(self, session: Session, holder: str) -> None:
        """Give the lease back."""

    def close(self) -> None:
        """Release the store's resources."""


@runtime_checkable
class BoundedStore(Protocol):
    """A store whose archive has a size limit, as `MemoryStore`."""

    def would_drop(self, namespace: str, sizes: Mapping[str, int]) -> frozenset[str]:
        """Return the digests of the originals that a commit would drop.

        `sizes` has each original's bytes by content digest, in the order of the commit.
        """


@runtime_checkable
class NoteStore(Protocol):
    """A store with a short text beside each session, outside its chain."""

    def note(self, session: Session) -> str:
        """Return the session's text or ""."""

    def change_note(self, session: Session, change: Callable[[str], str]) -> str:
        """Replace the session's text by `change(text)`; return the new text.

        `change` is called again after a conflict.
        """


@dataclass(frozen=True)
class SessionInfo:
    """One session of a list."""

    id: str
    parent_id: str | None
    compressions: int
    undone: int
    created: float
    updated: float


@dataclass(frozen=True)
class Forgotten:
    """What `forget` removed, and what it left."""

    segments: int
    """Segments that became tombstones."""
    messages: int
    """Removed messages, archived or recorded."""
    sessions: tuple[str, ...]
    """Stable ids of the sessions that lost a message or a summary."""
    other_sessions: tuple[str, ...]
    """Forks that lost inherited messages, and sessions that still have some of the messages."""
    pages_cleared: bool = True
    """False if freed pages still hold old bytes."""
    left: tuple[str, ...] = ()
    """A sentence for each copy outside the store; the caller adds these."""


@runtime_checkable
class DurableStore(Protocol):
    """A store in a database, which outlives the process."""

    location: str
    """The database's path or host, without secrets."""
    redact_secrets: bool
    """Whether keys and tokens are redacted before a message is written."""

    def check(self) -> None:
        """Connect to the store; create the tables of a new store.

        Raises:
            StoreUnavailable: the store cannot be reached, or another version wrote it.
        """

    def tree(self, namespace: str, session_id: str) -> list[Epoch]:
        """Return the epochs of a session and all its forks, parents first."""

    def sessions(self, namespace: str) -> list[SessionInfo]:
        """Return the namespace's sessions, last used first, except forgotten sessions."""

    def ids_with_prefix(self, namespace: str, prefix: str, limit: int) -> list[str]:
        """Return session ids that begin with `prefix`, last used first."""

    def extend_transcript(self, session: Session, start: int, messages: Sequence[Message]) -> bool:
        """Replace recorded messages from `start` on; return whether it worked.

        `start` does not count leading system messages. Only messages after the transcript of the
        last commit can be replaced. After False, call `record_transcript`.
        """

    def forget(self, namespace: str, target: str) -> Forgotten:
        """Remove a session (any id) or one message (content digest).

        `forget` removes originals, their summaries and all later summaries, also from the index and
        freed pages. The chain still verifies. A server's write-ahead log, replicas and backups
        still have the removed text.

        Raises:
            SessionNotFound: no such session or message in this namespace.
        """


def redacts_secrets(store: Store) -> bool:
    """Return whether a store is durable and redacts secrets."""
    return isinstance(store, DurableStore) and store.redact_secrets


def check_names(namespace: str, session_id: str, parent_session_id: str | None) -> None:
    """Refuse names that not every store can hold.

    Raises:
        ConfigError: a name is empty, too long, or no text that a database can hold.
    """
    NAME("namespace", namespace)
    NAME("session_id", session_id)
    if parent_session_id is not None:
        NAME("parent_session_id", parent_session_id)
