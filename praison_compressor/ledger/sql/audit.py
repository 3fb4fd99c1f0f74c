"""`verify`: every hash derived again, every place in the chain and every original looked up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exc, select, text

from ...errors import LedgerCorrupt
from ...messages import content_digest
from ..chain import archive_digest, commitment, link
from ..segments import Usage
from .archive import Archive, Packer, load
from .schema import blocks, entries, epochs, links, messages, sessions, transcripts, usage
from .sessions import name_of, opened, scope_of
from .transcripts import names_of, unpacked

__all__ = [
    "Fault",
    "audit",
]


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
        faults += _Chain(archive, row).faults()
    if session_id is None:
        faults += _archive_faults(archive.connection, archive.packer, namespace)
        faults += _index_faults(archive.connection) if archive.indexed else ()
    return faults


def _file_faults(connection: Connection) -> Iterator[Fault]:
    if connection.dialect.name != "sqlite":
        return
    for row in connection.exec_driver_sql("PRAGMA integrity_check"):
        if row[0] != "ok":
            yield Fault("the database file", str(row[0]))


# ---------------------------------------------------------------- one session
class _Chain:
    """The check of one session's epochs and entries."""

    def __init__(self, archive: Archive, row: Row[Any]) -> None:
        self._connection = archive.connection
        self._packer = archive.packer
        self._archive = archive
        self._row = row
        self._name = f"session {row.id} ({row.namespace})"

    def faults(self) -> list[Fault]:
        found = [*self._base(), *self._epochs(), *self._entries(), *self._usage()]
        return [*found, *self._transcript()]

    def _base(self) -> Iterator[Fault]:
        row = self._row
        if row.base_key is None:
            return
        base = name_of(self._connection, row.base_key)
        expected = base.base_hash
        if row.base_length:
            query = select(entries.c.hash).where(
                entries.c.session_key == row.base_key,
                entries.c.position == row.base_length - 1,
            )
            expected = self._connection.execute(query).scalar()
        if expected != row.base_hash:
            yield Fault(self._name, "what it was forked from is not what it was")

    def _epochs(self) -> Iterator[Fault]:
        query = select(epochs).where(epochs.c.session_key == self._row.key)
        found = self._connection.execute(query.order_by(epochs.c.number)).all()
        parent, length = self._row.parent_id, 0
        for number, epoch in enumerate(found):
            if epoch.number != number or epoch.parent_id != parent:
                yield Fault(self._name, f"epoch {epoch.id} does not follow {parent}")
            if epoch.length < length or epoch.namespace != self._row.namespace:
                yield Fault(self._name, f"epoch {epoch.id} is out of place")
            parent, length = epoch.id, epoch.length
        if len(found) != self._row.epochs or parent != self._row.tip:
            yield Fault(self._name, f"its tip {self._row.tip} is not its newest epoch {parent}")
        if length != self._row.length:
            yield Fault(self._name, f"its newest epoch has {length} entries")
        if found and self._row.tip_parent != found[-1].parent_id:
            yield Fault(self._name, f"its tip does not follow {self._row.tip_parent}")
        if not found or found[0].id != self._row.id:
            yield Fault(self._name, "its root epoch is missing")

    def _entries(self) -> Iterator[Fault]:
        query = select(entries).where(entries.c.session_key == self._row.key)
        expected = self._row.base_hash
        count = 0
        for entry in self._connection.execute(query.order_by(entries.c.position)).all():
            where = f"{self._name}, entry {entry.position} ({entry.epoch})"
            if entry.position != count:
                yield Fault(where, f"expected entry {count}")
            if entry.parent != expected:
                yield Fault(where, "its parent is not the one before")
            if link(entry.parent, entry.epoch, entry.commitment) != entry.hash:
                yield Fault(where, "its hash disagrees")
            if entry.sealed is not None:
                yield from self._payload(where, entry)
            expected, count = entry.hash, count + 1
        if count != self._row.length:
            yield Fault(self._name, f"{count} entries, {self._row.length} were committed")
        if expected != self._row.head_hash:
            yield Fault(self._name, "its head is not its newest entry")

    def _payload(self, where: str, entry: Row[Any]) -> Iterator[Fault]:
        try:
            salt, archived, payload = opened(self._packer, entry.sealed)
        except (LedgerCorrupt, ValueError) as error:
            yield Fault(where, f"the segment cannot be read: {error}")
            return
        if commitment(salt, payload, archived) != entry.commitment:
            yield Fault(where, "the segment was changed")
            return
        if json.loads(payload)["kind"] != entry.kind:
            yield Fault(where, f"it is not of the kind {entry.kind!r}")
        try:
            found = archive_digest(self._archive.of_entry(entry.key))
        except (LedgerCorrupt, KeyError) as error:
            yield Fault(where, f"its originals cannot be read: {error}")
            return
        if found != archived:
            yield Fault(where, "its originals are not those that were archived")

    def _usage(self) -> Iterator[Fault]:
        query = (
            select(usage, entries.c.sealed)
            .join(
                entries,
                (entries.c.session_key == usage.c.session_key)
                & (entries.c.position == usage.c.position),
                isouter=True,
            )
            .where(usage.c.session_key == self._row.key, entries.c.sealed.is_not(None))
        )
        for row in self._connection.execute(query):
            if self._spent(row.sealed) not in (None, _usage_of(row)):
                yield Fault(self._name, f"usage of entry {row.position} is not the segment's")

    def _transcript(self) -> Iterator[Fault]:
        query = select(transcripts).where(transcripts.c.session_key == self._row.key)
        row = self._connection.execute(query).first()
        if row is None:
            return
        try:
            recorded = unpacked(self._packer, row.body)
        except LedgerCorrupt as error:
            yield Fault(self._name, str(error))
            return
        if names_of(self._packer, recorded) != bytes(row.names):
            yield Fault(self._name, "the names of its recorded transcript are not its messages'")
        length = sum(length for _, length in scope_of(self._connection, self._row))
        if any(isinstance(item, int) and item >= length for item in recorded):
            yield Fault(self._name, "its recorded transcript names an entry that is not there")

    def _spent(self, payload: bytes) -> Usage | None:
        try:
            return Usage(**json.loads(opened(self._packer, payload)[2])["usage"])
        except (LedgerCorrupt, ValueError, TypeError):
            return None  # said already by the check of the entry


