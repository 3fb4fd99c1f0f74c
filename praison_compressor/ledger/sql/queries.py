"""What people ask of the ledger: lineages, families, lists, costs, messages by their words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select, text

from ...messages import Message, content_digest
from ..segments import Epoch, Usage
from ..words import Hit, Place, hits, holds, readable, words
from .archive import Archive
from .schema import entries, epochs, is_sqlite, links, sessions, transcripts
from .sessions import (
    epochs_of,
    find,
    literals,
    own_entries,
    require,
    scope_of,
    unpacked,
    within,
)


@dataclass(frozen=True)
class SessionInfo:
    """A line of the list of sessions."""

    id: str
    parent_id: str | None
    tip: str
    compressions: int
    messages: int
    """Archived originals, its own."""
    created: float
    updated: float


def lineage(connection: Connection, namespace: str, session_id: str) -> list[Epoch]:
    row = require(connection, namespace, session_id)
    upto = None if row.epoch_id == row.id else row.epoch_number
    return epochs_of(connection, row, upto)


def tree(connection: Connection, namespace: str, session_id: str) -> list[Epoch]:
    row = require(connection, namespace, session_id)
    seen = {row.id}
    while row.parent_id is not None:
        above = find(connection, namespace, row.parent_id)
        if above is None or above.id in seen:
            break
        seen.add(above.id)
        row = above
    return _family(connection, row, set())


def _family(connection: Connection, row: Row[Any], seen: set[str]) -> list[Epoch]:
    seen.add(row.id)
    query = select(epochs).where(epochs.c.session_key == row.key).order_by(epochs.c.number)
    found = [Epoch(e.id, e.parent_id, row.id, e.created) for e in connection.execute(query)]
    children = select(sessions).where(
        sessions.c.namespace == row.namespace,
        sessions.c.parent_id.in_([epoch.id for epoch in found]),
    )
    for child in connection.execute(children.order_by(sessions.c.created, sessions.c.key)).all():
        if child.id not in seen:
            found += _family(connection, child, seen)
    return found


def sessions_of(connection: Connection, namespace: str, limit: int | None) -> list[SessionInfo]:
    count = (
        select(func.count(func.distinct(links.c.message_key)))
        .join(entries, entries.c.key == links.c.entry_key)
        .where(entries.c.session_key == sessions.c.key)
        .correlate(sessions)
        .scalar_subquery()
    )
    query = (
        select(sessions, count.label("archived"))
        .where(sessions.c.namespace == namespace)
        .order_by(sessions.c.updated.desc())
        .limit(limit)
    )
    return [
        SessionInfo(
            id=row.id,
            parent_id=row.parent_id,
            tip=row.tip,
            compressions=row.epochs - 1,
            messages=row.archived,
            created=row.created,
            updated=row.updated,
        )
        for row in connection.execute(query)
    ]


def usage_of(archive: Archive, namespace: str, session_id: str) -> Usage:
    row = require(archive.connection, namespace, session_id)
    own = own_entries(archive, row.key, 0, row.length)
    return sum((entry.segment.usage for entry in own), Usage())


# ---------------------------------------------------------------- searching


Scope = Sequence[tuple[int, int]]
"""(session key, number of its own entries that count), for a session and what it inherits."""

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
    """The messages that match best: of a session and what it inherits, or of a namespace.

    Raises:
        ConfigError: a limit below 1.
    """
    wanted = words(query)[:_ASKED]
    if not wanted:
        return []
    connection = archive.connection
    row = None if session_id is None else require(connection, namespace, session_id)
    scope = None if row is None else scope_of(connection, row)
    pool: dict[str, Message] = {}
    places: dict[str, int | str] = {}  # an archived message's key, or the name of a session
    for every in (True, False):  # those with all words; where there is none, those with any
        standing = [] if archived_only else _standing(archive, namespace, row, wanted, every=every)
        found = archive.get(_candidates(archive, namespace, wanted, scope, every=every))
        everything: list[tuple[int | str, Message]] = [*sorted(found.items()), *standing]
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
    archive: Archive, namespace: str, wanted: list[str], scope: Scope | None, *, every: bool
) -> list[int]:
    """Keys of archived messages to rank: those with all words, or with any, the newest."""
    connection = archive.connection
    if not archive.indexed:
        return archived_keys(connection, scope or _everything(connection, namespace))
    if scope is None:
        return _indexed(connection, wanted, namespace, every=every)
    return _indexed_among(connection, wanted, archived_keys(connection, scope), every=every)


def _standing(
    archive: Archive, namespace: str, row: Row[Any] | None, wanted: list[str], *, every: bool
) -> list[tuple[str, Message]]:
    """Messages with all words, or any, that no entry holds: a transcript's first and newest ones,
    each after the name of its session, those of the last used session first."""
    query = (
        select(sessions.c.id, transcripts.c.body)
        .join(transcripts, transcripts.c.session_key == sessions.c.key)
        .where(sessions.c.namespace == namespace if row is None else sessions.c.key == row.key)
        .order_by(sessions.c.updated.desc())
    )
    return [
        (name, message)
        for name, body in archive.connection.execute(query)
        for message in literals(unpacked(archive.packer, body))
        if holds(readable(message), wanted, every=every)
    ]


def archived_keys(connection: Connection, scope: Scope) -> list[int]:
    """Message keys of the scope, each once, in the order of the chain."""
    keys: dict[int, None] = {}
    for part in scope:
        query = (
            select(links.c.message_key)
            .join(entries, entries.c.key == links.c.entry_key)
            .where(within([part]))
            .order_by(entries.c.position, links.c.ordinal)
        )
        keys |= dict.fromkeys(connection.execute(query).scalars())
    return list(keys)


def _everything(connection: Connection, namespace: str) -> Scope:
    query = select(sessions.c.key, sessions.c.length).where(sessions.c.namespace == namespace)
    return [(row.key, row.length) for row in connection.execute(query)]


def _place_of(connection: Connection, key: int, scope: Scope | None) -> Any:
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
        query = query.where(within(scope))
    return tuple(connection.execute(query).one())


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
