"""`report`: the life of a session or a transcript on one page of HTML.

`life` collects what the page shows; this module is the command and renders the page. The page asks
for nothing on the network, and nothing of a transcript in it is markup.
"""

from __future__ import annotations

import os
import sys
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
from .. import options as opt
from ..sessions import family
from ..terminal import Unusable, answer, counted, money, number, unlogged
from ..transcripts import put, read_one
from .life import Life, life_of_session, life_of_transcript


def report(
    what: Annotated[
        str, typer.Argument(metavar="SESSION|FILE", help="A session of the store, or a transcript.")
    ],
    out: Annotated[str, opt.value("FILE", "The page; - is standard output.")] = "report.html",
    model: opt.Model = None,
    window: opt.Window = None,
    keep_tokens: opt.KeepTokens = None,
    auxiliary_model: opt.AuxiliaryModel = None,
    settings: opt.Setting = None,
    conversation: opt.Conversation = None,
    store: opt.StoreUrl = None,
    namespace: opt.Namespace = opt.DEFAULT,
    as_json: opt.AsJson = False,
) -> None:
    """Write one self-contained page that shows the life of a session.

    Context size over time with each compression, each summary beside its originals, masked outputs,
    lineage, cost. A transcript is sent again as it grew, with these options, to the compressor
    only: without --auxiliary-model no model is asked.

    $ praison-compressor report talk.jsonl --window 32k --out page.html
    """
    config = opt.configured(store, namespace, settings, model, window, auxiliary_model, keep_tokens)
    is_file = os.path.isfile(what)  # never raises, whatever a session is called
    with unlogged():
        if is_file:
            # Not the user's store: a report leaves no session behind.
            compressor = ContextCompressor(opt.with_window(config), store=MemoryStore())
            messages = read_one(what, conversation)
            life = life_of_transcript(messages, compressor, title=Path(what).name)
        else:
            life = _of_session(what, store, namespace, TokenCounter(config.model))
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
    shown = [f"{written}{counted(life.compressions, 'compression')}"]
    answer(value, shown, as_json, file=sys.stderr if out == "-" else None)


def _of_session(name: str, store: str | None, namespace: str, tokens: TokenCounter) -> Life:
    """Return the life of a stored session."""
    try:
        with opt.ledger(store) as opened:
            opt.existing(opened, namespace, name)
            return life_of_session(opened, namespace, name, tokens)
    except (SessionNotFound, StoreUnavailable) as error:
        if os.sep not in name and not name.endswith((".json", ".jsonl")):
            raise
        raise Unusable(f"{name}: there is no such file, nor a session that can be read") from error


# ---------------------------------------------------------------- the page


def render(life: Life) -> str:
    """Render the page as HTML."""
    from jinja2 import Environment, StrictUndefined  # the other commands do not wait for it

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        clean=clean, number=number, counted=counted, when=when, share=_share, money=money
    )
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
    """Read a file of ours, which the page does not escape."""
    return Markup((files(__package__) / name).read_text(encoding="utf-8"))


def _columns(life: Life) -> dict[str, Any]:
    """Return the chart's data, column by column."""
    return {
        "messages": [point.messages for point in life.points],
        "whole": [point.whole for point in life.points],
        "view": [point.view for point in life.points],
        "compressed": [n for n, point in enumerate(life.points) if point.compressed],
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
