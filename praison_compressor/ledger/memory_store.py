"""Keep the ledger in this process's memory."""

from __future__ import annotations

import copy
import logging
import secrets
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from weakref import WeakValueDictionary

from ..concurrency import renew_after_fork
from ..errors import LedgerConflict, SessionNotFound
from ..messages import Message, content_digest, to_plain
from ..messages.digests import MessageCache, Originals
from .segments import (
    DROPPED,
    GENESIS,
    Entry,
    Epoch,
    Segment,
    Session,
    Skeleton,
    archive_digest,
    expand_skeleton,
    seal,
    skeleton_messages,
)
from .stores import ALL_MESSAGES, check_names
from .words import Document, Hit, HitPlace, document_of, find_hits

logger = logging.getLogger(__name__)


MOST_SESSIONS = 1_024
"""At most this number of sessions are stored; the least recently used is dropped first."""


@dataclass(eq=False)
class _Original:
    """An archived message, shared by the entries of its namespace."""

    digest: str
    message: Message
    size: int


@dataclass(frozen=True)
class _MemorySession:
    """An immutable session: `os.fork` may copy the session at any time."""

    session: Session
    epochs: tuple[Epoch, ...]
    """The lineage; the parent's epochs come first."""
    skeleton: Skeleton = ()

    def epochs_to(self, epoch_id: str) -> tuple[Epoch, ...]:
        """Return the epochs up to `epoch_id`; for the stable id, all epochs."""
        if epoch_id == self.session.id:
            return self.epochs
        ids = [epoch.id for epoch in self.epochs]
        return self.epochs[: ids.index(epoch_id) + 1]

    def transcript(self, length: int | None = None) -> list[Message] | None:
        """See `expand_skeleton`."""
        entries = self.session.entries
        parts = [(entry.segment, [o.message for o in entry.originals]) for entry in entries]
        return copy.deepcopy(expand_skeleton(self.skeleton, parts.__getitem__, length))

    def placed_messages(self, *, archived_only: bool) -> Iterator[tuple[str, Message, HitPlace]]:
        """Yield (content digest, message, place) of recorded and archived messages."""
        if not archived_only:
            for message in skeleton_messages(self.skeleton):
                yield content_digest(message), message, (self.session.id, "", 0)
        for entry in self.session.entries:
            for ordinal, original in enumerate(entry.originals):
                if original.message is not DROPPED:
                    place = self.session.id, entry.hash, ordinal
                    yield original.digest, original.message, place


