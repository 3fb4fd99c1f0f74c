"""Finding messages by their words: archived ones, and those that stand in a transcript itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from ..errors import ConfigError
from ..messages import Message, content_digest
from .archive import Archive
from .index import candidates, candidates_among
from .schema import entries, links, sessions, transcripts
from .snapshots import require, scope_of, within
from .transcripts import literals, unpacked
from .words import holds, rank, readable, snippet, words

Scope = Sequence[tuple[int, int]]
"""(session key, number of its own entries that count), for a session and what it inherits."""

__all__ = ["Hit", "archived_keys", "search"]

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
