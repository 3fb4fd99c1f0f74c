"""List a session's segments, or read one, a message or lines: `show`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..ledger.segments import FORGOTTEN, Entry, Session, segments_in_force
from ..messages import text_of
from ..messages.display import message_as_text, one_line, pluralize, truncate_line
from ..recall.layout import split_lines
from ..recall.references import REFERENCE_HELP, Reference, parse_reference
from ..summaries.prompts import render_messages
from ..view.frame import unframe
from .parameters import AS_JSON, Tenant, command, with_tenant
from .store_access import SCREEN_TOKENS, existing_session, open_ledger, recall_for_shell
from .terminal import Block, Table, Unusable, print_answer, with_title

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore


@command
@click.argument("session")
@click.argument("reference", required=False)
@click.option("--full", is_flag=True, help="With s2: its text and all its originals.")
@click.option("--summaries", is_flag=True, help="List no masks.")
@click.option("--live", is_flag=True, help="List only what is in the view now.")
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

    REFERENCE is s2 (an outline), s2.14 (a message) or s2.14:900-940 (its lines). Summaries,
    `search` and `report` print references. A long message comes in parts; each part prints the
    command that reads on.

    $ praison-compressor show audit s1.2 --store ledger.db
    """
    with open_ledger(tenant.store_url) as opened:
        stored = existing_session(opened, tenant.namespace, session)
        target = None if reference is None else _parse_reference(session, reference, stored.entries)
        entry = stored.entries[target.segment - 1] if target else None
        if full and (target is None or target.message is not None):
            raise Unusable(f"{reference or ''} --full: expected a segment, such as s2".strip())
        if target is None or entry is None:
            _list_segments(session, stored.entries, summaries=summaries, live=live, as_json=as_json)
        elif full or entry.forgotten:
            originals = opened.originals(stored, entry)
            value = {**_segment_json(target.segment, entry), "originals": originals}
            print_answer(value, _whole_segment(target.segment, entry, originals), as_json)
        else:
            _check_line(opened, stored, target)
            text = recall_for_shell(opened, stored, tenant.store_url).read(
                str(target), SCREEN_TOKENS
            )
            print_answer(
                {"session": session, "reference": str(target), "text": text}, [text], as_json
            )


def _parse_reference(session: str, reference: str, entries: Sequence[Entry]) -> Reference:
    """Parse a reference that the session has.

    Raises:
        Unusable: it is no reference, or the session has no such segment or message.
    """
    named = parse_reference(reference)
    if named is None:
        raise Unusable(f"{one_line(reference)!r} is no reference; {REFERENCE_HELP}")
    if not 1 <= named.segment <= len(entries):
        verb = "is" if len(entries) == 1 else "are"
        there = pluralize(len(entries), "segment")
        raise Unusable(f"{session}: no segment s{named.segment}, there {verb} {there}")
    entry = entries[named.segment - 1]
    count = len(entry.segment.run)
    if named.message is not None and not entry.forgotten and not 1 <= named.message <= count:
        there = pluralize(count, "message")
        raise Unusable(f"{session}: no message {named}, s{named.segment} has {there}")
    return named


def _check_line(store: SqlStore, session: Session, named: Reference) -> None:
    """Raise `Unusable` if a message has fewer lines than a reference names."""
    if named.line is None or named.message is None:
        return
    entry = session.entries[named.segment - 1]
    message = (store.originals(session, entry, named.messages) or [])[named.message - 1]
    lines = len(split_lines(message_as_text(message)))
    if named.line > lines:
        where = named.of_message(named.message)
        raise Unusable(f"{session.id}: no line {named}, {where} has {pluralize(lines, 'line')}")


IN_VIEW, FOLDED, UNDONE, GONE = "in view", "folded", "undone", "forgotten"


def segment_states(entries: Sequence[Entry]) -> list[str]:
    """Return each entry's state: in view, folded, undone or forgotten."""
    later: list[frozenset[str]] = []
    states: list[str] = []
    for entry, segment in zip(reversed(entries), reversed(segments_in_force(entries)), strict=True):
        run = frozenset(segment.run)
        if entry.forgotten:
            states.append(GONE)
        elif segment.kind == FORGOTTEN.kind:
            states.append(UNDONE)
        else:
            states.append(FOLDED if any(run <= other for other in later) else IN_VIEW)
        later += [run] if run else []
    return states[::-1]


def _list_segments(
    session: str, entries: Sequence[Entry], *, summaries: bool, live: bool, as_json: bool
) -> None:
    """List segments; neighbouring masks share a row, and so do forgotten segments."""
    numbered = zip(itertools.count(1), entries, segment_states(entries))
    listed = [
        (n, entry, state)
        for n, entry, state in numbered
        if (state == IN_VIEW or not live) and (entry.segment.kind == "summary" or not summaries)
    ]
    value = [
        {**_segment_json(n, entry), "in_view": state == IN_VIEW, "state": state}
        for n, entry, state in listed
    ]
    rows = [_row(list(run), kind) for (kind, _), run in itertools.groupby(listed, _kind_of_row)]
    columns = ("reference", "kind", "by", "messages#", "tokens#", "after#", "begins")
    none = f"{session}: nothing was compressed yet."
    if entries:
        none = f"{session}: {pluralize(len(entries), 'segment')}, none of this kind."
    print_answer(value, [Table(columns, rows, spare=("by",)) if rows else none], as_json)


def _kind_of_row(listed: tuple[int, Entry, str]) -> tuple[str, int]:
    """Return a segment's kind and number; number 0 shares a row."""
    n, entry, state = listed
    kind = entry.segment.kind
    if state == GONE:
        return GONE, 0
    shown = kind if state == IN_VIEW or kind == "undo" else f"{kind}, {state}"
    return shown, 0 if kind in ("mask", "excerpt") else n


def _row(run: Sequence[tuple[int, Entry, str]], kind: str) -> tuple[str | int | None, ...]:
    (first, entry, _), (last, _, _) = run[0], run[-1]
    name = f"s{first}" if first == last else f"s{first} to s{last}"
    if entry.forgotten:
        return name, kind, None, None, None, None, ""
    segments = [covered.segment for _, covered, _ in run]
    text = unframe(entry.segment.rendered) or text_of(entry.segment.rendered)
    messages = sum(len(segment.run) for segment in segments)
    before = sum(segment.source_tokens for segment in segments)
    after = sum(segment.tokens for segment in segments)
    by = "user" if kind in ("keep", "undo") else entry.segment.model or entry.segment.method
    return name, kind, by, messages, before, after, truncate_line(text, 60)


def _segment_json(n: int, entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = {"reference": f"s{n}", "forgotten": entry.forgotten}
    value |= {"epoch": entry.epoch, "hash": entry.hash}
    return value if entry.forgotten else value | asdict(entry.segment)


def _whole_segment(n: int, entry: Entry, messages: Sequence[Any] | None) -> Iterator[Block]:
    """Yield the text of a segment, then its originals."""
    if entry.forgotten:
        yield f"Segment s{n} was forgotten; only its link in the chain is left."
        return
    segment = entry.segment
    title = f"s{n}: {pluralize(len(segment.run), 'message')}, {segment.model or segment.method}"
    yield from with_title(title, text_of(segment.rendered))
    if messages is not None:
        originals = "\n\n".join(render_messages(messages))
        yield from with_title(f"the {pluralize(len(messages), 'original')}", originals)
