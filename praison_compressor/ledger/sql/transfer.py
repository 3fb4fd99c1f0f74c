"""Export and import of a session as plain JSON, checked whole before it is taken in.

An export may have been edited by hand or made by somebody else: whatever is in it, the answer is
one error of ours, and nothing of it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select

from ...errors import ConfigError, LedgerConflict, LedgerCorrupt
from ...messages import content_digest
from ..segments import FORGOTTEN, Entry, Outline
from .archive import Archive
from .audit import session_faults
from .schema import check_names, epochs, sessions
from .sessions import chain, find, literals, outline, record, require, segment_of, unsealed
from .writing import insert_entry

FORMAT = "praison-compressor/1"

_SEALED = ("epoch", "parent", "salt", "commitment", "hash", "archive")
"""The fields of an entry that an export holds as they are."""


def export_session(archive: Archive, namespace: str, session_id: str) -> dict[str, Any]:
    """The session with all that it inherits."""
    connection = archive.connection
    row = require(connection, namespace, session_id)
    rows = chain(connection, namespace, row.head)
    originals = archive.of_entries([each.key for each in rows])
    own = select(epochs).where(epochs.c.session_key == row.key).order_by(epochs.c.key)
    recorded = outline(archive, row.key) or ()
    held = [*literals(recorded), *(m for each in originals.values() for m in each)]
    found = []
    for each in rows:
        entry = unsealed(archive.packer, each)
        # As text: what was sealed is this text.
        payload = None if entry.forgotten else entry.segment.payload()
        run = [content_digest(message) for message in originals[each.key]]
        values = {name: getattr(entry, name) for name in _SEALED}
        found.append({**values, "segment": payload, "originals": run})
    return {
        "format": FORMAT,
        "session": row.id,
        "epochs": [
            {name: getattr(epoch, name) for name in ("id", "parent_id", "head", "created")}
            for epoch in connection.execute(own)
        ],
        "entries": found,
        # In order: the places of entries, and the digests of messages that no entry holds.
        "transcript": [i if isinstance(i, int) else content_digest(i) for i in recorded],
        "messages": {content_digest(message): message for message in held},
    }


def import_session(archive: Archive, namespace: str, exported: Mapping[str, Any]) -> str:
    """Take a session in, or find it here as it is; its stable id."""
    if not isinstance(exported, Mapping) or exported.get("format") != FORMAT:
        raise LedgerCorrupt(f"this is no export of a session; expected the format {FORMAT!r}")
    try:
        return _imported(archive, namespace, exported)
    except (ConfigError, LedgerCorrupt) as error:
        raise LedgerCorrupt(f"the export was changed: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise LedgerCorrupt(f"the export is incomplete: {error!r}") from error


def _imported(archive: Archive, namespace: str, exported: Mapping[str, Any]) -> str:
    session_id, opened, held = exported["session"], exported["epochs"], exported["messages"]
    check_names(session_id or "", *(each[n] or "" for each in opened for n in ("id", "head")))
    check_names(*(each["parent_id"] for each in opened))
    for digest, message in held.items():
        if content_digest(message) != digest:
            raise LedgerCorrupt(f"message {digest}")
    here = find(archive.connection, namespace, session_id)
    if here is not None and here.head == opened[-1]["head"]:
        return str(here.id)
    if here is not None:
        raise LedgerConflict(
            f"session {session_id} is already in namespace {namespace!r} and has gone another "
            "way; import it into another namespace"
        )
    _insert_epochs(archive, namespace, session_id, opened)
    row = require(archive.connection, namespace, session_id)
    for each in exported["entries"]:
        check_names(*(each[name] or "" for name in ("epoch", "parent", "commitment", "hash")))
        segment = FORGOTTEN if each["segment"] is None else segment_of(each["segment"])
        entry = Entry(segment, **{name: each[name] for name in _SEALED})
        insert_entry(archive, row, entry, [held[digest] for digest in each["originals"]])
    recorded: Outline = tuple(i if isinstance(i, int) else held[i] for i in exported["transcript"])
    if recorded:
        record(archive, row.key, recorded)
    for fault in session_faults(archive, row):
        raise LedgerCorrupt(str(fault))
    return str(row.id)


def _insert_epochs(
    archive: Archive, namespace: str, session_id: str, opened: list[dict[str, Any]]
) -> None:
    connection = archive.connection
    named = insert(sessions).values(namespace=namespace, id=session_id)
    values: dict[str, Any] = {"namespace": namespace, "base_key": None}
    values["session_key"] = _key(connection.execute(named))
    for each in opened:
        known = {name: each[name] for name in ("id", "parent_id", "head")}
        insertion = insert(epochs).values(**values, **known, created=float(each["created"]))
        values["base_key"] = _key(connection.execute(insertion))


def _key(result: Any) -> int:
    return int(result.inserted_primary_key[0])
