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
from ..ledger.segments import FORGOTTEN, Entry, Epoch, Session, in_force
from ..ledger.words import Hit, words
from ..messages import Message, text_of
from ..messages.display import counted, excerpt, in_words, one_line, when
from ..messages.secrets import masks_in
from ..recall.answers import Recall
from ..recall.layout import split_lines
from ..recall.matches import few_words
from ..recall.passages import query_terms
from ..recall.references import REFERENCE_HELP, Reference, parse_reference
from ..summaries.prompts import rendering
from ..tokens.counter import TokenCounter
from ..view.frame import is_framed, unframe
from . import parameters as par
from .terminal import FOUND_FAULT, Line, Piece, Table, Unusable, answer, complain, number, titled
from .transcripts import read_one, write

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore
    from ..ledger.stores import SessionInfo
    from ..praisonai.agent_ledger import Forgotten


@par.command
@par.tenant
@par.AS_JSON
def sessions(tenant: par.Tenant, as_json: bool) -> None:
    """List the sessions of a store, the last used first.

    $ praison-compressor sessions --store ledger.db
    """
    with par.ledger(tenant.store) as opened:
        found = opened.sessions(tenant.namespace)
        where, others = opened.place, [] if found else opened.namespaces()
    rows = [(i.id, i.parent_id, _compressions(i), when(i.updated) or "-") for i in found]
    table = Table(("session", "parent", "compressions#", "last used"), rows, spare=("parent",))
    elsewhere = f"Sessions exist in: {', '.join(others)} (--namespace NAME)."
    none = [f"No sessions in namespace {tenant.namespace!r} of {where}."]
    none.append(elsewhere if others else par.STORED_WHEN)
    answer(found, [table] if found else none, as_json)


def _compressions(info: SessionInfo) -> str:
    undone = f", {number(info.taken_back)} undone" if info.taken_back else ""
    return number(info.compressions) + undone


@par.command
@par.argument("session")
@par.switch("--forks", "Include its forks.")
@par.tenant
@par.AS_JSON
def lineage(session: str, forks: bool, tenant: par.Tenant, as_json: bool) -> None:
    """Show a session's chain of epochs, root first.

    Each compression and each undo opened one epoch.

    $ praison-compressor lineage audit --forks --store ledger.db
    """
    with par.ledger(tenant.store) as opened:
        par.existing(opened, tenant.namespace, session)
        epochs = (opened.tree if forks else opened.lineage)(tenant.namespace, session)
    drawn = (
        f"{'    ' * depth}{epoch.id}  ({how} {when(epoch.created) or '-'})"
        for depth, how, epoch in family(epochs)
    )
    answer(epochs, drawn, as_json)


def family(epochs: Iterable[Epoch]) -> Iterator[tuple[int, str, Epoch]]:
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


@par.command
@par.argument("session")
@par.argument("reference", required=False)
@par.switch("--full", "With s2: its text and all its originals.")
@par.switch("--summaries", "List no masks.")
@par.switch("--live", "List only what is in the view now.")
@par.tenant
@par.AS_JSON
def show(
    session: str,
    reference: str | None,
    full: bool,
    summaries: bool,
    live: bool,
    tenant: par.Tenant,
    as_json: bool,
) -> None:
    """List a session's segments, or show what a reference names.

    REFERENCE is s2 (an outline), s2.14 (a message) or s2.14:900-940 (its lines). Summaries,
    `search` and `report` print references. A long message comes in parts; each part prints the
    command that reads on.

    $ praison-compressor show audit s1.2 --store ledger.db
    """
    with par.ledger(tenant.store) as opened:
        found = par.existing(opened, tenant.namespace, session)
        named = None if reference is None else _named(session, reference, found.entries)
        entry = found.entries[named.segment - 1] if named else None
        if full and (named is None or named.message is not None):
            raise Unusable(f"{reference or ''} --full: expected a segment, such as s2".strip())
        if named is None or entry is None:
            _list_segments(session, found.entries, summaries=summaries, live=live, as_json=as_json)
        elif full or entry.forgotten:
            originals = opened.originals(found, entry)
            value = {**_segment_json(named.segment, entry), "originals": originals}
            answer(value, _whole_segment(named.segment, entry, originals), as_json)
        else:
            _check_line(opened, found, named)
            text = _recall(opened, found, tenant.store).read(str(named), MOST_TOKENS)
            answer({"session": session, "reference": str(named), "text": text}, [text], as_json)


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


def _named(session: str, reference: str, entries: Sequence[Entry]) -> Reference:
    """Parse a reference that the session has.

    Raises:
        Unusable: it is no reference, or the session has no such segment or message.
    """
    named = parse_reference(reference)
    if named is None:
        raise Unusable(f"{one_line(reference)!r} is no reference; {REFERENCE_HELP}")
    if not 1 <= named.segment <= len(entries):
        verb = "is" if len(entries) == 1 else "are"
        there = counted(len(entries), "segment")
        raise Unusable(f"{session}: no segment s{named.segment}, there {verb} {there}")
    entry = entries[named.segment - 1]
    count = len(entry.segment.run)
    if named.message is not None and not entry.forgotten and not 1 <= named.message <= count:
        there = counted(count, "message")
        raise Unusable(f"{session}: no message {named}, s{named.segment} has {there}")
    return named


