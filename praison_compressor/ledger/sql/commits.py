"""Commit to a session if its newest entry is unchanged; redact segments.

`SqlStore` redacts secrets before a transaction. Redacted messages have other digests, which
`Segment.archived_as` lists: so both forms of a message match the segment.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update

from ...errors import LedgerConflict
from ...messages import Message, content_digest, digest, read_transcript
from ...messages.secrets import Redactor, redactions_in
from ..segments import Entry, Segment, Session, Skeleton, archive_digest, seal
from .archive import SqlArchive, dump, pack_entry
from .index import merge_ranges
from .queries import find_session, head_of_epoch, read_skeleton, transcript_at, update_session
from .schema import appended, entries, leases, notes, of_session, sessions, spans

# ---------------------------------------------------------------- redaction
SegmentRun = tuple[Segment, list[Message]]


def redact_segment(redactor: Redactor, segment: Segment, originals: list[Message]) -> SegmentRun:
    """Return the segment and originals to store; their secrets are redacted."""
    redacted, has_secrets = redactor.redact(originals)
    (rendered,), shows_secrets = redactor.redact([segment.rendered])
    # Earlier redactions count too: the originals may come from a view.
    count = redactions_in(redacted)
    if not (count or shows_secrets):
        return segment, originals
    archived = _alias_digests(segment.run, originals, redacted) if has_secrets else ()
    return replace(segment, rendered=rendered, archived_as=archived, secrets=count), list(redacted)


def _alias_digests(
    run: Sequence[str], originals: Sequence[Message], redacted: Sequence[Message]
) -> tuple[tuple[int, str], ...]:
    """Return the value of `Segment.archived_as`.

    A mask's run has the digests of the given messages. A summary's run has the digests of the
    repaired messages.
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
    """Archive the originals, and append the segments as a new epoch."""
    row, now = _lock_unchanged(archive, session), archive.time()
    epoch = f"{row.id}.c{row.commits + 1}-{secrets.token_hex(4)}"
    head = row.head
    originals = [message for _, run in segments for message in run]
    digests = list(map(content_digest, originals))
    keys = archive.add(row.namespace, originals, digests)
    _widen_spans(archive, row.key, keys)
    for segment, run in segments:
        size = len(run)
        entry = seal(segment, head, epoch, archive=archive_digest(digests[:size]))
        archive.link(_insert_entry(archive, row, entry, now), keys[:size])
        head, keys, digests = entry.hash, keys[size:], digests[size:]
    if skeleton is None:
        count = len(session.entries)
        skeleton = (*read_skeleton(archive, row.key), *range(count, count + len(segments)))
    changes = {"head": head, "commits": row.commits + bool(segments), "updated": now}
    # A background summary was planned before the newest turns. The skeleton lacks their messages,
    # so their rows in `appended` are kept.
    update_session(archive, row.key, skeleton, changes, keeps_appended=True)


def record_transcript(archive: SqlArchive, session: Session, skeleton: Skeleton) -> bool:
    """See `Store.record_transcript`."""
    try:
        row = _lock_unchanged(archive, session)
    except LedgerConflict:
        return False
    update_session(archive, row.key, skeleton, {"updated": archive.time()})
    return True


def extend_transcript(
    archive: SqlArchive, session: Session, start: int, added: Sequence[Message]
) -> bool:
    """See `DurableStore.extend_transcript`."""
    row = find_session(archive, session.namespace, session.id, locked=True)
    if row is None or row.erasures != session.erasures:
        return False
    own = appended.c.session_key == row.key
    last = archive.execute(select(func.max(appended.c.place)).where(own)).scalar()
    if not row.recorded <= start <= (row.recorded if last is None else last + 1):
        return False
    archive.execute(delete(appended).where(own, appended.c.place >= start))
    rows = [
        {"session_key": row.key, "place": at, "body": archive.packer.pack(dump(message))}
        for at, message in enumerate(added, start)
    ]
    if rows:
        archive.execute(insert(appended), rows)
    written = update(sessions).where(sessions.c.key == row.key)
    archive.execute(written.values(updated=archive.time()))
    return True


