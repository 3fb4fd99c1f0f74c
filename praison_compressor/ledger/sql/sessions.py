"""Sessions read from rows: their epochs, their chains of entries, their recorded transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, Select, case, exists, func, select, update

from ...errors import LedgerCorrupt, SessionNotFound
from ...messages import Message
from ..segments import (
    FORGOTTEN,
    GENESIS,
    Entry,
    Epoch,
    Outline,
    Segment,
    Session,
    Usage,
    at_length,
    standing_for,
)
from .archive import Archive, Packer, dump, load
from .schema import entries, epochs, sessions

# ---------------------------------------------------------------- sessions and epochs
_named, _tip, _at = (epochs.alias(name) for name in ("named", "tip", "at"))

NEWEST = (
    select(func.max(epochs.c.key))
    .where(epochs.c.session_key == sessions.c.key)
    .correlate(sessions)
    .scalar_subquery()
)
"""The key of a session's tip."""

_FIND: Select[Any] = (
    select(
        *(sessions.c.key, sessions.c.namespace, sessions.c.id, sessions.c.edits),
        _tip.c.id.label("tip"),
        _tip.c.parent_id.label("tip_parent"),
        _tip.c.head,
        _at.c.key.label("at_key"),
        _at.c.head.label("at_head"),
    )
    .join(_named, _named.c.session_key == sessions.c.key)
    .join(_tip, _tip.c.key == NEWEST)
    .join(_at, _at.c.key == case((_named.c.id == sessions.c.id, _tip.c.key), else_=_named.c.key))
)


def find(connection: Connection, namespace: str, session_id: str) -> Row[Any] | None:
    """The session that an id names, with its tip and the epoch that is meant (`at`): the stable
    id's is the tip."""
    query = _FIND.where(_named.c.namespace == namespace, _named.c.id == session_id)
    return connection.execute(query).first()


def require(connection: Connection, namespace: str, session_id: str) -> Row[Any]:
    """The same."""
    row = find(connection, namespace, session_id)
    if row is None:
        raise SessionNotFound(
            f"no session {session_id!r} in namespace {namespace!r}: nothing of that name was "
            "compressed in this store"
        )
    return row


def lineage(connection: Connection, namespace: str, session_id: str) -> list[Epoch]:
    """The epochs up to the one named, root first."""
    row = require(connection, namespace, session_id)
    step = select(epochs.c.key, epochs.c.base_key)
    walk = step.where(epochs.c.key == row.at_key).cte("walk", recursive=True)
    return _epochs_in(connection, walk.union(step.where(epochs.c.key == walk.c.base_key)))


def family(connection: Connection, namespace: str, session_id: str) -> list[Epoch]:
    """All epochs that go on from the same root, session by session, each after its parent."""
    root = lineage(connection, namespace, session_id)[0]
    step = select(epochs.c.key)
    named = step.where(epochs.c.namespace == namespace, epochs.c.id == root.id)
    walk = named.cte("walk", recursive=True)
    return _epochs_in(connection, walk.union(step.where(epochs.c.base_key == walk.c.key)))


UNDOES = exists().where(
    entries.c.namespace == epochs.c.namespace,
    entries.c.epoch == epochs.c.id,
    entries.c.kind == "undo",
)
"""Whether an epoch took the compression before it back."""


def _epochs_in(connection: Connection, walk: Any) -> list[Epoch]:
    query = (
        select(epochs, sessions.c.id.label("session"), UNDOES.label("undoes"))
        .join(sessions, sessions.c.key == epochs.c.session_key)
        .where(epochs.c.key.in_(select(walk.c.key)))
        .order_by(epochs.c.session_key, epochs.c.key)
    )
    return [
        Epoch(row.id, row.parent_id, row.session, row.created, row.undoes)
        for row in connection.execute(query)
    ]


# ---------------------------------------------------------------- the chain of entries
def chain(
    connection: Connection, namespace: str, head: str, after: str = GENESIS
) -> list[Row[Any]]:
    """The entries from the one after that hash to the head, oldest first, as far as they go."""
    step = select(entries.c.hash, entries.c.parent).where(
        entries.c.namespace == namespace, entries.c.hash != after
    )
    walk = step.where(entries.c.hash == head).cte("walk", recursive=True)
    reached = select(walk.union(step.where(entries.c.hash == walk.c.parent)).c.hash)
    query = select(entries).where(entries.c.namespace == namespace, entries.c.hash.in_(reached))
    by_hash = {row.hash: row for row in connection.execute(query)}
    found = []
    while head in by_hash:
        found.append(by_hash.pop(head))
        head = found[-1].parent
    return found[::-1]


