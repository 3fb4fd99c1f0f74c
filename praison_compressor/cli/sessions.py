"""The commands that look into a store: sessions, their lineage, their segments, their words."""

from __future__ import annotations

import functools
import itertools
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..ledger.layout import lines_of
from ..ledger.passages import passages, terms
from ..ledger.recall import Recall
from ..ledger.references import HOW, Reference, parse
from ..ledger.segments import FORGOTTEN, Entry, Epoch, in_force
from ..ledger.words import Hit
from ..messages import text_of
from ..messages.display import excerpt, in_words, one_line, when
from ..summaries.prompts import rendering
from ..tokens.counter import TokenCounter
from ..view.frame import unframe
from . import options as opt
from .terminal import Line, Piece, Table, Unusable, answer, counted, number, titled

if TYPE_CHECKING:
    from ..ledger.sql.reading import SessionInfo


def sessions(
    store: opt.StoreUrl = None, namespace: opt.Namespace = opt.DEFAULT, as_json: opt.AsJson = False
) -> None:
    """List the sessions of a store, the last used first.

    $ praison-compressor sessions --store ledger.db
    """
    with opt.ledger(store) as opened:
        found = opened.sessions(namespace)
        place, others = opened.place, [] if found else opened.namespaces()
    rows = [
        (info.id, info.parent_id, _compressions(info), info.messages, when(info.updated) or "-")
        for info in found
    ]
    columns = ("session", "parent", "compressions#", "archived#", "last used")
    table = Table(columns, rows, spare=("parent", "archived#"))
    elsewhere = f"There are some in: {', '.join(others)} (--namespace NAME)."
    none = [f"No sessions in namespace {namespace!r} of {place}."]
    none.append(elsewhere if others else opt.STORED_WHEN)
    answer(found, [table] if found else none, as_json)


def _compressions(info: SessionInfo) -> str:
    back = f", {number(info.taken_back)} taken back" if info.taken_back else ""
    return number(info.compressions) + back


# ---------------------------------------------------------------- lineage


def lineage(
    session: opt.SessionId,
    forks: Annotated[bool, opt.flag("--forks", "Include its forks.")] = False,
    store: opt.StoreUrl = None,
    namespace: opt.Namespace = opt.DEFAULT,
    as_json: opt.AsJson = False,
) -> None:
    """Show a session's chain of epochs, root first.

    Each compression or undo opened one.

    $ praison-compressor lineage audit --forks --store ledger.db
    """
    with opt.ledger(store) as opened:
        opt.existing(opened, namespace, session)
        epochs = (opened.tree if forks else opened.lineage)(namespace, session)
    drawn = (
        f"{'    ' * depth}{epoch.id}  ({how} {when(epoch.created) or '-'})"
        for depth, how, epoch in family(epochs)
    )
    answer(epochs, drawn, as_json)


def family(epochs: Iterable[Epoch]) -> Iterator[tuple[int, str, Epoch]]:
    """Yield depth, origin and epoch for each epoch, in order.

    A fork is one deeper than its parent. The origin is "began", "compressed", "took one back" or
    "fork".
    """
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        before = last.get(epoch.session_id)
        is_fork = before is None and epoch.parent_id in depth
        above = depth.get(before or epoch.parent_id or "", 0)
        depth[epoch.id] = above + is_fork
        last[epoch.session_id] = epoch.id
        how = "took one back" if epoch.undoes else "compressed" if before else "began"
        yield depth[epoch.id], "fork" if is_fork else how, epoch


# ---------------------------------------------------------------- show


