"""Sessions read from rows: their epochs, their chains of entries, their recorded transcripts, the
list of them, and their messages by words.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, case, exists, func, select, update

from ...errors import LedgerCorrupt, SessionNotFound
from ...messages import Message, content_digest
from ..segments import (
    ARCHIVE_ONLY,
    DROPPED,
    EVERY,
    FORGOTTEN,
    GENESIS,
    Entry,
    Epoch,
    Outline,
    Segment,
    Session,
    Usage,
    laid_out,
)
from ..words import Hit, Place, hits, holds, readable, words
from .archive import Archive, Packer, dump, load
from .schema import entries, links, sessions

logger = logging.getLogger(__name__)

# ---------------------------------------------------------------- sessions and epochs
SESSIONS: Select[Any] = select(*(column for column in sessions.c if column.name != "transcript"))
"""Rows of sessions, without what is large in them."""


def find(archive: Archive, namespace: str, session_id: str) -> Row[Any] | None:
    """The session that an id names, its own or that of one of its epochs."""
    query = SESSIONS.where(sessions.c.namespace == namespace)
    found = archive.execute(query.where(sessions.c.id == session_id)).first()
    if found is not None:
        return found
    owner = session_id.rpartition(".c")[0]
    opened = exists().where(entries.c.namespace == namespace, entries.c.epoch == session_id)
    row = archive.execute(query.where(sessions.c.id == owner, opened)).first()
    # The name alone does not say whose it is: an imported fork has its parent's epochs, and a
    # stranger may have the parent's name.
    own = () if row is None else chain(archive, namespace, row.head, row.base_head)
    return row if any(entry.epoch == session_id for entry in own) else None


def require(archive: Archive, namespace: str, session_id: str) -> Row[Any]:
    """The same, where it must be there."""
    row = find(archive, namespace, session_id)
    if row is None:
        raise SessionNotFound(
            f"no session {session_id!r} in namespace {namespace!r}: nothing of that name was "
            "compressed in this store"
        )
    return row


def head_at(archive: Archive, row: Row[Any], epoch: str) -> str:
    """The newest entry of a session as it was in one of its epochs; now for the stable id."""
    if epoch == row.id:
        return str(row.head)
    query = select(entries.c.hash).where(
        entries.c.namespace == row.namespace, entries.c.epoch == epoch
    )
    return str(archive.execute(query.order_by(entries.c.key.desc())).scalar())


def lineage(archive: Archive, namespace: str, session_id: str) -> list[Epoch]:
    """The chain of epochs up to the one named (the newest for the stable id), root first.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    row = require(archive, namespace, session_id)
    found = _epochs(archive, row, head_at(archive, row, session_id))
    while row.base_key is not None:
        head = row.base_head
        row = archive.execute(SESSIONS.where(sessions.c.key == row.base_key)).one()
        found = _epochs(archive, row, head) + found
    return found


def tree(archive: Archive, namespace: str, session_id: str) -> list[Epoch]:
    """All epochs of the session's family, forks included, each after its parent.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    root = lineage(archive, namespace, session_id)[0]
    step = select(sessions.c.key)
    named = step.where(sessions.c.namespace == namespace, sessions.c.id == root.id)
    walk = named.cte("walk", recursive=True)
    walk = walk.union(step.where(sessions.c.base_key == walk.c.key))
    family = SESSIONS.where(sessions.c.key.in_(select(walk.c.key))).order_by(sessions.c.key)
    found = []
    for row in archive.execute(family).all():
        found += _epochs(archive, row, row.head)
    return found


def _epochs(archive: Archive, row: Row[Any], head: str) -> list[Epoch]:
    """A session's own epochs as far as that entry."""
    found = [Epoch(row.id, row.parent_id, row.id, row.created)]
    for entry in chain(archive, row.namespace, head, row.base_head):
        if entry.epoch != found[-1].id:
            undoes = entry.kind == "undo"
            found.append(Epoch(entry.epoch, found[-1].id, row.id, entry.created, undoes))
    return found


# ---------------------------------------------------------------- the list of sessions
@dataclass(frozen=True)
class SessionInfo:
    """A line of the list of sessions."""

    id: str
    parent_id: str | None
    tip: str
    compressions: int
    taken_back: int
    """Of them, by `undo`."""
    messages: int
    """Archived originals, its own."""
    created: float
    updated: float


_FORGOTTEN = (
    (sessions.c.edits > 0)
    & sessions.c.transcript.is_(None)
    & ~exists().where(links.c.entry_key == entries.c.key, entries.c.session_key == sessions.c.key)
)
"""Sessions of which everything was forgotten: tombstones are left, and a name."""


_LAST_USED_FIRST = sessions.c.updated.desc(), sessions.c.key.desc()


def namespaces_of(archive: Archive) -> list[str]:
    """The namespaces that have sessions."""
    query = select(sessions.c.namespace).where(~_FORGOTTEN).distinct()
    return list(archive.execute(query.order_by(sessions.c.namespace)).scalars())


