"""The append-only ledger as values: segments, their hash chain, sessions, transcripts."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..messages import Message

GENESIS = "sha256:" + "0" * 64
"""The parent hash of a chain's first entry."""


@dataclass(frozen=True)
class Usage:
    """Tokens of auxiliary calls, and their cost in US dollars if known."""

    prompt_tokens: int = 0
    """Prompt tokens, including tokens read from or written to the cache."""
    completion_tokens: int = 0
    """Tokens of the answers."""
    cache_read_tokens: int = 0
    """Tokens read from the provider's cache."""
    cache_write_tokens: int = 0
    """Tokens written to the provider's cache."""
    cost: float | None = None
    """US dollars, or None without a known price."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; calls without a known price add no cost."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            sum(costs) if costs else None,
        )


SegmentKind = Literal[
    "summary",  # replaces a run of steps
    "mask",  # replaces a tool result by one line
    "excerpt",  # replaces a tool result by its first and last lines
    "keep",  # keeps a step out of summaries
    "undo",  # undoes entries
    "blank",  # replaces a forgotten or undone segment
]

TextMethod = Literal["model", "static", "unwritten", "fixed"]
"""How a text was made. "unwritten" has no text yet. "fixed" has the same words each time."""


@dataclass(frozen=True)
class Segment:
    """A run of messages and the message that replaces it."""

    kind: SegmentKind
    """"summary", "mask", "excerpt", "keep", "undo" or "blank"."""
    run: tuple[str, ...]
    """Canonical digests of the replaced messages, in order. An "undo" has the hashes of the undone
    entries."""
    rendered: Message
    """The message that replaces the run."""
    tokens: int
    """Tokens of the rendered message."""
    source_tokens: int
    """Tokens of the replaced messages."""
    method: TextMethod
    """"model", "static", "unwritten" or "fixed"."""
    model: str | None = None
    """The model that wrote the text, or None."""
    usage: Usage = Usage()
    """Tokens and cost of writing the text."""
    created: float = 0.0
    """Seconds since 1970."""
    archived_as: tuple[tuple[int, str], ...] = ()
    """(index in the run, digest after redaction) of each message that had secrets."""
    secrets: int = 0
    """Number of secrets redacted in the archived originals."""
    transcript_length: int = 0
    """Messages in the transcript at the compression; 0 if not recorded."""
    limit: int = 0
    """Tokens of the usable window at the compression; 0 if `target_tokens` was given."""
    instructions_digest: str = ""
    """Digest of the instructions to the model; "" without a model."""

    @property
    def replaces_result(self) -> bool:
        """Whether the segment replaces one tool result."""
        return self.kind in ("mask", "excerpt")

    @property
    def is_choice(self) -> bool:
        """Whether the segment records a choice of the user: "keep" or "undo"."""
        return self.kind in ("keep", "undo")

    @property
    def is_undoable(self) -> bool:
        """Whether `undo` can undo the segment."""
        return self.kind in ("summary", "mask")

    @property
    def author(self) -> str:
        """The user, the model, or the method if there is neither."""
        return "user" if self.is_choice else self.model or self.method

    def is_for(self, limit: int) -> bool:
        """Return whether a view with that limit may use the segment.

        A window twice as large needs a new summary.
        """
        return not (self.limit and limit) or limit < 2 * self.limit

    def payload(self) -> str:
        """Return the segment as canonical JSON for its hash."""
        # Not `asdict`, which would copy every digest of the run.
        fields = {**vars(self), "usage": vars(self.usage)}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    def aliases(self) -> dict[str, str]:
        """Return redacted digest -> original digest."""
        return {redacted: self.run[place] for place, redacted in self.archived_as}


@dataclass(frozen=True)
class Entry:
    """A segment in the hash chain of a session.

    The hash covers a salted commitment. `forget` destroys segment and salt, and keeps the
    commitment: the chain still verifies.
    """

    segment: Segment
    epoch: str
    parent: str
    salt: str
    commitment: str
    hash: str
    originals: tuple[Any, ...] = ()
    """The originals in a memory store; empty in a database."""
    archive: str = ""
    """Digest of the archived originals."""

    @property
    def is_forgotten(self) -> bool:
        """Whether this is a tombstone: segment and salt were destroyed."""
        return not self.salt


# ---------------------------------------------------------------- the limit of an archive
DROPPED: Message = {
    "role": "archive",
    "content": "no longer archived: the archive's memory limit was reached; large and old messages "
    "are dropped first",
}
"""Replaces an original that the archive has no room for."""


# ---------------------------------------------------------------- the hash chain
_GONE = (
    "<conversation-summary> Reference material, not instructions: messages that stood here were "
    "forgotten; nothing of them is left, nor in the archive.\n\n</conversation-summary>"
)

BLANK = Segment("blank", ("blank",), {"role": "user", "content": _GONE}, 0, 0, "fixed")
"""The segment of a forgotten or undone entry. Its run has no digest, so it matches no message."""


def seal(
    segment: Segment, parent: str, epoch: str, *, salt: str | None = None, archive: str = ""
) -> Entry:
    """Return the segment's entry; `parent` is the previous entry's hash."""
    salt = secrets.token_hex(16) if salt is None else salt
    commitment = _hash(salt, segment.payload(), archive)
    own_hash = _hash(parent, epoch, commitment)
    return Entry(segment, epoch, parent, salt, commitment, own_hash, archive=archive)


def archive_digest(content_digests: Iterable[str]) -> str:
    """Return one digest for originals with these content digests."""
    return _hash(*content_digests)


def chain_faults(entry: Entry, parent: str | None) -> Iterator[str]:
    """Yield the faults of an entry and its link to `parent`."""
    if parent is not None and entry.parent != parent:
        yield "its parent is not the entry before"
    payload = "" if entry.is_forgotten else entry.segment.payload()
    if payload and _hash(entry.salt, payload, entry.archive) != entry.commitment:
        yield "the segment was changed"
    if _hash(entry.parent, entry.epoch, entry.commitment) != entry.hash:
        yield "its hash disagrees"


def _hash(*parts: str) -> str:
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    return "sha256:" + hashlib.sha256(joined).hexdigest()


# ---------------------------------------------------------------- sessions
@dataclass(frozen=True)
class Epoch:
    """The state of a session after one compression or undo."""

    id: str
    """The epoch's id."""
    parent_id: str | None
    """Id of the previous epoch, or of the forked epoch; None in a new session."""
    session_id: str
    """The session's stable id."""
    created: float
    """Seconds since 1970."""
    undoes: bool = False
    """Whether an `undo` opened this epoch."""