def snapshot(archive: Archive, row: Row[Any], known: Session | None) -> Session:
    """The session as it is now; entries that are known already are not read again."""
    if known is not None and known.edits == row.edits:
        before, after = known.entries, known.head_hash
    else:
        before, after = (), GENESIS
    new = chain(archive.connection, row.namespace, row.head, after)
    start = new[0].parent if new else row.head
    if start != after and before:
        return snapshot(archive, row, None)  # what is known is newer than the row
    if start != after:
        raise LedgerCorrupt(f"session {row.id}: its chain has no entry {start}")
    found = (*before, *(unsealed(archive.packer, each) for each in new))
    return Session(row.namespace, row.id, row.tip, row.tip_parent, row.head, found, row.edits)


def sealed(packer: Packer, entry: Entry) -> bytes:
    """Salt, archive digest and the segment's JSON in one payload: what is destroyed together."""
    lines = "\n".join((entry.salt, entry.archive, entry.segment.payload()))
    return packer.pack(lines.encode("utf-8", "surrogatepass"))


def unsealed(packer: Packer, row: Row[Any]) -> Entry:
    """The entry of a row; a tombstone where its payload was forgotten."""
    if row.sealed is None:
        return Entry(FORGOTTEN, row.epoch, row.parent, "", row.commitment, row.hash)
    try:
        lines = packer.unpack(row.sealed).decode("utf-8", "surrogatepass")
        salt, archived, payload = lines.split("\n", 2)
        segment = segment_of(payload)
    except (LedgerCorrupt, LookupError, ValueError, TypeError, AttributeError) as error:
        raise LedgerCorrupt(f"the entry of epoch {row.epoch}: {error}") from error
    return Entry(segment, row.epoch, row.parent, salt, row.commitment, row.hash, archive=archived)


def segment_of(payload: str) -> Segment:
    """The segment of its JSON, every field as it must be; else any of Python's own errors."""
    found = json.loads(payload)
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


def record(archive: Archive, session_key: int, recorded: Outline | None) -> None:
    """Record the outline in the place of the one before."""
    lines = [str(i).encode() if isinstance(i, int) else dump(i) for i in recorded or ()]
    body = None if recorded is None else archive.packer.pack(b"\n".join(lines))
    change = update(sessions).where(sessions.c.key == session_key).values(transcript=body)
    archive.connection.execute(change)


def inherited_transcript(archive: Archive, base: Row[Any]) -> Outline | None:
    """The transcript of a fork's base as it was in the epoch that is meant."""
    if base.at_head == base.head:
        return outline(archive, base.key)
    rows = chain(archive.connection, base.namespace, base.at_head)
    length = unsealed(archive.packer, rows[-1]).segment.transcript_length if rows else 0
    return at_length(whole_transcript(archive, base) or (), length)


def outline(archive: Archive, session_key: int) -> Outline | None:
    """What was recorded of a session; None where nothing was."""
    query = select(sessions.c.transcript).where(sessions.c.key == session_key)
    body = archive.connection.execute(query).scalar()
    return None if body is None else _unpacked(archive.packer, body)


def _unpacked(packer: Packer, body: bytes) -> Outline:
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
    rows = chain(archive.connection, row.namespace, row.head)
    originals = archive.of_entries([rows[n].key for n in recorded if isinstance(n, int)])
    found: list[Message] = []
    for item in recorded:
        if isinstance(item, int):
            segment = unsealed(archive.packer, rows[item]).segment
            found += standing_for(segment, originals[rows[item].key])
        else:
            found.append(item)
    return found


def literals(recorded: Outline) -> list[Message]:
    """The messages that stand in an outline themselves."""
    return [item for item in recorded if not isinstance(item, int)]


def standing(
    archive: Archive, namespace: str, session_key: int | None = None
) -> Iterator[tuple[Row[Any], Outline]]:
    """Sessions, that one or all of a namespace, the last used first, with what was recorded."""
    query = (
        select(sessions)
        .where(sessions.c.namespace == namespace, sessions.c.transcript.is_not(None))
        .order_by(NEWEST.desc())
    )
    if session_key is not None:
        query = query.where(sessions.c.key == session_key)
    for row in archive.connection.execute(query):
        yield row, _unpacked(archive.packer, row.transcript)
