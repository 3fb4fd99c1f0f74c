"""The commands that look into a store: sessions, their lineage, their segments, their words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..ledger.segments import Entry, Epoch, Segment, Session, Usage
from ..messages import text_of
from ..messages.display import excerpt, when
from ..summaries.prompts import rendering
from ..tokens.models import input_price
from ..view.frame import unframe
from .options import ForModel, Place, SessionId, command, flag, option
from .terminal import Answer, Line, Panel, Piece, Table, Unusable

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore


@command
def sessions(place: Place) -> Answer:
    """List the sessions of a store, the last used first."""
    with place.open(new=True) as store:
        found = store.sessions(place.namespace)
        where, others = store.place, [] if found else store.namespaces()
    if not found:
        none = f"No sessions in namespace {place.namespace!r} of {where}."
        elsewhere = f"There are some in: {', '.join(others)} (--namespace NAME)."
        return Answer([], [none, elsewhere if others else STORED_WHEN])
    rows = [
        (info.id, info.parent_id, info.compressions, info.messages, when(info.updated) or "-")
        for info in found
    ]
    columns = ("session", "parent", "compressions#", "archived#", "last used")
    return Answer(found, [Table(columns, rows)])


STORED_WHEN = (
    "A session is stored when it is first compressed: by an agent with "
    "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
    "praison-compressor compress FILE --store URL --session ID."
)


# ---------------------------------------------------------------- lineage


@command
def lineage(
    session: SessionId,
    place: Place,
    forks: Annotated[bool, flag("--forks", "With what was forked from it.")] = False,
) -> Answer:
    """Show a session's chain of epochs, root first: each compression opened one."""
    with place.open() as store:
        read = store.tree if forks else store.lineage
        epochs = read(place.namespace, session)
    drawn = (
        f"{'    ' * one.depth}{one.epoch.id}  ({one.how} {when(one.epoch.created) or '-'})"
        for one in family(epochs)
    )
    return Answer(epochs, drawn)


class Relative(NamedTuple):
    """One epoch of a family: how far it is moved in, and how it came about."""

    depth: int
    how: str
    """ "began", "compressed" or "fork"."""
    epoch: Epoch


def family(epochs: Iterable[Epoch]) -> Iterator[Relative]:
    """The epochs in their order: each after its parent, a fork moved in."""
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        before = last.get(epoch.session_id)
        is_fork = before is None and epoch.parent_id in depth
        above = depth.get(before or epoch.parent_id or "", 0)
        depth[epoch.id] = above + is_fork
        last[epoch.session_id] = epoch.id
        how = "compressed" if before else "fork" if is_fork else "began"
        yield Relative(depth[epoch.id], how, epoch)


# ---------------------------------------------------------------- show


@command
def show(
    session: SessionId,
    place: Place,
    segment: Annotated[int | None, option("--segment", "N", "This one's text, from 1.")] = None,
    originals: Annotated[bool, flag("--originals", "With --segment: what it stands for.")] = False,
) -> Answer:
    """Show what a session's ledger holds: its segments, or one of them in full."""
    with place.open() as store:
        found = existing(store, place.namespace, session)
        entries = found.entries
        if segment is None:
            return _segments(session, entries)
        if not 1 <= segment <= len(entries):
            raise Unusable(f"{session}: no segment {segment}, there are {len(entries)}")
        entry = entries[segment - 1]
        return _segment(segment, entry, store.originals(found, entry) if originals else None)


def existing(store: SqlStore, namespace: str, session: str) -> Session:
    """The session as it stands."""
    store.lineage(namespace, session)  # opening a name that nobody has would not be an error
    return store.open(namespace, session)