def _insert_entry(archive: SqlArchive, session: Row[Any], entry: Entry, now: float) -> int:
    values = {name: getattr(entry, name) for name in ("epoch", "parent", "commitment", "hash")}
    values |= {"namespace": session.namespace, "session_key": session.key, "created": now}
    values |= {"kind": entry.segment.kind, "sealed": pack_entry(archive.packer, entry)}
    insertion = insert(entries).values(values).returning(entries.c.key)
    return int(archive.execute(insertion).scalar_one())


def _widen_spans(archive: SqlArchive, session_key: int, keys: Iterable[int]) -> None:
    """Add message keys to the ranges that a search reads."""
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


def _lock_unchanged(archive: SqlArchive, session: Session) -> Row[Any]:
    """Return the session's row, locked; create it for a new session.

    Raises:
        LedgerConflict: the session has changed since it was read.
    """
    row = find_session(archive, session.namespace, session.id, locked=True)
    if row is None and session.tip == session.id:
        create_session(archive, session.namespace, session.id, session.parent)
        row = find_session(archive, session.namespace, session.id, locked=True)
    if row is None or row.head != session.head_hash:
        reason = "is gone" if row is None else "has a newer entry"
        raise LedgerConflict(f"session {session.id} {reason}; read it again")
    if row.erasures != session.erasures:
        # The summary may repeat what was forgotten.
        raise LedgerConflict(f"session {session.id}: a part was forgotten; read it again")
    return row


def create_session(
    archive: SqlArchive, namespace: str, session_id: str, parent_id: str | None
) -> None:
    """Insert a session's row, unless another process was first."""
    values: dict[str, Any] = {"namespace": namespace, "id": session_id, "parent_id": parent_id}
    values |= dict.fromkeys(("created", "updated"), archive.time())
    base = None
    if parent_id is not None and parent_id != session_id:
        # Locked, so that entries and transcript fit together.
        base = find_session(archive, namespace, parent_id, locked=True)
    if base is not None:
        head = head_of_epoch(archive, base, str(parent_id))
        values |= {"base_key": base.key, "base_head": head, "head": head}
    insertion = archive.insert(sessions).on_conflict_do_nothing()
    key = archive.execute(insertion.returning(sessions.c.key), values).scalar()
    if key is not None and base is not None:
        update_session(archive, key, transcript_at(archive, base, head))


# ---------------------------------------------------------------- notes
def change_note(archive: SqlArchive, session: Session, change: Callable[[str], str]) -> str:
    """See `NoteStore.change_note`."""
    values = {"namespace": session.namespace, "session_id": session.id, "body": ""}
    archive.execute(archive.insert(notes).on_conflict_do_nothing(), values)
    own = of_session(notes, session)
    before = archive.execute(select(notes.c.body).where(own).with_for_update()).scalar_one()
    after = change(before)
    archive.execute(update(notes).where(own).values(body=after))
    return after


# ---------------------------------------------------------------- leases
def claim_lease(archive: SqlArchive, session: Session, holder: str, seconds: float) -> bool:
    """Take the session's lease by the database's clock; return whether it worked."""
    now = archive.time()
    own = {"namespace": session.namespace, "session_id": session.id}
    lease = {"holder": holder, "until": now + seconds}
    is_free = (leases.c.until <= now) | (leases.c.holder == holder)
    claim = archive.insert(leases).values({**own, **lease})
    claim = claim.on_conflict_do_update(index_elements=list(own), set_=lease, where=is_free)
    return archive.execute(claim.returning(leases.c.holder)).first() is not None


def is_lease_taken(archive: SqlArchive, session: Session, holder: str) -> bool:
    """Return whether another holder has the session's lease."""
    others = (leases.c.holder != holder) & (leases.c.until > archive.time())
    query = select(leases).where(of_session(leases, session), others)
    return archive.execute(query).first() is not None


def release_lease(archive: SqlArchive, session: Session, holder: str) -> None:
    """Give the holder's lease back."""
    archive.execute(delete(leases).where(of_session(leases, session), leases.c.holder == holder))
