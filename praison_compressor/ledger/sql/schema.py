"""The tables of the ledger, the same for SQLite and PostgreSQL, and how they are made.

Everything that says who said what is in six columns: `entries.sealed` (salt, segment and archive
digest together, so that forgetting one forgets all), `messages.body` and `messages.digest`,
`transcripts.body` and `transcripts.names`, and the full-text index. All else is ids, hashes,
counts and times.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.dialects import postgresql, sqlite

from ...errors import ConfigError
from ..segments import GENESIS

LAYOUT = b"1"
"""The number of this layout of tables; a store of another one is refused."""

# SQLite gives ascending row ids only to a column of exactly the type INTEGER.
_Key = BigInteger().with_variant(Integer, "sqlite")
# A prefix, because a PostgreSQL database is often shared with an application's own "sessions".
_PREFIX = "compressor_"
metadata = MetaData()

meta = Table(
    _PREFIX + "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

sessions = Table(
    _PREFIX + "sessions",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("parent_id", Text),
    # What a fork inherits: the first `base_length` own entries of `base_key`, and what that
    # session inherited itself.
    Column("base_key", _Key, ForeignKey(_PREFIX + "sessions.key")),
    Column("base_length", Integer, nullable=False, default=0),
    Column("base_epochs", Integer, nullable=False, default=0),
    Column("base_hash", Text, nullable=False, default=GENESIS),
    Column("tip", Text, nullable=False),
    Column("tip_parent", Text),
    Column("length", Integer, nullable=False, default=0),
    Column("epochs", Integer, nullable=False, default=1),
    Column("head_hash", Text, nullable=False, default=GENESIS),
    # Counts what was forgotten: snapshots that were read before are stale.
    Column("edits", Integer, nullable=False, default=0),
    Column("created", Float, nullable=False, default=time.time),
    Column("updated", Float, nullable=False, default=time.time),
    UniqueConstraint("namespace", "id"),
    Index(_PREFIX + "sessions_parent", "namespace", "parent_id"),
    Index(_PREFIX + "sessions_base", "base_key"),
)

epochs = Table(
    _PREFIX + "epochs",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("session_key", _Key, ForeignKey(sessions.c.key), nullable=False),
    Column("number", Integer, nullable=False, default=0),
    Column("parent_id", Text),
    # How many own entries the session has in this epoch.
    Column("length", Integer, nullable=False, default=0),
    Column("created", Float, nullable=False, default=time.time),
    UniqueConstraint("namespace", "id"),
    UniqueConstraint("session_key", "number"),
)

entries = Table(
    _PREFIX + "entries",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("session_key", _Key, ForeignKey(sessions.c.key), nullable=False),
    Column("position", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("commitment", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # NULL is a tombstone: the salt went with the segment, the commitment says nothing any more.
    Column("sealed", LargeBinary),
    UniqueConstraint("session_key", "position"),
)

messages = Table(
    _PREFIX + "messages",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("namespace", "digest"),
)

links = Table(
    _PREFIX + "links",
    metadata,
    Column("entry_key", _Key, ForeignKey(entries.c.key), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("message_key", _Key, ForeignKey(messages.c.key), nullable=False),
    Index(_PREFIX + "links_message", "message_key"),
    sqlite_with_rowid=False,
)

# The whole transcript as it was last recorded: what no segment holds, and the segments' places.
transcripts = Table(
    _PREFIX + "transcripts",
    metadata,
    Column("session_key", _Key, ForeignKey(sessions.c.key), primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    # The ends of its own messages' names: `forget` finds a message without reading every body.
    Column("names", LargeBinary, nullable=False),
)

exports = Table(
    _PREFIX + "exports",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("created", Float, nullable=False, default=time.time),
    Index(_PREFIX + "exports_session", "namespace", "session_id"),
)

leases = Table(
    _PREFIX + "leases",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    # By the database's clock: the machines' own need not agree.
    Column("until", Float, nullable=False),
)

# ---------------------------------------------------------------- what a dialect needs besides
_SQLITE = (
    # The words come ready made: "ascii" leaves everything but spaces alone.
    "CREATE VIRTUAL TABLE compressor_search USING fts5"
    "(words, content='', detail='none', columnsize=0, tokenize='ascii')",
)
_CONTENT = (
    entries.c.sealed,
    messages.c.body,
    messages.c.digest,
    transcripts.c.body,
    transcripts.c.names,
)
_POSTGRESQL = (
    "CREATE TABLE compressor_search (message_key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
    # A short list of what is not merged yet: the pages of a long one stay in the index for good.
    "CREATE INDEX compressor_search_words ON compressor_search USING GIN (words) "
    "WITH (gin_pending_list_limit = 128)",
    # The planner's samples of what was said would be in a catalog that `forget` cannot reach.
    "ALTER TABLE compressor_search ALTER COLUMN words SET STATISTICS 0",
    *(f"ALTER TABLE {c.table.name} ALTER COLUMN {c.name} SET STATISTICS 0" for c in _CONTENT),
)
for _dialect, _statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRESQL)):
    for _statement in _statements:
        made = DDL(_statement)  # type: ignore[no-untyped-call]
        event.listen(metadata, "after_create", made.execute_if(dialect=_dialect))


def is_sqlite(connection: Connection) -> bool:
    """Whether the database is SQLite; else it is PostgreSQL."""
    return connection.dialect.name == "sqlite"


def inserting(connection: Connection, table: Table) -> Any:
    """An INSERT that can say what to do on conflict: one wording, two dialects."""
    return sqlite.insert(table) if is_sqlite(connection) else postgresql.insert(table)


# ---------------------------------------------------------------- names
_LONGEST_NAME = 1_000  # bytes; an index of PostgreSQL takes no key of more than 2,700


def check_names(*names: str | None) -> None:
    """Pass names, or nothing in their place.

    Raises:
        ConfigError: one is empty, too long, or no text that a database can hold.
    """
    for name in names:
        if name is None:
            continue
        if (
            not isinstance(name, str)
            or not name
            or "\0" in name
            or any("\ud800" <= c <= "\udfff" for c in name)
        ):
            raise ConfigError(f"{name!r} cannot name a session or namespace; expected text")
        size = len(name.encode("utf-8"))
        if size > _LONGEST_NAME:
            raise ConfigError(
                f"a name of {size} bytes, {name[:20]!r}…; expected at most {_LONGEST_NAME}"
            )
