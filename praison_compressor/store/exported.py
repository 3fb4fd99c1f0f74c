"""Whether a file is a whole export: its shape, its chain and its originals, before any is taken in.

An export may have been edited by hand or made by somebody else: whatever is in it, the answer is
one error of ours, and nothing of it is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..chain import archive_digest, commitment, link
from ..errors import ConfigError, LedgerCorrupt
from ..ledger import GENESIS
from ..messages import Message, content_digest
from .names import check_names
from .snapshots import segment_of

__all__ = ["CHAIN", "FORMAT", "checked"]

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
