"""Commit: redact secrets, lock the session's row, compare its tip, append.

A segment is found again by the digests of the agent's own messages. The archive holds redacted
messages and their digests, so a message read back from the archive is found like its original.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, text, update

from ...errors import LedgerConflict
from ...messages import Message, digest, read_transcript
from ...messages.secrets import Redactor, redactions_in
from ..segments import Entry, Segment, Session, Skeleton, archive_digest, seal
from .archive import SqlArchive, dump, pack_entry
from .index import merge_ranges
from .queries import find_session, head_of_epoch, read_skeleton, record_skeleton, transcript_at
from .schema import appended, entries, leases, notes, of_session, sessions, spans

# ---------------------------------------------------------------- redaction
SegmentRun = tuple[Segment, list[Message]]


def redact_segment(redactor: Redactor, segment: Segment, originals: list[Message]) -> SegmentRun:
    """Return the segment and originals to store, secrets redacted."""
    redacted, has_secrets = redactor.redact(originals)
    (rendered,), shows_secrets = redactor.redact([segment.rendered])
    # Count earlier redactions too: the given transcript may be a view.
    count = redactions_in(redacted)
    if not (count or shows_secrets):
        return segment, originals
    archived = _alias_digests(segment.run, originals, redacted) if has_secrets else ()
    return replace(segment, rendered=rendered, archived_as=archived, secrets=count), list(redacted)


def _alias_digests(
    run: Sequence[str], originals: Sequence[Message], redacted: Sequence[Message]
) -> tuple[tuple[int, str], ...]:
    """Return (index in run, archived digest) where the digests differ.

    The run of a mask has the digest of the unrepaired message; the run of a summary has digests of
    repaired messages. If neither matches, return ().
    """
    for as_read in (False, True):
        if _canonical_digests(originals, as_read) == list(run):
            pairs = zip(run, _canonical_digests(redacted, as_read), strict=True)
            return tuple((at, new) for at, (old, new) in enumerate(pairs) if new != old)
    return ()


def _canonical_digests(messages: Sequence[Message], as_read: bool) -> list[str]:
    return [digest(m) for m in (read_transcript(messages).messages if as_read else messages)]


# ---------------------------------------------------------------- commits
def append_segments(
    archive: SqlArchive, session: Session, segments: Sequence[SegmentRun], skeleton: Skeleton | None
) -> None:
    """Seal the segments into the chain, archive originals, open an epoch."""
    row = _lock_unchanged(archive, session)
    epoch = f"{row.id}.c{row.commits + 1}-{secrets.token_hex(4)}"
    head = row.head
    keys = archive.add(row.namespace, [message for _, run in segments for message in run])
    _widen_spans(archive, row.key, keys)
    for segment, originals in segments:
        entry = seal(segment, head, epoch, archive=archive_digest(originals))
        archive.link(_insert_entry(archive, row, entry), keys[: len(originals)])
        head, keys = entry.hash, keys[len(originals) :]
    if segments:
        _write_session(archive, row, head=head, commits=row.commits + 1)
    if skeleton is None:
        count = len(session.entries)
        skeleton = (*read_skeleton(archive, row.key), *range(count, count + len(segments)))
    # A background summary has the transcript from before the newest turns: later messages stay.
    record_skeleton(archive, row.key, skeleton, keeps_appended=True)


def record_transcript(archive: SqlArchive, session: Session, skeleton: Skeleton) -> bool:
    """Record the transcript, unless the session changed since it was read."""
    try:
        row = _lock_unchanged(archive, session)
    except LedgerConflict:
        return False
    record_skeleton(archive, row.key, skeleton)
    _write_session(archive, row)
    return True


def extend_transcript(
    archive: SqlArchive, session: Session, place: int, added: Sequence[Message]
) -> bool:
    """Replace the recorded transcript from `place` on; return whether it worked."""
    row = _lock_session(archive, session)
    if row is None or row.erasures != session.erasures:
        return False
    own = appended.c.session_key == row.key
    last = archive.execute(select(func.max(appended.c.place)).where(own)).scalar()
    if not row.recorded <= place <= (row.recorded if last is None else last + 1):
        return False
    archive.execute(delete(appended).where(own, appended.c.place >= place))
    rows = [
        {"session_key": row.key, "place": at, "body": archive.packer.pack(dump(message))}
        for at, message in enumerate(added, place)
    ]
    if rows:
        archive.execute(insert(appended), rows)
    _write_session(archive, row)
    return True


def _write_session(archive: SqlArchive, row: Row[Any], **changes: object) -> None:
    """Change a session's row and the time of its last write."""
    values = {**changes, "updated": _database_time(archive)}
    archive.execute(update(sessions).where(sessions.c.key == row.key).values(values))


