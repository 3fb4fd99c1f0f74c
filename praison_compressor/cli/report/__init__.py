"""`report`: the life of a session or a transcript on one page of HTML.

`life` collects what the page tells; this module is the command and renders the page. The page asks
for nothing on the network, and nothing of a transcript in it is markup.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from markupsafe import Markup

from ...compressor.context_compressor import ContextCompressor
from ...errors import SessionNotFound, StoreUnavailable
from ...ledger.memory import MemoryStore
from ...messages.display import clean, when
from ...tokens.counter import TokenCounter
from ..options import Conversation, OfFile, Place, command, option, with_window
from ..sessions import family
from ..terminal import Answer, Unusable, money, number, unlogged
from ..transcripts import put, read_one
from .life import Life, life_of_session, life_of_transcript


@command
def report(
    what: Annotated[
        str, typer.Argument(metavar="SESSION|FILE", help="A session of the store, or a transcript.")
    ],
    config: OfFile,
    place: Place,
    out: Annotated[str, option("--out", "FILE", "The page; - is standard output.")] = "report.html",
    conversation: Conversation = None,
) -> Answer:
    """Write one page, complete in itself, that shows the life of a session.

    Context size over time with each compression, each summary beside the messages it stands for
    and the facts it holds, masked outputs, lineage, cost. A transcript is sent again as it grew,
    with these options, to the compressor only: without --auxiliary-model no model is asked.

    $ praison-compressor report talk.jsonl --window 32k --out page.html
    """
    is_file = os.path.isfile(what)  # never raises, whatever a session is called
    with unlogged():
        if is_file:
            # Not the user's store: a report leaves no session behind.
            compressor = ContextCompressor(with_window(config), store=MemoryStore())
            messages = read_one(what, conversation)
            life = life_of_transcript(messages, compressor, title=Path(what).name)
        else:
            life = _of_session(what, place, TokenCounter(config.model))
    put(out, render(life), source=what if is_file else "-")
    value = {
        "out": out,
        "compressions": life.compressions,
        "summaries": len(life.cards),
        "masks": len(life.masks),
        "tokens_whole": life.last.whole,
        "tokens_view": life.last.view,
        "tokens_not_sent": life.not_sent,
    }
    written = "" if out == "-" else f"Written to {out}; "
    said = f"{written}compressions: {number(life.compressions)}"
    return Answer(value, [said], on_stderr=out == "-")


def _of_session(name: str, place: Place, tokens: TokenCounter) -> Life:
    """The life of a stored session; what is named like a file and is none is a missing file."""
    try:
        with place.open() as store:
            return life_of_session(store, place.namespace, name, tokens)
    except (SessionNotFound, StoreUnavailable) as error:
        if os.sep not in name and not name.endswith((".json", ".jsonl")):
            raise
        raise Unusable(f"{name}: there is no such file, nor a session that can be read") from error


# ---------------------------------------------------------------- the page


def render(life: Life) -> str:
    """The page, as HTML."""
    from jinja2 import Environment, StrictUndefined  # the other commands do not wait for it

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(clean=clean, number=number, when=when, share=_share, money=money)
    template = environment.from_string(_part("templates/page.html"))
    return template.render(
        life=life,
        last=life.last,
        largest=max((point.view for point in life.points), default=0),
        columns=_columns(life),
        standing=[card for card in life.cards if card.standing],
        folded=[card for card in life.cards if not card.standing],
        family=list(family(life.epochs)),
        style=_part("templates/page.css") + _part("vendor/uPlot.min.css"),
        library=_part("vendor/uPlot.iife.min.js"),
        script=_part("templates/page.js"),
    )


def _part(name: str) -> Markup:
    """A file of ours: the only thing on the page that is not escaped."""
    return Markup((files(__package__) / name).read_text(encoding="utf-8"))


def _columns(life: Life) -> dict[str, Any]:
    """The chart's data, column by column."""
    return {
        "messages": [point.messages for point in life.points],
        "whole": [point.whole for point in life.points],
        "view": [point.view for point in life.points],
        "compressed": [n for n, point in enumerate(life.points) if point.compressed],
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
