"""`verify`: every hash derived again, every place in the chain and every original looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from ...errors import LedgerCorrupt
from ...messages import content_digest
from ..segments import DROPPED, FORGOTTEN, GENESIS, Entry, archive_digest, chain_faults
from .archive import Archive, batches
from .schema import entries, epochs, is_sqlite, links, messages, sessions
from .sessions import chain, outline, unsealed


@dataclass(frozen=True)
class Fault:
    """One thing in the store that disagrees with another."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def audit(archive: Archive, namespace: str | None, session_id: str | None) -> list[Fault]:
    """The faults of the whole store, of a namespace, or of one session."""
    query: Select[Any] = select(*(sessions.c[name] for name in ("key", "namespace", "id")))
    if namespace is not None:
        query = query.where(sessions.c.namespace == namespace)
    if session_id is not None:
        query = query.where(sessions.c.id == session_id)
    faults = list(_file_faults(archive.connection))
    for row in archive.connection.execute(query.order_by(sessions.c.key)).all():
        faults += session_faults(archive, row)
    if session_id is None:
        faults += _lost_entries(archive.connection)
        faults += _archive_faults(archive, namespace)
    return faults


def _file_faults(connection: Connection) -> Iterator[Fault]:
    if not is_sqlite(connection):
        return
    for row in connection.exec_driver_sql("PRAGMA integrity_check"):
        if row[0] != "ok":
            yield Fault("the database file", str(row[0]))


# ---------------------------------------------------------------- one session
def session_faults(archive: Archive, session: Row[Any]) -> Iterator[Fault]:
    """The faults of one session: its epochs, its chain of entries, its transcript."""
    name = f"session {session.id} ({session.namespace})"
    base = epochs.alias("base")
    query = (
        select(
            epochs,
            base.c.id.label("base_id"),
            base.c.head.label("base_head"),
            sessions.c.id.label("base_session"),
        )
        .join(base, base.c.key == epochs.c.base_key, isouter=True)
        .join(sessions, sessions.c.key == base.c.session_key, isouter=True)
        .where(epochs.c.session_key == session.key)
        .order_by(epochs.c.key)
    )
    own = archive.connection.execute(query).all()
    if not own:
        yield Fault(name, "it has no epoch")
        return
    rows = chain(archive.connection, session.namespace, own[-1].head)
    yield from _entry_faults(archive, rows, name)
    said = [*_epoch_faults(session, own), *_order_faults(own, rows)]
    said += _transcript_faults(archive, session, len(rows))
    yield from (Fault(name, each) for each in said)


def _epoch_faults(session: Row[Any], own: Sequence[Row[Any]]) -> Iterator[str]:
    root = own[0]
    if root.id != session.id:
        yield "its root epoch is missing"
    if root.base_key is not None and (
        root.head != root.base_head or root.parent_id not in (root.base_id, root.base_session)
    ):
        yield "what it was forked from is not what it was"
    for before, epoch in pairwise(own):
        if epoch.base_key != before.key or epoch.parent_id != before.id:
            yield f"epoch {epoch.id} does not follow {before.id}"
    yield from (
        f"epoch {epoch.id} is in another namespace"
        for epoch in own
        if epoch.namespace != session.namespace
    )


def _order_faults(own: Sequence[Row[Any]], rows: Sequence[Row[Any]]) -> Iterator[str]:
    """Epochs whose entries are not where they should be in the chain."""
    start = rows[0].parent if rows else own[-1].head
    if start != GENESIS:
        yield f"its chain has no entry {start}"
    ends = {GENESIS: 0} | {row.hash: number for number, row in enumerate(rows, 1)}
    done = ends.get(own[0].head, -1)
    if done < 0:
        yield f"its chain has not the head of epoch {own[0].id}"
    for epoch in own[1:]:
        end = ends.get(epoch.head, -1)
        if end < done or any(row.epoch != epoch.id for row in rows[max(done, 0) : end]):
            yield f"epoch {epoch.id} is out of place in the chain"
        done = end


def _entry_faults(archive: Archive, rows: Sequence[Row[Any]], name: str) -> Iterator[Fault]:
    expected = None
    for number, row in enumerate(rows):
        where = f"{name}, entry {number} ({row.epoch})"
        try:
            entry = unsealed(archive.packer, row)
        except LedgerCorrupt as error:
            yield Fault(where, f"it cannot be read: {error}")
            entry = Entry(FORGOTTEN, row.epoch, row.parent, "", row.commitment, row.hash)
        faults = list(chain_faults(entry, expected))
        if not faults and not entry.forgotten:
            faults += _originals_faults(archive, row, entry)
        yield from (Fault(where, said) for said in faults)
        expected = row.hash


def _originals_faults(archive: Archive, row: Row[Any], entry: Entry) -> Iterator[str]:
    if entry.segment.kind != row.kind:
        yield f"it is not of the kind {row.kind!r}"
    try:
        originals = archive.of_entries([row.key])[row.key]
        found = archive_digest(originals)
    except (LedgerCorrupt, KeyError) as error:
        yield f"its originals cannot be read: {error}"
        return
    # Of what was dropped the digest is left in a form that cannot be compared.
    if found != entry.archive and DROPPED not in originals:
        yield "its originals are not those that were archived"


def _transcript_faults(archive: Archive, session: Row[Any], length: int) -> Iterator[str]:
    try:
        recorded = outline(archive, session.key) or ()
    except LedgerCorrupt as error:
        yield str(error)
        return
    if any(isinstance(item, int) and item >= length for item in recorded):
        yield "its recorded transcript names an entry that is not there"


# ---------------------------------------------------------------- the archive
def _lost_entries(connection: Connection) -> Iterator[Fault]:
    later = entries.alias("later")
    has_later = (later.c.namespace == entries.c.namespace) & (later.c.parent == entries.c.hash)
    is_head = (epochs.c.namespace == entries.c.namespace) & (epochs.c.head == entries.c.hash)
    query = select(entries).where(
        ~select(later.c.key).where(has_later).exists(),
        ~select(epochs.c.key).where(is_head).exists(),
    )
    for row in connection.execute(query):
        yield Fault(f"entry {row.hash} ({row.namespace})", "no session leads to it")


def _archive_faults(archive: Archive, namespace: str | None) -> Iterator[Fault]:
    keys = select(messages.c.key).order_by(messages.c.key)
    unlinked = keys.join(links, links.c.message_key == messages.c.key, isouter=True).where(
        links.c.message_key.is_(None)
    )
    if namespace is not None:
        keys = keys.where(messages.c.namespace == namespace)
    for some in batches(archive.connection.execute(keys).scalars()):
        for row in archive.connection.execute(select(messages).where(messages.c.key.in_(some))):
            if (said := _fault_of_message(archive, row)) is not None:
                yield Fault(f"archived message {row.key}", said)
    for key in archive.connection.execute(unlinked).scalars():
        yield Fault(f"archived message {key}", "no segment covers it")


def _fault_of_message(archive: Archive, row: Row[Any]) -> str | None:
    if not row.body:
        return None  # dropped
    try:
        digest = content_digest(archive.read(row))
    except LedgerCorrupt as error:
        return f"it cannot be read: {error}"
    return None if archive.packer.name(digest) == bytes(row.digest) else "its content was changed"
