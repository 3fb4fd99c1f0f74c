"""List a session's segments, or read a segment, message or lines: `show`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..ledger.segments import BLANK, Entry, Session, segments_in_force
from ..messages import text_of
from ..messages.display import message_as_text, one_line, pluralize, truncate_line
from ..recall.answers import split_references
from ..recall.layout import split_lines
from ..recall.references import REFERENCE_HELP, Reference, parse_reference
from ..summaries.prompts import render_messages
from ..view.frame import unframe
from .parameters import AS_JSON, SCREEN_TOKENS, Tenant, command, option, with_tenant
from .terminal import Block, Table, Unusable, print_answer, with_title

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore


@command
@click.argument("session")
@click.argument("reference", required=False)
@option("--full", "With s2: its text and all its originals.")
@option("--summaries", "List no masks.")
@option("--live", "List only what is in the view now.")
@with_tenant
@AS_JSON
def show(
    session: str,
    reference: str | None,
    full: bool,
    summaries: bool,
    live: bool,
    tenant: Tenant,
    as_json: bool,
) -> None:
    """List a session's segments, or show what a reference names.

    REFERENCE is s2 (an outline), s2.14 (a message), s2.14:900-940 (its lines), or several, as
    "s2.4, s2.9". Summaries, `search` and `report` print references. A long message comes in
    parts; each part prints the command that reads on.

    $ praison-compressor show audit s1.2 --store ledger.db
    """
    if full and (reference is None or re.search("[.,]", reference)):
        raise Unusable(f"{reference or ''} --full: expected a segment, such as s2".strip())
    stored = tenant.find_session(session)
    if reference is not None:
        value, blocks = _read(tenant, stored, reference, full)
        print_answer(value, blocks, as_json)
        return
    every = map(_NumberedEntry, itertools.count(1), stored.entries, segment_states(stored.entries))
    listed = [
        row
        for row in every
        if (row.state == IN_VIEW or not live) and (row.kind == "summary" or not summaries)
    ]
    print_answer(list(map(_row_json, listed)), [_segments_table(stored, listed)], as_json)


def _read(
    tenant: Tenant, session: Session, name: str, full: bool
) -> tuple[dict[str, Any], Iterable[Block]]:
    references = [
        _parse_reference(session.id, each, session.entries) for each in split_references(name)
    ]
    number = references[0].segment
    entry = session.entries[number - 1]
    if full or (entry.is_forgotten and len(references) == 1):
        originals = tenant.store.originals(session, entry)
        value = {**_segment_json(number, entry), "originals": originals}
        return value, _whole_segment(number, entry, originals)
    for reference in references:
        _check_line(tenant.store, session, reference)
    names = ", ".join(map(str, references))
    text = tenant.recall(session).read(names, SCREEN_TOKENS)
    return {"session": session.id, "reference": names, "text": text}, [text]


def _parse_reference(session: str, text: str, entries: Sequence[Entry]) -> Reference:
    """Parse a reference that the session has.

    Raises:
        Unusable: the text is not a reference, or the session lacks the segment or message.
    """
    reference = parse_reference(text)
    if reference is None:
        raise Unusable(f"{one_line(text)!r} is no reference; {REFERENCE_HELP}")
    number, message = reference.segment, reference.message
    if not 1 <= number <= len(entries):
        verb = "is" if len(entries) == 1 else "are"
        there = pluralize(len(entries), "segment")
        raise Unusable(f"{session}: no segment s{number}, there {verb} {there}")
    entry = entries[number - 1]
    count = len(entry.segment.run)
    if message is not None and not entry.is_forgotten and not 1 <= message <= count:
        there = pluralize(count, "message")
        raise Unusable(f"{session}: no message {reference}, s{number} has {there}")
    return reference


def _check_line(store: SqlStore, session: Session, reference: Reference) -> None:
    """Raise `Unusable` if a message has fewer lines than the reference names."""
    if reference.line is None or reference.message is None:
        return
    entry = session.entries[reference.segment - 1]
    originals = store.originals(session, entry, reference.messages) or []
    if reference.message > len(originals):  # forgotten, or no segment of messages: `read` says so
        return
    lines = len(split_lines(message_as_text(originals[reference.message - 1])))
    if reference.line > lines:
        where = reference.of_message(reference.message)
        raise Unusable(f"{session.id}: no line {reference}, {where} has {pluralize(lines, 'line')}")


IN_VIEW, FOLDED, UNDONE, FORGOTTEN = "in view", "folded", "undone", "forgotten"


def segment_states(entries: Sequence[Entry]) -> list[str]:
    """Return each entry's state: in view, folded, undone or forgotten."""
    later: list[frozenset[str]] = []
    states: list[str] = []
    for entry, segment in zip(reversed(entries), reversed(segments_in_force(entries)), strict=True):
        run = frozenset(segment.run)
        if entry.is_forgotten:
            states.append(FORGOTTEN)
        elif segment.kind == BLANK.kind:
            states.append(UNDONE)
        else:
            states.append(FOLDED if any(run <= other for other in later) else IN_VIEW)
        if run:
            later.append(run)
    return states[::-1]


