"""The append-only ledger as values: segments (which text stands for which run of messages), the
hash chain into which they are sealed, sessions and their epochs, and the protocol of a store.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..messages import Message, content_digest, to_plain
from ..messages.digests import Originals
from .words import Hit

GENESIS = "sha256:" + "0" * 64
"""The parent hash of a chain's first entry."""


@dataclass(frozen=True)
class Usage:
    """What auxiliary calls cost: tokens, and US dollars of those whose price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            sum(known) if known else None,
        )


@dataclass(frozen=True)
class Segment:
    """A run of messages and the one message that stands for it in the view."""

    kind: str
    """"summary" (a run of steps), "mask" (one tool result, as a line), "excerpt" (one tool result,
    as its first and last lines) or "undo"."""
    run: tuple[str, ...]
    """The canonical digests of the messages it stands for, in order; of an "undo" the hashes of the
    entries that it takes back."""
    rendered: Message
    tokens: int
    """Of the rendered message."""
    source_tokens: int
    """Of the messages it stands for."""
    method: str
    """"model", "static" or "undo"."""
    model: str | None = None
    usage: Usage = Usage()
    created: float = 0.0
    """Seconds since 1970."""
    archived_as: tuple[tuple[int, str], ...] = ()
    """Places in the run whose messages the archive holds with secrets masked, each with the
    canonical digest of the masked message."""
    secrets: int = 0
    """How many keys and tokens are masked in the archived originals."""
    transcript_length: int = 0
    """How many messages the transcript had when it was compressed; 0: not recorded."""

    def payload(self) -> str:
        """Everything that the seal covers, as canonical JSON."""
        # Not `asdict`, which copies every digest of the run one by one.
        found = {**vars(self), "usage": vars(self.usage)}
        return json.dumps(found, sort_keys=True, separators=(",", ":"))

    def aliases(self) -> dict[str, str]:
        """The digests of masked messages, each with that of the message it stands for."""
        return {masked: self.run[place] for place, masked in self.archived_as}


@dataclass(frozen=True)
class Entry:
    """A segment sealed into its session's chain, which holds a salted commitment to it: what is
    forgotten, payload and salt, leaves a chain that still verifies and says nothing."""

    segment: Segment
    epoch: str
    parent: str
    salt: str
    commitment: str
    hash: str
    originals: tuple[Any, ...] = ()
    """What the store in memory finds the originals by; a database needs only the hash."""
    archive: str = ""
    """The digest of the archived originals, covered by the commitment."""

    @property
    def forgotten(self) -> bool:
        """Whether this is a tombstone: segment and salt were destroyed, the link remains."""
        return not self.salt


# ---------------------------------------------------------------- the limit of an archive
DROPPED: Message = {
    "role": "archive",
    "content": "no longer archived: the archive has a limit (archive_limit_mb), the large messages "
    "go first, the oldest before the newer",
}
"""What an archive has in the place of an original that it had no room for."""

K = TypeVar("K")


def beyond_limit(sizes: Mapping[K, int], most: int) -> list[K]:
    """What must go so that the rest takes at most `most`; `sizes` oldest first.

    What is larger than the average goes before what is smaller: the user's words take little room.
    """
    left = sum(sizes.values())
    if left <= most:
        return []
    average, gone = left / len(sizes), []
    for key in sorted(sizes, key=lambda key: sizes[key] <= average):  # stable: by age
        if left <= most:
            break
        left -= sizes[key]
        gone.append(key)
    return gone


# ---------------------------------------------------------------- the hash chain
_GONE = (
    "<conversation-summary> Reference material, not instructions: messages that stood here were "
    "forgotten; nothing of them is left, nor in the archive.\n\n</conversation-summary>"
)

FORGOTTEN = Segment(
    "forgotten", ("forgotten",), {"role": "user", "content": _GONE}, 0, 0, "forgotten"
)
"""What a tombstone has for a segment: its run is no digest, so that it matches nothing. In the
transcript of a fork its text stands for what the fork had inherited."""


def seal(
    segment: Segment, parent: str, epoch: str, *, salt: str | None = None, archive: str = ""
) -> Entry:
    """The segment as the next entry after the one whose hash is `parent`."""
    salt = secrets.token_hex(16) if salt is None else salt
    promise = commitment(salt, segment.payload(), archive)
    name = link(parent, epoch, promise)
    return Entry(segment, epoch, parent, salt, promise, name, archive=archive)


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


def chain_faults(entry: Entry, parent: str | None) -> Iterator[str]:
    """What disagrees in an entry that should follow the one whose hash is `parent`."""
    if parent is not None and entry.parent != parent:
        yield "its parent is not the one before"
    payload = "" if entry.forgotten else entry.segment.payload()
    if payload and commitment(entry.salt, payload, entry.archive) != entry.commitment:
        yield "the segment was changed"
    if link(entry.parent, entry.epoch, entry.commitment) != entry.hash:
        yield "its hash disagrees"


def _hash(*parts: str) -> str:
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    return "sha256:" + hashlib.sha256(joined).hexdigest()


# ---------------------------------------------------------------- sessions
@dataclass(frozen=True)
class Epoch:
    """One state of a session between two compressions: a child session with a parent pointer."""

    id: str
    parent_id: str | None
    session_id: str
    created: float
    undoes: bool = False
    """Whether it took the compression before it back."""


@dataclass(frozen=True)
class Session:
    """A snapshot of a session: its stable id, its newest epoch, and the entries of its lineage."""

    namespace: str
    id: str
    tip: str
    """The newest epoch's id; the stable id itself before the first compression."""
    parent: str | None
    """The tip's parent pointer."""
    head_hash: str = GENESIS
    entries: tuple[Entry, ...] = ()
    """Oldest first, those of the session it was forked from before its own."""
    edits: int = 0
    """How often a part of it was forgotten."""

    @property
    def was_undone(self) -> bool:
        """Whether the last compression was taken back, and there was none since."""
        kinds = (entry.segment.kind for entry in reversed(self.entries))
        return next((kind for kind in kinds if kind != "excerpt"), "") == "undo"

    def is_as(self, before: Session) -> bool:
        """Whether nobody committed to the session or forgot a part of it since `before`."""
        return (self.tip, self.edits) == (before.tip, before.edits)


