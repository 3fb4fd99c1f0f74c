"""What people ask of the ledger: lineages, families, lists, costs, messages by their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Row, func, select

from ...messages import Message, content_digest
from ..segments import Epoch, Usage
from ..words import Hit, Place, held, hits, readable, words
from .archive import Archive, batches
from .schema import entries, epochs, links, messages, sessions, transcripts
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

_RANKED = 400  # of the messages that match, the newest
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
    found: dict[bool, dict[str, tuple[Message, int | str]]] = {True: {}, False: {}}
    everything: list[Iterator[tuple[int | str, Message]]]
    everything = [_in_archive(archive, namespace, scope)]
    everything += [] if archived_only else [_standing(archive, namespace, row)]
    for place, message in chain.from_iterable(everything):
        if count := held(readable(message), wanted):
            has_all = count == len(wanted)
            found[has_all].setdefault(content_digest(message), (message, place))
    # Those with all words; where there is none, those with any.
    newest = dict(list((found[True] or found[False]).items())[-_RANKED:])

    def place_of(digest: str) -> Place:
        _, place = newest[digest]
        return _place_of(connection, place, scope) if isinstance(place, int) else (place, "", 0)

    return hits(query, {name: message for name, (message, _) in newest.items()}, limit, place_of)


def _in_archive(
    archive: Archive, namespace: str, scope: Scope | None
) -> Iterator[tuple[int | str, Message]]:
    """Archived messages by their keys, older first."""
    if scope is None:
        query = select(messages.c.key).where(messages.c.namespace == namespace)
        keys = list(archive.connection.execute(query.order_by(messages.c.key)).scalars())
    else:
        keys = archived_keys(archive.connection, scope)
    for some in batches(keys):
        found = archive.get(some)
        yield from ((key, found[key]) for key in some)


def _standing(
    archive: Archive, namespace: str, row: Row[Any] | None
) -> Iterator[tuple[int | str, Message]]:
    """Messages that no entry holds, a transcript's first and newest ones, each after the name of
    its session; those of the last used session first."""
    query = (
        select(sessions.c.id, transcripts.c.body)
        .join(transcripts, transcripts.c.session_key == sessions.c.key)
        .where(sessions.c.namespace == namespace if row is None else sessions.c.key == row.key)
        .order_by(sessions.c.updated.desc())
    )
    for name, body in archive.connection.execute(query):
        yield from ((name, message) for message in literals(unpacked(archive.packer, body)))


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
