"""`verify`: every hash derived again, every place in the chain and every original looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exc, select, text

from ...errors import LedgerCorrupt
from ...messages import content_digest
from ..segments import FORGOTTEN, Entry, archive_digest, chain_faults
from .archive import Archive, batches
from .schema import epochs, is_sqlite, links, messages, sessions, transcripts
from .sessions import by_key, names_of, rows_of, scope_of, unpacked, unsealed


@dataclass(frozen=True)
class Fault:
    """One thing in the store that disagrees with another."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def audit(archive: Archive, namespace: str | None, session_id: str | None) -> list[Fault]:
    """The faults of the whole store, of a namespace, or of one session."""
    query = select(sessions).order_by(sessions.c.key)
    if namespace is not None:
        query = query.where(sessions.c.namespace == namespace)
    if session_id is not None:
        query = query.where(sessions.c.id == session_id)
    faults = list(_file_faults(archive.connection))
    for row in archive.connection.execute(query).all():
        faults += session_faults(archive, row)
    if session_id is None:
        faults += _archive_faults(archive, namespace)
        faults += _index_faults(archive.connection) if archive.indexed else ()
    return faults


def _file_faults(connection: Connection) -> Iterator[Fault]:
    if not is_sqlite(connection):
        return
    for row in connection.exec_driver_sql("PRAGMA integrity_check"):
        if row[0] != "ok":
            yield Fault("the database file", str(row[0]))


# ---------------------------------------------------------------- one session
def session_faults(archive: Archive, row: Row[Any]) -> Iterator[Fault]:
    """The faults of one session: what it was forked from, its epochs, entries and transcript."""
    name = f"session {row.id} ({row.namespace})"
    for check in (_base_faults, _epoch_faults, _transcript_faults):
        for said in check(archive, row):
            yield Fault(name, said)
    yield from _entry_faults(archive, row, name)


def _base_faults(archive: Archive, row: Row[Any]) -> Iterator[str]:
    if row.base_key is None:
        return
    expected = by_key(archive.connection, row.base_key).base_hash
    if row.base_length:
        last = rows_of(archive, row.base_key, row.base_length - 1, row.base_length)
        expected = last[0].hash if last else None
    if expected != row.base_hash:
        yield "what it was forked from is not what it was"


def _epoch_faults(archive: Archive, row: Row[Any]) -> Iterator[str]:
    query = select(epochs).where(epochs.c.session_key == row.key).order_by(epochs.c.number)
    found = archive.connection.execute(query).all()
    parent, length = row.parent_id, 0
    for number, epoch in enumerate(found):
        if epoch.number != number or epoch.parent_id != parent:
            yield f"epoch {epoch.id} does not follow {parent}"
        if epoch.length < length or epoch.namespace != row.namespace:
            yield f"epoch {epoch.id} is out of place"
        parent, length = epoch.id, epoch.length
    if len(found) != row.epochs or parent != row.tip:
        yield f"its tip {row.tip} is not its newest epoch {parent}"
    if length != row.length:
        yield f"its newest epoch has {length} entries"
    if found and row.tip_parent != found[-1].parent_id:
        yield f"its tip does not follow {row.tip_parent}"
    if not found or found[0].id != row.id:
        yield "its root epoch is missing"


def _entry_faults(archive: Archive, row: Row[Any], name: str) -> Iterator[Fault]:
    expected, count = row.base_hash, 0
    for found in rows_of(archive, row.key):
        where = f"{name}, entry {found.position} ({found.epoch})"
        if found.position != count:
            yield Fault(where, f"expected entry {count}")
        try:
            entry = unsealed(archive.packer, found)
        except LedgerCorrupt as error:
            yield Fault(where, f"it cannot be read: {error}")
            entry = Entry(FORGOTTEN, found.epoch, found.parent, "", found.commitment, found.hash)
        faults = list(chain_faults(entry, expected))
        yield from (Fault(where, said) for said in faults)
        if not faults and not entry.forgotten:
            yield from (Fault(where, said) for said in _originals_faults(archive, found, entry))
        expected, count = found.hash, count + 1
    if count != row.length:
        yield Fault(name, f"{count} entries, {row.length} were committed")
    if expected != row.head_hash:
        yield Fault(name, "its head is not its newest entry")


def _originals_faults(archive: Archive, row: Row[Any], entry: Entry) -> Iterator[str]:
    if entry.segment.kind != row.kind:
        yield f"it is not of the kind {row.kind!r}"
    try:
        found = archive_digest(archive.of_entry(row.key))
    except (LedgerCorrupt, KeyError) as error:
        yield f"its originals cannot be read: {error}"
        return
    if found != entry.archive:
        yield "its originals are not those that were archived"


def _transcript_faults(archive: Archive, row: Row[Any]) -> Iterator[str]:
    query = select(transcripts).where(transcripts.c.session_key == row.key)
    kept = archive.connection.execute(query).first()
    if kept is None:
        return
    try:
        recorded = unpacked(archive.packer, kept.body)
    except LedgerCorrupt as error:
        yield str(error)
        return
    if names_of(archive.packer, recorded) != bytes(kept.names):
        yield "the names of its recorded transcript are not its messages'"
    length = sum(length for _, length in scope_of(archive.connection, row))
    if any(isinstance(item, int) and item >= length for item in recorded):
        yield "its recorded transcript names an entry that is not there"


# ---------------------------------------------------------------- the archive
def _archive_faults(archive: Archive, namespace: str | None) -> Iterator[Fault]:
    keys = select(messages.c.key).order_by(messages.c.key)
    unlinked = keys.join(links, links.c.message_key == messages.c.key, isouter=True).where(
        links.c.message_key.is_(None)
    )
    if namespace is not None:
        keys = keys.where(messages.c.namespace == namespace)
    for some in batches(archive.connection.execute(keys).scalars()):
        query = select(messages).where(messages.c.key.in_(some)).order_by(messages.c.key)
        for row in archive.connection.execute(query):
            if (said := _fault_of_message(archive, row)) is not None:
                yield Fault(f"archived message {row.key}", said)
    for key in archive.connection.execute(unlinked).scalars():
        yield Fault(f"archived message {key}", "no segment covers it")


def _fault_of_message(archive: Archive, row: Row[Any]) -> str | None:
    try:
        digest = content_digest(archive.read(row))
    except LedgerCorrupt as error:
        return f"it cannot be read: {error}"
    return None if archive.packer.name(digest) == bytes(row.digest) else "its content was changed"


def _index_faults(connection: Connection) -> Iterator[Fault]:
    if is_sqlite(connection):
        try:
            connection.exec_driver_sql(
                "INSERT INTO compressor_search(compressor_search) VALUES ('integrity-check')"
            )
        except exc.OperationalError:
            raise  # it is locked: that is no damage
        except exc.DatabaseError as error:
            yield Fault("the full-text index", f"it is damaged: {error.orig}")
        return
    query = text(
        "SELECT m.key FROM compressor_messages m LEFT JOIN compressor_search f "
        "ON f.message_key = m.key WHERE f.message_key IS NULL"
    )
    for key in connection.execute(query).scalars():
        yield Fault(f"archived message {key}", "it is not in the full-text index")
