"""Export and import of a session as plain JSON, checked whole before it is taken in.

An export may have been edited by hand or made by somebody else: whatever is in it, the answer is
one error of ours, and nothing of it is written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from ...errors import ConfigError, LedgerConflict, LedgerCorrupt
from ...messages import Message, content_digest
from ..chain import archive_digest, commitment, link
from ..segments import GENESIS, Outline
from . import transcripts
from .archive import Archive, Packer
from .schema import check_names, entries, epochs, exports, sessions
from .sessions import find, opened, require, scope_of, segment_of

__all__ = [
    "CHAIN",
    "FORMAT",
    "checked",
    "export_session",
    "import_session",
]


# -------------------------------------------------------------- exported


FORMAT = "praison-compressor/1"


CHAIN = ("kind", "epoch", "parent", "commitment", "hash")
"""The text columns of an entry that an export holds as they are."""


def checked(exported: Any) -> Mapping[str, Any]:
    """The export, when every part of it is there and agrees.

    Raises:
        LedgerCorrupt: it is no export, or was changed.
    """
    if not isinstance(exported, Mapping) or exported.get("format") != FORMAT:
        raise LedgerCorrupt(f"this is no export of a session; expected the format {FORMAT!r}")
    try:
        _check_session(exported["session"], exported["epochs"], len(exported["entries"]))
        _check_chain(exported["entries"], exported["messages"])
        _check_transcript(exported)
    except ConfigError as error:
        raise LedgerCorrupt(f"the export was changed: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise LedgerCorrupt(f"the export is incomplete: {error!r}") from error
    return exported


def _check_session(session: Any, epochs: Sequence[Any], entries: int) -> None:
    parent, length = session["parent_id"], 0
    check_names(session["id"], parent, *(epoch["id"] for epoch in epochs))
    float(session["created"])
    if epochs[0]["id"] != session["id"] or len({each["id"] for each in epochs}) < len(epochs):
        raise LedgerCorrupt("the export was changed: its epochs are not this session's")
    for epoch in epochs:
        float(epoch["created"])
        if epoch["parent_id"] != parent or not length <= int(epoch["length"]) <= entries:
            raise LedgerCorrupt(f"the export was changed: epoch {epoch['id']} is out of place")
        parent, length = epoch["id"], epoch["length"]
    if length != entries:
        raise LedgerCorrupt("the export was changed: entries are missing")


def _check_chain(entries: Sequence[Any], messages: Mapping[str, Message]) -> None:
    for digest, message in messages.items():
        if content_digest(message) != digest:
            raise LedgerCorrupt(f"the export was changed: message {digest}")
    expected = GENESIS
    for number, entry in enumerate(entries):
        originals = [messages[digest] for digest in entry["originals"]]
        if entry["parent"] != expected or entry["hash"] != link(
            entry["parent"], entry["epoch"], entry["commitment"]
        ):
            raise LedgerCorrupt(f"the export was changed: entry {number} breaks the chain")
        if entry["segment"] is not None and not _is_sealed(entry, originals):
            raise LedgerCorrupt(f"the export was changed: the segment of entry {number}")
        expected = entry["hash"]


def _is_sealed(entry: Mapping[str, Any], originals: Sequence[Message]) -> bool:
    promise = commitment(entry["salt"], entry["segment"], entry["archive"])
    return bool(
        promise == entry["commitment"]
        and archive_digest(originals) == entry["archive"]
        and segment_of(json.loads(entry["segment"])).kind == entry["kind"]
    )


def _check_transcript(exported: Mapping[str, Any]) -> None:
    places = range(len(exported["entries"]))
    for item in exported.get("transcript") or ():
        if item not in (places if isinstance(item, int) else exported["messages"]):
            raise LedgerCorrupt("the export was changed: its transcript names what is not there")


# -------------------------------------------------------------- transfer


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
