"""The tables of the ledger, the same for SQLite and PostgreSQL.

Everything that says who said what is in six columns: `entries.sealed` (salt, segment and archive
digest together, so that forgetting one forgets all), `blocks.body`, `messages.digest`,
`transcripts.body` and `transcripts.names`, and the full-text index. All else is ids, hashes,
counts and times.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
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

__all__ = [
    "CONTENT",
    "blocks",
    "check_names",
    "entries",
    "epochs",
    "exports",
    "leases",
    "links",
    "messages",
    "meta",
    "metadata",
    "migrations",
    "sessions",
    "transcripts",
    "usage",
]


# -------------------------------------------------------------- names


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


# -------------------------------------------------------------- schema


# SQLite gives ascending row ids only to a column of exactly the type INTEGER.
_Key = BigInteger().with_variant(Integer, "sqlite")


# A prefix, because a PostgreSQL database is often shared with an application's own "sessions".
_PREFIX = "compressor_"


metadata = MetaData()


migrations = Table(
    _PREFIX + "migrations",
    metadata,
    Column("name", Text, primary_key=True),
    Column("applied", Float, nullable=False),
)


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
    Column("base_length", Integer, nullable=False),
    Column("base_epochs", Integer, nullable=False),
    Column("base_hash", Text, nullable=False),
    Column("tip", Text, nullable=False),
    Column("tip_parent", Text),
    Column("length", Integer, nullable=False),
    Column("epochs", Integer, nullable=False),
    Column("head_hash", Text, nullable=False),
    # Counts what was forgotten: snapshots that were read before are stale.
    Column("edits", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
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
    Column("number", Integer, nullable=False),
    Column("parent_id", Text),
    # How many own entries the session has in this epoch.
    Column("length", Integer, nullable=False),
    Column("created", Float, nullable=False),
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


blocks = Table(
    _PREFIX + "blocks",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)


messages = Table(
    _PREFIX + "messages",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("block_key", _Key, ForeignKey(blocks.c.key), nullable=False),
    Column("line", Integer, nullable=False),
    UniqueConstraint("namespace", "digest"),
    Index(_PREFIX + "messages_block", "block_key"),
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


usage = Table(
    _PREFIX + "usage",
    metadata,
    Column("session_key", _Key, ForeignKey(sessions.c.key), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("model", Text),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("cache_read_tokens", Integer, nullable=False),
    Column("cache_write_tokens", Integer, nullable=False),
    Column("cost", Float),
)


exports = Table(
    _PREFIX + "exports",
    metadata,
    Column("key", _Key, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("created", Float, nullable=False),
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


# The columns that hold what was said, words of it, or names that it can be guessed from.
CONTENT = (
    entries.c.sealed,
    blocks.c.body,
    messages.c.digest,
    transcripts.c.body,
    transcripts.c.names,
)
