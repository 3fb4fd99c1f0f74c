"""Keep the ledger in this process's memory."""

from __future__ import annotations

import copy
import logging
import secrets
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from ..concurrency import renew_after_fork
from ..errors import LedgerConflict, SessionNotFound
from ..messages import Message, content_digest
from ..messages.digests import MessageCache, Originals
from .segments import (
    ARCHIVE_ONLY,
    DROPPED,
    GENESIS,
    Entry,
    Epoch,
    Outline,
    Segment,
    Session,
    archive_digest,
    expand_outline,
    keys_over_limit,
    plain_outline,
    seal,
)
from .stores import ALL_MESSAGES
from .words import Hit, HitPlace, find_hits

logger = logging.getLogger(__name__)


LIMIT_MB = 256.0
"""Limit of a namespace's originals."""

MOST_SESSIONS = 1_024
"""Sessions that are kept, those used last."""


class _Original:
    """An archived message, shared by the entries of its namespace."""

    __slots__ = ("__weakref__", "message", "name", "size")

    def __init__(self, name: str, message: Message, size: int) -> None:
        self.name = name
        self.message = message
        self.size = size


def _entry_messages(entry: Entry) -> list[Message]:
    return [original.message for original in entry.originals]


@dataclass(frozen=True)
class _MemorySession:
    """One session in memory, replaced whole: a fork may happen any time."""

    session: Session
    epochs: tuple[Epoch, ...]
    """The lineage, its parent's epochs before its own."""
    outline: Outline | None = None

    def epochs_to(self, epoch_id: str) -> tuple[Epoch, ...]:
        """Return the lineage of an epoch; the whole for the stable id."""
        if epoch_id == self.session.id:
            return self.epochs
        ids = [epoch.id for epoch in self.epochs]
        return self.epochs[: ids.index(epoch_id) + 1]


def _recorded_transcript(kept: _MemorySession, length: int | None = None) -> list[Message] | None:
    """Return the recorded transcript, of `length` messages, or None."""
    if kept.outline is None:
        return None
    each = [(entry.segment, _entry_messages(entry)) for entry in kept.session.entries]
    found = expand_outline(kept.outline, each.__getitem__, length)
    return copy.deepcopy(found)


