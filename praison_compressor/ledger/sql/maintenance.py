"""Verify every hash; forget sessions and messages.

A forgotten entry leaves a tombstone in the chain: see `segments.Entry`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CTE, ColumnElement, Row, delete, select, update

from ...errors import ConfigError, LedgerCorrupt, SessionNotFound
from ...messages import content_digest, is_system
from ..segments import (
    BLANK,
    GENESIS,
    Entry,
    Skeleton,
    archive_digest,
    chain_faults,
    skeleton_messages,
)
from ..stores import Forgotten
from .archive import SqlArchive, batches, unpack_entry
from .queries import (
    SESSION_ROWS,
    read_chain,
    read_skeleton,
    read_skeletons,
    require_session,
    update_session,
)
from .schema import entries, leases, links, messages, notes, of_session, sessions, spans


# ---------------------------------------------------------------- verify
@dataclass(frozen=True)
class Fault:
    """One fault that `verify` found."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def find_faults(archive: SqlArchive, namespace: str | None, session_id: str | None) -> list[Fault]:
    """Return the faults of the store, a namespace, or a session."""
    query = SESSION_ROWS
    if namespace is not None:
        query = query.where(sessions.c.namespace == namespace)
    if session_id is not None:
        query = query.where(sessions.c.id == session_id)
    faults = [Fault("the database file", line) for line in archive.file_faults()]
    for row in archive.execute(query.order_by(sessions.c.key)).all():
        faults += _session_faults(archive, row)
    if session_id is None:
        faults += _archive_faults(archive, namespace)
    return faults


def _session_faults(archive: SqlArchive, session: Row[Any]) -> Iterator[Fault]:
    name = f"session {session.id} ({session.namespace})"
    rows = read_chain(archive, session.namespace, session.head)
    expected = None
    for number, row in enumerate(rows):
        for fault in _entry_faults(archive, row, expected):
            yield Fault(f"{name}, entry {number} ({row.epoch})", fault)
        expected = row.hash
    for fault in _place_faults(archive, session, rows):
        yield Fault(name, fault)


def _entry_faults(archive: SqlArchive, row: Row[Any], parent: str | None) -> Iterator[str]:
    try:
        entry = unpack_entry(archive.packer, row)
    except LedgerCorrupt as error:
        yield f"it cannot be read: {error}"
        entry = Entry(BLANK, row.epoch, row.parent, "", row.commitment, row.hash)
    faults = list(chain_faults(entry, parent))
    yield from faults
    if faults or entry.is_forgotten:
        return
    if entry.segment.kind != row.kind:
        yield f"it is not of the kind {row.kind!r}"
    try:
        originals = archive.messages_of_entries([row.key])[row.key]
        if archive_digest(map(content_digest, originals)) != entry.archive:
            yield "its originals are not those that were archived"
    except LedgerCorrupt as error:
        yield f"its originals cannot be read: {error}"


def _place_faults(
    archive: SqlArchive, session: Row[Any], rows: Sequence[Row[Any]]
) -> Iterator[str]:
    """Yield where a session's row disagrees with its chain."""
    start = rows[0].parent if rows else session.head
    if start != GENESIS:
        yield f"its chain has no entry {start}"
    hashes = [GENESIS, *(row.hash for row in rows)]
    if session.base_head not in hashes:
        yield "the entry that it was forked at is not in its chain"
        return
    own = dict.fromkeys(row.epoch for row in rows[hashes.index(session.base_head) :])
    if len(own) != session.commits or not all(e.startswith(f"{session.id}.c") for e in own):
        yield f"the entries are not those of its {session.commits} compressions"
    if session.base_key is not None:
        base = archive.execute(SESSION_ROWS.where(sessions.c.key == session.base_key)).first()
        if base is None or session.parent_id not in (base.id, *(row.epoch for row in rows)):
            yield "its parent is not the session that it was forked from"
    try:
        recorded = read_skeleton(archive, session.key)
    except LedgerCorrupt as error:
        yield str(error)
        return
    if any(isinstance(item, int) and item >= len(rows) for item in recorded):
        yield "its recorded transcript names an entry that does not exist"


def _archive_faults(archive: SqlArchive, namespace: str | None) -> Iterator[Fault]:
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
    query = select(messages, covered.label("covered")).order_by(messages.c.key)
    if namespace is not None:
        query = query.where(messages.c.namespace == namespace)
    for row in archive.execute(query, execution_options={"yield_per": 500}):
        if (fault := _message_fault(archive, row)) is not None:
            yield Fault(f"archived message {row.key}", fault)


def _message_fault(archive: SqlArchive, row: Row[Any]) -> str | None:
    if not row.covered:
        return "no segment covers it"
    try:
        digest = content_digest(archive.message_of(row))
    except LedgerCorrupt as error:
        return f"it cannot be read: {error}"
    is_same = archive.packer.stored_digest(digest) == bytes(row.digest)
    return None if is_same else "its content was changed"


# ---------------------------------------------------------------- forget
def forget_session(archive: SqlArchive, namespace: str, target: str) -> Forgotten:
    """Forget the session's own entries, but no inherited entries."""
    archive.block_commits()
    row = require_session(archive, namespace, target)
    own = entries.c.session_key == row.key
    forks = _sessions_ending_in(archive, _with_descendants(namespace, own)) - {row.key}
    of_own = links.c.entry_key.in_(select(entries.c.key).where(own))
    linked = set(archive.execute(select(links.c.message_key).where(of_own)).scalars())
    segments = _make_tombstones(archive, own)
    archive.execute(delete(links).where(of_own))
    archive.execute(delete(spans).where(spans.c.session_key == row.key))
    for table in (leases, notes):
        archive.execute(delete(table).where(of_session(table, row)))
    covering = _covering_sessions(archive, linked)
    removed = linked - set(covering)
    archive.remove(removed)
    recorded = skeleton_messages(read_skeleton(archive, row.key))
    update_session(archive, row.key, ())
    # Ignore system messages: every session of an agent has them.
    digests = {content_digest(message) for message in recorded if not is_system(message)}
    others = {*forks, *covering.values(), *_transcripts_with(archive, namespace, digests)}
    _mark_stale(archive, [row.key, *forks])
    other_sessions = _session_ids(archive, others - {row.key})
    return Forgotten(segments, len(removed) + len(recorded), (row.id,), other_sessions)


