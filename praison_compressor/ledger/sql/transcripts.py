"""A session's whole transcript as it was last recorded: what its segments do not hold.

One payload per session, written anew at each commit: its head, its tail, and the numbers of the
segments between them. It moves on with the session, so that it is no part of the hashed chain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Connection, Row, delete, select, text
from sqlalchemy.dialects import postgresql, sqlite

from ...errors import LedgerCorrupt
from ...messages import Message, content_digest
from ..chain import earlier_outline
from ..segments import Outline
from .archive import Archive, Packer, dump, load
from .schema import entries, links, sessions, transcripts
from .sessions import scope_of, unsealed

__all__ = [
    "drop",
    "inherit",
    "literals",
    "names_of",
    "outline",
    "remove_message",
    "sessions_with",
    "unpacked",
    "whole",
    "write",
]


_NAME_BYTES = 8


def write(archive: Archive, session_key: int, recorded: Outline) -> None:
    """Record the outline in the place of the one before."""
    lines = [str(i).encode() if isinstance(i, int) else dump(i) for i in recorded]
    values = {
        "body": archive.packer.pack(b"\n".join(lines)),
        "names": names_of(archive.packer, recorded),
    }
    archive.connection.execute(
        _insert(archive.connection)
        .values(session_key=session_key, **values)
        .on_conflict_do_update(index_elements=[transcripts.c.session_key], set_=values)
    )


def inherit(archive: Archive, session_key: int, base: Row[Any], length: int) -> None:
    """Give a fork the transcript of its base as it was with `length` own entries: it moves on."""
    recorded = outline(archive, base.key)
    if recorded is None or length == 0 < base.length:
        return
    if length < base.length:
        recorded = _earlier(archive, base, length, recorded)
    if recorded is not None:
        write(archive, session_key, recorded)


def _earlier(archive: Archive, base: Row[Any], length: int, recorded: Outline) -> Outline | None:
    inherited = sum(count for _, count in scope_of(archive.connection, base)[:-1])
    last = select(entries).where(
        entries.c.session_key == base.key, entries.c.position == length - 1
    )
    segment = unsealed(archive.packer, archive.connection.execute(last).one()).segment
    standing = _originals(archive, base, {item for item in recorded if isinstance(item, int)})
    return earlier_outline(
        recorded, inherited + length, segment.transcript_length, lambda n: standing.get(n, ())
    )


def _insert(connection: Connection) -> Any:
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return make(transcripts)


def outline(archive: Archive, session_key: int) -> Outline | None:
    """What was recorded of a session; None where nothing was.

    Raises:
        LedgerCorrupt: it cannot be read.
    """
    query = select(transcripts.c.body).where(transcripts.c.session_key == session_key)
    body = archive.connection.execute(query).scalar()
    return None if body is None else unpacked(archive.packer, body)


def unpacked(packer: Packer, body: bytes) -> Outline:
    """The outline in a payload.

    Raises:
        LedgerCorrupt: it cannot be read.
    """
    try:
        lines = packer.unpack(body).split(b"\n")
    except LedgerCorrupt as error:
        raise LedgerCorrupt(f"the recorded transcript: {error}") from error
    return tuple(int(line) if line.isdigit() else load(line) for line in lines if line)


def whole(archive: Archive, row: Row[Any]) -> list[Message] | None:
    """The session's messages in order, every segment replaced by its originals."""
    recorded = outline(archive, row.key)
    if recorded is None:
        return None
    wanted = {item for item in recorded if isinstance(item, int)}
    standing = _originals(archive, row, wanted) if wanted else {}
    found: list[Message] = []
    for item in recorded:
        found += standing.get(item, ()) if isinstance(item, int) else (item,)
    return found


def _originals(archive: Archive, row: Row[Any], wanted: set[int]) -> dict[int, list[Message]]:
    """By the place of its entry: originals, without those that were forgotten."""
    keys: dict[int, list[int]] = {}
    start = 0
    for session_key, length in scope_of(archive.connection, row):
        query = (
            select(entries.c.position, links.c.message_key)
            .join(links, links.c.entry_key == entries.c.key)
            .where(entries.c.session_key == session_key, entries.c.position < length)
            .order_by(entries.c.position, links.c.ordinal)
        )
        for position, key in archive.connection.execute(query):
            if start + position in wanted:
                keys.setdefault(start + position, []).append(key)
        start += length
    found = archive.get({key for each in keys.values() for key in each})
    return {place: [found[key] for key in each] for place, each in keys.items()}


# ---------------------------------------------------------------- whose words are where
def literals(recorded: Outline) -> Iterator[Message]:
    """The messages that stand in an outline themselves."""
    return (item for item in recorded if not isinstance(item, int))


def names_of(packer: Packer, recorded: Outline) -> bytes:
    """A few bytes of each message's name: by them `forget` finds who holds it, unread."""
    return b"".join(_short(packer, content_digest(message)) for message in literals(recorded))


def _short(packer: Packer, digest: str) -> bytes:
    return packer.name(digest)[-_NAME_BYTES:]


_HOLDS = {
    "sqlite": "instr(names, :wanted) > 0",
    "postgresql": "position(CAST(:wanted AS bytea) IN names) > 0",
}


def sessions_with(archive: Archive, namespace: str, digests: Collection[str]) -> list[int]:
    """Keys of the sessions whose recorded transcript itself holds one of the messages."""
    holds = _HOLDS[archive.connection.dialect.name]
    found: dict[int, None] = {}
    for digest in digests:
        query = (
            select(transcripts.c.session_key)
            .join(sessions, sessions.c.key == transcripts.c.session_key)
            .where(sessions.c.namespace == namespace, text(holds))
        )
        wanted = {"wanted": _short(archive.packer, digest)}
        found |= dict.fromkeys(archive.connection.execute(query, wanted).scalars())
    return list(found)


def remove_message(archive: Archive, session_key: int, digest: str) -> bool:
    """Take a message out of a session's recorded transcript; whether it was there."""
    recorded = outline(archive, session_key) or ()
    kept = tuple(i for i in recorded if isinstance(i, int) or content_digest(i) != digest)
    if len(kept) == len(recorded):
        return False
    write(archive, session_key, kept)
    return True


def drop(archive: Archive, session_key: int) -> list[Message]:
    """Remove what was recorded of a session; the messages that stood there."""
    recorded = outline(archive, session_key) or ()
    query = delete(transcripts).where(transcripts.c.session_key == session_key)
    archive.connection.execute(query)
    return list(literals(recorded))
