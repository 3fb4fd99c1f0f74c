"""The schema's history: named steps, each applied once and recorded; frozen when released."""

from __future__ import annotations

import secrets
import time

from sqlalchemy import Connection, bindparam, insert, inspect, select, text

from ..errors import LedgerCorrupt, StoreUnavailable
from . import schema
from .index import create_index
from .pack import Codec, Packer

__all__ = ["MIGRATIONS", "is_migrated", "migrate"]

_ADVISORY_LOCK = 0x70726169_736F6E63  # "praisonc": one migrating process at a time


_LATER = (schema.transcripts,)


def _ledger(connection: Connection) -> None:
    first = [table for table in schema.metadata.sorted_tables if table not in _LATER]
    schema.metadata.create_all(connection, first)


def _transcripts(connection: Connection) -> None:
    schema.transcripts.create(connection)


def _no_statistics(connection: Connection) -> None:
    """Keep the planner's samples of content out of PostgreSQL's catalog, where `forget` cannot
    reach them."""
    if connection.dialect.name != "postgresql":
        return
    content = [(column.table.name, column.name) for column in schema.CONTENT]
    for table, column in [*content, ("compressor_search", "words")]:
        connection.exec_driver_sql(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")


MIGRATIONS = (
    ("0001 ledger", _ledger),
    ("0002 search", create_index),
    ("0003 transcripts", _transcripts),
    ("0004 no statistics", _no_statistics),
)


def is_migrated(connection: Connection) -> bool:
    """Whether the schema is up to date, so that nothing has to be written to open the store."""
    with connection.begin():
        return {name for name, _ in MIGRATIONS} <= set(_applied(connection))


def migrate(
    connection: Connection, codec: Codec | None, place: str, *, plain_too: bool = False
) -> Packer:
    """Bring the schema up to date; how its payloads are packed.

    `plain_too`: a store that is not encrypted stays so, whatever the codec.

    Raises:
        StoreUnavailable: a newer version wrote the store, or its key does not fit.
    """
    known = [name for name, _ in MIGRATIONS]
    with connection.begin():
        if connection.dialect.name == "postgresql":
            lock = text("SELECT pg_advisory_xact_lock(:key)").bindparams(bindparam("key"))
            connection.execute(lock, {"key": _ADVISORY_LOCK})
        applied = _applied(connection)
        newer = [name for name in applied if name not in known]
        if newer:
            raise StoreUnavailable(
                f"{place} was written by a newer version (migration {newer[0]!r} is unknown "
                "here); upgrade praison-compressor"
            )
        for name, step in MIGRATIONS:
            if name not in applied:
                step(connection)
                _record(connection, name)
        return _packer(connection, codec, place, plain_too)


def _applied(connection: Connection) -> list[str]:
    if not inspect(connection).has_table(schema.migrations.name):
        return []
    return list(connection.execute(select(schema.migrations.c.name)).scalars())


def _record(connection: Connection, name: str) -> None:
    connection.execute(insert(schema.migrations).values(name=name, applied=time.time()))


def _packer(connection: Connection, codec: Codec | None, place: str, plain_too: bool) -> Packer:
    """The store's packer; its pepper is kept encrypted, so it proves the key as well."""
    stored = connection.execute(
        select(schema.meta.c.value).where(schema.meta.c.name == "pepper")
    ).scalar()
    if stored is None:
        pepper = secrets.token_bytes(32) if codec is not None else b""
        value = Packer(codec).pack(pepper) if codec is not None else b""
        connection.execute(insert(schema.meta).values(name="pepper", value=value))
        return Packer(codec, pepper)
    if not stored and plain_too:
        return Packer()
    if bool(stored) != (codec is not None):
        state, remedy = (
            ("encrypted", "open it with its key (store_key, PRAISONAI_SESSION_KEY)")
            if stored
            else ("not encrypted", "use another store for an agent whose sessions are")
        )
        raise StoreUnavailable(f"{place} is {state}; {remedy}")
    if codec is None:
        return Packer()
    try:
        return Packer(codec, Packer(codec).unpack(stored))
    except LedgerCorrupt as error:
        raise StoreUnavailable(
            f"{place} is encrypted with another key than the one given"
        ) from error
