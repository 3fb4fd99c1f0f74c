"""One commit: the session's row is locked, its tip compared, everything else appended, secrets
masked.

A segment is found again by the digests of the messages as the agent has them. The archive holds
them masked, and says under which digests: so the chain, the archive and the index agree with each
other, and what is read back from the archive is found like what was archived.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, text, update

from ...errors import LedgerConflict
from ...messages import Message, digest, read
from ...messages.secrets import Redactor, masks_in
from ..segments import Entry, Outline, Segment, Session, archive_digest, seal
from .archive import Archive
from .schema import entries, epochs, inserting, leases, sessions
from .sessions import find, inherit_transcript, record, rows_of, sealed

# ---------------------------------------------------------------- masking
Recorded = tuple[Segment, list[Message]]


def without_secrets(namespace: str, segments: Iterable[Recorded]) -> list[Recorded]:
    """The segments and originals to store; those without a secret as they are."""
    redactor = Redactor(namespace)
    return [_masked(redactor, segment, originals) for segment, originals in segments]


def outline_without_secrets(namespace: str, outline: Outline) -> Outline:
    """The outline to store: what stands in it word for word, masked as in the archive."""
    held = [item for item in outline if not isinstance(item, int)]
    masked = iter(Redactor(namespace).messages(held)[0])
    return tuple(item if isinstance(item, int) else next(masked) for item in outline)


def _masked(redactor: Redactor, segment: Segment, originals: list[Message]) -> Recorded:
    kept, found = redactor.messages(originals)
    (rendered,), shown = redactor.messages([segment.rendered])
    # Masked before, where a view was read as the transcript that it stands for.
    count = masks_in(kept)
    if not (count or shown):
        return segment, originals
    archived = _archived_as(segment.run, originals, kept) if found else ()
    return replace(segment, rendered=rendered, archived_as=archived, secrets=count), list(kept)


def _archived_as(
    run: Sequence[str], originals: Sequence[Message], kept: Sequence[Message]
) -> tuple[tuple[int, str], ...]:
    """The places of a run whose messages are archived under another digest, and that digest.

    Masks of one result are recorded with the message as it is, summaries with their whole run as
    it is read. Where neither gives the run, the masked messages stand for nothing.
    """
    for as_read in (False, True):
        if _digests(originals, as_read) == list(run):
            pairs = zip(run, _digests(kept, as_read), strict=True)
            return tuple((at, new) for at, (old, new) in enumerate(pairs) if new != old)
    return ()


def _digests(messages: Sequence[Message], as_read: bool) -> list[str]:
    return [digest(message) for message in (read(messages).messages if as_read else messages)]


# ---------------------------------------------------------------- commits
def append(
    archive: Archive,
    session: Session,
    segments: Sequence[tuple[Segment, list[Message]]],
    outline: Outline | None,
) -> None:
    """Seal the segments into the chain, archive their originals, open the next epoch."""
    row = _locked(archive, session)
    epoch = f"{row.id}.c{row.epochs}-{secrets.token_hex(4)}"
    head = row.head_hash
    for position, (segment, originals) in enumerate(segments, row.length):
        entry = seal(segment, head, epoch, archive=archive_digest(originals))
        _append(archive, row, position, entry, originals)
        head = entry.hash
    _advance(archive.connection, row, epoch, head, len(segments))
    if outline is not None:
        record(archive, row.key, outline)


def keep(archive: Archive, session: Session, outline: Outline) -> bool:
    """Record the transcript of a session that is as it was read."""
    row = _locked_row(archive.connection, session)
    if row is None or not session.entries:
        return False
    if row.tip != session.tip or row.edits != session.edits:
        return False
    record(archive, row.key, outline)
    return True


def _append(
    archive: Archive, row: Row[Any], position: int, entry: Entry, originals: list[Message]
) -> None:
    payload = sealed(archive.packer, entry.salt, entry.archive, entry.segment.payload())
    values = {"kind": entry.segment.kind, "sealed": payload}
    values |= {name: getattr(entry, name) for name in ("epoch", "parent", "commitment", "hash")}
    insert_entry(archive, row.namespace, row.key, position, values, originals)


def insert_entry(
    archive: Archive,
    namespace: str,
    session_key: int,
    position: int,
    values: dict[str, Any],
    originals: Sequence[Message],
) -> None:
    """Write an entry with the originals that it stands for."""
    keys = archive.add(namespace, originals)
    insertion = insert(entries).values(session_key=session_key, position=position, **values)
    result = archive.connection.execute(insertion)
    assert result.inserted_primary_key is not None
    archive.link(int(result.inserted_primary_key[0]), keys)


def _locked(archive: Archive, session: Session) -> Row[Any]:
    """The session's row, locked till the end of the transaction, its tip as it was read."""
    connection = archive.connection
    row = _locked_row(connection, session)
    if row is None and session.tip == session.id:
        create(archive, session.namespace, session.id, session.parent)
        row = _locked_row(connection, session)
    if row is None or row.tip != session.tip:
        tip = "gone" if row is None else f"now {row.tip}"
        raise LedgerConflict(f"session {session.id}: the tip is {tip}; read it again")
    if row.edits != session.edits:
        # What was written in the light of the forgotten part may repeat it.
        raise LedgerConflict(f"session {session.id}: a part was forgotten; read it again")
    return row


