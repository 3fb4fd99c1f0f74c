"""Read sessions: epochs, chains of entries, recorded transcripts, lists."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, func, select, update

from ...errors import LedgerCorrupt, SessionNotFound
from ...messages import Message, is_system
from ..segments import BLANK, GENESIS, Entry, Epoch, Segment, Session, Skeleton, expand_skeleton
from ..stores import ALL_MESSAGES, SessionInfo
from .archive import SqlArchive, dump, load, unpack_entry
from .schema import appended, entries, links, notes, of_session, sessions

# ---------------------------------------------------------------- sessions and epochs
SESSION_ROWS: Select[Any] = select(
    *(column for column in sessions.c if column.name != "transcript")
)
"""Rows of sessions, without the large column `transcript`."""


# Built once, because building a statement takes longer than running it.
_KEYED = SESSION_ROWS.where(sessions.c.key == bindparam("key"))
_NAMED = (
    SESSION_ROWS.where(
        sessions.c.namespace == bindparam("namespace"), sessions.c.id == bindparam("id")
    ),
    SESSION_ROWS.join(entries, entries.c.session_key == sessions.c.key).where(
        entries.c.namespace == bindparam("namespace"), entries.c.epoch == bindparam("id")
    ),
)
_LOCKED = tuple(query.with_for_update() for query in _NAMED)


def find_session(
    archive: SqlArchive, namespace: str, session_id: str, *, locked: bool = False
) -> Row[Any] | None:
    """Return a session's row, by its id or an epoch's id.

    With `locked`, no other writer changes the row in this transaction.
    """
    name = {"namespace": namespace, "id": session_id}
    rows = (archive.execute(query, name).first() for query in (_LOCKED if locked else _NAMED))
    return next(filter(None, rows), None)


def require_session(archive: SqlArchive, namespace: str, session_id: str) -> Row[Any]:
    """Return what `find_session` returns, or raise `SessionNotFound`."""
    row = find_session(archive, namespace, session_id)
    if row is None:
        raise SessionNotFound(
            f"no session {session_id!r} in namespace {namespace!r}: nothing of that name was "
            "compressed in this store"
        )
    return row


def head_of_epoch(archive: SqlArchive, row: Row[Any], epoch: str) -> str:
    """Return the hash of an epoch's newest entry.

    The session's id means the newest epoch.
    """
    if epoch == row.id:
        return str(row.head)
    query = select(entries.c.hash).where(
        entries.c.namespace == row.namespace, entries.c.epoch == epoch
    )
    return str(archive.execute(query.order_by(entries.c.key.desc())).scalar())


def ancestors(archive: SqlArchive, row: Row[Any]) -> Iterator[tuple[Row[Any], str]]:
    """Yield each ancestor, and the hash of its newest shared entry."""
    while row.base_key is not None:
        if row.base_key >= row.key:  # a fork is made after its base
            raise LedgerCorrupt(f"session {row.id}: its base is not an older session")
        head = row.base_head
        row = archive.execute(_KEYED, {"key": row.base_key}).one()
        yield row, head


EVERY_KEY = 1 << 62
"""Larger than every key."""


def newest_entries(archive: SqlArchive, row: Row[Any]) -> dict[int, int]:
    """Return session key -> key of its newest entry in the chain."""
    query = select(entries.c.key).where(entries.c.namespace == row.namespace)
    shared = (
        (base.key, archive.execute(query.where(entries.c.hash == head)).scalar() or 0)
        for base, head in ancestors(archive, row)
    )
    return {row.key: EVERY_KEY, **dict(shared)}


def lineage(archive: SqlArchive, namespace: str, session_id: str) -> list[Epoch]:
    """See `Store.lineage`."""
    row = require_session(archive, namespace, session_id)
    own = row, head_of_epoch(archive, row, session_id)
    family = reversed((own, *ancestors(archive, row)))
    return [epoch for session, head in family for epoch in _epochs(archive, session, head)]


def epoch_tree(archive: SqlArchive, namespace: str, session_id: str) -> list[Epoch]:
    """See `DurableStore.tree`."""
    root = lineage(archive, namespace, session_id)[0]
    step = select(sessions.c.key)
    named = step.where(sessions.c.namespace == namespace, sessions.c.id == root.id)
    walk = named.cte("walk", recursive=True)
    walk = walk.union(step.where(sessions.c.base_key == walk.c.key))
    family = SESSION_ROWS.where(sessions.c.key.in_(select(walk.c.key))).order_by(sessions.c.key)
    rows = archive.execute(family).all()
    return [epoch for row in rows for epoch in _epochs(archive, row, row.head)]


def _epochs(archive: SqlArchive, row: Row[Any], head: str) -> list[Epoch]:
    epochs = [Epoch(row.id, row.parent_id, row.id, float(row.created))]
    for entry in read_chain(archive, row.namespace, head, row.base_head):
        if entry.epoch != epochs[-1].id:
            undoes = entry.kind == "undo"
            epochs.append(Epoch(entry.epoch, epochs[-1].id, row.id, float(entry.created), undoes))
    return epochs


def read_note(archive: SqlArchive, session: Session) -> str:
    """See `NoteStore.note`."""
    query = select(notes.c.body).where(of_session(notes, session))
    return archive.execute(query).scalar() or ""


# ---------------------------------------------------------------- the list of sessions
_HAS_MESSAGES = sessions.c.transcript.is_not(None)
"""False for a forgotten session."""
_LAST_USED_FIRST = sessions.c.updated.desc(), sessions.c.key.desc()


def list_namespaces(archive: SqlArchive) -> list[str]:
    """Return the namespaces that have sessions."""
    query = select(sessions.c.namespace).where(_HAS_MESSAGES).distinct()
    return list(archive.execute(query.order_by(sessions.c.namespace)).scalars())


def ids_with_prefix(archive: SqlArchive, namespace: str, prefix: str, limit: int) -> list[str]:
    """See `DurableStore.ids_with_prefix`."""
    # Not LIKE: SQLite's LIKE ignores case.
    begins = func.substr(sessions.c.id, 1, len(prefix)) == prefix
    query = select(sessions.c.id).where(sessions.c.namespace == namespace, begins)
    return list(archive.execute(query.order_by(*_LAST_USED_FIRST).limit(limit)).scalars())


def list_sessions(archive: SqlArchive, namespace: str) -> list[SessionInfo]:
    """See `DurableStore.sessions`."""
    own = entries.c.session_key == sessions.c.key
    undone = select(func.count()).where(own, entries.c.kind == "undo").scalar_subquery()
    columns = sessions.c.id, sessions.c.parent_id, sessions.c.commits - undone, undone
    query = select(*columns, sessions.c.created, sessions.c.updated)
    query = query.where(sessions.c.namespace == namespace, _HAS_MESSAGES)
    return [
        SessionInfo(*row[:-2], float(row.created), float(row.updated))
        for row in archive.execute(query.order_by(*_LAST_USED_FIRST))
    ]


# ---------------------------------------------------------------- the chain of entries
_head, _last = entries.alias("head"), entries.alias("last")
_LAST_KEY = select(_last.c.key).where(
    _last.c.namespace == bindparam("namespace"), _last.c.hash == bindparam("after")
)
# The entries of one session between hashes `after` and `head`, newest first.
_RUN = (
    select(entries)
    .join(_head, _head.c.session_key == entries.c.session_key)
    .where(_head.c.namespace == bindparam("namespace"), _head.c.hash == bindparam("head"))
    .where(_head.c.key < bindparam("before"), entries.c.key <= _head.c.key)
    .where(entries.c.key > func.coalesce(_LAST_KEY.scalar_subquery(), 0))
    .order_by(entries.c.key.desc())
)


def read_chain(
    archive: SqlArchive, namespace: str, head: str, after: str = GENESIS
) -> list[Row[Any]]:
    """Return the entries after hash `after` up to hash `head`, oldest first."""
    chain: list[Row[Any]] = []
    values = {"namespace": namespace, "after": after, "head": head, "before": EVERY_KEY}
    # One query for each session: a recursive query would take a step for each entry.
    while values["head"] != after and (run := archive.execute(_RUN, values).all()):
        for row in run:
            if row.hash == values["head"]:
                chain.append(row)
                values |= {"head": row.parent, "before": row.key}
    return chain[::-1]


def read_session(archive: SqlArchive, row: Row[Any], snapshot: Session | None) -> Session:
    """Return the session of a row; read only entries that `snapshot` lacks."""
    if snapshot is not None and snapshot.erasures == row.erasures:
        before, after = snapshot.entries, snapshot.head_hash
    else:
        before, after = (), GENESIS
    new = read_chain(archive, row.namespace, row.head, after)
    start = new[0].parent if new else row.head
    if start != after and before:
        return read_session(archive, row, None)  # the snapshot is newer than the row
    if start != after:
        raise LedgerCorrupt(f"session {row.id}: its chain has no entry {start}")
    chained = (*before, *(unpack_entry(archive.packer, entry) for entry in new))
    own = itertools.takewhile(lambda entry: entry.hash != row.base_head, reversed(chained))
    tip, parent, *_ = *dict.fromkeys(entry.epoch for entry in own), row.id, row.parent_id
    return Session(row.namespace, row.id, tip, parent, row.head, chained, row.erasures)


# ---------------------------------------------------------------- originals and transcripts


def originals(
    archive: SqlArchive, session: Session, entry: Entry, wanted: slice = ALL_MESSAGES
) -> list[Message] | None:
    """See `Store.originals`."""
    query = select(entries.c.key).where(
        entries.c.namespace == session.namespace,
        entries.c.hash == entry.hash,
        entries.c.sealed.is_not(None),
    )
    key = archive.execute(query).scalar()
    return None if key is None else archive.messages_of_entries([key], wanted)[key]


def update_session(
    archive: SqlArchive,
    session_key: int,
    skeleton: Skeleton,
    changes: Mapping[str, object] | None = None,
    *,
    keeps_appended: bool = False,
) -> None:
    """Write a session's recorded transcript, and `changes` of its row.

    With `keeps_appended`, appended messages after this transcript stay.
    """
    lines = [str(i).encode() if isinstance(i, int) else dump(i) for i in skeleton]
    body = archive.packer.pack(b"\n".join(lines)) if skeleton else None
    length = _skeleton_length(archive, session_key, skeleton)
    values = {"transcript": body, "recorded": length, **(changes or {})}
    archive.execute(update(sessions).where(sessions.c.key == session_key).values(values))
    replaced = appended.c.session_key == session_key
    if keeps_appended:
        replaced &= appended.c.place < length
    archive.execute(delete(appended).where(replaced))


# The number of originals of each entry of one session, oldest first, up to key `newest`.
_SIZES = (
    select(func.count(links.c.ordinal))
    .select_from(entries.outerjoin(links))
    .where(entries.c.session_key == bindparam("key"), entries.c.key <= bindparam("newest"))
    .group_by(entries.c.key)
    .order_by(entries.c.key)
)


def _skeleton_length(archive: SqlArchive, session_key: int, skeleton: Skeleton) -> int:
    """Count a skeleton's messages except leading system messages."""
    numbers = [item for item in skeleton if isinstance(item, int)]
    leading = itertools.takewhile(lambda i: not isinstance(i, int) and is_system(i), skeleton)
    length = len(skeleton) - len(numbers) - len(list(leading))
    if numbers:
        row = archive.execute(_KEYED, {"key": session_key}).one()
        # Begin with the oldest ancestor, as a skeleton's indexes count.
        chained = reversed(newest_entries(archive, row).items())
        values = [{"key": key, "newest": newest} for key, newest in chained]
        sizes = [size for part in values for size in archive.execute(_SIZES, part).scalars()]
        if max(numbers) >= len(sizes):
            raise LedgerCorrupt(f"session {row.id}: its chain has no entry {max(numbers)}")
        length += sum(sizes[number] for number in numbers)
    return length