class MemoryStore:
    """A ledger in this process's memory; nothing is written to a disk."""

    limit_mb: float = 256.0
    """Megabytes that the originals of a namespace may take."""

    def __init__(self) -> None:
        self._lock = renew_after_fork(threading.RLock())
        self._sessions: OrderedDict[tuple[str, str], _MemorySession] = OrderedDict()
        # Namespace -> content digest -> original, oldest first.
        self._archives: defaultdict[str, WeakValueDictionary[str, _Original]]
        self._archives = defaultdict(WeakValueDictionary)
        self._leases: dict[tuple[str, str], tuple[str, float]] = {}
        self._notes: OrderedDict[tuple[str, str], str] = OrderedDict()
        renew_after_fork(self)

    def _at_fork_reinit(self) -> None:
        self._leases = {}  # the holders do not run in the child

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        """See `Store.open`."""
        check_names(namespace, session_id, parent_session_id)
        with self._lock:
            stored = self._find_session(namespace, session_id)
            if stored is None and parent_session_id is None:
                # Nothing is created before the first commit.
                return Session(namespace, session_id, session_id, None)
            return self._store_session(
                stored or self._new_session(namespace, session_id, parent_session_id)
            )

    def _find_session(self, namespace: str, name: str) -> _MemorySession | None:
        stored = self._sessions.get((namespace, name))
        if stored is not None:
            return stored
        for (space, session_id), other in self._sessions.items():
            ids = [epoch.id for epoch in other.epochs if epoch.session_id == session_id]
            if space == namespace and name in ids:
                return other
        return None

    def _new_session(
        self, namespace: str, session_id: str, parent_id: str | None
    ) -> _MemorySession:
        root = Epoch(session_id, parent_id, session_id, time.time())
        session = Session(namespace, session_id, session_id, parent_id)
        base = None if parent_id is None else self._find_session(namespace, parent_id)
        if base is None or parent_id is None:
            return _MemorySession(session, (root,))
        above = base.epochs_to(parent_id)
        shared = {epoch.id for epoch in above}
        entries = tuple(entry for entry in base.session.entries if entry.epoch in shared)
        head = entries[-1].hash if entries else GENESIS
        session = replace(session, head_hash=head, entries=entries)
        skeleton = base.skeleton
        if above != base.epochs:
            length = entries[-1].segment.transcript_length if entries else 0
            skeleton = tuple(base.transcript(length) or range(len(entries)))
        return _MemorySession(session, (*above, root), skeleton)

    def _store_session(self, stored: _MemorySession) -> Session:
        session = stored.session
        self._sessions[session.key] = stored
        self._sessions.move_to_end(session.key)
        while len(self._sessions) > MOST_SESSIONS:
            (_, dropped), _ = self._sessions.popitem(last=False)
            logger.info(
                "session %s dropped from memory: least recently used, the limit is %d sessions",
                dropped,
                MOST_SESSIONS,
            )
        return session

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        skeleton: Skeleton | None = None,
    ) -> Session:
        """See `Store.commit`."""
        with self._lock:
            stored = self._require_unchanged(session)
            if skeleton is None:
                count = len(stored.session.entries)
                skeleton = (*stored.skeleton, *range(count, count + len(segments)))
            now = time.time()
            written = replace(stored.session, updated=now)
            plain = tuple(item if isinstance(item, int) else to_plain(item) for item in skeleton)
            stored = replace(stored, session=written, skeleton=plain)
            if segments:
                stored = self._with_segments(stored, segments, now)
                self._drop_excess(session.namespace)
            return self._store_session(stored)

    def _with_segments(
        self,
        stored: _MemorySession,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        now: float,
    ) -> _MemorySession:
        session = stored.session
        own = sum(epoch.session_id == session.id for epoch in stored.epochs)
        epoch = f"{session.id}.c{own}-{secrets.token_hex(4)}"
        head, entries = session.head_hash, session.entries
        for segment, run in segments:
            originals = self._archive_originals(session.namespace, run)
            archive = archive_digest(original.digest for original in originals)
            entry = seal(segment, head, epoch, archive=archive)
            entries += (replace(entry, originals=originals),)
            head = entry.hash
        undoes = any(segment.kind == "undo" for segment, _ in segments)
        epochs = *stored.epochs, Epoch(epoch, session.tip, session.id, now, undoes)
        session = replace(session, tip=epoch, parent=session.tip, head_hash=head, entries=entries)
        return replace(stored, session=session, epochs=epochs)

    def _require_unchanged(self, session: Session) -> _MemorySession:
        stored = self._sessions.get(session.key)
        if stored is None and session.tip == session.id:
            stored = self._new_session(session.namespace, session.id, session.parent)
        if stored is None or stored.session.head_hash != session.head_hash:
            reason = "has a newer entry" if session.key in self._sessions else "is gone"
            raise LedgerConflict(f"session {session.id} {reason}; read it again")
        return stored

    def _archive_originals(
        self, namespace: str, originals: Sequence[Message]
    ) -> tuple[_Original, ...]:
        archive = self._archives[namespace]
        if not isinstance(originals, Originals):  # `Originals` are copies that nobody edits
            originals = Originals(MessageCache().all(originals))
        archived = []
        rows = zip(originals.content_digests(), originals, originals.sizes(), strict=True)
        for digest, message, size in rows:
            original = archive.get(digest)
            if original is None:
                original = archive[digest] = _Original(digest, message, size)
            original.message = message  # restores a dropped message
            archived.append(original)
        return tuple(archived)

    def record_transcript(self, session: Session, skeleton: Skeleton) -> bool:
        """See `Store.record_transcript`."""
        try:
            self.commit(session, (), skeleton)
        except LedgerConflict:
            return False
        return True

    def transcript(self, session: Session) -> list[Message]:
        """See `Store.transcript`."""
        with self._lock:
            stored = self._sessions.get(session.key)
        return (stored and stored.transcript()) or []

    def originals(
        self, session: Session, entry: Entry, wanted: slice = ALL_MESSAGES
    ) -> list[Message] | None:
        """See `Store.originals`."""
        messages: list[Message] = [{}] * len(entry.originals)
        messages[wanted] = copy.deepcopy([o.message for o in entry.originals[wanted]])
        return messages

    def would_drop(self, namespace: str, sizes: Mapping[str, int]) -> frozenset[str]:
        """See `BoundedStore.would_drop`."""
        with self._lock:
            excess = self._excess(namespace, sizes)
        return frozenset(original.digest for original in excess) & sizes.keys()

    def _excess(self, namespace: str, sizes: Mapping[str, int]) -> list[_Original]:
        """Return the originals to drop after the originals of `sizes` are archived.

        Originals of more than the average size are dropped first: the user's messages are small.
        """
        archive = dict(self._archives[namespace].items())
        # A dropped original that is archived again keeps its old place in the order.
        kept = [o for d, o in archive.items() if d in sizes or o.message is not DROPPED]
        kept += [_Original(d, {}, size) for d, size in sizes.items() if d not in archive]
        total = sum(original.size for original in kept)
        excess = total - int(self.limit_mb * 1_000_000)
        if excess <= 0:
            return []
        large = [o for o in kept if o.size * len(kept) > total]
        ordered = [*large, *(o for o in kept if o.size * len(kept) <= total)]
        freed = accumulate((o.size for o in ordered), initial=0)
        return [o for o, before in zip(ordered, freed, strict=False) if before < excess]

    def _drop_excess(self, namespace: str) -> None:
        excess = self._excess(namespace, {})
        for original in excess:
            original.message = DROPPED
        if excess:
            logger.warning(
                "namespace %s: %d archived messages (%.2f MB) were dropped from memory, limit_mb "
                "is %.2f; raise limit_mb, or set store_url to a database",
                namespace,
                len(excess),
                sum(original.size for original in excess) / 1_000_000,
                self.limit_mb,
            )

    def lineage(self, namespace: str, session_id: str) -> list[Epoch]:
        """See `Store.lineage`."""
        with self._lock:
            return list(self._require_session(namespace, session_id).epochs_to(session_id))

    def _require_session(self, namespace: str, session_id: str) -> _MemorySession:
        stored = self._find_session(namespace, session_id)
        if stored is None:
            raise SessionNotFound(f"no session {session_id!r} in namespace {namespace!r}")
        return stored

    def search(
        self,
        namespace: str,
        query: str,
        session_id: str | None = None,
        limit: int = 10,
        *,
        archived_only: bool = False,
    ) -> list[Hit]:
        """See `Store.search`."""
        with self._lock:
            if session_id is None:
                searched = [s for (space, _), s in self._sessions.items() if space == namespace]
            else:
                searched = [self._require_session(namespace, session_id)]
        documents: dict[str, Document] = {}
        runs: list[list[str]] = []
        for stored in searched:
            for digest, message, place in stored.placed_messages(archived_only=archived_only):
                documents[digest] = document_of(message, place)
            runs += [[o.digest for o in entry.originals] for entry in stored.session.entries]
        return copy.deepcopy(find_hits(query, documents, limit, runs))

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        """See `Store.claim`."""
        key, now = session.key, time.monotonic()
        with self._lock:
            owner, until = self._leases.get(key, (holder, now))
            if owner != holder and now < until:
                return False
            self._leases[key] = holder, now + seconds
            return True

    def release(self, session: Session, holder: str) -> None:
        """See `Store.release`."""
        key = session.key
        with self._lock:
            if self._leases.get(key, ("", 0.0))[0] == holder:
                del self._leases[key]

    def note(self, session: Session) -> str:
        """See `NoteStore.note`."""
        with self._lock:
            return self._notes.get(session.key, "")

    def change_note(self, session: Session, change: Callable[[str], str]) -> str:
        """See `NoteStore.change_note`."""
        with self._lock:
            note = self._notes[session.key] = change(self._notes.pop(session.key, ""))
            while len(self._notes) > MOST_SESSIONS:
                self._notes.popitem(last=False)
            return note

    def close(self) -> None:
        """See `Store.close`."""
