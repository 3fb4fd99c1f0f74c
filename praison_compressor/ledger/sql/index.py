"""The full-text index of archived messages: FTS5 on SQLite, a GIN index on PostgreSQL.

It holds words and message keys, no positions: phrases are checked on the messages themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlalchemy import Connection, text

__all__ = [
    "add_words",
    "candidates",
    "candidates_among",
    "create_index",
    "optimize_index",
    "remove_words",
]


_SQLITE = (
    # The words come ready made: "ascii" leaves everything but spaces alone.
    "CREATE VIRTUAL TABLE compressor_search USING fts5"
    "(words, content='', detail='none', columnsize=0, tokenize='ascii')",
)


_POSTGRESQL = (
    "CREATE TABLE compressor_search (message_key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
    # A short list of what is not merged yet: the pages of a long one stay in the index for good.
    "CREATE INDEX compressor_search_words ON compressor_search USING GIN (words) "
    "WITH (gin_pending_list_limit = 128)",
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
    connection: Connection, found: Sequence[str], *, every: bool, namespace: str, limit: int
) -> list[int]:
    """Keys of a namespace's messages that hold all of the words, or any; newest first."""
    sqlite = _is_sqlite(connection)
    key, match = _MATCH[connection.dialect.name]
    # FTS5 would be asked once for each message if the planner began with the messages.
    join = "CROSS JOIN" if sqlite else "JOIN"
    statement = (
        f"SELECT m.key FROM compressor_search f {join} compressor_messages m ON m.key = f.{key} "
        f"WHERE m.namespace = :namespace AND {match} ORDER BY m.key DESC LIMIT :limit"
    )
    values = {"namespace": namespace, "limit": limit, "query": _query(found, every, sqlite)}
    return list(connection.execute(text(statement), values).scalars())


def candidates_among(
    connection: Connection, found: Sequence[str], keys: Collection[int], *, every: bool, limit: int
) -> list[int]:
    """Those of the keys whose messages hold all of the words, or any; newest first."""
    sqlite = _is_sqlite(connection)
    key, match = _MATCH[connection.dialect.name]
    statement = text(
        f"SELECT f.{key} FROM compressor_search f WHERE {match} "
        f"AND f.{key} BETWEEN :first AND :last"
    )
    query = _query(found, every, sqlite)
    within: set[int] = set()
    for first, last in _stretches(sorted(keys)):
        values = {"query": query, "first": first, "last": last}
        within.update(connection.execute(statement, values).scalars())
    return sorted(within & set(keys), reverse=True)[:limit]


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


def _query(found: Sequence[str], every: bool, sqlite: bool) -> str:
    # Words are letters and digits only, so a quote cannot end early.
    if sqlite:
        return (" AND " if every else " OR ").join(f'"{word}"' for word in found)
    return (" & " if every else " | ").join(f"'{word}'" for word in found)


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
