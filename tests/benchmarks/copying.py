"""Makes a filled PostgreSQL store many times as large in a minute: rows copied by the database.

What is copied opens, is searched and is committed to like the sessions it came from. Its hashes are
theirs, so that it does not verify.
"""

from __future__ import annotations

from sqlalchemy import Connection, create_engine, text

from praison_compressor.ledger.segments import GENESIS
from praison_compressor.ledger.sql.database import parse

__all__ = ["multiply"]

_STABLE = "'s' || (CAST(substr(s.id, 2) AS int) + :sessions)"
_NUMBER = "CAST(:number AS text)"
_STATEMENTS = (
    f"""INSERT INTO compressor_sessions
    SELECT key + :keys, namespace, {_STABLE}, edits, transcript
    FROM compressor_sessions s WHERE key <= :last""",
    f"""INSERT INTO compressor_epochs
    SELECT e.key + :keys, e.namespace, {_STABLE} || substr(e.id, length(s.id) + 1),
        e.session_key + :keys, e.base_key + :keys,
        {_STABLE} || substr(e.parent_id, length(s.id) + 1), e.head || {_NUMBER}, e.created
    FROM compressor_epochs e JOIN compressor_sessions s ON s.key = e.session_key
    WHERE e.key <= :last""",
    f"""INSERT INTO compressor_entries
    SELECT key + :keys, namespace, session_key + :keys, kind, epoch,
        CASE parent WHEN '{GENESIS}' THEN parent ELSE parent || {_NUMBER} END,
        commitment, hash || {_NUMBER}, sealed
    FROM compressor_entries WHERE key <= :last""",
    """INSERT INTO compressor_messages
    SELECT key + :keys, namespace, sha256(digest || CAST(CAST(:number AS text) AS bytea)), body
    FROM compressor_messages WHERE key <= :last""",
    """INSERT INTO compressor_links
    SELECT entry_key + :keys, ordinal, message_key + :keys
    FROM compressor_links WHERE entry_key <= :last""",
    """INSERT INTO compressor_search
    SELECT message_key + :keys, words FROM compressor_search WHERE message_key <= :last""",
)
_COUNTED = ("sessions", "epochs", "entries", "messages")


def multiply(url: str, sessions: int, times: int) -> None:
    """Let a store of the sessions `s0`, `s1`, … have that many times as many."""
    engine = create_engine(parse(url))
    with engine.begin() as connection:
        keys = max(_last_key(connection, table) for table in _COUNTED)
        for number in range(1, times):
            values = {"keys": number * keys, "last": keys, "number": number}
            for statement in _STATEMENTS:
                connection.execute(text(statement), {**values, "sessions": number * sessions})
        for table in _COUNTED:
            sequence = f"pg_get_serial_sequence('compressor_{table}', 'key')"
            connection.execute(text(f"SELECT setval({sequence}, :last)"), {"last": times * keys})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # What the server would have done by itself while so much was committed bit by bit.
        connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()


def _last_key(connection: Connection, table: str) -> int:
    return int(connection.execute(text(f"SELECT max(key) FROM compressor_{table}")).scalar_one())