def _locked_row(connection: Connection, session: Session) -> Row[Any] | None:
    query = select(sessions).where(
        sessions.c.namespace == session.namespace, sessions.c.id == session.id
    )
    return connection.execute(query.with_for_update()).first()


def create(archive: Archive, namespace: str, session_id: str, parent_id: str | None) -> None:
    """The row and the root epoch of a session, unless another process was first."""
    connection = archive.connection
    base = find(connection, namespace, parent_id) if parent_id not in (None, session_id) else None
    inherited = {} if base is None else _inherited(archive, base)
    values = {"namespace": namespace, "id": session_id, "parent_id": parent_id}
    row = {**values, "tip": session_id, "tip_parent": parent_id, **inherited}
    connection.execute(inserting(connection, sessions).on_conflict_do_nothing(), [row])
    query = select(sessions.c.key).where(
        sessions.c.namespace == namespace, sessions.c.id == session_id
    )
    values["session_key"] = key = connection.execute(query).scalar_one()
    connection.execute(inserting(connection, epochs).on_conflict_do_nothing(), [values])
    if base is not None:
        inherit_transcript(archive, key, base, inherited["base_length"])


def _inherited(archive: Archive, base: Row[Any]) -> dict[str, Any]:
    """What a fork of that session at that epoch inherits; all of it for the stable id."""
    whole = base.epoch_id == base.id
    length = base.length if whole else base.epoch_length
    last = rows_of(archive, base.key, length - 1, length) if length else ()
    head = last[0].hash if last else base.base_hash
    return {
        "base_key": base.key,
        "base_length": length,
        "base_epochs": base.epochs if whole else base.epoch_number + 1,
        "base_hash": head,
        "head_hash": head,
    }


def _advance(connection: Connection, row: Row[Any], epoch: str, head: str, added: int) -> None:
    length, parent = row.length + added, row.tip
    opened = {"namespace": row.namespace, "id": epoch, "session_key": row.key}
    opened |= {"number": row.epochs, "parent_id": parent, "length": length}
    connection.execute(insert(epochs).values(opened))
    moved = {"tip": epoch, "tip_parent": parent, "head_hash": head, "length": length}
    moved |= {"epochs": row.epochs + 1, "updated": time.time()}
    connection.execute(update(sessions).where(sessions.c.key == row.key).values(moved))


# ---------------------------------------------------------------- leases
_ABSURD = 10
"""Times a lease's length: what ends later was written by a clock that has been set back since."""


def is_taken(connection: Connection, session: Session, holder: str, seconds: float) -> bool:
    """Whether another has the session's lease."""
    found = connection.execute(select(leases).where(_of(session))).first()
    if found is None or found.holder == holder:
        return False
    return bool(_now(connection) < found.until <= _now(connection) + _ABSURD * seconds)


def claim(connection: Connection, session: Session, holder: str, seconds: float) -> bool:
    """Take the session's lease by the database's clock; whether it is the holder's now."""
    now = _now(connection)
    taken = {"holder": holder, "until": now + seconds}
    insertion = inserting(connection, leases).values(
        namespace=session.namespace, session_id=session.id, **taken
    )
    is_over = (leases.c.until <= now) | (leases.c.until > now + _ABSURD * seconds)
    connection.execute(
        insertion.on_conflict_do_update(
            index_elements=[leases.c.namespace, leases.c.session_id],
            set_=taken,
            where=is_over | (leases.c.holder == holder),
        )
    )
    # Asked back rather than counted: drivers differ in what they count for an INSERT.
    return bool(connection.execute(select(leases.c.holder).where(_of(session))).scalar() == holder)


def release(connection: Connection, session: Session, holder: str) -> None:
    """Give the session's lease back, if it is still the holder's."""
    connection.execute(leases.delete().where(_of(session), leases.c.holder == holder))


def _of(session: Session) -> ColumnElement[bool]:
    return and_(leases.c.namespace == session.namespace, leases.c.session_id == session.id)


_NOW = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}


def _now(connection: Connection) -> float:
    return float(connection.execute(text(_NOW[connection.dialect.name])).scalar_one())