def show(
    session: opt.SessionId,
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="REFERENCE",
            help="s2 (an outline), s2.14 (a message), s2.14:900-940 (lines of it).",
        ),
    ] = None,
    full: Annotated[bool, opt.flag("--full", "With s2: its text and all its originals.")] = False,
    summaries: Annotated[bool, opt.flag("--summaries", "List no masks.")] = False,
    live: Annotated[bool, opt.flag("--live", "List only what is in the view now.")] = False,
    store: opt.StoreUrl = None,
    namespace: opt.Namespace = opt.DEFAULT,
    as_json: opt.AsJson = False,
) -> None:
    """List a session's segments, or show what a reference names.

    References are those that summaries, `search` and `report` print. A long message comes in
    parts, each with the reference to go on by; `s2 --full` has everything at once.

    $ praison-compressor show audit s1.2 --store ledger.db
    """
    with opt.ledger(store) as opened:
        found = opt.existing(opened, namespace, session)
        entries = found.entries
        if reference is None:
            if full:
                raise Unusable("--full needs a segment, such as s2")
            _list_segments(session, entries, summaries=summaries, live=live, as_json=as_json)
            return
        named = _named(session, reference, entries)
        entry = entries[named.segment - 1]
        if entry.forgotten or (full and named.message is None):
            _show_segment(named.segment, entry, opened.originals(found, entry), as_json)
            return
        if full:
            raise Unusable(f"{reference} --full: expected a segment, such as s{named.segment}")
        reading = functools.partial(_reading, session, store, namespace)
        count = TokenCounter(None).text
        recall = Recall(lambda: opened, lambda: found, count, turn_tokens=None, reading=reading)
        text = recall.read(reference, 2_000)
    answer({"session": session, "reference": str(named), "text": text}, [text], as_json)


def _reading(session: str, store: str | None, namespace: str, reference: str) -> str:
    """Return the command that reads on at a reference, without any password."""
    words = ["praison-compressor", "show", session, reference]
    if store is not None and "@" not in store:
        words += ["--store", store]
    if namespace != opt.DEFAULT:
        words += ["--namespace", namespace]
    return shlex.join(words)


def _named(session: str, reference: str, entries: Sequence[Entry]) -> Reference:
    """Parse a reference that the session has.

    Raises:
        Unusable: it is no reference, or the session has no such segment or message.
    """
    named = parse(reference)
    if named is None:
        raise Unusable(f"{one_line(reference)!r} is no reference; {HOW}")
    if not 1 <= named.segment <= len(entries):
        there = counted(len(entries), "segment")
        raise Unusable(f"{session}: no segment s{named.segment}, there are {there}")
    entry = entries[named.segment - 1]
    count = len(entry.segment.run)
    if named.message is not None and not entry.forgotten and not 1 <= named.message <= count:
        there = counted(count, "message")
        raise Unusable(f"{session}: no message {named}, s{named.segment} has {there}")
    return named


def in_view(entries: Sequence[Entry]) -> list[bool]:
    """Return which entries are in the view: not undone, not folded."""
    later: list[frozenset[str]] = []
    found: list[bool] = []
    for segment in reversed(in_force(entries)):
        run = frozenset(segment.run)
        is_gone = segment.kind == FORGOTTEN.kind or any(run <= other for other in later)
        found.append(not is_gone)
        later += [run] if run else []
    return found[::-1]


def _list_segments(
    session: str, entries: Sequence[Entry], *, summaries: bool, live: bool, as_json: bool
) -> None:
    listed = [
        (n, entry, standing)
        for n, (entry, standing) in enumerate(zip(entries, in_view(entries), strict=True), 1)
        if (standing or not live) and (entry.segment.kind == "summary" or not summaries)
    ]
    value = [{**_segment_json(n, entry), "in_view": standing} for n, entry, standing in listed]
    rows = [
        _row([(n, entry) for n, entry, _ in run], kind)
        for kind, group in itertools.groupby(listed, _kind)
        for run in (_runs(list(group), kind))
    ]
    columns = ("reference", "kind", "by", "messages#", "tokens before#", "tokens after#", "begins")
    table = Table(columns, rows, spare=("by", "messages#", "tokens before#", "tokens after#"))
    answer(value, [table if rows else f"{session}: nothing was compressed yet."], as_json)


Listed = tuple[int, Entry, bool]


def _kind(listed: Listed) -> str:
    """Return the kind of a segment, and what became of it."""
    _, entry, standing = listed
    if entry.forgotten:
        return "forgotten"
    kind = entry.segment.kind
    return kind if standing or kind == "undo" else f"{kind}, gone"


