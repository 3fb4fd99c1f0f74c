"""List, show, search, restore, verify and erase what a store holds."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..ledger.segments import FORGOTTEN, Entry, Epoch, Session, segments_in_force
from ..ledger.words import Hit, distinct_words
from ..messages import Message, text_of
from ..messages.display import message_as_text, one_line, pluralize, truncate_line, utc_time
from ..messages.secrets import masks_in
from ..recall.answers import Recall
from ..recall.layout import split_lines
from ..recall.matches import few_words
from ..recall.passages import query_terms
from ..recall.references import REFERENCE_HELP, Reference, parse_reference
from ..summaries.prompts import render_messages
from ..tokens.counter import TokenCounter
from ..view.frame import is_framed, unframe
from .parameters import AS_JSON, STORE, Tenant, argument, command, flag, option, with_tenant
from .store_access import STORED_WHEN, existing_session, open_ledger, remembered_session
from .terminal import (
    FOUND_FAULT,
    Block,
    Line,
    Table,
    Unusable,
    number,
    print_answer,
    print_complaint,
    with_title,
)
from .transcripts import load_transcript, write_messages

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore
    from ..ledger.stores import SessionInfo
    from ..praisonai.agent_ledger import Forgotten


@command
@with_tenant
@AS_JSON
def sessions(tenant: Tenant, as_json: bool) -> None:
    """List the sessions of a store, the last used first.

    $ praison-compressor sessions --store ledger.db
    """
    with open_ledger(tenant.store) as opened:
        infos = opened.sessions(tenant.namespace)
        where, others = opened.place, [] if infos else opened.namespaces()
    rows = [(i.id, i.parent_id, _compressions(i), utc_time(i.updated) or "-") for i in infos]
    table = Table(("session", "parent", "compressions#", "last used"), rows, spare=("parent",))
    elsewhere = f"Sessions exist in: {', '.join(others)} (--namespace NAME)."
    none = [f"No sessions in namespace {tenant.namespace!r} of {where}."]
    none.append(elsewhere if others else STORED_WHEN)
    print_answer(infos, [table] if infos else none, as_json)


def _compressions(info: SessionInfo) -> str:
    undone = f", {number(info.taken_back)} undone" if info.taken_back else ""
    return number(info.compressions) + undone


@command
@argument("session")
@flag("--forks", "Include its forks.")
@with_tenant
@AS_JSON
def lineage(session: str, forks: bool, tenant: Tenant, as_json: bool) -> None:
    """Show a session's chain of epochs, root first.

    Each compression and each undo opened one epoch.

    $ praison-compressor lineage audit --forks --store ledger.db
    """
    with open_ledger(tenant.store) as opened:
        existing_session(opened, tenant.namespace, session)
        epochs = (opened.tree if forks else opened.lineage)(tenant.namespace, session)
    lines = (
        f"{'    ' * depth}{epoch.id}  ({how} {utc_time(epoch.created) or '-'})"
        for depth, how, epoch in epoch_tree(epochs)
    )
    print_answer(epochs, lines, as_json)


def epoch_tree(epochs: Iterable[Epoch]) -> Iterator[tuple[int, str, Epoch]]:
    """Yield depth, origin and epoch for each epoch, in order.

    A fork is one deeper than its parent. The origin is "began", "compressed", "undo" or "fork".
    """
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        before = last.get(epoch.session_id)
        is_fork = before is None and epoch.parent_id in depth
        above = depth.get(before or epoch.parent_id or "", 0)
        depth[epoch.id] = above + is_fork
        last[epoch.session_id] = epoch.id
        how = "undo" if epoch.undoes else "compressed" if before else "began"
        yield depth[epoch.id], "fork" if is_fork else how, epoch


# ---------------------------------------------------------------- show


@command
@argument("session")
@argument("reference", required=False)
@flag("--full", "With s2: its text and all its originals.")
@flag("--summaries", "List no masks.")
@flag("--live", "List only what is in the view now.")
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
    with open_ledger(tenant.store) as opened:
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
            text = _recall(opened, stored, tenant.store).read(str(target), MOST_TOKENS)
            print_answer(
                {"session": session, "reference": str(target), "text": text}, [text], as_json
            )


MOST_TOKENS, SAID_CHARS = 2_000, 240
"""Most tokens of an answer, a screen or two, and characters of a message in view."""


def _recall(opened: SqlStore, session: Session, store: str | None = None) -> Recall:
    """Return a session's Recall that prints the continuing command."""

    def reading(reference: str) -> str:
        first = reference.partition(",")[0]  # `show` takes one
        words = ["praison-compressor", "show", session.id, first]
        words += ["--store", store] if store and "@" not in store else []  # never a password
        is_default = session.namespace == CompressorConfig.namespace
        words += [] if is_default else ["--namespace", session.namespace]
        return shlex.join(words)

    count = TokenCounter(None).text
    return Recall(lambda: opened, lambda: session, count, turn_tokens=None, reading=reading)


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


