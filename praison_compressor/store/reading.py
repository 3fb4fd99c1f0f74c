"""What people ask of the ledger: lineages, families, lists, costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from ..ledger import Epoch, Usage
from .schema import entries, epochs, links, sessions, usage
from .snapshots import epochs_of, find, require

__all__ = ["SessionInfo", "lineage", "sessions_of", "tree", "usage_of"]


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
