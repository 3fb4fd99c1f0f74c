"""The commands that restore, resume, fork, verify, erase and move what is in a store."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..errors import SessionNotFound
from ..messages import Message
from ..messages.display import one_line
from .options import WRITING, Place, SessionId, ToFile, command, flag, option, with_window, without
from .terminal import FOUND_FAULT, Answer, Line, Piece, Unusable, number
from .transcripts import put, read_json, read_one, write

if TYPE_CHECKING:
    from ..praisonai.sessions import Forgotten

# ---------------------------------------------------------------- restore, resume


@command
def restore(
    session: SessionId,
    place: Place,
    view: Annotated[
        str | None, option("--view", "FILE", "A view of it: summaries give way to originals.")
    ] = None,
    archive: Annotated[
        bool, flag("--archive", "All that was ever compressed, once: also what was edited away.")
    ] = False,
    out: ToFile = "-",
) -> Answer | None:
    """Write a session's messages back, exactly as they came.

    The whole transcript as of the last compression; with --view the one that the view stands for.

    $ praison-compressor restore audit --store ledger.db --out whole.jsonl
    """
    if archive and view is not None:
        raise Unusable("--view and --archive: one of them")
    with place.open() as store:
        compressor = ContextCompressor(CompressorConfig(namespace=place.namespace), store=store)
        if archive:
            messages = store.archived(place.namespace, session)
        elif view is not None:
            store.lineage(place.namespace, session)
            messages = compressor.verbatim(read_one(view), session_id=session)
        else:
            messages = compressor.verbatim(session_id=session)
    return _written(out, messages, source=view or "-", session=session)


@command
def resume(
    session: SessionId,
    place: Place,
    config: Annotated[CompressorConfig, without(*WRITING)],
    target_tokens: Annotated[
        int | None, option("--budget", "TOKENS", "At most so many; else what the model takes.")
    ] = None,
    out: ToFile = "-",
) -> Answer | None:
    """Write the messages to go on from: the whole session where it fits, else its view.

    As of its last compression. Passed on under the same session its summaries are known again,
    and the originals stay within reach. Asks no model.

    $ praison-compressor resume audit --window 32k --store ledger.db
    """
    config = replace(with_window(config), namespace=place.namespace)
    with place.open() as store:
        found = ContextCompressor(config, store=store).resume(session, target_tokens)
    numbers = {"context_status": found.context_status, "tokens": found.tokens_after}
    return _written(out, found.messages, source="-", session=session, **numbers)


def _written(out: str, messages: Sequence[Message], *, source: str, **told: Any) -> Answer | None:
    """Write the messages; None where standard output has them and nothing else."""
    if not messages:
        raise Unusable(f"nothing is left of {told['session']}: its messages were forgotten")
    write(out, messages, source=source)
    if out == "-":
        return None
    value = {**told, "messages": len(messages), "out": out}
    return Answer(value, [f"{number(len(messages))} messages written to {out}"])


# ---------------------------------------------------------------- new, verify


@command
def new(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of the new session.")],
    place: Place,
    parent: Annotated[str, option("--from", "ID", "What it forks: a session, or an epoch.")],
) -> Answer:
    """Fork a stored session: the new one shares all that was compressed up to there.

    It begins with the transcript as it was then. Where that was never recorded, or was edited
    since, with what was compressed of it; a warning says so when it is read.

    $ praison-compressor new audit-2 --from audit --store ledger.db
    """
    with place.open() as store:
        store.lineage(place.namespace, parent)
        with contextlib.suppress(SessionNotFound):
            store.lineage(place.namespace, session)  # an epoch's id names its session
            raise Unusable(f"{session}: there is a session of that name")
        found = store.open(place.namespace, session, parent)
    count = len(found.entries)
    value = {"session": found.id, "parent": parent, "segments": count}
    return Answer(value, [f"{found.id}: {number(count)} segments shared with {parent}"])


@command
def verify(
    session: Annotated[str | None, typer.Argument(metavar="[SESSION]", help="Only this.")] = None,
    store: Annotated[str | None, option("--store", "URL", "As in the other commands.")] = None,
    namespace: Annotated[str | None, option("--namespace", "NAME", "Only this tenant.")] = None,
) -> Answer:
    """Derive every hash of the ledger again; exit code 1 when something disagrees.

    $ praison-compressor verify audit --store ledger.db
    """
    with Place(store=store).open() as opened:
        if session is not None:
            namespace = namespace or "default"
            opened.lineage(namespace, session)
        faults = opened.verify(namespace, session)
        what = session or opened.place
    sound = f"Sound: every hash and every original of {what} agrees."
    shown: list[Piece] = [Line(str(fault), "red") for fault in faults]
    value = {"sound": not faults, "faults": faults}
    return Answer(value, shown or [sound], code=FOUND_FAULT if faults else 0)


# ---------------------------------------------------------------- forget


@command
def forget(
    place: Place,
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="A session, or a message's sha256:...")
    ] = None,
    yes: Annotated[bool, flag("--yes", "Do not ask.")] = False,
) -> Answer:
    """Erase a session or one message, and every summary that was written in its light.

    There is no way back. The chain keeps a tombstone and still verifies. The child sessions by
    which the host shows its compressions go too; what is left there is said. Without TARGET only
    the pages are cleared that an earlier run had to leave. What a fork inherited goes with the
    session that it was forked from.

    $ praison-compressor forget audit --yes --store ledger.db
    """
    if target is None:
        with place.open() as store:
            cleared = store.clear_pages()
        said = "No freed page holds old bytes." if cleared else Line(_PAGES_LEFT, "yellow")
        return Answer({"pages_cleared": cleared}, [said])
    if not yes and not typer.confirm(
        f"Erase {one_line(target)} for good, and with it what its forks inherited?", err=True
    ):
        raise Unusable("nothing was erased")
    from ..praisonai.sessions import default_host
    from ..praisonai.sessions import forget as forget_there_too

    with place.open() as store:
        found = forget_there_too(store, place.namespace, target, default_host())
    value = {**asdict(found.erased), "mirrored": found.mirrored, "left": found.left}
    return Answer(value, _erased(found))


_PAGES_LEFT = "Freed pages could not be cleared yet; run `forget` without a target later."


def _erased(found: Forgotten) -> Iterator[Piece]:
    done = found.erased
    yield f"Forgotten: {number(done.messages)} messages, {number(done.segments)} segments."
    for name in done.still_in:
        said = "holds some of the same messages itself, or was forked from it and lacks them now"
        yield Line(f"Session {name} {said}.", "yellow")
    for name in found.mirrored:
        yield f"The host's session {name} is gone too."
    for sentence in found.left:
        yield Line(f"Left: {sentence}.", "yellow")
    if not done.pages_cleared:
        yield Line(_PAGES_LEFT, "yellow")


# ---------------------------------------------------------------- export, import


@command
def export(session: SessionId, place: Place, out: ToFile = "-") -> Answer | None:
    """Write a session with its archive and its chain as one JSON file.

    $ praison-compressor export audit --store ledger.db --out audit.json
    """
    with place.open() as store:
        found = store.export(place.namespace, session)
    text = json.dumps(found, indent=1) + "\n"
    put(out, text)
    if out == "-":
        return None
    value = {"session": session, "out": out, "bytes": len(text)}
    return Answer(value, [f"{session} written to {out}"])


@command
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; - is stdin.")],
    place: Place,
) -> Answer:
    """Take an exported session into a store; its chain is checked first.

    $ praison-compressor import audit.json --store another.db
    """
    found = read_json(file)
    if not isinstance(found, Mapping):
        raise Unusable(f"{file}: not an exported session")
    with place.open(new=True) as store:
        session = store.import_(place.namespace, found)
    count = len(session.entries)
    value = {"session": session.id, "tip": session.tip, "segments": count}
    return Answer(value, [f"{session.id}: {number(count)} segments imported"])
