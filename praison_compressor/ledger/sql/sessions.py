"""Sessions read from rows: their epochs, their entries, and the transcripts recorded of them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, or_, select, text

from ...errors import LedgerCorrupt, SessionNotFound
from ...messages import Message, content_digest
from ...messages.forks import renewed
from ..segments import FORGOTTEN, Entry, Epoch, Outline, Segment, Session, Usage, earlier_outline
from .archive import Archive, Packer, dump, load
from .schema import entries, epochs, inserting, links, sessions, transcripts


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


def by_key(connection: Connection, key: int) -> Row[Any]:
    """The session of a key."""
    return connection.execute(select(sessions).where(sessions.c.key == key)).one()


def scope_of(connection: Connection, row: Row[Any]) -> list[tuple[int, int]]:
    """The session and those it inherits from, oldest first, each with the entries that count."""
    scope = [(row.key, row.length)]
    while row.base_key is not None:
        scope.insert(0, (row.base_key, row.base_length))
        row = by_key(connection, row.base_key)
    return scope


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
    count = row.epochs if upto is None else upto + 1
    query = select(epochs).where(epochs.c.session_key == row.key, epochs.c.number < count)
    rows = connection.execute(query.order_by(epochs.c.number)).all()
    own = [Epoch(each.id, each.parent_id, row.id, each.created) for each in rows]
    if row.base_key is None:
        return own
    return epochs_of(connection, by_key(connection, row.base_key), row.base_epochs - 1) + own


def snapshot(archive: Archive, row: Row[Any], known: Snapshot | None) -> Snapshot:
    """The session as it is now; entries that are known already are not read again."""
    if known is not None and known.session.edits == row.edits and known.own <= row.length:
        found, own = list(known.session.entries), known.own
    else:
        above = scope_of(archive.connection, row)[:-1]
        found = [entry for key, length in above for entry in own_entries(archive, key, 0, length)]
        own = 0
    found += own_entries(archive, row.key, own, row.length)
    session = Session(
        row.namespace, row.id, row.tip, row.tip_parent, row.head_hash, tuple(found), row.edits
    )
    return Snapshot(session, row.length)


# ---------------------------------------------------------------- entries
def rows_of(archive: Archive, session_key: int, start: int = 0, end: int | None = None) -> Any:
    """A session's own entries as rows, in order, from one position up to another."""
    query = select(entries).where(entries.c.session_key == session_key, entries.c.position >= start)
    if end is not None:
        query = query.where(entries.c.position < end)
    return archive.connection.execute(query.order_by(entries.c.position)).all()


def own_entries(archive: Archive, session_key: int, start: int, end: int) -> Iterator[Entry]:
    """The same, opened."""
    if start < end:
        for row in rows_of(archive, session_key, start, end):
            yield unsealed(archive.packer, row)


def sealed(packer: Packer, salt: str, archived: str, segment: str) -> bytes:
    """Salt, archive digest and the segment's JSON in one payload: what is destroyed together."""
    return packer.pack("\n".join((salt, archived, segment)).encode("utf-8", "surrogatepass"))


def unsealed(packer: Packer, row: Row[Any]) -> Entry:
    """The entry of a row; a tombstone where its payload was forgotten.

    Raises:
        LedgerCorrupt: the payload cannot be read.
    """
    if row.sealed is None:
        return Entry(FORGOTTEN, row.epoch, row.parent, "", row.commitment, row.hash)
    try:
        lines = packer.unpack(row.sealed).decode("utf-8", "surrogatepass")
        salt, archived, payload = lines.split("\n", 2)
        segment = _segment_of(json.loads(payload))
    except (LedgerCorrupt, LookupError, ValueError, TypeError, AttributeError) as error:
        raise LedgerCorrupt(f"entry {row.position} ({row.epoch}): {error}") from error
    return Entry(segment, row.epoch, row.parent, salt, row.commitment, row.hash, archive=archived)


def _segment_of(found: dict[str, Any]) -> Segment:
    """The segment of a payload's JSON, every field as it must be."""
    found["run"] = tuple(map(_text, found["run"]))
    found["archived_as"] = tuple((at, name) for at, name in found["archived_as"])
    found["usage"] = Usage(**found["usage"])
    segment = Segment(**found)
    _text(segment.rendered["role"])
    if not all(isinstance(n, int) for n in (segment.tokens, segment.source_tokens)):
        raise TypeError("its tokens are no numbers")
    return segment


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text is expected")
    return value


# ---------------------------------------------------------------- recorded transcripts
# One payload per session, written anew at each commit: its head, its tail, and the numbers of the
# segments between them. It moves on with the session, so that it is no part of the hashed chain.
_NAME_BYTES = 8


def record(archive: Archive, session_key: int, recorded: Outline) -> None:
    """Record the outline in the place of the one before."""
    lines = [str(i).encode() if isinstance(i, int) else dump(i) for i in recorded]
    values = {
        "body": archive.packer.pack(b"\n".join(lines)),
        "names": names_of(archive.packer, recorded),
    }
    archive.connection.execute(
        inserting(archive.connection, transcripts)
        .values(session_key=session_key, **values)
        .on_conflict_do_update(index_elements=[transcripts.c.session_key], set_=values)
    )