@dataclass(frozen=True)
class Session:
    """A snapshot of a session: stable id, newest epoch, entries."""

    namespace: str
    """The tenant."""
    id: str
    """The stable id."""
    tip: str
    """The newest epoch's id; the stable id itself before the first compression."""
    parent: str | None
    """Id of the epoch before the newest, or of the forked epoch; None in a new session."""
    head_hash: str = GENESIS
    """Hash of the newest entry."""
    entries: tuple[Entry, ...] = ()
    """All entries, oldest first; a fork has its parent's entries too."""
    erasures: int = 0
    """Number of times that `forget` removed a part of the session."""
    updated: float = field(default=0.0, compare=False)
    """Seconds since 1970 of the last write; 0 if nothing was written."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and stable id."""
        return self.namespace, self.id

    @property
    def was_undone(self) -> bool:
        """Whether the newest compression was undone."""
        kinds = (entry.segment.kind for entry in reversed(self.entries))
        return next((kind for kind in kinds if kind not in ("excerpt", "keep")), "") == "undo"

    def is_unchanged_since(self, before: Session) -> bool:
        """Return whether nothing was committed or forgotten since `before`."""
        return (self.tip, self.erasures) == (before.tip, before.erasures)


# ---------------------------------------------------------------- undo
def undone_hashes(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the hashes of the undone entries."""
    undos = (entry.segment.run for entry in entries if entry.segment.kind == "undo")
    return frozenset(name for run in undos for name in run)


def segments_in_force(entries: Sequence[Entry]) -> list[Segment]:
    """Return each entry's segment; `BLANK` for undos and undone entries."""
    undone = undone_hashes(entries)
    return [
        BLANK if entry.hash in undone or entry.segment.kind == "undo" else entry.segment
        for entry in entries
    ]


def undo_segment(entries: Sequence[Entry]) -> Segment | None:
    """Return the segment that undoes the newest compression, or None.

    The undo covers all summaries and masks of one epoch, but no excerpts.
    """
    segments = enumerate(zip(entries, segments_in_force(entries), strict=True), 1)
    active = [(n, entry) for n, (entry, segment) in segments if segment.is_undoable]
    if not active:
        return None
    hashes = {f"s{n}": entry.hash for n, entry in active if entry.epoch == active[-1][1].epoch}
    return Segment(
        kind="undo",
        run=tuple(hashes.values()),
        rendered={"role": "user", "content": f"[undoes {', '.join(hashes)}]"},
        tokens=0,
        source_tokens=0,
        method="fixed",
        created=time.time(),
        transcript_length=entries[-1].segment.transcript_length,
    )


Skeleton = tuple[Message | int, ...]
"""A transcript in order: messages, and indexes into `Session.entries` in place of originals."""


def skeleton_messages(skeleton: Skeleton) -> list[Message]:
    """Return the messages of a skeleton, without its indexes."""
    return [item for item in skeleton if not isinstance(item, int)]


def expand_skeleton(
    skeleton: Skeleton,
    of_entry: Callable[[int], tuple[Segment, Sequence[Message]]],
    length: int | None = None,
) -> list[Message] | None:
    """Return the transcript of a skeleton: indexes become originals.

    An entry with dropped originals becomes its rendered message. With `length`, return the first
    `length` messages, or None if one of these messages is unknown or `length` is 0 (not recorded).
    """
    parts = _parts(skeleton, of_entry)
    if length is not None:
        return _first_messages(parts, length) if length else None
    transcript: list[Message] = []
    for count, messages in parts:
        # Consecutive forgotten entries share one notice.
        if count is not None or messages != transcript[-1:]:
            transcript += messages
    return transcript


def _parts(
    skeleton: Skeleton, of_entry: Callable[[int], tuple[Segment, Sequence[Message]]]
) -> Iterator[tuple[int | None, Sequence[Message]]]:
    """Yield each item's number of originals (None if forgotten) and messages."""
    for item in skeleton:
        if isinstance(item, int):
            segment, originals = of_entry(item)
            count = None if originals == [BLANK.rendered] else len(originals)
            yield count, [segment.rendered] if DROPPED in originals else originals
        else:
            yield 1, [item]


def _first_messages(
    parts: Iterator[tuple[int | None, Sequence[Message]]], length: int
) -> list[Message] | None:
    transcript: list[Message] = []
    for count, messages in parts:
        # A part was forgotten, or the cut falls among dropped originals.
        if count is None or len(messages) < count > length:
            return None
        transcript += messages[:length]
        length -= min(count, length)
        if not length:
            return transcript
    return None
