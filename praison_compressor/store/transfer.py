"""A session as plain JSON: whole (with what it inherits), checked before it is taken in."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from ..errors import LedgerConflict
from ..ledger import GENESIS, Outline
from ..messages import Message, content_digest
from . import transcripts
from .archive import Archive
from .exported import CHAIN, FORMAT, checked
from .pack import Packer
from .schema import entries, epochs, exports, sessions
from .snapshots import find, opened, require, scope_of

__all__ = ["export_session", "import_session"]


def export_session(archive: Archive, namespace: str, session_id: str, note: str) -> dict[str, Any]:
    """The session, and a record that a copy was made."""
    connection = archive.connection
    row = require(connection, namespace, session_id)
    scope = scope_of(connection, row)
    inherited = sum(length for _, length in scope[:-1])
    found: list[dict[str, Any]] = []
    originals: dict[str, Message] = {}
    for session_key, length in scope:
        query = select(entries).where(
            entries.c.session_key == session_key, entries.c.position < length
        )
        for entry in connection.execute(query.order_by(entries.c.position)).all():
            messages = archive.of_entry(entry.key)
            digests = [content_digest(message) for message in messages]
            originals.update(zip(digests, messages, strict=True))
            found.append({**_exported(archive.packer, entry), "originals": digests})
    own = select(epochs).where(epochs.c.session_key == row.key).order_by(epochs.c.number)
    recorded = transcripts.outline(archive, row.key)
    originals.update({content_digest(m): m for m in transcripts.literals(recorded or ())})
    connection.execute(
        insert(exports).values(
            namespace=namespace, session_id=row.id, note=note, created=time.time()
        )
    )
    return {
        "format": FORMAT,
        "session": {"id": row.id, "parent_id": row.parent_id, "created": row.created},
        "epochs": [
            {
                "id": epoch.id,
                "parent_id": epoch.parent_id,
                "length": epoch.length + inherited,
                "created": epoch.created,
            }
            for epoch in connection.execute(own)
        ],
        "entries": found,
        # In order: the places of entries, and the digests of messages that no entry holds.
        "transcript": recorded
        and [item if isinstance(item, int) else content_digest(item) for item in recorded],
        "messages": originals,
    }


def _exported(packer: Packer, entry: Any) -> dict[str, Any]:
    chain = {name: getattr(entry, name) for name in CHAIN}
    if entry.sealed is None:
        return {**chain, "salt": "", "archive": "", "segment": None}
    salt, archive, payload = opened(packer, entry.sealed)
    # As text: what was sealed is this text, and another JSON library may write numbers otherwise.
    return {**chain, "salt": salt, "archive": archive, "segment": payload}


def import_session(archive: Archive, namespace: str, exported: Mapping[str, Any]) -> str:
    """Write the session with all its entries as its own; its stable id."""
    checked(exported)
    session, chain = exported["session"], exported["entries"]
    head = chain[-1]["hash"] if chain else GENESIS
    here = find(archive.connection, namespace, session["id"])
    if here is not None and here.head_hash == head:
        return str(here.id)
    if here is not None:
        raise LedgerConflict(
            f"session {session['id']} is already in namespace {namespace!r} and has gone another "
            "way; import it into another namespace"
        )
    key = _insert_session(archive.connection, namespace, exported, head)
    for position, entry in enumerate(chain):
        originals = [exported["messages"][digest] for digest in entry["originals"]]
        keys = archive.add(namespace, originals)
        _insert_entry(archive, key, position, entry, keys)
    if exported.get("transcript") is not None:
        transcripts.write(archive, key, _outline(exported))
    return str(session["id"])


def _outline(exported: Mapping[str, Any]) -> Outline:
    held = exported["messages"]
    return tuple(i if isinstance(i, int) else held[i] for i in exported["transcript"])


def _insert_session(
    connection: Connection, namespace: str, exported: Mapping[str, Any], head: str
) -> int:
    session, found = exported["session"], exported["epochs"]
    result = connection.execute(
        insert(sessions).values(
            namespace=namespace,
            id=session["id"],
            parent_id=session["parent_id"],
            base_length=0,
            base_epochs=0,
            base_hash=GENESIS,
            tip=found[-1]["id"],
            tip_parent=found[-1]["parent_id"],
            length=len(exported["entries"]),
            epochs=len(found),
            head_hash=head,
            edits=0,
            created=session["created"],
            updated=time.time(),
        )
    )
    assert result.inserted_primary_key is not None
    key = int(result.inserted_primary_key[0])
    rows = [
        {**epoch, "namespace": namespace, "session_key": key, "number": number}
        for number, epoch in enumerate(found)
    ]
    connection.execute(insert(epochs), rows)
    return key


def _insert_entry(
    archive: Archive,
    session_key: int,
    position: int,
    entry: Mapping[str, Any],
    keys: Sequence[int],
) -> None:
    payload = None
    if entry["segment"] is not None:
        lines = (entry["salt"], entry["archive"], entry["segment"])
        payload = archive.packer.pack("\n".join(lines).encode("utf-8", "surrogatepass"))
    values = {name: entry[name] for name in CHAIN}
    result = archive.connection.execute(
        insert(entries).values(**values, session_key=session_key, position=position, sealed=payload)
    )
    assert result.inserted_primary_key is not None
    archive.link(int(result.inserted_primary_key[0]), keys)