class MemoryStore:
    """A ledger in this process's memory; nothing is written to a disk."""

    limit_mb: float = LIMIT_MB
    """Limit of a namespace's originals; the compressor trims the archive to it."""

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
        self._leases = {}  # their holders are not in the child

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        """See `Store.open`."""
        with self._lock:
            kept = self._find_session(namespace, session_id)
            if kept is None and parent_session_id is None:
                # Opening a name creates nothing before the first commit.
                return Session(namespace, session_id, session_id, None)
            return self._store_session(
                kept or self._new_session(namespace, session_id, parent_session_id)
            )

    def _find_session(self, namespace: str, name: str) -> _MemorySession | None:
        """Return the session with this id, or that opened this epoch."""
        kept = self._sessions.get((namespace, name))
        if kept is not None:
            return kept
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
        later = {epoch.id for epoch in base.epochs[len(above) :]}
        entries = tuple(entry for entry in base.session.entries if entry.epoch not in later)
        head = entries[-1].hash if entries else GENESIS
        session = replace(session, head_hash=head, entries=entries)
        if not later:
            return _MemorySession(session, (*above, root), base.outline)
        length = entries[-1].segment.transcript_length if entries else 0
        whole = _recorded_transcript(base, length)
        return _MemorySession(session, (*above, root), None if whole is None else tuple(whole))

    def _store_session(self, kept: _MemorySession) -> Session:
        """Keep the session; drop the least used ones above the limit."""
        session = kept.session
        self._sessions[session.key] = kept
        self._sessions.move_to_end(session.key)
        while len(self._sessions) > MOST_SESSIONS:
            (_, gone), _ = self._sessions.popitem(last=False)
            logger.info("session %s is the least used of %d: forgotten", gone, MOST_SESSIONS)
        return session

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        outline: Outline | None = None,
    ) -> Session:
        """See `Store.commit`."""
        with self._lock:
            kept = self._sessions.get(session.key)
            if kept is None and session.tip == session.id:
                kept = self._new_session(session.namespace, session.id, session.parent)
            if kept is None or kept.session.tip != session.tip:
                tip = "gone" if kept is None else f"now {kept.session.tip}"
                raise LedgerConflict(f"session {session.id}: the tip is {tip}")
            whole = kept.outline if outline is None else plain_outline(outline)
            if not segments:
                return self._store_session(replace(kept, outline=whole))
            own = sum(epoch.session_id == session.id for epoch in kept.epochs)
            epoch = f"{session.id}.c{own}-{secrets.token_hex(4)}"
            head, entries = kept.session.head_hash, kept.session.entries
            for segment, originals in segments:
                entry = seal(segment, head, epoch, archive=archive_digest(originals))
                held = self._archive_originals(session.namespace, originals)
                entries += (replace(entry, originals=held),)
                head = entry.hash
            after = replace(
                kept.session, tip=epoch, parent=session.tip, head_hash=head, entries=entries
            )
            after = replace(after, updated=time.time())
            undoes = any(segment.kind == "undo" for segment, _ in segments)
            opened = Epoch(epoch, session.tip, session.id, time.time(), undoes)
            return self._store_session(_MemorySession(after, (*kept.epochs, opened), whole))

    def _archive_originals(
        self, namespace: str, originals: Sequence[Message]
    ) -> tuple[_Original, ...]:
        """Archive the originals; a dropped one is archived again."""
        archive = self._archives[namespace]
        if not isinstance(originals, Originals):  # those are copies that nobody edits
            originals = Originals(MessageCache().all(originals))
        found = []
        each = zip(originals.content_digests(), originals, originals.sizes(), strict=True)
        for name, message, size in each:
            held = archive.get(name)
            if held is None:
                held = archive[name] = _Original(name, message, size)
            held.message = message
            found.append(held)
        return tuple(found)

    def keep(self, session: Session, outline: Outline) -> bool:
        """See `Store.keep`."""
        with self._lock:
            kept = self._sessions.get(session.key)
            if kept is None and session.tip == session.id:
                kept = self._new_session(session.namespace, session.id, session.parent)
            if kept is None or kept.session.tip != session.tip:
                return False
            written = replace(kept.session, updated=time.time())
            self._store_session(replace(kept, session=written, outline=plain_outline(outline)))
            return True

    def transcript(self, session: Session) -> list[Message]:
        """See `Store.transcript`."""
        with self._lock:
            kept = self._sessions.get(session.key)
        if kept is None:
            return []
        entries = kept.session.entries
        if kept.outline is not None:
            return _recorded_transcript(kept) or []
        if entries:
            logger.warning(ARCHIVE_ONLY, session.id)
        every = {held.name: held.message for entry in entries for held in entry.originals}
        return copy.deepcopy([m for m in every.values() if m is not DROPPED])

    def originals(
        self, session: Session, entry: Entry, wanted: slice = ALL_MESSAGES
    ) -> list[Message] | None:
        """See `Store.originals`."""
        found: list[Message] = [{} for _ in entry.originals]
        found[wanted] = copy.deepcopy(_entry_messages(entry)[wanted])
        return found

    def trim(self, namespace: str, most_bytes: int) -> int:
        """See `BoundedStore.trim`."""
        with self._lock:
            archive = self._archives[namespace]
            there = [held for held in archive.values() if held.message is not DROPPED]
            gone = keys_over_limit({held.name: held.size for held in there}, most_bytes)
            for name in gone:
                archive[name].message = DROPPED
            return len(gone)

    def find_dropped(self, namespace: str, digests: Iterable[str]) -> frozenset[str]:
        """See `BoundedStore.find_dropped`."""
        with self._lock:
            archive = self._archives[namespace]
            known = [archive.get(digest) for digest in digests]  # the last holder may go any time
        return frozenset(held.name for held in known if held and held.message is DROPPED)

    def lineage(self, namespace: str, session_id: str) -> list[Epoch]:
        """See `Store.lineage`."""
        with self._lock:
            return list(self._require_session(namespace, session_id).epochs_to(session_id))

    def _require_session(self, namespace: str, session_id: str) -> _MemorySession:
        kept = self._find_session(namespace, session_id)
        if kept is None:
            raise SessionNotFound(f"no session {session_id!r} in namespace {namespace!r}")
        return kept

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
            chosen = [each for (name, _), each in self._sessions.items() if name == namespace]
            if session_id is not None:
                chosen = [self._require_session(namespace, session_id)]
        pool: dict[str, Message] = {}
        places: dict[str, HitPlace] = {}
        runs: list[list[str]] = []
        for kept in chosen:
            standing = () if archived_only else kept.outline or ()
            found = [(m, "", 0) for m in standing if not isinstance(m, int)]
            found += [
                (held.message, entry.hash, ordinal)
                for entry in kept.session.entries
                for ordinal, held in enumerate(entry.originals)
                if held.message is not DROPPED
            ]
            for message, entry_hash, ordinal in found:
                name = content_digest(message)
                pool[name], places[name] = message, (kept.session.id, entry_hash, ordinal)
            runs += [[held.name for held in entry.originals] for entry in kept.session.entries]
        return copy.deepcopy(find_hits(query, pool, limit, places.__getitem__, runs))

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

    def note(self, session: Session, change: Callable[[str], str] | None = None) -> str:
        """See `NoteStore.note`."""
        key = session.key
        with self._lock:
            if change is not None:
                self._notes[key] = change(self._notes.pop(key, ""))
                while len(self._notes) > MOST_SESSIONS:
                    self._notes.popitem(last=False)
            return self._notes.get(key, "")

    def close(self) -> None:
        """See `Store.close`."""