def forget_message(archive: SqlArchive, namespace: str, target: str) -> Forgotten:
    """Forget one message in every session of the namespace.

    Later summaries are forgotten too, because their writers read the earlier ones.
    """
    archive.block_commits()
    key, skeletons = find_message(archive, namespace, target)
    for session_key, skeleton in skeletons.items():
        rest = (i for i in skeleton if isinstance(i, int) or content_digest(i) != target)
        update_session(archive, session_key, tuple(rest))
    covering = entries.c.key.in_(select(links.c.entry_key).where(links.c.message_key == key))
    later = _with_descendants(namespace, covering)
    touched = {*skeletons, *_sessions_ending_in(archive, later)}
    is_later = entries.c.key.in_(select(later.c.key))
    segments = _make_tombstones(archive, is_later & (covering | (entries.c.kind == "summary")))
    if key is not None:
        archive.execute(delete(links).where(links.c.message_key == key))
        archive.remove([key])
    _mark_stale(archive, touched)
    names = _session_ids(archive, touched)
    for session_id in names:
        _drop_transcript_if_empty(archive, namespace, session_id)
    return Forgotten(segments, 1, names, other_sessions=())


def find_message(
    archive: SqlArchive, namespace: str, target: str
) -> tuple[int | None, dict[int, Skeleton]]:
    """Return a message's key, and the recorded transcripts that hold it.

    Raises:
        ConfigError: `target` is no digest.
        SessionNotFound: no archive or transcript of this namespace has the message.
    """
    if not re.fullmatch("sha256:[0-9a-f]{64}", target):
        raise ConfigError(f"{target!r}: expected sha256: and 64 hexadecimal digits")
    stored = archive.packer.stored_digest(target)
    archived = (messages.c.namespace == namespace) & (messages.c.digest == stored)
    key = archive.execute(select(messages.c.key).where(archived)).scalar()
    skeletons = _transcripts_with(archive, namespace, {target})
    if key is None and not skeletons:
        expected = 'expected the "digest" that `search --json` prints, not its "entry"'
        raise SessionNotFound(f"no stored message {target} in namespace {namespace!r}; {expected}")
    return key, skeletons


def _drop_transcript_if_empty(archive: SqlArchive, namespace: str, session_id: str) -> None:
    """Drop a session's recorded transcript if only its system prompt is left."""
    row = require_session(archive, namespace, session_id)
    recorded = skeleton_messages(read_skeleton(archive, row.key))
    chain = read_chain(archive, namespace, row.head)
    archived = archive.keys_of_entries(entry.key for entry in chain)
    if all(is_system(message) for message in recorded) and not any(archived.values()):
        update_session(archive, row.key, ())


def _with_descendants(namespace: str, first: ColumnElement[bool]) -> CTE:
    """Return matching entries and all later entries of their chains."""
    step = select(entries.c.key, entries.c.hash).where(entries.c.namespace == namespace)
    walk = step.where(first).cte("walk", recursive=True)
    return walk.union(step.where(entries.c.parent == walk.c.hash))


def _sessions_ending_in(archive: SqlArchive, chained: CTE) -> set[int]:
    """Return the sessions whose newest entry is in `chained`."""
    heads = (entries.c.namespace == sessions.c.namespace) & (entries.c.hash == sessions.c.head)
    query = select(sessions.c.key).join(entries, heads)
    return set(archive.execute(query.where(entries.c.key.in_(select(chained.c.key)))).scalars())


def _make_tombstones(archive: SqlArchive, where: ColumnElement[bool]) -> int:
    statement = update(entries).where(where, entries.c.sealed.is_not(None)).values(sealed=None)
    # SQLite's driver has no `rowcount` for a statement with a CTE.
    return len(archive.execute(statement.returning(entries.c.key)).all())


def _covering_sessions(archive: SqlArchive, keys: Iterable[int]) -> dict[int, int]:
    """Return message key -> a session that still has the message."""
    query = select(links.c.message_key, entries.c.session_key)
    query = query.join(entries, links.c.entry_key == entries.c.key)
    rows = archive.rows_with(query, links.c.message_key, keys)
    return {row.message_key: row.session_key for row in rows}


def _transcripts_with(
    archive: SqlArchive, namespace: str, digests: Collection[str]
) -> dict[int, Skeleton]:
    """Return session key -> transcript with one of the messages."""
    if not digests:
        return {}
    return {
        session.key: recorded
        for session, recorded in read_skeletons(archive, namespace=namespace)
        if any(content_digest(message) in digests for message in skeleton_messages(recorded))
    }


def _session_ids(archive: SqlArchive, keys: Iterable[int]) -> tuple[str, ...]:
    rows = archive.rows_with(select(sessions.c.id), sessions.c.key, keys)
    return tuple(sorted(row.id for row in rows))


def _mark_stale(archive: SqlArchive, keys: Iterable[int]) -> None:
    """Make all processes read these sessions again."""
    stale = update(sessions).values(erasures=sessions.c.erasures + 1)
    for batch in batches(keys):
        archive.execute(stale.where(sessions.c.key.in_(batch)))
