"""Define the ledger's tables, the same for SQLite and PostgreSQL.

A session has the hash of its newest entry. An entry has its parent's hash. Forks share entries.
Only the binary columns and the full-text index have words of a conversation.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Table,
    Text,
    UniqueConstraint,
)

from ..segments import GENESIS, Session

LAYOUT = b"8"
"""The number of this layout; a store with another number is refused."""

# SQLite assigns ascending row ids only to a column of exactly the type INTEGER.
_KEY_TYPE = BigInteger().with_variant(Integer, "sqlite")
# An application's own tables in the same PostgreSQL database may be called "sessions".
_PREFIX = "compressor_"
metadata = MetaData()

meta = Table(
    _PREFIX + "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# `head` is the hash of the newest entry. `base_head` is the hash of the newest inherited entry.
sessions = Table(
    _PREFIX + "sessions",
    metadata,
    Column("key", _KEY_TYPE, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    # The parent's id as the caller gave it; there may be no such session.
    Column("parent_id", Text),
    Column("base_key", _KEY_TYPE, ForeignKey(_PREFIX + "sessions.key"), index=True),
    Column("base_head", Text, nullable=False, default=GENESIS),
    Column("head", Text, nullable=False, default=GENESIS),
    # Number of the session's epochs after the first.
    Column("commits", Integer, nullable=False, default=0),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    # Number of times that `forget` removed a part, which makes snapshots stale.
    Column("erasures", Integer, nullable=False, default=0),
    # The recorded transcript, a `Skeleton`, outside the hash chain.
    Column("transcript", LargeBinary),
    # Messages in `transcript`, without leading system messages.
    Column("recorded", Integer, nullable=False, default=0),
    UniqueConstraint("namespace", "id"),
    Index(_PREFIX + "sessions_head", "namespace", "head"),
)

# Messages after `sessions.transcript`: a request writes only new messages.
appended = Table(
    _PREFIX + "appended",
    metadata,
    Column("session_key", _KEY_TYPE, ForeignKey(sessions.c.key), primary_key=True),
    # Index in the transcript, without leading system messages.
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

entries = Table(
    _PREFIX + "entries",
    metadata,
    Column("key", _KEY_TYPE, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("session_key", _KEY_TYPE, ForeignKey(sessions.c.key), nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("parent", Text, nullable=False),
    Column("commitment", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # Salt, archive digest and segment, destroyed together; NULL in a tombstone.
    Column("sealed", LargeBinary),
    UniqueConstraint("namespace", "hash"),
    Index(_PREFIX + "entries_parent", "namespace", "parent"),
    Index(_PREFIX + "entries_epoch", "namespace", "epoch"),
)

messages = Table(
    _PREFIX + "messages",
    metadata,
    Column("key", _KEY_TYPE, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("namespace", "digest"),
)

links = Table(
    _PREFIX + "links",
    metadata,
    Column("entry_key", _KEY_TYPE, ForeignKey(entries.c.key), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("message_key", _KEY_TYPE, ForeignKey(messages.c.key), nullable=False),
    Index(_PREFIX + "links_message", "message_key"),
    sqlite_with_rowid=False,
)

# Key ranges of a session's messages: a search reads these ranges, not a million links.
spans = Table(
    _PREFIX + "spans",
    metadata,
    Column("session_key", _KEY_TYPE, ForeignKey(sessions.c.key), primary_key=True),
    Column("first", _KEY_TYPE, primary_key=True, autoincrement=False),
    Column("last", _KEY_TYPE, nullable=False),
    sqlite_with_rowid=False,
)

leases = Table(
    _PREFIX + "leases",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", Float, nullable=False),
)

# A session's bill, without words of the conversation. The session may have no row.
notes = Table(
    _PREFIX + "notes",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("body", Text, nullable=False),
)


def of_session(table: Table, session: Session | Row[Any]) -> ColumnElement[bool]:
    """Return the condition for a session's row of `leases` or `notes`."""
    return (table.c.namespace == session.namespace) & (table.c.session_id == session.id)


# ---------------------------------------------------------------- statements of one dialect
_INDEX_STATEMENTS = {
    "sqlite": (
        # The words are already folded: "ascii" only splits them at spaces.
        "CREATE VIRTUAL TABLE compressor_search USING fts5"
        "(words, content='', detail='none', columnsize=0, tokenize='ascii')",
    ),
    "postgresql": (
        "CREATE TABLE compressor_search (message_key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        # Keep the pending list short: its pages stay in the index for good.
        "CREATE INDEX compressor_search_words ON compressor_search USING GIN (words) "
        "WITH (gin_pending_list_limit = 128)",
        # No statistics: the planner would keep samples of messages in a catalog that `forget`
        # cannot reach.
        "ALTER TABLE compressor_search ALTER COLUMN words SET STATISTICS 0",
        *(
            f"ALTER TABLE {table} ALTER COLUMN {column.name} SET STATISTICS 0"
            for table in metadata.tables.values()
            for column in table.columns
            if isinstance(column.type, LargeBinary)
        ),
    ),
}


def make_tables(connection: Connection) -> None:
    """Create all tables and the index in an empty database."""
    metadata.create_all(connection)
    for statement in _INDEX_STATEMENTS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