def _segments(session: str, entries: Sequence[Entry]) -> Answer:
    rows: list[tuple[str | int | None, ...]] = []
    for n, entry in enumerate(entries, 1):
        if entry.forgotten:
            rows.append((str(n), "forgotten", None, None, None, None, ""))
            continue
        found = entry.segment
        text = unframe(found.rendered) or text_of(found.rendered)
        by, begins = found.model or found.method, excerpt(text, 60)
        numbers = (len(found.run), found.source_tokens, found.tokens)
        rows.append((str(n), found.kind, by, *numbers, begins))
    columns = ("no.#", "kind", "by", "messages#", "tokens before#", "tokens after#", "begins")
    table = Table(columns, rows) if rows else f"{session}: nothing was compressed yet."
    return Answer([_segment_json(n, entry) for n, entry in enumerate(entries, 1)], [table])


def _segment_json(n: int, entry: Entry) -> dict[str, Any]:
    told = {"segment": n, "epoch": entry.epoch, "hash": entry.hash, "forgotten": entry.forgotten}
    return told if entry.forgotten else told | asdict(entry.segment)


def _segment(n: int, entry: Entry, messages: Sequence[Any] | None) -> Answer:
    value = {**_segment_json(n, entry), "originals": messages}
    if entry.forgotten:
        return Answer(value, [f"Segment {n} was forgotten; only its link in the chain is left."])
    found = entry.segment
    title = f"segment {n}: {len(found.run)} messages, {found.model or found.method}"
    shown = [Panel(title, text_of(found.rendered), "yellow")]
    if messages is not None:
        shown.append(Panel(f"the {len(messages)} originals", "\n\n".join(rendering(messages))))
    return Answer(value, shown)


# ---------------------------------------------------------------- status, search


@command
def status(session: SessionId, place: Place, for_model: ForModel = None) -> Answer:
    """Show where a stored session stands: its epoch, what was represented, what that cost.

    With --for-model also what each later request costs less, at that model's listed input price.
    """
    with place.open() as store:
        found = existing(store, place.namespace, session)
        archived = len(store.archived(place.namespace, session))
        epochs = store.lineage(place.namespace, found.id)
    own = {epoch.id for epoch in epochs if epoch.session_id == found.id}
    paid = (entry.segment.usage for entry in found.entries if entry.epoch in own)
    usage = sum(paid, Usage())
    segments = [entry.segment for entry in found.entries if not entry.forgotten]
    stand = itertools.compress(segments, standing(segments))
    saved = sum(segment.source_tokens - segment.tokens for segment in stand)
    price = input_price(for_model)
    numbers = {
        "session": found.id,
        "epoch": found.tip,
        "parent": found.parent,
        "compressions": len(epochs) - 1,
        "summaries": sum(segment.kind == "summary" for segment in segments),
        "masks": sum(segment.kind != "summary" for segment in segments),
        "archived_messages": archived,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "tokens_saved_per_request": saved,
        "cost_saved_per_request": None if price is None else saved * price,
    }
    told = {name: f"${v:.4f}" if isinstance(v, float) else v for name, v in numbers.items()}
    rows = [(name.replace("_", " "), value) for name, value in told.items()]
    return Answer(numbers, [Table(("", ""), rows)])


def standing(segments: Sequence[Segment]) -> list[bool]:
    """Of each segment whether it is in the view: no later one has taken over all its messages."""
    later: list[frozenset[str]] = []
    found = []
    for segment in reversed(segments):
        run = frozenset(segment.run)
        found.append(not any(run <= other for other in later))
        later.append(run)
    return found[::-1]


@command
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to find.")],
    place: Place,
    session: Annotated[str | None, option("--session", "ID", "Only in this session.")] = None,
    limit: Annotated[int, option("--limit", "N", "At most so many.")] = 10,
) -> Answer:
    """Find messages of stored sessions by their words, best first."""
    with place.open() as store:
        hits = store.search(place.namespace, query, session, limit)
    shown: list[Piece] = []
    for hit in hits:
        shown.append(Line(f"{hit.session_id}  {hit.message.get('role')}", "bold"))
        shown += [f"    {hit.snippet}", Line(f"    {hit.digest}", "dim")]
    return Answer(hits, shown or ["Nothing found."])
