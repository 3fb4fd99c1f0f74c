"""What people ask of the ledger: lists, costs, archived messages, messages by their words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, exists, func, select, text

from ...messages import Message, content_digest
from ..segments import DROPPED
from ..words import Hit, Place, hits, holds, readable, words
from .archive import Archive
from .schema import entries, epochs, is_sqlite, links, messages, sessions
from .sessions import NEWEST, UNDOES, chain, literals, require, standing


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


def namespaces_of(connection: Connection) -> list[str]:
    """The namespaces that have sessions."""
    query = select(sessions.c.namespace).where(~_FORGOTTEN).distinct()
    return list(connection.execute(query.order_by(sessions.c.namespace)).scalars())


def sessions_of(connection: Connection, namespace: str) -> list[SessionInfo]:
    """The sessions of a namespace, the last used first."""
    root, tip = epochs.alias("root"), epochs.alias("tip")
    of_session = select(func.count()).where(epochs.c.session_key == sessions.c.key)
    undone = of_session.where(UNDOES).scalar_subquery()
    compressions = of_session.scalar_subquery() - 1 - undone
    archived = (
        select(func.count(func.distinct(links.c.message_key)))
        .join(entries, entries.c.key == links.c.entry_key)
        .where(entries.c.session_key == sessions.c.key)
        .scalar_subquery()
    )
    query = (
        select(
            sessions.c.id,
            root.c.parent_id,
            tip.c.id,
            compressions,
            undone,
            archived,
            root.c.created,
            tip.c.created,
        )
        .join(root, (root.c.session_key == sessions.c.key) & (root.c.id == sessions.c.id))
        .join(tip, tip.c.key == NEWEST)
        .where(sessions.c.namespace == namespace, ~_FORGOTTEN)
        .order_by(tip.c.key.desc())
    )
    return [SessionInfo(*row) for row in connection.execute(query)]


def archived(archive: Archive, namespace: str, session_id: str) -> list[Message]:
    """Every original of a session and of what it inherits once, in the order of the chain."""
    row = require(archive.connection, namespace, session_id)
    rows = chain(archive.connection, namespace, row.head)
    linked = archive.linked([each.key for each in rows])
    keys = dict.fromkeys(key for each in rows for key in linked[each.key])
    found = archive.get(keys)
    return [found[key] for key in keys if found[key] != DROPPED]


# ---------------------------------------------------------------- searching
_RANKED = 400  # candidates of a search that are read and ranked
_ASKED = 100  # words of a query that are looked for: models paste whole messages


def search(
    archive: Archive,
    namespace: str,
    query: str,
    session_id: str | None,
    limit: int,
    *,
    archived_only: bool = False,
) -> list[Hit]:
    """The messages that match best: of a session and what it inherits, or of a namespace."""
    wanted = words(query)[:_ASKED]
    if not wanted:
        return []
    connection = archive.connection
    row = None if session_id is None else require(connection, namespace, session_id)
    scope = None if row is None else [e.key for e in chain(connection, namespace, row.head)]
    pool: dict[str, Message] = {}
    places: dict[str, int | str] = {}  # an archived message's key, or the name of a session
    for every in (True, False):  # those with all words; where there is none, those with any
        found = archive.get(_candidates(archive, namespace, wanted, scope, every=every))
        everything: list[tuple[int | str, Message]] = [
            pair for pair in sorted(found.items()) if pair[1] != DROPPED
        ]
        if not archived_only:
            everything += [
                (session.id, message)
                for session, recorded in standing(archive, namespace, row and row.key)
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
        return _place_of(connection, place, scope) if isinstance(place, int) else (place, "", 0)

    return hits(query, pool, limit, place_of)


def _candidates(
    archive: Archive, namespace: str, wanted: list[str], scope: list[int] | None, *, every: bool
) -> list[int]:
    """Keys of archived messages to rank, among those that the entries of a scope stand for: those
    with all words, or with any, the newest. Without an index all of them."""
    connection = archive.connection
    if scope is None and archive.indexed:
        return _indexed(connection, wanted, namespace, every=every)
    if scope is None:
        query = select(messages.c.key).where(messages.c.namespace == namespace)
        return list(connection.execute(query).scalars())
    among = {key for keys in archive.linked(scope).values() for key in keys}
    if not archive.indexed:
        return list(among)
    return _indexed_among(connection, wanted, among, every=every)


def _place_of(connection: Connection, key: int, scope: list[int] | None) -> Place:
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
    session_id, entry_hash, ordinal = connection.execute(query).one()
    return session_id, entry_hash, ordinal


# ---------------------------------------------------------------- the full-text index
def _indexed(
    connection: Connection, found: Sequence[str], namespace: str, *, every: bool
) -> list[int]:
    """Keys of a namespace's messages that hold all of the words, or any; newest first."""
    key, match = _MATCH[connection.dialect.name]
    # FTS5 would be asked once for each message if the planner began with the messages.
    join = "CROSS JOIN" if is_sqlite(connection) else "JOIN"
    statement = (
        f"SELECT m.key FROM compressor_search f {join} compressor_messages m ON m.key = f.{key} "
        f"WHERE m.namespace = :namespace AND {match} ORDER BY m.key DESC LIMIT :limit"
    )
    values = {"namespace": namespace, "limit": _RANKED, "query": _query(connection, found, every)}
    return list(connection.execute(text(statement), values).scalars())


def _indexed_among(
    connection: Connection, found: Sequence[str], keys: Collection[int], *, every: bool
) -> list[int]:
    """Those of the keys whose messages hold all of the words, or any; newest first."""
    key, match = _MATCH[connection.dialect.name]
    statement = text(
        f"SELECT f.{key} FROM compressor_search f WHERE {match} "
        f"AND f.{key} BETWEEN :first AND :last"
    )
    query = _query(connection, found, every)
    within: set[int] = set()
    for first, last in _stretches(sorted(keys)):
        values = {"query": query, "first": first, "last": last}
        within.update(connection.execute(statement, values).scalars())
    return sorted(within & set(keys), reverse=True)[:_RANKED]


def _stretches(keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that hold the keys: those of one commit are neighbours, so there are few.

    FTS5 reads a range of its lists at once, and takes a millisecond for every single key.
    """
    start = 0
    for place in range(1, len(keys) + 1):
        if place == len(keys) or keys[place] - keys[place - 1] > _GAP:
            yield keys[start], keys[place - 1]
            start = place


_GAP = 500
_MATCH = {
    "sqlite": ("rowid", "f.compressor_search MATCH :query"),
    "postgresql": ("message_key", "f.words @@ CAST(:query AS tsquery)"),
}


def _query(connection: Connection, found: Sequence[str], every: bool) -> str:
    # Words are letters and digits only, so a quote cannot end early.
    if is_sqlite(connection):
        return (" AND " if every else " OR ").join(f'"{word}"' for word in found)
    return (" & " if every else " | ").join(f"'{word}'" for word in found)
