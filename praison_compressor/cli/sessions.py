"""The commands that look into a store: sessions, their lineage, their segments, their words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import CompressorConfig
from ..errors import CompressorError, StoreUnavailable
from ..ledger.segments import Entry, Epoch, Segment
from ..messages import Message, text_of, tool_calls_of
from ..messages.display import excerpt, in_words, one_line, when
from ..summaries.prompts import rendering
from ..tokens.models import input_price
from ..view.frame import unframe
from .failures import Unusable, guarded
from .options import AsJson, ForModel, Namespace, Store
from .report.life import lines
from .terminal import Screen, number

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

__all__ = [
    "Out",
    "SessionArgument",
    "default_of",
    "entries_of",
    "lineage",
    "open_at",
    "search",
    "sessions",
    "show",
    "status",
]


# -------------------------------------------------------------- stores


@contextlib.contextmanager
def open_at(url: str | None, *, new: bool = False) -> Iterator[SqlStore]:
    """The store at `url`, else where the environment says, else in the user's data directory.

    An encrypted one with the key in the environment: on a command line others would read it. With
    `new` a file that is not there is made.

    Raises:
        StoreUnavailable: there is no such file; a mistyped path must not be a sound, empty store.
    """
    from ..ledger.sql.store import open_store

    config = CompressorConfig(store_url=url).with_environment()
    store = open_store(config.store_url or default_of(config), key=config.store_key)
    if not new and not store.is_there():
        raise StoreUnavailable(f"{store.place}: there is no such file; check --store")
    try:
        yield store
    finally:
        store.close()


def default_of(config: CompressorConfig) -> Path:
    """The file of agents that were told no store and whose host keeps their sessions."""
    from ..ledger.sql.database import default_path

    plain = default_path()
    return default_path(encrypted=True) if config.store_key and not plain.exists() else plain


def _session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the store on the command line, for a shell that completes."""
    given = context.params
    try:
        with open_at(given.get("store")) as opened:
            found = opened.sessions(given.get("namespace") or "default")
    except (CompressorError, ModuleNotFoundError):
        return []  # a shell that completes has nowhere to say what is wrong
    names = (info.id for info in found if info.id.startswith(incomplete))
    return [name for name in names if name == one_line(name)]  # a shell prints them as they are


SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Its stable id, or any of its epochs'.",
        autocompletion=_session_ids,
    ),
]


Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write there; - is standard output.")
]


def entries_of(store: SqlStore, namespace: str, session: str) -> tuple[Entry, ...]:
    """The session's ledger.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    store.lineage(namespace, session)  # opening a name that nobody has would not be an error
    return store.open(namespace, session).entries


# -------------------------------------------------------------- ledgers


@guarded
def sessions(
    store: Store = None, namespace: Namespace = "default", as_json: AsJson = False
) -> None:
    """List the sessions of a store, the last used first."""
    screen = Screen()
    with open_at(store, new=True) as opened:
        found = opened.sessions(namespace)
        place, others = opened.place, [] if found else opened.namespaces()
    if as_json:
        screen.json([asdict(info) for info in found])
        return
    if not found:
        screen.say(f"No sessions in namespace {namespace!r} of {place}.")
        screen.say(_where_else(others))
        return
    screen.table(
        ["session", "parent", "compressions#", "archived#", "last used"],
        [
            [
                info.id,
                info.parent_id or "-",
                number(info.compressions),
                number(info.messages),
                when(info.updated) or "-",
            ]
            for info in found
        ],
    )


def _where_else(namespaces: Sequence[str]) -> str:
    """What to do where a namespace has no sessions."""
    if namespaces:
        return f"There are some in: {', '.join(namespaces)} (--namespace NAME)."
    return (
        "A session is stored when it is first compressed: by an agent with "
        "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
        "praison-compressor compress FILE --store URL --session ID."
    )


@guarded
def lineage(
    session: SessionArgument,
    forks: Annotated[
        bool, typer.Option("--forks", help="The whole family, with what was forked from it.")
    ] = False,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Show a session's chain of epochs, root first: each compression opened one."""
    screen = Screen()
    with open_at(store) as opened:
        read = opened.tree if forks else opened.lineage
        epochs = read(namespace, session)
    if as_json:
        screen.json([asdict(epoch) for epoch in epochs])
        return
    for line in _drawn(epochs):
        screen.say(line)


def _drawn(epochs: Sequence[Epoch]) -> Iterator[str]:
    for line in lines(epochs):
        epoch = line.epoch
        yield f"{'    ' * line.depth}{epoch.id}  ({line.how} {when(epoch.created) or '-'})"