def names_below(archive: Archive, namespace: str, prefix: str, limit: int) -> list[str]:
    """Return the ids of sessions that begin with `prefix`, the last used first."""
    query = select(sessions.c.id).where(
        sessions.c.namespace == namespace, sessions.c.id.startswith(prefix, autoescape=True)
    )
    return list(archive.execute(query.order_by(*_LAST_USED_FIRST).limit(limit)).scalars())


def sessions_of(archive: Archive, namespace: str) -> list[SessionInfo]:
    """The sessions of a namespace that were not forgotten whole, the last used first."""
    own = entries.c.session_key == sessions.c.key
    undone = select(func.count()).where(own, entries.c.kind == "undo").scalar_subquery()
    own_originals = (
        select(func.count(func.distinct(links.c.message_key)))
        .join(entries, entries.c.key == links.c.entry_key)
        .where(own)
        .scalar_subquery()
    )
    newest = entries.alias("newest")
    is_head = (newest.c.namespace == sessions.c.namespace) & (newest.c.hash == sessions.c.head)
    query = (
        select(
            *(sessions.c.id, sessions.c.parent_id),
            case((sessions.c.commits == 0, sessions.c.id), else_=newest.c.epoch),
            *(sessions.c.commits - undone, undone, own_originals),
            *(sessions.c.created, sessions.c.updated),
        )
        .join(newest, is_head, isouter=True)
        .where(sessions.c.namespace == namespace, ~_FORGOTTEN)
        .order_by(*_LAST_USED_FIRST)
    )
    return [SessionInfo(*row) for row in archive.execute(query)]


# ---------------------------------------------------------------- the chain of entries
def chain(archive: Archive, namespace: str, head: str, after: str = GENESIS) -> list[Row[Any]]:
    """The entries from the one after that hash to the head, oldest first, as far as they go."""
    step = select(entries.c.hash, entries.c.parent).where(
        entries.c.namespace == namespace, entries.c.hash != after
    )
    walk = step.where(entries.c.hash == head).cte("walk", recursive=True)
    reached = select(walk.union(step.where(entries.c.hash == walk.c.parent)).c.hash)
    query = select(entries).where(entries.c.namespace == namespace, entries.c.hash.in_(reached))
    by_hash = {row.hash: row for row in archive.execute(query)}
    found = []
    while head in by_hash:
        found.append(by_hash.pop(head))
        head = found[-1].parent
    return found[::-1]


def snapshot(archive: Archive, row: Row[Any], known: Session | None) -> Session:
    """The session of a row; entries that are known already are not read again."""
    if known is not None and known.edits == row.edits:
        before, after = known.entries, known.head_hash
    else:
        before, after = (), GENESIS
    new = chain(archive, row.namespace, row.head, after)
    start = new[0].parent if new else row.head
    if start != after and before:
        return snapshot(archive, row, None)  # what is known is newer than the row
    if start != after:
        raise LedgerCorrupt(f"session {row.id}: its chain has no entry {start}")
    found = (*before, *(unsealed(archive.packer, each) for each in new))
    own: dict[str, None] = {}  # its two newest epochs
    for entry in reversed(found):
        if entry.hash == row.base_head or len(own) == 2:
            break
        own[entry.epoch] = None
    tip, parent, *_ = *own, row.id, row.parent_id
    return Session(row.namespace, row.id, tip, parent, row.head, found, row.edits)


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


# ---------------------------------------------------------------- originals and transcripts
# The transcript is one payload per session, written anew at each commit: its head, its tail, and
# the numbers of the segments between them. It moves on with the session, so that it is no part of
# the hashed chain.


def originals(
    archive: Archive, session: Session, entry: Entry, wanted: slice = EVERY
) -> list[Message] | None:
    """The archived messages of an entry; None once forgotten."""
    query = select(entries.c.key).where(
        entries.c.namespace == session.namespace,
        entries.c.hash == entry.hash,
        entries.c.sealed.is_not(None),
    )
    key = archive.execute(query).scalar()
    return None if key is None else archive.of_entries([key], wanted)[key]