def read_skeletons(
    archive: SqlArchive, *, namespace: str | None = None, session_key: int | None = None
) -> Iterator[tuple[Row[Any], Skeleton]]:
    """Yield sessions with their recorded transcripts, last used first."""
    query = select(sessions).where(_HAS_MESSAGES).order_by(*_LAST_USED_FIRST)
    if namespace is not None:
        query = query.where(sessions.c.namespace == namespace)
    if session_key is not None:
        query = query.where(sessions.c.key == session_key)
    for row in archive.execute(query).all():
        try:
            lines = archive.packer.unpack(row.transcript).split(b"\n")
            items = [int(line) if line.isdigit() else load(line) for line in lines if line]
            yield row, (*items, *_read_appended(archive, row.key))
        except LedgerCorrupt as error:
            raise LedgerCorrupt(f"the recorded transcript: {error}") from error


def _read_appended(archive: SqlArchive, session_key: int) -> Iterator[Message]:
    query = select(appended.c.body).where(appended.c.session_key == session_key)
    for body in archive.execute(query.order_by(appended.c.place)).scalars():
        yield load(archive.packer.unpack(body))


def read_skeleton(archive: SqlArchive, session_key: int) -> Skeleton:
    """Return a session's recorded transcript."""
    recorded = read_skeletons(archive, session_key=session_key)
    return next((skeleton for _, skeleton in recorded), ())