@guarded
def show(
    session: SessionArgument,
    segment: Annotated[
        int | None,
        typer.Option("--segment", metavar="N", help="The text of this segment, counted from 1."),
    ] = None,
    originals: Annotated[
        bool, typer.Option("--originals", help="With --segment: the messages it stands for too.")
    ] = False,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="The whole transcript instead, word for word.")
    ] = False,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Show what a session's ledger holds: its segments, or one of them in full.

    With --verbatim every message as of the last compression, without a summary among them.
    """
    if verbatim and segment is not None:
        raise Unusable("--verbatim and --segment: one of them")
    screen = Screen()
    with open_at(store) as opened:
        entries = entries_of(opened, namespace, session)
        if verbatim:
            whole = opened.transcript(opened.open(namespace, session))
            _print_transcript(screen, whole, as_json=as_json)
            return
        if segment is None:
            _print_segments(screen, session, entries, as_json=as_json)
            return
        if not 1 <= segment <= len(entries):
            raise Unusable(f"{session}: no segment {segment}, there are {len(entries)}")
        entry = entries[segment - 1]
        snapshot = opened.open(namespace, session)
        messages = opened.originals(snapshot, entry) if originals else None
    _print_segment(screen, segment, entry, messages, as_json=as_json)


def _print_transcript(screen: Screen, messages: Sequence[Message], *, as_json: bool) -> None:
    if as_json:
        screen.json(messages)
        return
    for n, message in enumerate(messages):
        screen.say(f"--- {n} {message.get('role')}", "bold")
        screen.say(in_words(message))


def _print_segments(
    screen: Screen, session: str, entries: Sequence[Entry], *, as_json: bool
) -> None:
    if as_json:
        screen.json([_segment_json(n, entry) for n, entry in enumerate(entries, 1)])
        return
    if not entries:
        screen.say(f"{session}: nothing was compressed yet.")
        return
    rows = []
    for n, entry in enumerate(entries, 1):
        found = entry.segment
        if entry.forgotten:
            rows.append([str(n), "forgotten", "-", "-", "-", "-", ""])
            continue
        begins = excerpt(unframe(found.rendered) or text_of(found.rendered), 60)
        rows.append(
            [
                str(n),
                found.kind,
                found.model or found.method,
                number(len(found.run)),
                number(found.source_tokens),
                number(found.tokens),
                begins,
            ]
        )
    columns = ["no.#", "kind", "by", "messages#", "tokens before#", "tokens after#", "begins"]
    screen.table(columns, rows)


def _segment_json(n: int, entry: Entry) -> dict[str, Any]:
    if entry.forgotten:
        return {"segment": n, "epoch": entry.epoch, "hash": entry.hash, "forgotten": True}
    return {
        "segment": n,
        "epoch": entry.epoch,
        "hash": entry.hash,
        "forgotten": False,
        **asdict(entry.segment),
    }


def _print_segment(
    screen: Screen, n: int, entry: Entry, messages: list[Message] | None, *, as_json: bool
) -> None:
    if as_json:
        screen.json({**_segment_json(n, entry), "originals": messages})
        return
    if entry.forgotten:
        screen.say(f"Segment {n} was forgotten; only its link in the chain is left.")
        return
    found = entry.segment
    title = f"segment {n}: {len(found.run)} messages, {found.model or found.method}"
    screen.panel(title, text_of(found.rendered), "yellow")
    if messages is not None:
        screen.panel(f"the {len(messages)} originals", "\n\n".join(rendering(messages)))


@guarded
def status(
    session: SessionArgument,
    store: Store = None,
    namespace: Namespace = "default",
    for_model: ForModel = None,
    as_json: AsJson = False,
) -> None:
    """Show where a stored session stands: its epoch, what was represented, what that cost.

    With --for-model also what each later request costs less, at that model's listed input price.
    """
    screen = Screen()
    with open_at(store) as opened:
        entries = [e.segment for e in entries_of(opened, namespace, session) if not e.forgotten]
        found = opened.open(namespace, session)
        usage = opened.usage(namespace, session)
        archived = len(opened.archived(namespace, session))
        epochs = len(opened.lineage(namespace, found.id))
    saved = sum(segment.source_tokens - segment.tokens for segment in _standing(entries))
    price = input_price(for_model)
    numbers = {
        "session": found.id,
        "epoch": found.tip,
        "parent": found.parent,
        "compressions": epochs - 1,
        "summaries": sum(segment.kind == "summary" for segment in entries),
        "masks": sum(segment.kind != "summary" for segment in entries),
        "archived_messages": archived,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "tokens_saved_per_request": saved,
        "cost_saved_per_request": None if price is None else saved * price,
    }
    if as_json:
        screen.json(numbers)
        return
    for name, value in numbers.items():
        shown = "-" if value is None else number(value) if isinstance(value, int) else str(value)
        screen.say(f"{name.replace('_', ' '):<24} {shown}")


def _standing(entries: Sequence[Segment]) -> list[Segment]:
    """Those of which no later one has taken over all messages."""
    found: list[Segment] = []
    for new in entries:
        run = set(new.run)
        found = [old for old in found if not run.issuperset(old.run)] + [new]
    return found


@guarded
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to find.")],
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only in this session.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many.")] = 10,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Find messages of stored sessions by their words, best first."""
    screen = Screen()
    with open_at(store) as opened:
        hits = opened.search(namespace, query, session, limit)
    if as_json:
        screen.json([asdict(hit) for hit in hits])
        return
    if not hits:
        screen.say("Nothing found.")
        return
    for hit in hits:
        who = str(hit.message.get("role"))
        calls = ", ".join(call.name for call in tool_calls_of(hit.message))
        screen.say(f"{hit.session_id}  {who}{' calls ' + calls if calls else ''}", "bold")
        screen.say(f"    {hit.snippet}")
        screen.say(f"    {hit.digest}", "dim")