# ---------------------------------------------------------------- search


@command
@argument("query")
@option("--session", "ID", "Search only this session.")
@option("--limit", "N", "Show at most N passages.", default=10)
@with_tenant
@AS_JSON
def search(query: str, session: str | None, limit: int, tenant: Tenant, as_json: bool) -> None:
    """Find messages of stored sessions by their words, best first.

    QUERY is words to find. Each session is searched as the agent's search tool searches it. `show
    SESSION REFERENCE` reads a reference. A message that was never compressed has none; `restore`
    writes it. With --json each message has the digest that `forget` takes.

    $ praison-compressor search "port 9090" --session audit --store ledger.db
    """
    if not distinct_words(query):
        raise Unusable(f"{one_line(query)!r}: expected words to find")
    with open_ledger(tenant.store) as opened:
        if session is not None:
            remembered_session(opened, tenant.namespace, session)
        hits = opened.search(tenant.namespace, query, session, limit)
        hit_sessions = {
            hit.session_id: opened.open(tenant.namespace, hit.session_id) for hit in hits
        }
        blocks: list[Block] = []
        for name, found in hit_sessions.items():
            session_hits = [hit for hit in hits if hit.session_id == name]
            blocks.append(Line(name, "bold"))
            if any(hit.entry for hit in session_hits):
                blocks.append(
                    _recall(opened, found, tenant.store).search(query, limit, MOST_TOKENS)
                )
            for message in (hit.message for hit in session_hits if not hit.entry):
                text = few_words(message_as_text(message), query_terms(query), SAID_CHARS)
                blocks.append(f"(not compressed) {message.get('role')}: {text}")
    value = [
        {**asdict(hit), "reference": _reference(hit, hit_sessions[hit.session_id])} for hit in hits
    ]
    print_answer(value, blocks or ["Nothing found."], as_json)


def _reference(hit: Hit, session: Session) -> str | None:
    hashes = [entry.hash for entry in session.entries]
    return str(Reference(hashes.index(hit.entry) + 1, hit.ordinal + 1)) if hit.entry else None


# ---------------------------------------------------------------- restore, verify


@command
@argument("session")
@option("--view", "FILE", "A view of it: originals replace its summaries.")
@option("--out", "FILE", "Write there; - is stdout.", default="-")
@with_tenant
@AS_JSON
def restore(session: str, view: str | None, out: str, tenant: Tenant, as_json: bool) -> None:
    """Write a session's transcript, as of its last request or `save`.

    With --view the command writes the transcript that the view represents. Secrets that the
    ledger masked stay masked.

    $ praison-compressor restore audit --store ledger.db --out whole.jsonl
    """
    with open_ledger(tenant.store) as opened:
        remembered_session(opened, tenant.namespace, session)
        compressor = ContextCompressor(CompressorConfig(namespace=tenant.namespace), store=opened)
        view_messages = None if view is None else load_transcript(view)
        messages = compressor.verbatim(view_messages, session_id=session)
    write_messages(out, messages, source=view or "-")
    differences = list(_differences(messages))
    if out == "-":
        for difference in differences:
            print_complaint(difference, kind="note: ")
        return
    value = {"session": session, "messages": len(messages), "out": out, "lacking": differences}
    written = f"{pluralize(len(messages), 'message')} written to {out}"
    print_answer(
        value, [written, *(Line(f"{difference}.", "yellow") for difference in differences)], as_json
    )


