"""The hash chain into which a ledger's segments are sealed, and a session's transcript as it was in
an earlier epoch.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence

from ..errors import LedgerCorrupt
from ..messages import Message, content_digest
from ..messages.digests import Originals
from .segments import Entry, Outline, Segment

__all__ = [
    "ARCHIVE_ONLY",
    "FORGOTTEN",
    "archive_digest",
    "commitment",
    "earlier_outline",
    "link",
    "seal",
    "verify",
]


# -------------------------------------------------------------- chain


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


# -------------------------------------------------------------- earlier


ARCHIVE_ONLY = (
    "session %s: its store has only what was compressed, not the system prompt and the newest "
    "messages; go on from the application's own copy, where it has one"
)
"""Logged where a transcript is asked for that was never recorded."""


def earlier_outline(
    outline: Outline, inherited: int, length: int, originals: Callable[[int], Sequence[Message]]
) -> Outline | None:
    """The first `length` messages of an outline, in which only `inherited` segments stand.

    The runs of later segments stand as their `originals`. None where the length was not recorded
    (0), and where the transcript was edited since: it is shorter now, or a segment that stands
    holds what came later.
    """
    if not length:
        return None
    found: list[Message | int] = []
    room = length
    for item in outline:
        run = originals(item) if isinstance(item, int) else (item,)
        if isinstance(item, int) and item < inherited:
            found.append(item)
        else:
            found += run[: max(0, room)]
        room -= len(run)
        if room <= 0:
            break
    is_whole = room == 0 or (room < 0 and not isinstance(found[-1], int))
    return tuple(found) if is_whole else None