def _check_line(store: SqlStore, session: Session, named: Reference) -> None:
    """Raise `Unusable` if a message has fewer lines than a reference names."""
    if named.line is None or named.message is None:
        return
    entry = session.entries[named.segment - 1]
    message = (store.originals(session, entry, named.messages) or [])[named.message - 1]
    lines = len(split_lines(in_words(message)))
    if named.line > lines:
        where = named.of_message(named.message)
        raise Unusable(f"{session.id}: no line {named}, {where} has {counted(lines, 'line')}")


IN_VIEW, FOLDED, UNDONE, GONE = "in view", "folded", "undone", "forgotten"


def states(entries: Sequence[Entry]) -> list[str]:
    """Return each entry's state: in view, folded, undone or forgotten."""
    later: list[frozenset[str]] = []
    found: list[str] = []
    for entry, segment in zip(reversed(entries), reversed(in_force(entries)), strict=True):
        run = frozenset(segment.run)
        if entry.forgotten:
            found.append(GONE)
        elif segment.kind == FORGOTTEN.kind:
            found.append(UNDONE)
        else:
            found.append(FOLDED if any(run <= other for other in later) else IN_VIEW)
        later += [run] if run else []
    return found[::-1]


def _list_segments(
    session: str, entries: Sequence[Entry], *, summaries: bool, live: bool, as_json: bool
) -> None:
    """List segments; neighbouring masks share a row, and so do forgotten segments."""
    numbered = zip(itertools.count(1), entries, states(entries))
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
        none = f"{session}: {counted(len(entries), 'segment')}, none of this kind."
    answer(value, [Table(columns, rows, spare=("by",)) if rows else none], as_json)


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
    segments = [each.segment for _, each, _ in run]
    text = unframe(entry.segment.rendered) or text_of(entry.segment.rendered)
    messages = sum(len(segment.run) for segment in segments)
    before = sum(segment.source_tokens for segment in segments)
    after = sum(segment.tokens for segment in segments)
    by = "user" if kind in ("keep", "undo") else entry.segment.model or entry.segment.method
    return name, kind, by, messages, before, after, excerpt(text, 60)


def _segment_json(n: int, entry: Entry) -> dict[str, Any]:
    known: dict[str, Any] = {"reference": f"s{n}", "forgotten": entry.forgotten}
    known |= {"epoch": entry.epoch, "hash": entry.hash}
    return known if entry.forgotten else known | asdict(entry.segment)


def _whole_segment(n: int, entry: Entry, messages: Sequence[Any] | None) -> Iterator[Piece]:
    """Yield the text of a segment, then its originals."""
    if entry.forgotten:
        yield f"Segment s{n} was forgotten; only its link in the chain is left."
        return
    found = entry.segment
    title = f"s{n}: {counted(len(found.run), 'message')}, {found.model or found.method}"
    yield from titled(title, text_of(found.rendered))
    if messages is not None:
        originals = "\n\n".join(rendering(messages))
        yield from titled(f"the {counted(len(messages), 'original')}", originals)


# ---------------------------------------------------------------- search


@par.command
@par.argument("query")
@par.option("--session", "ID", "Search only this session.")
@par.option("--limit", "N", "Show at most N passages.", default=10)
@par.tenant
@par.AS_JSON
def search(query: str, session: str | None, limit: int, tenant: par.Tenant, as_json: bool) -> None:
    """Find messages of stored sessions by their words, best first.

    QUERY is words to find. Each session is searched as the agent's search tool searches it. `show
    SESSION REFERENCE` reads a reference. A message that was never compressed has none; `restore`
    writes it. With --json each message has the digest that `forget` takes.

    $ praison-compressor search "port 9090" --session audit --store ledger.db
    """
    if not words(query):
        raise Unusable(f"{one_line(query)!r}: expected words to find")
    with par.ledger(tenant.store) as opened:
        if session is not None:
            par.remembered(opened, tenant.namespace, session)
        hits = opened.search(tenant.namespace, query, session, limit)
        found = {hit.session_id: opened.open(tenant.namespace, hit.session_id) for hit in hits}
        shown: list[Piece] = []
        for name, each in found.items():
            own = [hit for hit in hits if hit.session_id == name]
            shown.append(Line(name, "bold"))
            if any(hit.entry for hit in own):
                shown.append(_recall(opened, each, tenant.store).search(query, limit, MOST_TOKENS))
            for message in (hit.message for hit in own if not hit.entry):
                said = few_words(in_words(message), query_terms(query), SAID_CHARS)
                shown.append(f"(not compressed) {message.get('role')}: {said}")
    value = [{**asdict(hit), "reference": _reference(hit, found[hit.session_id])} for hit in hits]
    answer(value, shown or ["Nothing found."], as_json)


