"""`report`: the life of a session or a transcript on one page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...compressor.context_compressor import ContextCompressor
from ...ledger.memory import MemoryStore
from .. import transcripts
from ..failures import guarded, unlogged
from ..options import (
    ApiBase,
    AsJson,
    Conversation,
    ForModel,
    KeepTokens,
    Model,
    Namespace,
    Store,
    Timeout,
    Window,
    config_of,
    window_of,
)
from ..sessions import open_at
from ..terminal import Screen, number, progress

if TYPE_CHECKING:
    from .life import Life

__all__ = [
    "report",
]


What = Annotated[
    str,
    typer.Argument(metavar="SESSION|FILE", help="A session of the store, or a transcript."),
]


Page = Annotated[str, typer.Option("--out", metavar="FILE", help="The page to write.")]


@guarded
def report(
    what: What,
    out: Page = "report.html",
    model: Model = None,
    api_base: ApiBase = None,
    timeout: Timeout = None,
    for_model: ForModel = None,
    window: Window = None,
    keep_tokens: KeepTokens = None,
    conversation: Conversation = None,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Write one page, complete in itself, that shows the life of a session.

    Context size over time with each compression, each summary beside the messages it stands for
    and the facts it holds, masked outputs, lineage, cost. A transcript is sent again as it grew,
    with these options, to the compressor only: without --model no model is asked.
    """
    from .page import render

    with unlogged():
        is_file = os.path.isfile(what)  # never raises, whatever a session is called
        if is_file:
            config = config_of(
                model=for_model,
                context_window=window_of(window, for_model),
                protect_last_n_tokens=keep_tokens,
                auxiliary_model=model,
                auxiliary_api_base=api_base,
                timeout_seconds=timeout,
                namespace=namespace,
            )
            # Not the user's store: a report leaves no session behind.
            compressor = ContextCompressor(config, store=MemoryStore())
            life = _of_file(what, conversation, compressor)
        else:
            life = _of_session(what, store, namespace, for_model)
    transcripts.put(out, render(life), source=what if is_file else "-")
    screen = Screen()
    if as_json:
        last = life.points[-1] if life.points else None
        screen.json(
            {
                "out": out,
                "compressions": life.compressions,
                "summaries": len(life.cards),
                "masks": len(life.masks),
                "tokens_whole": last.whole if last else 0,
                "tokens_view": last.view if last else 0,
                "tokens_not_sent": life.not_sent,
            }
        )
        return
    screen.say(f"Written to {out}; compressions: {number(life.compressions)}")


def _of_file(path: str, conversation: int | None, compressor: ContextCompressor) -> Life:
    from .life import life_of_transcript

    messages = transcripts.read_one(path, conversation)
    with progress("request") as update:
        return life_of_transcript(messages, compressor, title=Path(path).name, on_request=update)


def _of_session(session: str, store: str | None, namespace: str, model: str | None) -> Life:
    from ...tokens.counter import TokenCounter
    from .life import life_of_session

    with open_at(store) as opened:
        return life_of_session(opened, namespace, session, TokenCounter(model))