def _usage_of(row: Row[Any]) -> Usage:
    return Usage(
        row.prompt_tokens,
        row.completion_tokens,
        row.cache_read_tokens,
        row.cache_write_tokens,
        row.cost,
    )


# ---------------------------------------------------------------- the archive
def _archive_faults(
    connection: Connection, packer: Packer, namespace: str | None
) -> Iterator[Fault]:
    for (key,) in connection.execute(select(blocks.c.key).order_by(blocks.c.key)).all():
        rows = connection.execute(select(messages).where(messages.c.block_key == key)).all()
        if namespace is None or any(row.namespace == namespace for row in rows):
            body = connection.execute(select(blocks.c.body).where(blocks.c.key == key)).scalar()
            yield from _block_faults(packer, key, body, rows)
    for key in connection.execute(_UNLINKED).scalars():
        yield Fault(f"archived message {key}", "no segment covers it")
    for key in connection.execute(_WITHOUT_BLOCK).scalars():
        yield Fault(f"archived message {key}", "its block is missing")


_UNLINKED = (
    select(messages.c.key)
    .join(links, links.c.message_key == messages.c.key, isouter=True)
    .where(links.c.message_key.is_(None))
)


_WITHOUT_BLOCK = (
    select(messages.c.key)
    .join(blocks, blocks.c.key == messages.c.block_key, isouter=True)
    .where(blocks.c.key.is_(None))
)


def _block_faults(packer: Packer, key: int, body: Any, rows: Any) -> Iterator[Fault]:
    where = f"archive block {key}"
    try:
        lines = packer.unpack(body).split(b"\n")
    except LedgerCorrupt as error:
        yield Fault(where, f"{error}; it holds {len(rows)} messages")
        return
    named = {row.line for row in rows}
    for row in rows:
        line = lines[row.line] if 0 <= row.line < len(lines) else b""
        if not _is_named(packer, line, bytes(row.digest)):
            yield Fault(f"{where}, archived message {row.key}", "its content was changed")
    for number, line in enumerate(lines):
        if line and number not in named:
            yield Fault(where, f"no message is known of its line {number}")


def _is_named(packer: Packer, line: bytes, name: bytes) -> bool:
    try:
        return packer.name(content_digest(load(line))) == name
    except LedgerCorrupt:
        return False


def _index_faults(connection: Connection) -> Iterator[Fault]:
    if connection.dialect.name == "sqlite":
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