def archived(archive: Archive, namespace: str, session_id: str) -> list[Message]:
    """Every original in the session's archive once, in the order it was compressed.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    row = require(archive, namespace, session_id)
    linked = archive.linked(each.key for each in chain(archive, namespace, row.head))
    keys = dict.fromkeys(key for keys in linked.values() for key in keys)
    found = archive.get(keys)
    return [found[key] for key in keys if found[key] != DROPPED]


def record(archive: Archive, session_key: int, recorded: Outline | None) -> None:
    """Record the outline in the place of the one before."""
    lines = [str(i).encode() if isinstance(i, int) else dump(i) for i in recorded or ()]
    body = None if recorded is None else archive.packer.pack(b"\n".join(lines))
    archive.execute(update(sessions).where(sessions.c.key == session_key).values(transcript=body))


def outlines(
    archive: Archive, *, namespace: str | None = None, session_key: int | None = None
) -> Iterator[tuple[Row[Any], Outline]]:
    """What was recorded of one session or those of a namespace, the last used first; nothing where
    nothing was."""
    query = select(sessions).where(sessions.c.transcript.is_not(None)).order_by(*_LAST_USED_FIRST)
    if namespace is not None:
        query = query.where(sessions.c.namespace == namespace)
    if session_key is not None:
        query = query.where(sessions.c.key == session_key)
    for row in archive.execute(query):
        try:
            lines = archive.packer.unpack(row.transcript).split(b"\n")
        except LedgerCorrupt as error:
            raise LedgerCorrupt(f"the recorded transcript: {error}") from error
        yield row, tuple(int(line) if line.isdigit() else load(line) for line in lines if line)


def outline(archive: Archive, session_key: int) -> Outline | None:
    """What was recorded of a session; None where nothing was."""
    return next((found for _, found in outlines(archive, session_key=session_key)), None)


def literals(recorded: Outline | None) -> list[Message]:
    """The messages that stand in an outline themselves."""
    return [item for item in recorded or () if not isinstance(item, int)]


def transcript_at(archive: Archive, base: Row[Any], head: str) -> Outline | None:
    """The transcript of a session as it was when that entry was its newest."""
    if head == base.head:
        return outline(archive, base.key)
    rows = chain(archive, base.namespace, head)
    length = unsealed(archive.packer, rows[-1]).segment.transcript_length if rows else 0
    found = _whole(archive, base, length)
    return None if found is None else tuple(found)


def transcript(archive: Archive, session: Session) -> list[Message]:
    """The whole transcript as it was last recorded, else the originals in their order."""
    row = find(archive, session.namespace, session.id)
    found = None if row is None else _whole(archive, row)
    if row is None or found is not None:
        return found or []
    logger.warning(ARCHIVE_ONLY, session.id)
    return archived(archive, session.namespace, session.id)


def _whole(archive: Archive, row: Row[Any], length: int | None = None) -> list[Message] | None:
    """The session's messages in order, every segment replaced by its originals; `length`: as it was
    when it had so many."""
    recorded = outline(archive, row.key)
    if recorded is None:
        return None
    rows = chain(archive, row.namespace, row.head)
    held = archive.of_entries([rows[item].key for item in recorded if isinstance(item, int)])

    def of_entry(number: int) -> tuple[Segment, Sequence[Message]]:
        entry = rows[number]
        # A mask's place is within a step, where no message may be put.
        gone = [FORGOTTEN.rendered] if entry.sealed is None and entry.kind == "summary" else []
        return unsealed(archive.packer, entry).segment, held[entry.key] or gone

    return laid_out(recorded, of_entry, length)


# ---------------------------------------------------------------- searching
_ASKED = 100  # words of a query that are looked for: models paste whole messages


def search(
    archive: Archive,
    namespace: str,
    query: str,
    session_id: str | None = None,
    limit: int = 10,
    *,
    archived_only: bool = False,
) -> list[Hit]:
    """Messages that hold words of the query, best first: of a session and what it inherits, or of
    the namespace."""
    wanted = words(query)[:_ASKED]
    if not wanted:
        return []
    row, scope, among = None, None, None
    if session_id is not None:
        row = require(archive, namespace, session_id)
        scope = [entry.key for entry in chain(archive, namespace, row.head)]
        among = {key for keys in archive.linked(scope).values() for key in keys}
    pool: dict[str, Message] = {}
    places: dict[str, int | str] = {}  # an archived message's key, or the name of a session
    for every in (True, False):  # those with all words; where there is none, those with any
        found = archive.get(archive.holding(namespace, wanted, among, every=every))
        everything: list[tuple[int | str, Message]] = [
            pair for pair in sorted(found.items()) if pair[1] != DROPPED
        ]
        if not archived_only:
            everything += [
                (session.id, message)
                for session, recorded in outlines(
                    archive, namespace=namespace, session_key=row and row.key
                )
                for message in literals(recorded)
                if holds(readable(message), wanted, every=every)
            ]
        for place, message in everything:
            digest = content_digest(message)
            pool.setdefault(digest, message)
            places.setdefault(digest, place)
        if pool:
            break

    def place_of(digest: str) -> Place:
        place = places[digest]
        return _place_of(archive, place, scope) if isinstance(place, int) else (place, "", 0)

    return hits(query, pool, limit, place_of)


def _place_of(archive: Archive, key: int, scope: list[int] | None) -> Place:
    """The newest entry of the scope that covers a message: its session, its hash, where in it."""
    query = (
        select(sessions.c.id, entries.c.hash, links.c.ordinal)
        .join(entries, entries.c.key == links.c.entry_key)
        .join(sessions, sessions.c.key == entries.c.session_key)
        .where(links.c.message_key == key)
        .order_by(entries.c.key.desc(), links.c.ordinal)
        .limit(1)
    )
    if scope is not None:
        query = query.where(entries.c.key.in_(scope))
    session_id, entry_hash, ordinal = archive.execute(query).one()
    return session_id, entry_hash, ordinal
