"""The commands that give a stored session back: its words as they came, or what to go on from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import CompressorConfig, ContextCompressor
from ..messages import Message
from . import transcripts
from .failures import Unusable, guarded
from .options import AsJson, ForModel, Namespace, Store, Window
from .stores import Out, SessionArgument, open_at
from .terminal import Screen, number

__all__ = ["restore", "resume"]


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