def _runs(group: list[Listed], kind: str) -> list[list[Listed]]:
    """Return the rows of neighbours of a kind: masks share one."""
    return [group] if kind.startswith(("mask", "excerpt")) else [[each] for each in group]


def _row(run: Sequence[tuple[int, Entry]], kind: str) -> tuple[str | int | None, ...]:
    (first, entry), (last, _) = run[0], run[-1]
    name = f"s{first}" if first == last else f"s{first} to s{last}"
    if entry.forgotten:
        return name, kind, None, None, None, None, ""
    segments = [each.segment for _, each in run]
    text = unframe(entry.segment.rendered) or text_of(entry.segment.rendered)
    return (
        name,
        kind,
        entry.segment.model or entry.segment.method,
        sum(len(segment.run) for segment in segments),
        sum(segment.source_tokens for segment in segments),
        sum(segment.tokens for segment in segments),
        excerpt(text, 60),
    )


def _segment_json(n: int, entry: Entry) -> dict[str, Any]:
    known = {
        "reference": f"s{n}",
        "epoch": entry.epoch,
        "hash": entry.hash,
        "forgotten": entry.forgotten,
    }
    return known if entry.forgotten else known | asdict(entry.segment)


def _show_segment(n: int, entry: Entry, messages: Sequence[Any] | None, as_json: bool) -> None:
    value = {**_segment_json(n, entry), "originals": messages}
    if entry.forgotten:
        gone = f"Segment s{n} was forgotten; only its link in the chain is left."
        answer(value, [gone], as_json)
        return
    found = entry.segment
    title = f"s{n}: {counted(len(found.run), 'message')}, {found.model or found.method}"
    shown = [*titled(title, text_of(found.rendered))]
    if messages is not None:
        originals = "\n\n".join(rendering(messages))
        shown += titled(f"the {counted(len(messages), 'original')}", originals)
    answer(value, shown, as_json)


# ---------------------------------------------------------------- search


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to find.")],
    session: Annotated[str | None, opt.value("ID", "Only in this session.")] = None,
    limit: Annotated[int, opt.count("N", "At most N hits.")] = 10,
    store: opt.StoreUrl = None,
    namespace: opt.Namespace = opt.DEFAULT,
    as_json: opt.AsJson = False,
) -> None:
    """Find messages of stored sessions by their words, best first.

    Each with the reference that `show SESSION REFERENCE` reads, and the digest that `forget` takes;
    what was never compressed has no reference yet: `restore` has it.

    $ praison-compressor search "port 9090" --session audit --store ledger.db
    """
    with opt.ledger(store) as opened:
        if session is not None:
            opt.existing(opened, namespace, session)
        hits = opened.search(namespace, query, session, limit)
        names = {hit.session_id for hit in hits if hit.entry}
        entries = {name: opened.open(namespace, name).entries for name in names}
    shown: list[Piece] = []
    value = []
    for hit in hits:
        where = _where(hit, entries.get(hit.session_id, ()), query)
        value.append({**asdict(hit), "reference": where})
        title = f"{hit.session_id} {where or '(not compressed)'}"
        shown.append(Line(f"{title}  {hit.message.get('role')}", "bold"))
        shown += [f"    {hit.snippet}", Line(f"    {hit.digest}", "dim")]
    answer(value, shown or ["Nothing found."], as_json)


def _where(hit: Hit, entries: Sequence[Entry], query: str) -> str | None:
    """Return the reference of a hit, with its best lines, or None."""
    segment = next((n for n, entry in enumerate(entries, 1) if entry.hash == hit.entry), None)
    if segment is None:
        return None
    found = Reference(segment, hit.ordinal + 1)
    lines = lines_of(in_words(hit.message))
    best = next(iter(passages(lines, terms(query), 1)), None)
    if best is None or best.last - best.first + 1 == len(lines):
        return str(found)
    return str(found.lines(best.first, best.last))
