"""The commands that read a store: what was compressed, word for word, and what may be forgotten."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import CompressorConfig, ContextCompressor
from ..ledger import Entry, Epoch
from ..messages import Message, text_of, tool_calls_of
from ..prompts import rendering, unframe
from . import transcripts
from .failures import FOUND_FAULT, Unusable, guarded
from .options import AsJson, Namespace, Store
from .terminal import Screen, excerpt, number

if TYPE_CHECKING:
    from ..store import SqlStore

__all__ = ["COMMANDS"]

SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="Its stable id, or any of its epochs'.")
]
Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write there; - is standard output.")
]


@contextlib.contextmanager
def _open(url: str | None) -> Iterator[SqlStore]:
    """The store at `url`, else where the environment says, else in the user's data directory."""
    from ..store import open_store

    config = CompressorConfig(store_url=url).with_environment()
    store = open_store(config.store_url)
    try:
        yield store
    finally:
        store.close()


def _entries(store: SqlStore, namespace: str, session: str) -> tuple[Entry, ...]:
    """The session's ledger.

    Raises:
        SessionNotFound: no such session in this namespace.
    """
    store.lineage(namespace, session)  # opening a name that nobody has would not be an error
    return store.open(namespace, session).entries


def _when(seconds: float) -> str:
    if not seconds:
        return "-"
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


# ---------------------------------------------------------------- reading