def _insert_entry(archive: SqlArchive, session: Row[Any], entry: Entry) -> int:
    """Write an entry; return its key."""
    values = {name: getattr(entry, name) for name in ("epoch", "parent", "commitment", "hash")}
    values |= {"namespace": session.namespace, "session_key": session.key}
    values |= {"kind": entry.segment.kind, "sealed": pack_entry(archive.packer, entry)}
    insertion = insert(entries).values(values).returning(entries.c.key)
    return int(archive.execute(insertion).scalar_one())


def _widen_spans(archive: SqlArchive, session_key: int, keys: Iterable[int]) -> None:
    """Widen the session's searched key ranges by these messages."""
    own = spans.c.session_key == session_key
    query = select(spans.c.first, spans.c.last).where(own)
    before = {(first, last) for first, last in archive.execute(query)}
    ranges = [*before, *((key, key) for key in keys)]
    after = set(merge_ranges(ranges, archive.index.sizes.gap_keys))
    if replaced := before - after:
        firsts = [first for first, _ in replaced]
        archive.execute(delete(spans).where(own, spans.c.first.in_(firsts)))
    if new := after - before:
        rows = [{"session_key": session_key, "first": first, "last": last} for first, last in new]
        archive.execute(insert(spans), rows)


def _lock_session(archive: SqlArchive, session: Session) -> Row[Any] | None:
    """Return the session's row, locked until the transaction ends."""
    query = select(sessions.c.key).where(
        sessions.c.namespace == session.namespace, sessions.c.id == session.id
    )
    archive.execute(query.with_for_update()).first()
    # Read after locking, so that the row includes the commit we waited for.
    return find_session(archive, session.namespace, session.id)


def _lock_unchanged(archive: SqlArchive, session: Session) -> Row[Any]:
    """Return the session's row, locked; create it for a new session.

    Raises:
        LedgerConflict: the session changed since it was read.
    """
    row = _lock_session(archive, session)
    if row is None and session.tip == session.id:
        create_session(archive, session.namespace, session.id, session.parent)
        row = _lock_session(archive, session)
    if row is None or row.head != session.head_hash:
        tip = "gone" if row is None else "another now"
        raise LedgerConflict(f"session {session.id}: the tip is {tip}; read it again")
    if row.erasures != session.erasures:
        # A summary written before may repeat what was forgotten since.
        raise LedgerConflict(f"session {session.id}: a part was forgotten; read it again")
    return row


def create_session(
    archive: SqlArchive, namespace: str, session_id: str, parent_id: str | None
) -> None:
    """Insert the row of a session, unless another process was first."""
    values: dict[str, Any] = {"namespace": namespace, "id": session_id, "parent_id": parent_id}
    values |= dict.fromkeys(("created", "updated"), _database_time(archive))
    base = None
    if parent_id is not None and parent_id != session_id:
        base = find_session(archive, namespace, parent_id)
    if base is not None:
        head = head_of_epoch(archive, base, str(parent_id))
        values |= {"base_key": base.key, "base_head": head, "head": head}
    insertion = archive.insert_missing(sessions).returning(sessions.c.key)
    key = archive.execute(insertion, values).scalar()
    if key is not None and base is not None:
        record_skeleton(archive, key, transcript_at(archive, base, head))


# ---------------------------------------------------------------- notes
def change_note(archive: SqlArchive, session: Session, change: Callable[[str], str]) -> str:
    """Replace the session's note by its change; return the new note."""
    values = {"namespace": session.namespace, "session_id": session.id, "body": ""}
    archive.execute(archive.insert_missing(notes), values)
    own = of_session(notes, session)
    before = archive.execute(select(notes.c.body).where(own).with_for_update()).scalar_one()
    after = change(before)
    archive.execute(update(notes).where(own).values(body=after))
    return after


# ---------------------------------------------------------------- leases
def claim_lease(archive: SqlArchive, session: Session, holder: str, seconds: float) -> bool:
    """Take the session's lease by the database's clock; return whether it worked."""
    now = _database_time(archive)
    own = of_session(leases, session)
    is_free = (leases.c.until <= now) | (leases.c.holder == holder)
    archive.execute(delete(leases).where(own, is_free))
    lease = {"holder": holder, "until": now + seconds}
    values = {"namespace": session.namespace, "session_id": session.id, **lease}
    archive.execute(archive.insert_missing(leases), values)
    return bool(archive.execute(select(leases.c.holder).where(own)).scalar() == holder)


def is_lease_taken(archive: SqlArchive, session: Session, holder: str) -> bool:
    """Return whether another holder has the session's lease."""
    others = (leases.c.holder != holder) & (leases.c.until > _database_time(archive))
    query = select(leases).where(of_session(leases, session), others)
    return archive.execute(query).first() is not None


def release_lease(archive: SqlArchive, session: Session, holder: str) -> None:
    """Give the holder's lease back."""
    archive.execute(delete(leases).where(of_session(leases, session), leases.c.holder == holder))


def _database_time(archive: SqlArchive) -> float:
    """Return the database's time: clocks of machines differ."""
    if archive.is_sqlite:
        return time.time()
    clock = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
    return float(archive.execute(text(clock)).scalar_one())