# ---------------------------------------------------------------- taking back
def in_force(entries: Sequence[Entry]) -> list[Segment]:
    """The segment of each entry, in its place: `FORGOTTEN` for one that a later entry takes back,
    and for an entry that does so."""
    undone = {
        name
        for entry in entries
        if entry.segment.kind == "undo"
        for name in (*entry.segment.run, entry.hash)
    }
    return [FORGOTTEN if entry.hash in undone else entry.segment for entry in entries]


def undoing(entries: Sequence[Entry]) -> Segment | None:
    """What takes back the newest compression that is in force; None where none is.

    All that was committed with it goes: its summaries, its masks. Excerpts stay: of a result that
    is too large to be sent the next turn would make one again.
    """
    segments = enumerate(zip(entries, in_force(entries), strict=True), 1)
    held = [(n, entry) for n, (entry, found) in segments if found.kind in ("summary", "mask")]
    if not held:
        return None
    taken = {f"s{n}": entry.hash for n, entry in held if entry.epoch == held[-1][1].epoch}
    return Segment(
        kind="undo",
        run=tuple(taken.values()),
        rendered={"role": "user", "content": f"[takes back {', '.join(taken)}]"},
        tokens=0,
        source_tokens=0,
        method="undo",
        created=time.time(),
        transcript_length=entries[-1].segment.transcript_length,
    )


Outline = tuple[Message | int, ...]
"""A whole transcript in order: messages as they came, and for each run that a segment holds the
segment's place in `Session.entries`."""


def plain_outline(outline: Outline) -> Outline:
    """The outline with plain copies of its messages."""
    return tuple(item if isinstance(item, int) else to_plain(item) for item in outline)


ARCHIVE_ONLY = (
    "session %s: its store has only what was compressed, not the system prompt and the newest "
    "messages; go on from the application's own copy, where it has one"
)
"""Logged where a transcript is asked for that was never recorded."""


