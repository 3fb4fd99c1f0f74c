"""Export and import of a session as plain JSON, checked whole before it is taken in.

An export may have been edited by hand or made by somebody else: whatever is in it, the answer is
one error of ours, and nothing of it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from ...errors import ConfigError, LedgerConflict, LedgerCorrupt
from ...messages import Message, content_digest
from ..segments import GENESIS, Outline
from .archive import Archive
from .audit import session_faults
from .schema import check_names, epochs, exports, sessions
from .sessions import find, literals, outline, record, require, rows_of, scope_of, sealed, unsealed
from .writing import insert_entry

FORMAT = "praison-compressor/1"

_CHAIN = ("kind", "epoch", "parent", "commitment", "hash")
"""The text columns of an entry that an export holds as they are."""


def export_session(archive: Archive, namespace: str, session_id: str, note: str) -> dict[str, Any]:
    """The session, and a record that a copy was made."""
    connection = archive.connection
    row = require(connection, namespace, session_id)
    scope = scope_of(connection, row)
    inherited = sum(length for _, length in scope[:-1])
    found: list[dict[str, Any]] = []
    originals: dict[str, Message] = {}
    for session_key, length in scope:
        for entry in rows_of(archive, session_key, 0, length):
            messages = archive.of_entry(entry.key)
            digests = [content_digest(message) for message in messages]
            originals.update(zip(digests, messages, strict=True))
            found.append(_exported(archive, entry, digests))
    own = select(epochs).where(epochs.c.session_key == row.key).order_by(epochs.c.number)
    recorded = outline(archive, row.key)
    originals.update({content_digest(m): m for m in literals(recorded or ())})
    connection.execute(insert(exports).values(namespace=namespace, session_id=row.id, note=note))
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


def _exported(archive: Archive, row: Any, digests: Sequence[str]) -> dict[str, Any]:
    entry = unsealed(archive.packer, row)
    # As text: what was sealed is this text, and another JSON library may write numbers otherwise.
    payload = None if entry.forgotten else entry.segment.payload()
    held = {"salt": entry.salt, "archive": entry.archive, "segment": payload}
    return {**{name: getattr(row, name) for name in _CHAIN}, **held, "originals": digests}


# ---------------------------------------------------------------- import
def import_session(archive: Archive, namespace: str, exported: Any) -> str:
    """Write the session with all its entries as its own, if `verify` finds no fault in it; its
    stable id.

    Raises:
        LedgerCorrupt: it is no export, or was changed.
        LedgerConflict: another session of that id is here.
    """
    if not isinstance(exported, Mapping) or exported.get("format") != FORMAT:
        raise LedgerCorrupt(f"this is no export of a session; expected the format {FORMAT!r}")
    try:
        _check(exported)
        return _imported(archive, namespace, exported)
    except ConfigError as error:
        raise LedgerCorrupt(f"the export was changed: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise LedgerCorrupt(f"the export is incomplete: {error!r}") from error


def _check(exported: Mapping[str, Any]) -> None:
    """Refuse what a database would not take, and messages that `verify` could not know."""
    session, found, chain = exported["session"], exported["epochs"], exported["entries"]
    check_names(session["id"], session["parent_id"], *(epoch["id"] for epoch in found))
    check_names(*(entry[name] for entry in chain for name in _CHAIN))
    if len({epoch["id"] for epoch in found}) < len(found):
        raise LedgerCorrupt("the export was changed: two of its epochs have one name")
    for each in (session, *found):
        float(each["created"])
    for epoch in found:
        if not 0 <= int(epoch["length"]) <= len(chain):
            raise LedgerCorrupt(f"the export was changed: epoch {epoch['id']} is out of place")
    for digest, message in exported["messages"].items():
        if content_digest(message) != digest:
            raise LedgerCorrupt(f"the export was changed: message {digest}")
    for item in exported.get("transcript") or ():
        if item not in (range(len(chain)) if isinstance(item, int) else exported["messages"]):
            raise LedgerCorrupt("the export was changed: its transcript names what is not there")


def _imported(archive: Archive, namespace: str, exported: Mapping[str, Any]) -> str:
    session, chain, held = exported["session"], exported["entries"], exported["messages"]
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
        values: dict[str, Any] = {name: entry[name] for name in _CHAIN}
        if entry["segment"] is not None:
            values["sealed"] = sealed(
                archive.packer, entry["salt"], entry["archive"], entry["segment"]
            )
        originals = [held[digest] for digest in entry["originals"]]
        insert_entry(archive, namespace, key, position, values, originals)
    if exported.get("transcript") is not None:
        whole: Outline = tuple(i if isinstance(i, int) else held[i] for i in exported["transcript"])
        record(archive, key, whole)
    for fault in session_faults(archive, require(archive.connection, namespace, session["id"])):
        raise LedgerCorrupt(f"the export was changed: {fault}")
    return str(session["id"])


def _insert_session(
    connection: Connection, namespace: str, exported: Mapping[str, Any], head: str
) -> int:
    session, found = exported["session"], exported["epochs"]
    values = {name: session[name] for name in ("id", "parent_id", "created")}
    values |= {"namespace": namespace, "tip": found[-1]["id"], "tip_parent": found[-1]["parent_id"]}
    values |= {"length": len(exported["entries"]), "epochs": len(found), "head_hash": head}
    result = connection.execute(insert(sessions).values(values))
    assert result.inserted_primary_key is not None
    key = int(result.inserted_primary_key[0])
    rows = [
        {**epoch, "namespace": namespace, "session_key": key, "number": number}
        for number, epoch in enumerate(found)
    ]
    connection.execute(insert(epochs), rows)
    return key
