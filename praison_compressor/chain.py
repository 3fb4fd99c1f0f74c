"""The chain that a ledger's segments are sealed into: what was changed since shows."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from .cache import Originals
from .errors import LedgerCorrupt
from .ledger import Entry, Segment
from .messages import Message, content_digest

__all__ = ["FORGOTTEN", "archive_digest", "commitment", "link", "seal", "verify"]

FORGOTTEN = Segment(
    "forgotten", ("forgotten",), {"role": "user", "content": "[forgotten]"}, 0, 0, "forgotten"
)
"""What a tombstone has for a segment: its run is no digest, so that it matches nothing."""


def seal(
    segment: Segment, parent: str, epoch: str, *, salt: str | None = None, archive: str = ""
) -> Entry:
    """The segment as the next entry after the one whose hash is `parent`."""
    salt = secrets.token_hex(16) if salt is None else salt
    promise = commitment(salt, segment.payload(), archive)
    return Entry(
        segment, epoch, parent, salt, promise, link(parent, epoch, promise), archive=archive
    )


def commitment(salt: str, payload: str, archive: str) -> str:
    """What the chain holds of a segment: it says nothing once the salt is destroyed."""
    return _hash(salt, payload, archive)


def link(parent: str, epoch: str, promise: str) -> str:
    """The hash of an entry in its place in the chain."""
    return _hash(parent, epoch, promise)


def archive_digest(originals: Sequence[Message]) -> str:
    """The digest of originals in their order, everything in them included."""
    if isinstance(originals, Originals):
        return _hash(*originals.content_digests())
    return _hash(*map(content_digest, originals))


def verify(entries: Sequence[Entry], parent: str | None = None) -> None:
    """Re-derive every hash of a chain.

    Raises:
        LedgerCorrupt: naming the first entry that disagrees, and in what.
    """
    expected = parent
    for number, entry in enumerate(entries):
        if expected is not None and entry.parent != expected:
            raise LedgerCorrupt(f"entry {number} ({entry.epoch}): its parent is not the one before")
        if not entry.forgotten and entry.commitment != commitment(
            entry.salt, entry.segment.payload(), entry.archive
        ):
            raise LedgerCorrupt(f"entry {number} ({entry.epoch}): the segment was changed")
        if link(entry.parent, entry.epoch, entry.commitment) != entry.hash:
            raise LedgerCorrupt(f"entry {number} ({entry.epoch}): its hash disagrees")
        expected = entry.hash


def _hash(*parts: str) -> str:
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    return "sha256:" + hashlib.sha256(joined).hexdigest()