def inherit_transcript(archive: Archive, session_key: int, base: Row[Any], length: int) -> None:
    """Give a fork the transcript of its base as it was with `length` own entries: it moves on."""
    recorded = outline(archive, base.key)
    if recorded is None or length == 0 < base.length:
        return
    if length < base.length:
        recorded = _earlier(archive, base, length, recorded)
    if recorded is not None:
        record(archive, session_key, recorded)


def _earlier(archive: Archive, base: Row[Any], length: int, recorded: Outline) -> Outline | None:
    inherited = sum(count for _, count in scope_of(archive.connection, base)[:-1])
    (last,) = own_entries(archive, base.key, length - 1, length)
    standing = _originals(archive, base, {item for item in recorded if isinstance(item, int)})
    return earlier_outline(
        recorded, inherited + length, last.segment.transcript_length, lambda n: standing.get(n, ())
    )


def outline(archive: Archive, session_key: int) -> Outline | None:
    """What was recorded of a session; None where nothing was.

    Raises:
        LedgerCorrupt: it cannot be read.
    """
    query = select(transcripts.c.body).where(transcripts.c.session_key == session_key)
    body = archive.connection.execute(query).scalar()
    return None if body is None else unpacked(archive.packer, body)


def unpacked(packer: Packer, body: bytes) -> Outline:
    """The outline in a payload.

    Raises:
        LedgerCorrupt: it cannot be read.
    """
    try:
        lines = packer.unpack(body).split(b"\n")
    except LedgerCorrupt as error:
        raise LedgerCorrupt(f"the recorded transcript: {error}") from error
    return tuple(int(line) if line.isdigit() else load(line) for line in lines if line)


def whole_transcript(archive: Archive, row: Row[Any]) -> list[Message] | None:
    """The session's messages in order, every segment replaced by its originals."""
    recorded = outline(archive, row.key)
    if recorded is None:
        return None
    wanted = {item for item in recorded if isinstance(item, int)}
    standing = _originals(archive, row, wanted) if wanted else {}
    found: list[Message] = []
    for item in recorded:
        found += standing.get(item, ()) if isinstance(item, int) else (item,)
    return found


def _originals(archive: Archive, row: Row[Any], wanted: set[int]) -> dict[int, list[Message]]:
    """By the place of its entry: originals, without those that were forgotten."""
    keys: dict[int, list[int]] = {}
    start = 0
    for session_key, length in scope_of(archive.connection, row):
        query = (
            select(entries.c.position, links.c.message_key)
            .join(links, links.c.entry_key == entries.c.key)
            .where(entries.c.session_key == session_key, entries.c.position < length)
            .order_by(entries.c.position, links.c.ordinal)
        )
        for position, key in archive.connection.execute(query):
            if start + position in wanted:
                keys.setdefault(start + position, []).append(key)
        start += length
    found = archive.get({key for each in keys.values() for key in each})
    return {place: [found[key] for key in each] for place, each in keys.items()}


def literals(recorded: Outline) -> Iterator[Message]:
    """The messages that stand in an outline themselves."""
    return (item for item in recorded if not isinstance(item, int))


def names_of(packer: Packer, recorded: Outline) -> bytes:
    """A few bytes of each message's name: by them `forget` finds who holds it, unread."""
    return b"".join(_short(packer, content_digest(message)) for message in literals(recorded))


def _short(packer: Packer, digest: str) -> bytes:
    return packer.name(digest)[-_NAME_BYTES:]


_HOLDS = {
    "sqlite": "instr(names, :wanted) > 0",
    "postgresql": "position(CAST(:wanted AS bytea) IN names) > 0",
}


def sessions_with(archive: Archive, namespace: str, digests: Collection[str]) -> list[int]:
    """Keys of the sessions whose recorded transcript itself holds one of the messages."""
    holds = _HOLDS[archive.connection.dialect.name]
    found: dict[int, None] = {}
    for digest in digests:
        query = (
            select(transcripts.c.session_key)
            .join(sessions, sessions.c.key == transcripts.c.session_key)
            .where(sessions.c.namespace == namespace, text(holds))
        )
        wanted = {"wanted": _short(archive.packer, digest)}
        found |= dict.fromkeys(archive.connection.execute(query, wanted).scalars())
    return list(found)


def remove_message(archive: Archive, session_key: int, digest: str) -> bool:
    """Take a message out of a session's recorded transcript; whether it was there."""
    recorded = outline(archive, session_key) or ()
    kept = tuple(i for i in recorded if isinstance(i, int) or content_digest(i) != digest)
    if len(kept) == len(recorded):
        return False
    record(archive, session_key, kept)
    return True


def drop_transcript(archive: Archive, session_key: int) -> list[Message]:
    """Remove what was recorded of a session; the messages that stood there."""
    recorded = outline(archive, session_key) or ()
    query = delete(transcripts).where(transcripts.c.session_key == session_key)
    archive.connection.execute(query)
    return list(literals(recorded))
