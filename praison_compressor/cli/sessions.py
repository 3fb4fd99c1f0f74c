"""The commands that look into a store: sessions, their lineage, segments, words and rules."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import CompressorConfig
from ..facts import Domain, rules_in
from ..ledger.passages import lines_of, passages, terms
from ..ledger.recall import Recall
from ..ledger.references import HOW, Reference, parse
from ..ledger.segments import Entry, Epoch, Session, in_force
from ..ledger.words import Hit
from ..messages import read, text_of
from ..messages.display import excerpt, in_words, one_line, when
from ..summaries.prompts import rendering
from ..tokens.counter import TokenCounter
from ..view.frame import unframe
from .options import STORED_WHEN, Conversation, Place, SessionId, command, flag, option
from .terminal import Answer, Line, Piece, Table, Unusable, number, titled
from .transcripts import read_one

if TYPE_CHECKING:
    from ..ledger.sql.reading import SessionInfo
    from ..ledger.sql.store import SqlStore


@command
def sessions(place: Place) -> Answer:
    """List the sessions of a store, the last used first.

    $ praison-compressor sessions --store ledger.db
    """
    with place.open() as store:
        found = store.sessions(place.namespace)
        where, others = store.place, [] if found else store.namespaces()
    if not found:
        none = f"No sessions in namespace {place.namespace!r} of {where}."
        elsewhere = f"There are some in: {', '.join(others)} (--namespace NAME)."
        return Answer([], [none, elsewhere if others else STORED_WHEN])
    rows = [
        (info.id, info.parent_id, _counted(info), info.messages, when(info.updated) or "-")
        for info in found
    ]
    columns = ("session", "parent", "compressions#", "archived#", "last used")
    return Answer(found, [Table(columns, rows)])


def _counted(info: SessionInfo) -> str:
    back = f", {number(info.taken_back)} taken back" if info.taken_back else ""
    return number(info.compressions) + back


# ---------------------------------------------------------------- lineage


@command
def lineage(
    session: SessionId,
    place: Place,
    forks: Annotated[bool, flag("--forks", "With what was forked from it.")] = False,
) -> Answer:
    """Show a session's chain of epochs, root first: each compression, or taking back, opened one.

    $ praison-compressor lineage audit --forks --store ledger.db
    """
    with place.open() as store:
        read = store.tree if forks else store.lineage
        epochs = read(place.namespace, session)
    drawn = (
        f"{'    ' * depth}{epoch.id}  ({how} {when(epoch.created) or '-'})"
        for depth, how, epoch in family(epochs)
    )
    return Answer(epochs, drawn)


def family(epochs: Iterable[Epoch]) -> Iterator[tuple[int, str, Epoch]]:
    """The epochs in their order, each after its parent: how far it is moved in, as a fork is, and
    how it came about ("began", "compressed", "took one back" or "fork")."""
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


@command
def show(
    session: SessionId,
    place: Place,
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REFERENCE]",
            help="s2 (an outline), s2.14 (a message), s2.14:900-940 (lines of it).",
        ),
    ] = None,
    full: Annotated[bool, flag("--full", "With s2: its text, and all that it stands for.")] = False,
) -> Answer:
    """Show what a session's ledger holds: its segments, or what a reference names, word for word.

    References are those that summaries, `search` and `report` print. A long message comes in
    parts, each with the reference to go on by; `s2 --full` has everything at once.

    $ praison-compressor show audit s1.2 --store ledger.db
    """
    with place.open() as store:
        found = existing(store, place.namespace, session)
        entries = found.entries
        if reference is None:
            if full:
                raise Unusable("--full: of which segment? Name it, as s2")
            return _segments(session, entries)
        named = _named(session, reference, entries)
        entry = entries[named.segment - 1]
        if entry.forgotten or (full and named.message is None):
            return _segment(named.segment, entry, store.originals(found, entry))
        if full:
            raise Unusable(f"{reference} --full: it goes with a segment, s{named.segment}")
        tokens = TokenCounter(None)
        reading = functools.partial(_reading, session, place)
        recall = Recall(
            lambda: store, lambda: found, tokens.text, turn_tokens=None, reading=reading
        )
        text = recall.read(reference, 2_000)
    return Answer({"session": session, "reference": str(named), "text": text}, [text])


def _reading(session: str, place: Place, reference: str) -> str:
    """How this command reads on at a reference; a store that may have a password is not named."""
    words = ["praison-compressor", "show", session, reference]
    if place.store is not None and "@" not in place.store:
        words += ["--store", place.store]
    if place.namespace != CompressorConfig.namespace:
        words += ["--namespace", place.namespace]
    return shlex.join(words)


def _named(session: str, reference: str, entries: Sequence[Entry]) -> Reference:
    """What a reference names, where the session has it."""
    named = parse(reference)
    if named is None:
        raise Unusable(f"{one_line(reference)!r} is no reference; {HOW}")
    if not 1 <= named.segment <= len(entries):
        raise Unusable(f"{session}: no segment s{named.segment}, there are {len(entries)}")
    entry = entries[named.segment - 1]
    first, count = named.message, len(entry.segment.run)
    if first is None or entry.forgotten:
        return named
    if not 1 <= first <= count:
        raise Unusable(f"{session}: no message {named}, s{named.segment} has {count}")
    return named


def existing(store: SqlStore, namespace: str, session: str) -> Session:
    """The session as it stands."""
    store.lineage(namespace, session)  # opening a name that nobody has would not be an error
    return store.open(namespace, session)


def _segments(session: str, entries: Sequence[Entry]) -> Answer:
    rows: list[tuple[str | int | None, ...]] = []
    for n, (entry, stands) in enumerate(zip(entries, in_force(entries), strict=True), 1):
        if entry.forgotten:
            rows.append((f"s{n}", "forgotten", None, None, None, None, ""))
            continue
        found = entry.segment
        text = unframe(found.rendered) or text_of(found.rendered)
        by, begins = found.model or found.method, excerpt(text, 60)
        numbers = (len(found.run), found.source_tokens, found.tokens)
        kind = found.kind if stands is found or by == "undo" else f"{found.kind}, taken back"
        rows.append((f"s{n}", kind, by, *numbers, begins))
    columns = ("reference", "kind", "by", "messages#", "tokens before#", "tokens after#", "begins")
    table = Table(columns, rows) if rows else f"{session}: nothing was compressed yet."
    return Answer([_segment_json(n, entry) for n, entry in enumerate(entries, 1)], [table])


def _segment_json(n: int, entry: Entry) -> dict[str, Any]:
    told = {
        "reference": f"s{n}",
        "epoch": entry.epoch,
        "hash": entry.hash,
        "forgotten": entry.forgotten,
    }
    return told if entry.forgotten else told | asdict(entry.segment)


def _segment(n: int, entry: Entry, messages: Sequence[Any] | None) -> Answer:
    value = {**_segment_json(n, entry), "originals": messages}
    if entry.forgotten:
        return Answer(value, [f"Segment s{n} was forgotten; only its link in the chain is left."])
    found = entry.segment
    title = f"s{n}: {number(len(found.run))} messages, {found.model or found.method}"
    shown = [*titled(title, text_of(found.rendered))]
    if messages is not None:
        originals = "\n\n".join(rendering(messages))
        shown += titled(f"the {number(len(messages))} originals", originals)
    return Answer(value, shown)


# ---------------------------------------------------------------- search


@command
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to find.")],
    place: Place,
    session: Annotated[str | None, option("--session", "ID", "Only in this session.")] = None,
    limit: Annotated[int, option("--limit", "N", "At most so many.")] = 10,
) -> Answer:
    """Find messages of stored sessions by their words, best first.

    Each with the reference that `show SESSION REFERENCE` reads, and the digest that `forget` takes;
    what was never compressed has no reference yet: `restore` has it.

    $ praison-compressor search "port 9090" --session audit --store ledger.db
    """
    with place.open() as store:
        hits = store.search(place.namespace, query, session, limit)
        names = {hit.session_id for hit in hits if hit.entry}
        entries = {name: store.open(place.namespace, name).entries for name in names}
    shown: list[Piece] = []
    value = []
    for hit in hits:
        where = _where(hit, entries.get(hit.session_id, ()), query)
        value.append({**asdict(hit), "reference": where})
        title = f"{hit.session_id} {where or '(not compressed)'}"
        shown.append(Line(f"{title}  {hit.message.get('role')}", "bold"))
        shown += [f"    {hit.snippet}", Line(f"    {hit.digest}", "dim")]
    return Answer(value, shown or ["Nothing found."])


def _where(hit: Hit, entries: Sequence[Entry], query: str) -> str | None:
    """The reference of a hit, with the lines that match best where it has more."""
    number = next((n for n, entry in enumerate(entries, 1) if entry.hash == hit.entry), None)
    if number is None:
        return None
    found = Reference(number, hit.ordinal + 1)
    lines = lines_of(in_words(hit.message))
    best = next(iter(passages(lines, terms(query), 1)), None)
    if best is None or best.last - best.first + 1 == len(lines):
        return str(found)
    return str(found.lines(best.first, best.last))


# ---------------------------------------------------------------- rules


@command
def rules(
    what: Annotated[
        str, typer.Argument(metavar="SESSION|FILE", help="A session of the store, or a transcript.")
    ],
    place: Place,
    config: Annotated[CompressorConfig, ("host_prefixes", "rule_sources")],
    conversation: Conversation = None,
) -> Answer:
    """List the rules that bind the agent, who said each and where, and what lifted the others.

    Read from what the user said, and from documents that the agent loaded as instructions.

    $ praison-compressor rules talk.jsonl
    """
    if os.path.isfile(what):
        messages: Sequence[Any] = read(read_one(what, conversation)).messages
    else:
        with place.open() as store:
            messages = store.transcript(existing(store, place.namespace, what))
    found = rules_in(messages, domain=Domain.of(config))
    if not found:
        return Answer([], [f"{what}: no rules."])
    rows = [
        (rule.kind, rule.source, rule.since + 1, "" if rule.holds else "lifted", rule.text)
        for rule in found
    ]
    columns = ("kind", "who said it", "message#", "", "words")
    lifted = [
        f'Message {rule.until + 1} lifted "{one_line(rule.text)}": {one_line(rule.lifted_by)}'
        for rule in found
        if rule.until is not None
    ]
    return Answer([asdict(rule) for rule in found], [Table(columns, rows), *lifted])
