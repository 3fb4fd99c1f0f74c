"""What people ask of the ledger: lineages, families, lists, costs, messages by their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from ...errors import ConfigError
from ...messages import Message, content_digest
from ..segments import Epoch, Usage
from ..words import holds, rank, readable, snippet, words
from .archive import Archive
from .index import candidates, candidates_among
from .schema import entries, epochs, links, sessions, transcripts, usage
from .sessions import epochs_of, find, require, scope_of, within
from .transcripts import literals, unpacked

__all__ = [
    "Hit",
    "SessionInfo",
    "archived_keys",
    "lineage",
    "search",
    "sessions_of",
    "tree",
    "usage_of",
]


# -------------------------------------------------------------- reading


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
    children = (
        select(sessions)
        .where(
            sessions.c.namespace == row.namespace,
            sessions.c.parent_id.in_([epoch.id for epoch in found]),
        )
        .order_by(sessions.c.created, sessions.c.key)
    )
    for child in connection.execute(children).all():
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


def usage_of(connection: Connection, namespace: str, session_id: str) -> Usage:
    row = require(connection, namespace, session_id)
    total = Usage()
    for each in connection.execute(select(usage).where(usage.c.session_key == row.key)):
        total += Usage(
            each.prompt_tokens,
            each.completion_tokens,
            each.cache_read_tokens,
            each.cache_write_tokens,
            each.cost,
        )
    return total


# -------------------------------------------------------------- searching


Scope = Sequence[tuple[int, int]]
"""(session key, number of its own entries that count), for a session and what it inherits."""


_RANKED = 400  # candidates of a search that are read and ranked


_ASKED = 100  # words of a query that are looked for: models paste whole messages


@dataclass(frozen=True)
class Hit:
    """A message that a search found."""

    session_id: str
    entry: str
    """The hash of the newest entry that covers it; "" where it stands in the transcript itself."""
    ordinal: int
    """Its place among that entry's originals; 0 where there is none."""
    digest: str
    """Its content digest, by which it can be forgotten."""
    message: Message
    snippet: str
    score: float


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
    if limit < 1:
        raise ConfigError(f"limit={limit}: expected a whole number, 1 or more")
    wanted = words(query)[:_ASKED]
    if not wanted:
        return []
    connection = archive.connection
    row = None if session_id is None else require(connection, namespace, session_id)
    scope = None if row is None else scope_of(connection, row)
    pool: dict[str, tuple[Message, int | str]] = {}
    for every in (True, False):  # those with all words; where there is none, those with any
        standing = [] if archived_only else _standing(archive, namespace, row, wanted, every=every)
        keys = _candidates(archive, namespace, wanted, scope, every=every)
        found = archive.get(keys)
        pool = {content_digest(found[key]): (found[key], key) for key in keys}
        for name, message in standing:
            pool.setdefault(content_digest(message), (message, name))
        if pool:
            break
    places = list(pool.items())
    texts = [readable(message) for _, (message, _) in places]
    hits = []
    for score, index in rank(query, texts)[:limit]:
        digest, (message, place) = places[index]
        name, entry, ordinal = (
            _place_of(connection, place, scope) if isinstance(place, int) else (place, "", 0)
        )
        cut = snippet(query, texts[index])
        hits.append(Hit(name, entry, ordinal, digest, message, cut, score))
    return hits


def _candidates(
    archive: Archive, namespace: str, wanted: list[str], scope: Scope | None, *, every: bool
) -> list[int]:
    """Keys of archived messages to rank, older first: those with all words, or with any."""
    connection = archive.connection
    if not archive.indexed:
        return sorted(archived_keys(connection, scope or _everything(connection, namespace)))
    if scope is None:
        found = candidates(connection, wanted, every=every, namespace=namespace, limit=_RANKED)
    else:
        keys = archived_keys(connection, scope)
        found = candidates_among(connection, wanted, keys, every=every, limit=_RANKED)
    return sorted(found)


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
    return connection.execute(query).one()
