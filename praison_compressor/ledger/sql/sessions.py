"""Sessions and their entries, read from and written as rows."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, or_, select

from ...errors import LedgerCorrupt, SessionNotFound
from ...messages.forks import renewed
from ..chain import FORGOTTEN
from ..segments import Entry, Epoch, Segment, Session, Usage
from .archive import Archive, Packer
from .schema import entries, epochs, sessions

__all__ = [
    "Snapshot",
    "Snapshots",
    "epochs_of",
    "find",
    "name_of",
    "opened",
    "require",
    "scope_of",
    "sealed",
    "segment_of",
    "snapshot",
    "unsealed",
    "within",
]


@dataclass(frozen=True)
class Snapshot:
    """A session as it was read, and what tells whether it is still so."""

    session: Session
    own: int
    """How many entries are its own."""

    def is_current(self, row: Row[Any]) -> bool:
        """Whether nothing was committed or forgotten since."""
        return bool(self.session.edits == row.edits and self.session.tip == row.tip)


class Snapshots:
    """The sessions that this process read last, the least used dropped; thread-safe."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._lock = renewed(threading.Lock())
        self._kept: OrderedDict[tuple[str, str], Snapshot] = OrderedDict()

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()

    def keep(self, found: Snapshot) -> Session:
        """Remember a session that was read."""
        key = (found.session.namespace, found.session.id)
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found.session

    def get(self, row: Row[Any]) -> Snapshot | None:
        """What was read of that session before."""
        with self._lock:
            return self._kept.get((row.namespace, row.id))


# ---------------------------------------------------------------- sessions
def find(connection: Connection, namespace: str, session_id: str) -> Row[Any] | None:
    """The session that an id names: the stable one or an epoch's."""
    query = (
        select(
            sessions,
            epochs.c.id.label("epoch_id"),
            epochs.c.number.label("epoch_number"),
            epochs.c.length.label("epoch_length"),
        )
        .join(epochs, epochs.c.session_key == sessions.c.key)
        .where(epochs.c.namespace == namespace, epochs.c.id == session_id)
    )
    return connection.execute(query).first()


def require(connection: Connection, namespace: str, session_id: str) -> Row[Any]:
    """The same.

    Raises:
        SessionNotFound: there is none.
    """
    row = find(connection, namespace, session_id)
    if row is None:
        raise SessionNotFound(
            f"no session {session_id!r} in namespace {namespace!r}: nothing of that name was "
            "compressed in this store"
        )
    return row


def name_of(connection: Connection, key: int) -> Row[Any]:
    """The session of a key."""
    return connection.execute(select(sessions).where(sessions.c.key == key)).one()


def scope_of(connection: Connection, row: Row[Any]) -> list[tuple[int, int]]:
    """The session and those it inherits from, oldest first, each with the entries that count."""
    scope = [(row.key, row.length)]
    while row.base_key is not None:
        scope.append((row.base_key, row.base_length))
        row = name_of(connection, row.base_key)
    return scope[::-1]


def within(scope: Sequence[tuple[int, int]]) -> ColumnElement[bool]:
    """The entries that a scope has, and no later ones of the sessions it inherits from."""
    return or_(
        *(
            and_(entries.c.session_key == session_key, entries.c.position < length)
            for session_key, length in scope
        )
    )


def epochs_of(connection: Connection, row: Row[Any], upto: int | None = None) -> list[Epoch]:
    """The epochs of the session's lineage, root first, to the number given (the newest: None)."""
    found: list[Epoch] = []
    count = row.epochs if upto is None else upto + 1
    while True:
        query = (
            select(epochs)
            .where(epochs.c.session_key == row.key, epochs.c.number < count)
            .order_by(epochs.c.number)
        )
        own = [Epoch(e.id, e.parent_id, row.id, e.created) for e in connection.execute(query)]
        found = own + found
        if row.base_key is None:
            return found
        count = row.base_epochs
        row = name_of(connection, row.base_key)


def snapshot(archive: Archive, row: Row[Any], known: Snapshot | None) -> Snapshot:
    """The session as it is now; entries that are known already are not read again."""
    if known is not None and known.session.edits == row.edits and known.own <= row.length:
        found, own = list(known.session.entries), known.own
    else:
        above = scope_of(archive.connection, row)[:-1]
        found = [entry for key, length in above for entry in _entries(archive, key, 0, length)]
        own = 0
    found += _entries(archive, row.key, own, row.length)
    session = Session(
        row.namespace, row.id, row.tip, row.tip_parent, row.head_hash, tuple(found), row.edits
    )
    return Snapshot(session, row.length)


# ---------------------------------------------------------------- entries
def _entries(archive: Archive, session_key: int, start: int, end: int) -> Iterator[Entry]:
    if start >= end:
        return
    query = (
        select(entries)
        .where(
            entries.c.session_key == session_key,
            entries.c.position >= start,
            entries.c.position < end,
        )
        .order_by(entries.c.position)
    )
    for row in archive.connection.execute(query):
        yield unsealed(archive.packer, row)


def sealed(packer: Packer, entry: Entry) -> bytes:
    """Salt, archive digest and segment in one payload: what is destroyed together."""
    lines = (entry.salt, entry.archive, entry.segment.payload())
    return packer.pack("\n".join(lines).encode("utf-8", "surrogatepass"))


def unsealed(packer: Packer, row: Row[Any]) -> Entry:
    """The entry of a row; a tombstone where its payload was forgotten.

    Raises:
        LedgerCorrupt: the payload cannot be read.
    """
    if row.sealed is None:
        return Entry(FORGOTTEN, row.epoch, row.parent, "", row.commitment, row.hash)
    try:
        salt, archive, payload = opened(packer, row.sealed)
        segment = segment_of(json.loads(payload))
    except (LedgerCorrupt, LookupError, ValueError, TypeError, AttributeError) as error:
        raise LedgerCorrupt(f"entry {row.position} ({row.epoch}): {error}") from error
    return Entry(segment, row.epoch, row.parent, salt, row.commitment, row.hash, archive=archive)


def opened(packer: Packer, payload: bytes) -> tuple[str, str, str]:
    """Salt, archive digest and the segment's JSON as it was sealed."""
    text = packer.unpack(payload).decode("utf-8", "surrogatepass")
    salt, archive, segment = text.split("\n", 2)
    return salt, archive, segment


def segment_of(found: dict[str, Any]) -> Segment:
    """The segment of a payload's JSON.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: it is none.
    """
    # A field that a later version added is left out here; the seal is over the JSON as it came.
    known = {field.name for field in fields(Segment)}
    values = {name: value for name, value in found.items() if name in known}
    values["run"] = tuple(map(_text, values["run"]))
    values["archived_as"] = tuple((at, name) for at, name in values.get("archived_as", ()))
    values["usage"] = Usage(**values["usage"])
    segment = Segment(**values)
    _text(segment.rendered["role"])
    if not all(isinstance(n, int) for n in (segment.tokens, segment.source_tokens)):
        raise TypeError("its tokens are no numbers")
    return segment


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text is expected")
    return value