class _NumberedEntry(NamedTuple):
    number: int
    entry: Entry
    state: str

    @property
    def kind(self) -> str:
        return self.entry.segment.kind


def _row_json(row: _NumberedEntry) -> dict[str, Any]:
    value = _segment_json(row.number, row.entry)
    return {**value, "in_view": row.state == IN_VIEW, "state": row.state}


def _segments_table(session: Session, listed: Sequence[_NumberedEntry]) -> Block:
    rows = [_segment_row(list(run), kind) for (kind, _), run in itertools.groupby(listed, _row_key)]
    columns = ("reference", "kind", "by", "messages#", "tokens#", "after#", "begins")
    if rows:
        return Table(columns, rows, spare=("by",))
    if not session.entries:
        return f"{session.id}: nothing was compressed yet."
    return f"{session.id}: {pluralize(len(session.entries), 'segment')}, none of this kind."


def _row_key(row: _NumberedEntry) -> tuple[str, int]:
    """Return a key; neighbouring segments with equal keys share a row."""
    if row.state == FORGOTTEN:
        return FORGOTTEN, 0
    kind = row.kind if row.state == IN_VIEW or row.kind == "undo" else f"{row.kind}, {row.state}"
    return kind, 0 if row.entry.segment.replaces_result else row.number


def _segment_row(run: Sequence[_NumberedEntry], kind: str) -> tuple[str | int | None, ...]:
    first = run[0]
    segment = first.entry.segment
    name = f"s{first.number}" if len(run) == 1 else f"s{first.number} to s{run[-1].number}"
    if first.entry.is_forgotten:
        return name, kind, None, None, None, None, ""
    segments = [row.entry.segment for row in run]
    messages = sum(len(s.run) for s in segments)
    before, after = sum(s.source_tokens for s in segments), sum(s.tokens for s in segments)
    text = unframe(segment.rendered) or text_of(segment.rendered)
    return name, kind, segment.author, messages, before, after, truncate_line(text, 60)


def _segment_json(number: int, entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = {"reference": f"s{number}", "forgotten": entry.is_forgotten}
    value |= {"epoch": entry.epoch, "hash": entry.hash}
    return value if entry.is_forgotten else value | asdict(entry.segment)


def _whole_segment(number: int, entry: Entry, messages: Sequence[Any] | None) -> Iterator[Block]:
    if entry.is_forgotten:
        yield f"Segment s{number} was forgotten; only its link in the chain is left."
        return
    segment = entry.segment
    count = pluralize(len(segment.run), "message")
    title = f"s{number}: {count}, {segment.author}"
    yield from with_title(title, text_of(segment.rendered))
    if messages is not None:
        originals = "\n\n".join(render_messages(messages))
        yield from with_title(f"the {pluralize(len(messages), 'original')}", originals)