@guarded
def sessions(
    store: Store = None, namespace: Namespace = "default", as_json: AsJson = False
) -> None:
    """List the sessions of a store, the last used first."""
    screen = Screen()
    with _open(store) as opened:
        found = opened.sessions(namespace)
        place = opened.place
    if as_json:
        screen.json([asdict(info) for info in found])
        return
    if not found:
        screen.say(f"No sessions in namespace {namespace!r} of {place}.")
        return
    screen.table(
        ["session", "parent", "compressions#", "archived#", "last used"],
        [
            [
                info.id,
                info.parent_id or "-",
                number(info.compressions),
                number(info.messages),
                _when(info.updated),
            ]
            for info in found
        ],
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
    with _open(store) as opened:
        read = opened.tree if forks else opened.lineage
        epochs = read(namespace, session)
    if as_json:
        screen.json([asdict(epoch) for epoch in epochs])
        return
    for line in _drawn(epochs):
        screen.say(line)


def _drawn(epochs: Sequence[Epoch]) -> Iterator[str]:
    """The epochs as a tree: an epoch that goes on with its session stays in its column."""
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        is_fork = epoch.parent_id in depth and last.get(epoch.session_id) is None
        goes_on = last.get(epoch.session_id)
        above = depth.get(goes_on or "", depth.get(epoch.parent_id or "", -1) + is_fork)
        depth[epoch.id] = max(0, above)
        last[epoch.session_id] = epoch.id
        mark = "fork" if is_fork else "compressed" if goes_on else "began"
        yield f"{'    ' * depth[epoch.id]}{epoch.id}  ({mark} {_when(epoch.created)})"


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
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Show what a session's ledger holds: its segments, or one of them in full."""
    screen = Screen()
    with _open(store) as opened:
        entries = _entries(opened, namespace, session)
        if segment is None:
            _print_segments(screen, session, entries, as_json=as_json)
            return
        if not 1 <= segment <= len(entries):
            raise Unusable(f"{session}: no segment {segment}, there are {len(entries)}")
        entry = entries[segment - 1]
        snapshot = opened.open(namespace, session)
        messages = opened.originals(snapshot, entry) if originals else None
    _print_segment(screen, segment, entry, messages, as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Show where a stored session stands: its epoch, what was represented, what that cost."""
    screen = Screen()
    with _open(store) as opened:
        entries = [e.segment for e in _entries(opened, namespace, session) if not e.forgotten]
        found = opened.open(namespace, session)
        usage = opened.usage(namespace, session)
        archived = len(opened.archived(namespace, session))
        epochs = len(opened.lineage(namespace, found.id))
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
    }
    if as_json:
        screen.json(numbers)
        return
    for name, value in numbers.items():
        shown = "-" if value is None else number(value) if isinstance(value, int) else str(value)
        screen.say(f"{name.replace('_', ' '):<18} {shown}")


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
    """Find archived messages by their words, best first."""
    screen = Screen()
    with _open(store) as opened:
        hits = opened.search(namespace, query, session, max(1, limit))
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


# ---------------------------------------------------------------- taking out


@guarded
def restore(
    session: SessionArgument,
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            metavar="FILE",
            help="A view of this session: its summaries give way to their originals.",
        ),
    ] = None,
    out: Out = "-",
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Write the original messages back, exactly as they came.

    Without --view every original in the session's archive; with it the whole transcript that the
    view stands for.
    """
    with _open(store) as opened:
        opened.lineage(namespace, session)
        if view is None:
            messages = opened.archived(namespace, session)
        else:
            compressor = ContextCompressor(CompressorConfig(namespace=namespace), store=opened)
            messages = compressor.verbatim(transcripts.read_one(view), session_id=session)
    transcripts.write(out or "-", messages, source=view or "-")
    if out not in (None, "-"):
        screen = Screen()
        if as_json:
            screen.json({"session": session, "messages": len(messages), "out": out})
        else:
            screen.say(f"{number(len(messages))} messages written to {out}")


@guarded
def verify(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="Only this session.")
    ] = None,
    store: Store = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", help="Only this tenant.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Derive every hash of the ledger again; exit code 1 when something disagrees."""
    screen = Screen()
    with _open(store) as opened:
        tenant = namespace
        if session is not None:
            tenant = namespace or "default"
            opened.lineage(tenant, session)
        faults = opened.verify(tenant, session)
        place = opened.place
    if as_json:
        screen.json({"sound": not faults, "faults": [asdict(fault) for fault in faults]})
    elif not faults:
        screen.say(f"Sound: every hash and every original of {session or place} agrees.")
    for fault in [] if as_json else faults:
        screen.say(str(fault), "red")
    if faults:
        raise typer.Exit(FOUND_FAULT)


# ---------------------------------------------------------------- forgetting, moving


@guarded
def forget(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="A session's id, or a message's digest sha256:..."),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Erase a session or one message, and every summary that was written in its light.

    There is no way back. The chain keeps a tombstone and still verifies.
    """
    if not yes and not typer.confirm(f"Erase {target} for good?", err=True):
        raise Unusable("nothing was erased")
    screen = Screen()
    with _open(store) as opened:
        done = opened.forget(namespace, target)
    if as_json:
        screen.json(asdict(done))
        return
    screen.say(f"Forgotten: {number(done.messages)} messages, {number(done.segments)} segments.")
    for name in done.still_in:
        screen.say(f"Some of it is still in session {name}.", "yellow")
    for copy in done.exports:
        note = f": {copy.note}" if copy.note else ""
        screen.say(f"Exported {_when(copy.created)}{note}; see to that copy.", "yellow")
    if not done.pages_cleared:
        screen.say("Freed pages could not be cleared yet; run it again later.", "yellow")


@guarded
def export(
    session: SessionArgument,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Where it goes; `forget` recalls it.")
    ] = "",
    out: Out = "-",
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Write a session with its archive and its chain as one JSON file."""
    with _open(store) as opened:
        found = opened.export(namespace, session, note)
    text = json.dumps(found, indent=1) + "\n"
    if out in (None, "-"):
        Screen().console.file.write(text)
        return
    try:
        Path(str(out)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unusable(f"{out}: {error.strerror or error}") from error
    screen = Screen()
    if as_json:
        screen.json({"session": session, "out": out, "bytes": os.path.getsize(str(out))})
    else:
        screen.say(f"{session} written to {out}")


@guarded
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; - is stdin.")],
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Take an exported session into a store; its chain is checked first."""
    found = transcripts.read_json(file)
    if not isinstance(found, Mapping):
        raise Unusable(f"{file}: not an exported session")
    with _open(store) as opened:
        session = opened.import_(namespace, found)
    screen = Screen()
    if as_json:
        screen.json({"session": session.id, "tip": session.tip, "segments": len(session.entries)})
    else:
        screen.say(f"{session.id}: {number(len(session.entries))} segments imported")


COMMANDS: dict[str, Callable[..., object]] = {
    "sessions": sessions,
    "lineage": lineage,
    "show": show,
    "status": status,
    "search": search,
    "restore": restore,
    "verify": verify,
    "forget": forget,
    "export": export,
    "import": import_,
}