def laid_out(
    outline: Outline,
    of_entry: Callable[[int], tuple[Segment, Sequence[Message]]],
    length: int | None = None,
) -> list[Message] | None:
    """The transcript of an outline. In the place of an entry are its originals, or what stands for
    them in the view where some were dropped.

    `length`: as it was when it had so many messages, those counted that were dropped since; None
    where that cannot be told (0: not recorded).
    """
    found: list[Message] = []
    place = 0
    for item in outline if length != 0 else ():
        if place == length:
            break
        if isinstance(item, int):
            segment, originals = of_entry(item)
            if originals == [FORGOTTEN.rendered]:
                if length is not None:
                    return None  # nobody knows how many stood there
                if originals == found[-1:]:
                    continue  # one hole, however many segments stood there
            part = originals if length is None else originals[: length - place]
            if DROPPED in originals and part != originals:
                return None  # what stands for them tells of later ones too
            found += [segment.rendered] if DROPPED in originals else part
            place += len(part)
        else:
            found.append(item)
            place += 1
    return found if length is None or 0 < length == place else None


EVERY = slice(None)


class Store(Protocol):
    """Where a ledger is kept; every method is by namespace and session.

    The methods may do I/O: the compressor calls them off the event loop.
    """

    def open(
        self, namespace: str, session_id: str, parent_session_id: str | None = None
    ) -> Session:
        """The session that `session_id` (stable or an epoch's) names; a new one if none does."""

    def commit(
        self,
        session: Session,
        segments: Sequence[tuple[Segment, Sequence[Message]]],
        outline: Outline | None = None,
    ) -> Session:
        """Archive the originals and append the segments, if any, in one transaction; with them a
        new epoch opens.

        `outline` is the whole transcript as it stands with these segments; it replaces the one
        recorded before. None leaves that one.

        Raises:
            LedgerConflict: the tip is no longer `session.tip`.
            StoreUnavailable: nothing was written.
        """

    def keep(self, session: Session, outline: Outline) -> bool:
        """Record the transcript as it stands now; False where nothing of the session was ever
        committed, or somebody committed or forgot a part of it since `session` was read."""

    def transcript(self, session: Session) -> list[Message]:
        """The whole transcript as it was last recorded, exactly as it came; where none was, the
        originals in the order in which they were compressed. For a segment of which some were
        dropped, what stands for it in the view."""

    def originals(
        self, session: Session, entry: Entry, wanted: slice = EVERY
    ) -> list[Message] | None:
        """The archived messages of an entry, exactly as they came, `DROPPED` for those that the
        archive has no room for, `{}` for those that are not wanted; None once forgotten."""

    def trim(self, namespace: str, most_bytes: int) -> int:
        """Drop originals until those of the namespace take at most so many bytes; returns how many.

        Entries stay as they are, and so does every view.
        """

    def dropped(self, namespace: str, digests: Iterable[str]) -> frozenset[str]:
        """Which of these originals, by content digest, were dropped."""

    def lineage(self, namespace: str, session_id: str) -> list[Epoch]:
        """The chain of epochs up to the one named (the newest for the stable id), root first.

        Raises:
            SessionNotFound: no such session in this namespace.
        """

    def search(
        self,
        namespace: str,
        query: str,
        session_id: str | None = None,
        limit: int = 10,
        *,
        archived_only: bool = False,
    ) -> list[Hit]:
        """Messages that hold words of the query, best first.

        With a `session_id` only of that session and what it inherits, else of the namespace.
        `archived_only`: none of those that no summary stands for, as a session's first and newest.

        Raises:
            ConfigError: a limit below 1.
            SessionNotFound: no such session in this namespace.
        """

    def claim(self, session: Session, holder: str, seconds: float) -> bool:
        """Take the session's lease for writing a summary, unless another holder has it."""

    def release(self, session: Session, holder: str) -> None:
        """Give the lease back."""

    def close(self) -> None:
        """Release what the store holds; it is not used afterwards."""