def _differences(messages: Sequence[Message]) -> Iterator[str]:
    """Yield how the messages differ from the originals."""
    summaries = sum(map(is_framed, messages))
    if summaries:
        yield f"{pluralize(summaries, 'summary', 'summaries')} left: not of this session's ledger"
    masked = masks_in(messages)
    if masked:
        yield f"{pluralize(masked, 'secret')} masked: the ledger never held more"


@command
@argument("session", required=False)
@STORE
@option("--namespace", "NAME", "Only this tenant.")
@AS_JSON
def verify(session: str | None, store: str | None, namespace: str | None, as_json: bool) -> None:
    """Compute every hash of the ledger again, and compare.

    Exits with code 1 when a hash differs.

    $ praison-compressor verify audit --store ledger.db
    """
    with open_ledger(store) as opened:
        if session is not None:
            namespace = namespace or CompressorConfig.namespace
            remembered_session(opened, namespace, session)
        faults = opened.verify(namespace, session)
        what = session or opened.place
    sound = f"Sound: every hash and every original of {what} agrees."
    shown: list[Block] = [Line(str(fault), "red") for fault in faults]
    print_answer({"sound": not faults, "faults": faults}, shown or [sound], as_json)
    if faults:
        raise click.exceptions.Exit(FOUND_FAULT)


# ---------------------------------------------------------------- forget


@command
@argument("target", required=False)
@flag("--yes", "Do not ask.")
@with_tenant
@AS_JSON
def forget(target: str | None, yes: bool, tenant: Tenant, as_json: bool) -> None:
    """Erase a session or a message, and every summary of it.

    TARGET is a session, or a message's digest sha256:... There is no way back. Every summary that
    covered an erased message goes too, and so do later summaries, whose writer was shown the erased
    ones. The chain keeps a tombstone and still verifies. A fork loses what it inherited. Without
    TARGET the command clears freed pages that an earlier run could not clear.

    $ praison-compressor forget audit --yes --store ledger.db
    """
    with open_ledger(tenant.store) as opened:
        if target is None:
            cleared = opened.clear_pages()
            line = "No freed page holds old bytes." if cleared else Line(_PAGES_LEFT, "yellow")
            print_answer({"pages_cleared": cleared}, [line], as_json)
            return
        # A target that does not exist is an error before any question.
        if target.startswith("sha256:"):
            opened.check_message(tenant.namespace, target)
        else:
            remembered_session(opened, tenant.namespace, target)
        question = f"Erase {one_line(target)} for good, and with it what its forks inherited?"
        if not yes and not click.confirm(question, err=True):
            raise Unusable("nothing was erased")
        from ..praisonai.agent_ledger import default_host, erase

        erasure = erase(opened, tenant.namespace, target, default_host())
    print_answer({**asdict(erasure.erased), "left": erasure.left}, _erasure_lines(erasure), as_json)


_PAGES_LEFT = "Freed pages could not be cleared yet; run `forget` without a target later."


def _erasure_lines(erasure: Forgotten) -> Iterator[Block]:
    erased = erasure.erased
    messages = pluralize(erased.messages, "message")
    yield f"Erased: {messages}, {pluralize(erased.segments, 'segment')}."
    for name in erased.still_in:
        held = "holds some of the same messages itself, or was forked from it and lacks them now"
        yield Line(f"Session {name} {held}.", "yellow")
    for sentence in erasure.left:
        yield Line(f"Left: {sentence}.", "yellow")
    if not erased.pages_cleared:
        yield Line(_PAGES_LEFT, "yellow")