def _reference(hit: Hit, session: Session) -> str | None:
    hashes = [entry.hash for entry in session.entries]
    return str(Reference(hashes.index(hit.entry) + 1, hit.ordinal + 1)) if hit.entry else None


# ---------------------------------------------------------------- restore, verify


@par.command
@par.argument("session")
@par.option("--view", "FILE", "A view of it: originals replace its summaries.")
@par.option("--out", "FILE", "Write there; - is stdout.", default="-")
@par.tenant
@par.AS_JSON
def restore(session: str, view: str | None, out: str, tenant: par.Tenant, as_json: bool) -> None:
    """Write a session's transcript, as of its last compression.

    With --view the command writes the transcript that the view represents. Secrets that the
    ledger masked stay masked.

    $ praison-compressor restore audit --store ledger.db --out whole.jsonl
    """
    with par.ledger(tenant.store) as opened:
        par.remembered(opened, tenant.namespace, session)
        compressor = ContextCompressor(CompressorConfig(namespace=tenant.namespace), store=opened)
        given = None if view is None else read_one(view)
        messages = compressor.verbatim(given, session_id=session)
    write(out, messages, source=view or "-")
    lacking = list(_lacking(messages))
    if out == "-":
        for each in lacking:
            complain(each, kind="note: ")
        return
    value = {"session": session, "messages": len(messages), "out": out, "lacking": lacking}
    written = f"{counted(len(messages), 'message')} written to {out}"
    answer(value, [written, *(Line(f"{each}.", "yellow") for each in lacking)], as_json)


def _lacking(messages: Sequence[Message]) -> Iterator[str]:
    """Yield how the messages differ from the originals."""
    summaries = sum(map(is_framed, messages))
    if summaries:
        yield f"{counted(summaries, 'summary', 'summaries')} left: not of this session's ledger"
    masked = masks_in(messages)
    if masked:
        yield f"{counted(masked, 'secret')} masked: the ledger never held more"


@par.command
@par.argument("session", required=False)
@par.STORE
@par.option("--namespace", "NAME", "Only this tenant.")
@par.AS_JSON
def verify(session: str | None, store: str | None, namespace: str | None, as_json: bool) -> None:
    """Compute every hash of the ledger again, and compare.

    Exits with code 1 when a hash differs.

    $ praison-compressor verify audit --store ledger.db
    """
    with par.ledger(store) as opened:
        if session is not None:
            namespace = namespace or CompressorConfig.namespace
            par.remembered(opened, namespace, session)
        faults = opened.verify(namespace, session)
        what = session or opened.place
    sound = f"Sound: every hash and every original of {what} agrees."
    shown: list[Piece] = [Line(str(fault), "red") for fault in faults]
    answer({"sound": not faults, "faults": faults}, shown or [sound], as_json)
    if faults:
        raise click.exceptions.Exit(FOUND_FAULT)


# ---------------------------------------------------------------- forget


@par.command
@par.argument("target", required=False)
@par.switch("--yes", "Do not ask.")
@par.tenant
@par.AS_JSON
def forget(target: str | None, yes: bool, tenant: par.Tenant, as_json: bool) -> None:
    """Erase a session or a message, and every summary of it.

    TARGET is a session, or a message's digest sha256:... There is no way back. Every summary that
    covered an erased message goes too, and so do later summaries, whose writer was shown the erased
    ones. The chain keeps a tombstone and still verifies. A fork loses what it inherited. Without
    TARGET the command clears freed pages that an earlier run could not clear.

    $ praison-compressor forget audit --yes --store ledger.db
    """
    with par.ledger(tenant.store) as opened:
        if target is None:
            cleared = opened.clear_pages()
            said = "No freed page holds old bytes." if cleared else Line(_PAGES_LEFT, "yellow")
            answer({"pages_cleared": cleared}, [said], as_json)
            return
        # A target that does not exist is an error before any question.
        if target.startswith("sha256:"):
            opened.check_message(tenant.namespace, target)
        else:
            par.remembered(opened, tenant.namespace, target)
        question = f"Erase {one_line(target)} for good, and with it what its forks inherited?"
        if not yes and not click.confirm(question, err=True):
            raise Unusable("nothing was erased")
        from ..praisonai.agent_ledger import default_host
        from ..praisonai.agent_ledger import forget as forget_in_host_too

        found = forget_in_host_too(opened, tenant.namespace, target, default_host())
    answer({**asdict(found.erased), "left": found.left}, _erased(found), as_json)


_PAGES_LEFT = "Freed pages could not be cleared yet; run `forget` without a target later."


def _erased(found: Forgotten) -> Iterator[Piece]:
    done = found.erased
    yield f"Erased: {counted(done.messages, 'message')}, {counted(done.segments, 'segment')}."
    for name in done.still_in:
        held = "holds some of the same messages itself, or was forked from it and lacks them now"
        yield Line(f"Session {name} {held}.", "yellow")
    for sentence in found.left:
        yield Line(f"Left: {sentence}.", "yellow")
    if not done.pages_cleared:
        yield Line(_PAGES_LEFT, "yellow")