def transcript_at(archive: SqlArchive, base: Row[Any], head: str) -> Skeleton:
    """Return a session's transcript as it was at an entry.

    If that is unknown, the entries' indexes are returned.
    """
    if head == base.head:
        return read_skeleton(archive, base.key)
    rows = read_chain(archive, base.namespace, head)
    length = unpack_entry(archive.packer, rows[-1]).segment.transcript_length if rows else 0
    messages = _full_transcript(archive, base, length)
    return tuple(range(len(rows))) if messages is None else tuple(messages)


def transcript(archive: SqlArchive, session: Session) -> list[Message]:
    """See `Store.transcript`."""
    row = find_session(archive, session.namespace, session.id)
    return (row and _full_transcript(archive, row)) or []


def _full_transcript(
    archive: SqlArchive, row: Row[Any], length: int | None = None
) -> list[Message] | None:
    """Return the recorded transcript; for `length` see `expand_skeleton`."""
    skeleton = read_skeleton(archive, row.key)
    rows = read_chain(archive, row.namespace, row.head)
    originals_of = archive.messages_of_entries(
        [rows[item].key for item in skeleton if isinstance(item, int)]
    )

    def of_entry(number: int) -> tuple[Segment, Sequence[Message]]:
        entry = rows[number]
        # No notice for a forgotten mask: inside a step no other message is allowed.
        missing = [BLANK.rendered] if entry.sealed is None and entry.kind == "summary" else []
        return unpack_entry(archive.packer, entry).segment, originals_of[entry.key] or missing

    return expand_skeleton(skeleton, of_entry, length)
