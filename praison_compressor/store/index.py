"""The full-text index: FTS5 on SQLite, a GIN index on PostgreSQL, both fed with `words`.

It holds words and message keys, no positions: phrases are checked on the messages themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

__all__ = ["Scope", "add_words", "candidates", "create_index", "optimize_index", "remove_words"]

Scope = Sequence[tuple[int, int]]
"""(session key, number of its own entries that count), for a session and what it inherits."""

_SQLITE = (
    # The words come ready made: "ascii" leaves everything but spaces alone.
    "CREATE VIRTUAL TABLE compressor_search USING fts5"
    "(words, content='', detail='none', columnsize=0, tokenize='ascii')",
)
_POSTGRESQL = (
    "CREATE TABLE compressor_search (message_key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
    "CREATE INDEX compressor_search_words ON compressor_search USING GIN (words)",
)


def create_index(connection: Connection) -> None:
    """Make the index: a migration."""
    for statement in _SQLITE if _is_sqlite(connection) else _POSTGRESQL:
        connection.exec_driver_sql(statement)


def add_words(connection: Connection, found: Sequence[tuple[int, list[str]]]) -> None:
    """Index messages under their words."""
    if not found:
        return
    if _is_sqlite(connection):
        connection.execute(
            text("INSERT INTO compressor_search(rowid, words) VALUES (:key, :words)"),
            [{"key": key, "words": " ".join(each)} for key, each in found],
        )
    else:
        connection.execute(
            text(
                "INSERT INTO compressor_search "
                "VALUES (:key, array_to_tsvector(CAST(:words AS text[])))"
            ),
            [{"key": key, "words": each} for key, each in found],
        )


def remove_words(connection: Connection, found: Sequence[tuple[int, list[str]]]) -> None:
    """Take messages out of the index; FTS5 must be told what it was given."""
    if not found:
        return
    if _is_sqlite(connection):
        connection.execute(
            text(
                "INSERT INTO compressor_search(compressor_search, rowid, words) "
                "VALUES ('delete', :key, :words)"
            ),
            [{"key": key, "words": " ".join(each)} for key, each in found],
        )
    else:
        connection.execute(
            text("DELETE FROM compressor_search WHERE message_key = :key"),
            [{"key": key} for key, _ in found],
        )


def optimize_index(connection: Connection) -> None:
    """Merge the index into one piece: FTS5 keeps removed words until then."""
    if _is_sqlite(connection):
        connection.exec_driver_sql(
            "INSERT INTO compressor_search(compressor_search) VALUES ('optimize')"
        )


def candidates(
    connection: Connection,
    found: Sequence[str],
    *,
    every: bool,
    namespace: str,
    scope: Scope | None,
    limit: int,
) -> list[int]:
    """Keys of messages that hold all of the words, or any; newest first."""
    sqlite = _is_sqlite(connection)
    values: dict[str, Any] = {"namespace": namespace, "limit": limit}
    values["query"] = _query(found, every, sqlite)
    match = "f.compressor_search MATCH :query" if sqlite else "f.words @@ CAST(:query AS tsquery)"
    key = "f.rowid" if sqlite else "f.message_key"
    if scope is None:
        # FTS5 would be asked once per message if the planner began with the messages.
        join = "CROSS JOIN" if sqlite else "JOIN"
        source = f"compressor_search f {join} compressor_messages m"
        where = f"m.namespace = :namespace AND {match}"
        on = f"m.key = {key}"
    else:
        # A session is small and the store is not: begin with the session.
        join = "CROSS JOIN" if sqlite else "JOIN"
        source = (
            f"compressor_entries e {join} compressor_links m ON m.entry_key = e.key "
            f"{join} compressor_search f"
        )
        where = f"({_within(scope, values)}) AND {match}"
        on = f"{key} = m.message_key"
    column = "m.key" if scope is None else "m.message_key"
    statement = (
        f"SELECT DISTINCT {column} AS found FROM {source} ON {on} WHERE {where} "
        "ORDER BY found DESC LIMIT :limit"
    )
    return list(connection.execute(text(statement), values).scalars())


def _within(scope: Scope, values: dict[str, Any]) -> str:
    parts = []
    for number, (session_key, length) in enumerate(scope):
        values[f"session_{number}"], values[f"length_{number}"] = session_key, length
        parts.append(f"(e.session_key = :session_{number} AND e.position < :length_{number})")
    return " OR ".join(parts)


def _query(found: Sequence[str], every: bool, sqlite: bool) -> str:
    # Words are letters and digits only, so a quote cannot end early.
    if sqlite:
        return (" AND " if every else " OR ").join(f'"{word}"' for word in found)
    return (" & " if every else " | ").join(f"'{word}'" for word in found)


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
