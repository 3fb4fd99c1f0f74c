"""The tables of the ledger, the same for SQLite and PostgreSQL, and how they are made.

A session names the head of its chain of entries, an entry the hash of the one before it; sessions
that were forked share entries. Everything that says who said what is in
four columns (`entries.sealed`, with salt, segment and archive digest together, so that forgetting
one forgets all; `messages.body` and `.digest`, `sessions.transcript`) and in the full-text index.
"""

from __future__ import annotations

import time

from sqlalchemy import (
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
)

from ...errors import ConfigError
from ..segments import GENESIS

LAYOUT = b"2"
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

# A session's chain leads from its newest entry, `head`, over `base_head`, where it was forked, to
# the first. Each compression is an epoch, named by the entries that were committed together.
sessions = Table(
    _PREFIX + "sessions",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    # As the caller named it; where nobody has that name it is a pointer and no more.
    Column("parent_id", Text),
    # The session that it was forked from.
    Column("base_key", _Key, ForeignKey(_PREFIX + "sessions.key"), index=True),
    Column("base_head", Text, nullable=False, default=GENESIS),
    Column("head", Text, nullable=False, default=GENESIS),
    # Its own epochs but the first, which has the session's id.
    Column("commits", Integer, nullable=False, default=0),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    # Counts what was forgotten: snapshots that were read before are stale.
    Column("edits", Integer, nullable=False, default=0),
    # The whole transcript as it was last recorded: what no segment holds, and segments' places.
    Column("transcript", LargeBinary),
    UniqueConstraint("namespace", "id"),
    Index(_PREFIX + "sessions_head", "namespace", "head"),
)

entries = Table(
    _PREFIX + "entries",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    # The session that committed it: with that one it is forgotten.
    Column("session_key", _Key, ForeignKey(sessions.c.key), nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("created", Float, nullable=False, default=time.time),
    Column("parent", Text, nullable=False),
    Column("commitment", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # NULL is a tombstone: the salt went with the segment, the commitment says nothing any more.
    Column("sealed", LargeBinary),
    UniqueConstraint("namespace", "hash"),
    Index(_PREFIX + "entries_parent", "namespace", "parent"),
    Index(_PREFIX + "entries_epoch", "namespace", "epoch"),
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
_CONTENT = (entries.c.sealed, messages.c.body, messages.c.digest, sessions.c.transcript)
_STATEMENTS = {
    "sqlite": (
        # The words come ready made: "ascii" leaves everything but spaces alone.
        "CREATE VIRTUAL TABLE compressor_search USING fts5"
        "(words, content='', detail='none', columnsize=0, tokenize='ascii')",
    ),
    "postgresql": (
        "CREATE TABLE compressor_search (message_key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        # A short list of what is not merged yet: pages of a long one stay in the index for good.
        "CREATE INDEX compressor_search_words ON compressor_search USING GIN (words) "
        "WITH (gin_pending_list_limit = 128)",
        # The planner's samples of what was said would be in a catalog that `forget` cannot reach.
        "ALTER TABLE compressor_search ALTER COLUMN words SET STATISTICS 0",
        *(f"ALTER TABLE {c.table.name} ALTER COLUMN {c.name} SET STATISTICS 0" for c in _CONTENT),
    ),
}


def make_tables(connection: Connection) -> None:
    """Make them all, and the index, in an empty database."""
    metadata.create_all(connection)
    for statement in _STATEMENTS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


# ---------------------------------------------------------------- names
_LONGEST_NAME = 1_000  # bytes; an index of PostgreSQL takes no key of more than 2,700


def check_names(*names: str | None) -> None:
    """Pass names, or nothing in their place.

    Raises:
        ConfigError: one is empty, too long, or no text that a database can hold.
    """
    for name in names:
        if name is not None and not _is_name(name):
            raise ConfigError(
                f"{name!r:.60} cannot name a session or namespace; expected text in UTF-8 of 1 to "
                f"{_LONGEST_NAME:,} bytes, without NUL"
            )


def _is_name(name: object) -> bool:
    if not isinstance(name, str) or "\0" in name:
        return False
    try:
        return 0 < len(name.encode("utf-8")) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False
