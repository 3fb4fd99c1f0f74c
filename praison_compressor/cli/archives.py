"""The commands that restore, verify and erase what is in a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..messages import Message
from ..messages.display import one_line
from ..messages.secrets import masks_in
from ..view.frame import is_framed
from . import options as opt
from .terminal import FOUND_FAULT, Line, Piece, Unusable, answer, complain, counted
from .transcripts import read_one, write

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore
    from ..praisonai.ledgers import Forgotten

# ---------------------------------------------------------------- restore


def restore(
    session: opt.SessionId,
    view: Annotated[
        str | None, opt.value("FILE", "A view of it: originals replace its summaries.")
    ] = None,
    out: Annotated[str, opt.value("FILE", "Write there; - is stdout.")] = "-",
    store: opt.StoreUrl = None,
    namespace: opt.Namespace = opt.DEFAULT,
    as_json: opt.AsJson = False,
) -> None:
    """Write a session's transcript, as of its last compression.

    With --view it writes the transcript that the view represents. Secrets that the ledger masked
    stay masked.

    $ praison-compressor restore audit --store ledger.db --out whole.jsonl
    """
    with opt.ledger(store) as opened:
        opt.existing(opened, namespace, session)
        compressor = ContextCompressor(CompressorConfig(namespace=namespace), store=opened)
        given = None if view is None else read_one(view)
        messages = compressor.verbatim(given, session_id=session)
    if not messages:
        raise Unusable(f"nothing is left of {session}: its messages were forgotten")
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
    """Yield where the messages are not as they came."""
    summaries = sum(map(is_framed, messages))
    if summaries:
        yield f"{counted(summaries, 'summary', 'summaries')} left: not of this session's ledger"
    masked = masks_in(messages)
    if masked:
        yield f"{counted(masked, 'secret')} masked: the ledger never held more"


# ---------------------------------------------------------------- verify


def verify(
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Only this session.")
    ] = None,
    store: opt.StoreUrl = None,
    namespace: Annotated[str | None, opt.value("NAME", "Only this tenant.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Derive every hash of the ledger again, and compare.

    Exit code 1 when one differs.

    $ praison-compressor verify audit --store ledger.db
    """
    with opt.ledger(store) as opened:
        if session is not None:
            namespace = namespace or opt.DEFAULT
            opt.existing(opened, namespace, session)
        faults = opened.verify(namespace, session)
        what = session or opened.place
    sound = f"Sound: every hash and every original of {what} agrees."
    shown: list[Piece] = [Line(str(fault), "red") for fault in faults]
    answer({"sound": not faults, "faults": faults}, shown or [sound], as_json)
    if faults:
        raise typer.Exit(FOUND_FAULT)


# ---------------------------------------------------------------- forget


def forget(
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="A session, or a message's sha256:...")
    ] = None,
    yes: Annotated[bool, opt.flag("--yes", "Do not ask.")] = False,
    store: opt.StoreUrl = None,
    namespace: opt.Namespace = opt.DEFAULT,
    as_json: opt.AsJson = False,
) -> None:
    """Erase a session or one message, and the summaries that covered it.

    There is no way back. Later summaries go too, since the erased ones were shown to their writer.
    The chain keeps a tombstone and still verifies. What a fork inherited goes with the session that
    it was forked from.
    Without TARGET the command clears freed pages that an earlier run could not clear.

    $ praison-compressor forget audit --yes --store ledger.db
    """
    with opt.ledger(store) as opened:
        if target is None:
            cleared = opened.clear_pages()
            said = "No freed page holds old bytes." if cleared else Line(_PAGES_LEFT, "yellow")
            answer({"pages_cleared": cleared}, [said], as_json)
            return
        _check_target(opened, namespace, target)
        question = f"Erase {one_line(target)} for good, and with it what its forks inherited?"
        if not yes and not typer.confirm(question, err=True):
            raise Unusable("nothing was erased")
        from ..praisonai.ledgers import default_host
        from ..praisonai.ledgers import forget as forget_there_too

        found = forget_there_too(opened, namespace, target, default_host())
    value = {**asdict(found.erased), "left": found.left}
    answer(value, _erased(found), as_json)


def _check_target(store: SqlStore, namespace: str, target: str) -> None:
    """Raise `SessionNotFound` before anybody is asked to confirm."""
    if target.startswith("sha256:"):
        store.check_message(namespace, target)
    else:
        opt.existing(store, namespace, target)


_PAGES_LEFT = "Freed pages could not be cleared yet; run `forget` without a target later."


def _erased(found: Forgotten) -> Iterator[Piece]:
    done = found.erased
    gone = counted(done.messages, "message"), counted(done.segments, "segment")
    yield f"Forgotten: {', '.join(gone)}."
    for name in done.still_in:
        said = "holds some of the same messages itself, or was forked from it and lacks them now"
        yield Line(f"Session {name} {said}.", "yellow")
    for sentence in found.left:
        yield Line(f"Left: {sentence}.", "yellow")
    if not done.pages_cleared:
        yield Line(_PAGES_LEFT, "yellow")
