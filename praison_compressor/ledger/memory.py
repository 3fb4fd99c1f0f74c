"""The ledger in this process's memory: for agents that asked for no store."""

from __future__ import annotations

import copy
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import LedgerConflict, SessionNotFound
from ..messages import Message, content_digest, to_plain
from ..messages.digests import Originals
from ..messages.forks import renewed
from .segments import (
    ARCHIVE_ONLY,
    GENESIS,
    Entry,
    Epoch,
    Outline,
    Segment,
    Session,
    archive_digest,
    earlier_outline,
    plain_outline,
    seal,
)
from .words import Hit, Place, hits

logger = logging.getLogger(__name__)


MOST_SESSIONS = 1_024
"""Those used last are held: a service that runs for months has not room for all it ever had."""


@dataclass(frozen=True)
class _Kept:
    """What the memory store holds of one session; replaced whole, so that a fork finds it whole."""

    session: Session
    epochs: tuple[Epoch, ...]
    above: tuple[Epoch, ...] = ()
    """The lineage that it was forked from."""
    outline: Outline | None = None


class MemoryStore:
    """A ledger in this process's memory: nobody's words go to a disk unasked."""

    def __init__(self) -> None:
        self._lock = renewed(threading.RLock())
        self._sessions: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._stable: dict[tuple[str, str], str] = {}
        self._leases: dict[tuple[str, str], tuple[str, float]] = {}
        renewed(self)

    def _at_fork_reinit(self) -> None:
        self._leases = {}  # their holders are not in the child
        self._stable = {
            (namespace, epoch.id): session_id
            for (namespace, session_id), kept in self._sessions.items()
            for epoch in kept.epochs
        }

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        with self._lock:
            stable = self._stable.get((namespace, session_id))
            if stable is None and parent_session_id is None:
                # Not held before its first commit: a look at a name makes no session.
                return Session(namespace, session_id, session_id, None)
            if stable is None:
                return self._create(namespace, session_id, parent_session_id).session
            self._sessions.move_to_end((namespace, stable))
            return self._sessions[namespace, stable].session

    def _create(self, namespace: str, session_id: str, parent_id: str | None) -> _Kept:
        entries: tuple[Entry, ...] = ()
        above: tuple[Epoch, ...] = ()
        outline = None
        if parent_id is not None and (namespace, parent_id) in self._stable:
            entries = self._at(namespace, parent_id)
            above = tuple(self._lineage(namespace, parent_id))
            parent = self._sessions[namespace, self._stable[namespace, parent_id]]
            outline = _outline_at(parent, entries)
        head = entries[-1].hash if entries else GENESIS
        session = Session(namespace, session_id, session_id, parent_id, head, entries)
        root = Epoch(session_id, parent_id, session_id, time.time())
        return self._put(_Kept(session, (root,), above, outline))

    def _put(self, kept: _Kept) -> _Kept:
        """Hold the session as it is now, and no more sessions than there is room for."""
        session = kept.session
        self._sessions[session.namespace, session.id] = kept
        self._sessions.move_to_end((session.namespace, session.id))
        self._stable[session.namespace, session.tip] = session.id
        while len(self._sessions) > MOST_SESSIONS:
            (namespace, session_id), gone = self._sessions.popitem(last=False)
            for epoch in gone.epochs:
                del self._stable[namespace, epoch.id]
            logger.info("session %s is the least used of %d: forgotten", session_id, MOST_SESSIONS)
        return kept

    def _at(self, namespace: str, epoch_id: str) -> tuple[Entry, ...]:
        """The entries as they stood in that epoch, all of them for the stable id."""
        kept = self._sessions[namespace, self._stable[namespace, epoch_id]]
        if epoch_id == kept.session.id:
            return kept.session.entries
        known = [epoch.id for epoch in kept.epochs]
        later = set(known[known.index(epoch_id) + 1 :])
        return tuple(entry for entry in kept.session.entries if entry.epoch not in later)

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        outline: Outline | None = None,
    ) -> Session:
        with self._lock:
            kept = self._sessions.get((session.namespace, session.id))
            if kept is None and session.tip == session.id:
                kept = self._create(session.namespace, session.id, session.parent)
            if kept is None or kept.session.tip != session.tip:
                tip = "gone" if kept is None else f"now {kept.session.tip}"
                raise LedgerConflict(f"session {session.id}: the tip is {tip}")
            epoch = f"{session.id}.c{len(kept.epochs)}-{secrets.token_hex(4)}"
            head, entries = kept.session.head_hash, kept.session.entries
            for segment, originals in segments:
                entry = seal(segment, head, epoch, archive=archive_digest(originals))
                entries += (replace(entry, originals=_private(originals)),)
                head = entry.hash
            after = replace(
                kept.session, tip=epoch, parent=session.tip, head_hash=head, entries=entries
            )
            epochs = (*kept.epochs, Epoch(epoch, session.tip, session.id, time.time()))
            whole = kept.outline if outline is None else plain_outline(outline)
            return self._put(replace(kept, session=after, epochs=epochs, outline=whole)).session

    def keep(self, session: Session, outline: Outline) -> bool:
        with self._lock:
            kept = self._sessions.get((session.namespace, session.id))
            if kept is None or kept.session.tip != session.tip or not session.entries:
                return False
            self._put(replace(kept, outline=plain_outline(outline)))
            return True

    def transcript(self, session: Session) -> list[Message]:
        with self._lock:
            kept = self._sessions.get((session.namespace, session.id))
            if kept is None:
                return []
            outline, entries = kept.outline, kept.session.entries
        if outline is None:
            if entries:
                logger.warning(ARCHIVE_ONLY, session.id)
            found = {content_digest(m): m for entry in entries for m in entry.originals}
            return copy.deepcopy(list(found.values()))
        return copy.deepcopy(
            [
                message
                for item in outline
                for message in (entries[item].originals if isinstance(item, int) else (item,))
            ]
        )

    def originals(self, session: Session, entry: Entry) -> list[Message] | None:
        return copy.deepcopy(list(entry.originals))

    def lineage(self, namespace: str, session_id: str) -> list[Epoch]:
        with self._lock:
            return list(self._lineage(namespace, session_id))

    def _lineage(self, namespace: str, session_id: str) -> Iterator[Epoch]:
        """The epochs up to the one named; all of them for the stable id."""
        kept = self._required(namespace, session_id)
        yield from kept.above
        for epoch in kept.epochs:
            yield epoch
            if epoch.id == session_id != kept.session.id:
                return

    def _required(self, namespace: str, session_id: str) -> _Kept:
        stable = self._stable.get((namespace, session_id))
        if stable is None:
            raise SessionNotFound(f"no session {session_id!r} in namespace {namespace!r}")
        return self._sessions[namespace, stable]

    def search(
        self,
        namespace: str,
        query: str,
        session_id: str | None = None,
        limit: int = 10,
        *,
        archived_only: bool = False,
    ) -> list[Hit]:
        with self._lock:
            chosen = [each for (name, _), each in self._sessions.items() if name == namespace]
            if session_id is not None:
                chosen = [self._required(namespace, session_id)]
        pool: dict[str, Message] = {}
        places: dict[str, Place] = {}
        for kept in chosen:
            standing = () if archived_only else kept.outline or ()
            found = [(m, "", 0) for m in standing if not isinstance(m, int)]
            found += [
                (message, entry.hash, ordinal)
                for entry in kept.session.entries
                for ordinal, message in enumerate(entry.originals)
            ]
            for message, entry_hash, ordinal in found:
                name = content_digest(message)
                pool[name], places[name] = message, (kept.session.id, entry_hash, ordinal)
        return copy.deepcopy(hits(query, pool, limit, places.__getitem__))

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        key, now = (session.namespace, session.id), time.monotonic()
        with self._lock:
            owner, until = self._leases.get(key, (holder, now))
            if owner != holder and now < until:
                return False
            self._leases[key] = holder, now + seconds
            return True

    def release(self, session: Session, holder: str) -> None:
        key = session.namespace, session.id
        with self._lock:
            if self._leases.get(key, ("", 0.0))[0] == holder:
                del self._leases[key]

    def close(self) -> None:
        return None


def _outline_at(parent: _Kept, entries: Sequence[Entry]) -> Outline | None:
    """What a fork begins with that has the parent's first entries, these."""
    if len(entries) == len(parent.session.entries) or parent.outline is None:
        return parent.outline
    length = entries[-1].segment.transcript_length if entries else 0
    every = parent.session.entries
    return earlier_outline(parent.outline, len(entries), length, lambda n: every[n].originals)


def _private(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as nobody else can edit them."""
    is_private = isinstance(messages, Originals)
    return tuple(messages) if is_private else tuple(map(to_plain, messages))
