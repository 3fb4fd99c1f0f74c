"""`verify`: every hash derived again, every place in the chain and every original looked up. Export
and import of a session as plain JSON, checked by the same before it is taken in.

An export may have been edited by hand or made by somebody else: whatever is in it, the answer is
one error of ours, and nothing of it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, insert, select, text

from ...errors import ConfigError, LedgerConflict, LedgerCorrupt
from ...messages import content_digest
from ..segments import DROPPED, FORGOTTEN, GENESIS, Entry, Outline, archive_digest, chain_faults
from .archive import Archive, batches
from .schema import check_names, entries, links, messages, sessions
from .sessions import (
    SESSIONS,
    chain,
    find,
    literals,
    outline,
    record,
    require,
    segment_of,
    unsealed,
)
from .writing import insert_entry


# ---------------------------------------------------------------- verify
@dataclass(frozen=True)
class Fault:
    """One thing in the store that disagrees with another."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def audit(archive: Archive, namespace: str | None, session_id: str | None) -> list[Fault]:
    """The faults of the whole store, of a namespace, or of one session."""
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


def _session_faults(archive: Archive, session: Row[Any]) -> Iterator[Fault]:
    """The faults of one session: its epochs, its chain of entries, its transcript."""
    name = f"session {session.id} ({session.namespace})"
    rows = chain(archive, session.namespace, session.head)
    expected = None
    for number, row in enumerate(rows):
        for said in _entry_faults(archive, row, expected):
            yield Fault(f"{name}, entry {number} ({row.epoch})", said)
        expected = row.hash
    for said in _place_faults(archive, session, rows):
        yield Fault(name, said)


def _entry_faults(archive: Archive, row: Row[Any], parent: str | None) -> Iterator[str]:
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
        # Of what was dropped the digest is left in a form that cannot be compared.
        if archive_digest(originals) != entry.archive and DROPPED not in originals:
            yield "its originals are not those that were archived"
    except (LedgerCorrupt, KeyError) as error:
        yield f"its originals cannot be read: {error}"


def _place_faults(archive: Archive, session: Row[Any], rows: Sequence[Row[Any]]) -> Iterator[str]:
    """What of a session's row disagrees with its chain."""
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
            yield "what it was forked from is not what it was"
    try:
        recorded = outline(archive, session.key) or ()
    except LedgerCorrupt as error:
        yield str(error)
        return
    if any(isinstance(item, int) and item >= len(rows) for item in recorded):
        yield "its recorded transcript names an entry that is not there"


def _archive_faults(archive: Archive, namespace: str | None) -> Iterator[Fault]:
    """Entries that no session leads to, messages that were changed or that no entry covers."""
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


def _message_fault(archive: Archive, row: Row[Any]) -> str | None:
    if not row.covered:
        return "no segment covers it"
    if not row.body:
        return None  # dropped
    try:
        digest = content_digest(archive.read(row))
    except LedgerCorrupt as error:
        return f"it cannot be read: {error}"
    return None if archive.packer.name(digest) == bytes(row.digest) else "its content was changed"


# ---------------------------------------------------------------- export, import
FORMAT = "praison-compressor/2"

_OF_SESSION = {"base_head": str, "head": str, "commits": int, "created": float, "updated": float}
"""The fields of a session that an export holds as they are."""

LATEST = 1e12
"""Seconds since 1970 that a clock may tell; not a number and infinity are none."""

_SEALED = ("epoch", "parent", "salt", "commitment", "hash", "archive")
"""The fields of an entry that an export holds as they are."""


def export_session(archive: Archive, namespace: str, session_id: str) -> dict[str, Any]:
    """The session with all it inherits as plain JSON.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    row = require(archive, namespace, session_id)
    rows = chain(archive, namespace, row.head)
    originals = archive.of_entries(each.key for each in rows)
    recorded = outline(archive, row.key) or ()
    held = [*literals(recorded), *(m for each in originals.values() for m in each)]
    found = []
    for each in rows:
        entry = unsealed(archive.packer, each)
        # As text: what was sealed is this text.
        payload = None if entry.forgotten else entry.segment.payload()
        run = [content_digest(message) for message in originals[each.key]]
        values = {name: getattr(entry, name) for name in _SEALED}
        found.append({**values, "created": each.created, "segment": payload, "originals": run})
    return {
        "format": FORMAT,
        "session": row.id,
        "parent_id": row.parent_id,
        **{name: getattr(row, name) for name in _OF_SESSION},
        "entries": found,
        # In order: the places of entries, and the digests of messages that no entry holds.
        "transcript": [i if isinstance(i, int) else content_digest(i) for i in recorded],
        "messages": {content_digest(message): message for message in held},
    }


def import_session(archive: Archive, namespace: str, exported: Mapping[str, Any]) -> str:
    """Take a session in, or find it here as it is; its stable id."""
    if not isinstance(exported, Mapping) or exported.get("format") != FORMAT:
        raise LedgerCorrupt(f"this is no export of a session; expected the format {FORMAT!r}")
    try:
        return _imported(archive, namespace, exported)
    except (ConfigError, LedgerCorrupt) as error:
        raise LedgerCorrupt(f"the export was changed: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise LedgerCorrupt(f"the export is incomplete: {error!r}") from error


def _imported(archive: Archive, namespace: str, exported: Mapping[str, Any]) -> str:
    session_id, held = exported["session"], exported["messages"]
    values: dict[str, Any] = {name: kind(exported[name]) for name, kind in _OF_SESSION.items()}
    check_names(session_id or "", exported["parent_id"], values["base_head"], values["head"])
    if not 0 <= values["commits"] <= len(exported["entries"]):
        raise LedgerCorrupt(f"it counts {values['commits']} compressions")
    if not all(abs(values[name]) < LATEST for name in ("created", "updated")):
        raise LedgerCorrupt("it was made at no time")
    for digest, message in held.items():
        if content_digest(message) != digest:
            raise LedgerCorrupt(f"message {digest}")
    here = find(archive, namespace, session_id)
    if here is not None and here.head == values["head"]:
        return str(here.id)
    if here is not None:
        raise LedgerConflict(
            f"session {session_id} is already in namespace {namespace!r} and has gone another "
            "way; import it into another namespace"
        )
    values |= {"namespace": namespace, "id": session_id, "parent_id": exported["parent_id"]}
    archive.execute(insert(sessions).values(values))
    row = require(archive, namespace, session_id)
    for each in exported["entries"]:
        check_names(*(each[name] or "" for name in ("epoch", "parent", "commitment", "hash")))
        segment = FORGOTTEN if each["segment"] is None else segment_of(each["segment"])
        entry = Entry(segment, **{name: each[name] for name in _SEALED})
        originals = [held[digest] for digest in each["originals"]]
        insert_entry(archive, row, entry, originals, created=float(each["created"]))
    recorded: Outline = tuple(i if isinstance(i, int) else held[i] for i in exported["transcript"])
    if recorded:
        record(archive, row.key, recorded)
    for fault in _session_faults(archive, row):
        raise LedgerCorrupt(str(fault))
    return str(row.id)
