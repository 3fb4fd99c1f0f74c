"""The commands that restore, resume, fork, prove, erase and move what is in a store."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..errors import SessionNotFound
from ..messages import Message
from ..messages.display import one_line, when
from . import transcripts
from .failures import FOUND_FAULT, Unusable, guarded
from .options import AsJson, ForModel, Namespace, Store, Window
from .sessions import Out, SessionArgument, open_at
from .terminal import Screen, number

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore
    from ..praisonai.sessions import Forgotten

__all__ = [
    "export",
    "forget",
    "import_",
    "new",
    "restore",
    "resume",
    "verify",
]


# -------------------------------------------------------------- restoring


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
    archive: Annotated[
        bool,
        typer.Option(
            "--archive",
            help="Every message that was ever compressed, once: also those that were edited away.",
        ),
    ] = False,
    out: Out = "-",
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Write a session's messages back, exactly as they came.

    The whole transcript as of the last compression; with --view the one that the view stands for.
    """
    if archive and view is not None:
        raise Unusable("--view and --archive: one of them")
    with open_at(store) as opened:
        compressor = ContextCompressor(CompressorConfig(namespace=namespace), store=opened)
        if archive:
            messages = opened.archived(namespace, session)
        elif view is not None:
            opened.lineage(namespace, session)
            messages = compressor.verbatim(transcripts.read_one(view), session_id=session)
        else:
            messages = compressor.verbatim(session_id=session)
    _written(out, messages, view or "-", as_json=as_json, session=session)


@guarded
def resume(
    session: SessionArgument,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", metavar="TOKENS", help="At most so many; else what the model takes."
        ),
    ] = None,
    for_model: ForModel = None,
    window: Window = None,
    out: Out = "-",
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Write the messages to go on from: the whole session where it fits, else its view.

    As of its last compression. Passed on under the same session its summaries are known again,
    and the originals stay within reach. Asks no model.
    """
    config = CompressorConfig(namespace=namespace, model=for_model, context_window=window)
    with open_at(store) as opened:
        found = ContextCompressor(config, store=opened).resume(session, budget)
    numbers = {"context_status": found.context_status, "tokens": found.tokens_after}
    _written(out, found.messages, "-", as_json=as_json, session=session, **numbers)


def _written(
    out: str | None, messages: Sequence[Message], source: str, *, as_json: bool, **told: Any
) -> None:
    transcripts.write(out or "-", messages, source=source)
    if out in (None, "-"):
        return
    screen = Screen()
    if as_json:
        screen.json({**told, "messages": len(messages), "out": out})
    else:
        screen.say(f"{number(len(messages))} messages written to {out}")


# -------------------------------------------------------------- archives


@guarded
def new(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of the new session.")],
    parent: Annotated[
        str,
        typer.Option(
            "--from", metavar="ID", help="What it forks: a session, or one of its epochs."
        ),
    ],
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Fork a stored session: the new one shares all that was compressed up to there.

    It begins with the transcript as it was then. Where that was never recorded, or was edited
    since, with what was compressed of it; a warning says so when it is read.
    """
    with open_at(store) as opened:
        opened.lineage(namespace, parent)
        with contextlib.suppress(SessionNotFound):
            opened.lineage(namespace, session)  # an epoch's id names its session
            raise Unusable(f"{session}: there is a session of that name")
        found = opened.open(namespace, session, parent)
    screen = Screen()
    if as_json:
        screen.json({"session": found.id, "parent": parent, "segments": len(found.entries)})
    else:
        screen.say(f"{found.id}: {number(len(found.entries))} segments shared with {parent}")


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
    with open_at(store) as opened:
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
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="A session's id, or a message's digest sha256:...; without one only the pages "
            "are cleared that an earlier run had to leave.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Erase a session or one message, and every summary that was written in its light.

    There is no way back. The chain keeps a tombstone and still verifies. The child sessions by
    which the host shows its compressions go too; what is left there is said.
    """
    screen = Screen()
    if target is None:
        _clear_pages(screen, store, as_json)
        return
    if not yes and not typer.confirm(f"Erase {one_line(target)} for good?", err=True):
        raise Unusable("nothing was erased")
    with open_at(store) as opened:
        found = _forgotten(opened, namespace, target)
    done = found.erased
    if as_json:
        screen.json({**asdict(done), "mirrored": found.mirrored, "left": found.left})
        return
    screen.say(f"Forgotten: {number(done.messages)} messages, {number(done.segments)} segments.")
    for name in done.still_in:
        screen.say(f"Some of it is still in session {name}.", "yellow")
    for copy in done.exports:
        note = f": {copy.note}" if copy.note else ""
        screen.say(f"Exported {when(copy.created) or '-'}{note}; see to that copy.", "yellow")
    for name in found.mirrored:
        screen.say(f"The host's session {name} is gone too.")
    for sentence in found.left:
        screen.say(f"Left: {sentence}.", "yellow")
    if not done.pages_cleared:
        screen.say(_PAGES_LEFT, "yellow")


_PAGES_LEFT = "Freed pages could not be cleared yet; run `forget` without a target later."


def _clear_pages(screen: Screen, store: str | None, as_json: bool) -> None:
    with open_at(store) as opened:
        cleared = opened.clear_pages()
    if as_json:
        screen.json({"pages_cleared": cleared})
    elif cleared:
        screen.say("No freed page holds old bytes.")
    else:
        screen.say(_PAGES_LEFT, "yellow")


def _forgotten(opened: SqlStore, namespace: str, target: str) -> Forgotten:
    from ..praisonai.sessions import default_host, forget

    return forget(opened, namespace, target, default_host())


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
    with open_at(store) as opened:
        found = opened.export(namespace, session, note)
    text = json.dumps(found, indent=1) + "\n"
    if out in (None, "-"):
        Screen().console.file.write(text)
        return
    transcripts.put(str(out), text)
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
    with open_at(store, new=True) as opened:
        session = opened.import_(namespace, found)
    screen = Screen()
    if as_json:
        screen.json({"session": session.id, "tip": session.tip, "segments": len(session.entries)})
    else:
        screen.say(f"{session.id}: {number(len(session.entries))} segments imported")
