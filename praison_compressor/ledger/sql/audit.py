"""`verify`: derive every hash again, look up every place in a chain and every original."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select, text

from ...errors import LedgerCorrupt
from ...messages import content_digest
from ..segments import FORGOTTEN, GENESIS, Entry, archive_digest, chain_faults
from .archive import MessageArchive, batches
from .reading import SESSIONS, chain, outline, unsealed
from .schema import entries, links, messages, sessions


@dataclass(frozen=True)
class Fault:
    """One disagreement inside the store."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def audit(archive: MessageArchive, namespace: str | None, session_id: str | None) -> list[Fault]:
    """Return the faults of the store, a namespace, or a session."""
    query = SESSIONS
    if namespace is not None:
        query = query.where(sessions.c.namespace == namespace)
    if session_id is not None:
        query = query.where(sessions.c.id == session_id)
    faults = []
    if archive.is_sqlite:
        found = archive.execute(text("PRAGMA integrity_check")).scalars()
        faults += [Fault("the database file", said) for said in found if said != "ok"]
    for row in archive.execute(query.order_by(sessions.c.key)).all():
        faults += _session_faults(archive, row)
    if session_id is None:
        faults += _archive_faults(archive, namespace)
    return faults


def _session_faults(archive: MessageArchive, session: Row[Any]) -> Iterator[Fault]:
    """Yield the faults of one session: epochs, chain, transcript."""
    name = f"session {session.id} ({session.namespace})"
    rows = chain(archive, session.namespace, session.head)
    expected = None
    for number, row in enumerate(rows):
        for said in _entry_faults(archive, row, expected):
            yield Fault(f"{name}, entry {number} ({row.epoch})", said)
        expected = row.hash
    for said in _place_faults(archive, session, rows):
        yield Fault(name, said)


def _entry_faults(archive: MessageArchive, row: Row[Any], parent: str | None) -> Iterator[str]:
    try:
        entry = unsealed(archive.packer, row)
    except LedgerCorrupt as error:
        yield f"it cannot be read: {error}"
        entry = Entry(FORGOTTEN, row.epoch, row.parent, "", row.commitment, row.hash)
    faults = list(chain_faults(entry, parent))
    yield from faults
    if faults or entry.forgotten:
        return
    if entry.segment.kind != row.kind:
        yield f"it is not of the kind {row.kind!r}"
    try:
        originals = archive.of_entries([row.key])[row.key]
        if archive_digest(originals) != entry.archive:
            yield "its originals are not those that were archived"
    except (LedgerCorrupt, KeyError) as error:
        yield f"its originals cannot be read: {error}"


def _place_faults(
    archive: MessageArchive, session: Row[Any], rows: Sequence[Row[Any]]
) -> Iterator[str]:
    """Yield where a session's row disagrees with its chain."""
    start = rows[0].parent if rows else session.head
    if start != GENESIS:
        yield f"its chain has no entry {start}"
    hashes = [GENESIS, *(row.hash for row in rows)]
    if session.base_head not in hashes:
        yield "what it was forked from is not in its chain"
        return
    own = dict.fromkeys(row.epoch for row in rows[hashes.index(session.base_head) :])
    if len(own) != session.commits or not all(e.startswith(f"{session.id}.c") for e in own):
        yield f"the entries are not those of its {session.commits} compressions"
    if session.base_key is not None:
        base = archive.execute(SESSIONS.where(sessions.c.key == session.base_key)).first()
        if base is None or session.parent_id not in (base.id, *(row.epoch for row in rows)):
            yield "its parent is not the session that it was forked from"
    try:
        recorded = outline(archive, session.key) or ()
    except LedgerCorrupt as error:
        yield str(error)
        return
    if any(isinstance(item, int) and item >= len(rows) for item in recorded):
        yield "its recorded transcript names an entry that does not exist"


def _archive_faults(archive: MessageArchive, namespace: str | None) -> Iterator[Fault]:
    """Yield entries without a session, changed messages, messages without an entry."""
    later = entries.alias("later")
    has_later = (later.c.namespace == entries.c.namespace) & (later.c.parent == entries.c.hash)
    is_head = (sessions.c.namespace == entries.c.namespace) & (sessions.c.head == entries.c.hash)
    lost = select(entries).where(
        ~select(later.c.key).where(has_later).exists(),
        ~select(sessions.c.key).where(is_head).exists(),
    )
    for row in archive.execute(lost):
        yield Fault(f"entry {row.hash} ({row.namespace})", "no session leads to it")
    covered = select(links.c.entry_key).where(links.c.message_key == messages.c.key).exists()
    keys = select(messages.c.key).order_by(messages.c.key)
    if namespace is not None:
        keys = keys.where(messages.c.namespace == namespace)
    for some in batches(archive.execute(keys).scalars()):
        query = select(messages, covered.label("covered")).where(messages.c.key.in_(some))
        for row in archive.execute(query):
            if (said := _message_fault(archive, row)) is not None:
                yield Fault(f"archived message {row.key}", said)


def _message_fault(archive: MessageArchive, row: Row[Any]) -> str | None:
    if not row.covered:
        return "no segment covers it"
    try:
        digest = content_digest(archive.read(row))
    except LedgerCorrupt as error:
        return f"it cannot be read: {error}"
    return None if archive.packer.name(digest) == bytes(row.digest) else "its content was changed"
