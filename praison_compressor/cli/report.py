"""Print a session's cost and write its page: `bill`, `report`.

The page asks for nothing on the network, and nothing of a transcript in it is markup.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..compressor.account import stored_bill
from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..errors import SessionNotFound, StoreUnavailable
from ..ledger.memory_store import MemoryStore
from ..messages.display import clean, pluralize, utc_time
from ..tokens.counter import TokenCounter
from . import parameters as par
from .compressing import summary_of
from .life import (
    Life,
    life_of_session,
    life_of_transcript,
    requests_in,
    window_and_trigger,
    with_next,
)
from .stored import family
from .terminal import Unusable, answer, money, number, progress, unlogged
from .transcripts import put, read_one


@par.command
@par.argument("what", metavar="SESSION|FILE")
@par.option("--out", "FILE", "Write the page there; - is stdout.", default="report.html")
@par.CONVERSATION
@par.configured
@par.AS_JSON
def report(
    what: str, out: str, conversation: int | None, config: CompressorConfig, as_json: bool
) -> None:
    """Write one self-contained page that shows the life of a session.

    Context size over time with each compression, each summary beside its originals, masked outputs,
    lineage, cost. FILE is a transcript as `compress` takes it. The transcript is replayed turn by
    turn to the compressor with these options. Without an auxiliary model no model is called.

    $ praison-compressor report talk.jsonl --window 32k --out page.html
    """
    is_file = os.path.isfile(what)  # never raises, whatever a session is called
    with unlogged():
        if is_file:
            # Not the user's store: a report leaves no session behind.
            compressor = ContextCompressor(par.with_window(config), store=MemoryStore())
            messages = read_one(what, conversation)
            with progress("Sending it as it grew", len(requests_in(messages))) as step:
                life = life_of_transcript(messages, compressor, title=Path(what).name, step=step)
        else:
            life = _of_session(what, config)
    put(out, render(life), source=what if is_file else "-")
    value = {
        "out": out,
        "requests": life.requests,
        "compressions": life.compressions,
        "summaries": len(life.cards),
        "masks": len(life.masks),
        "tokens_whole": life.tokens,
        "tokens_view": life.last.view,
        "tokens_not_sent": life.not_sent,
        "bill": asdict(life.bill),
    }
    written = "" if out == "-" else f"Written to {out}; "
    shown = [f"{written}{pluralize(life.compressions, 'compression')}", *life.bill_lines]
    answer(value, shown, as_json, file=sys.stderr if out == "-" else None)


@par.command
@par.argument("session")
@par.tenant
@par.AS_JSON
def bill(session: str, tenant: par.Tenant, as_json: bool) -> None:
    """Show what a session has cost, and the same without us.

    The figures are those that a provider reported to the agent, or that an application passed to
    `record_usage`.

    $ praison-compressor bill audit --store ledger.db
    """
    with par.ledger(tenant.store) as opened:
        found = stored_bill(opened, par.remembered(opened, tenant.namespace, session))
    none = f"No request of {session} is known. An agent's requests are billed, and those that an "
    none += "application passes to `record_usage`; `compress` sends none."
    answer(asdict(found), found.lines() if found.requests else [none], as_json)


def _of_session(what: str, config: CompressorConfig) -> Life:
    """Return the life of a stored session.

    Raises:
        Unusable: the name looks like a file, and neither file nor session exists.
    """
    try:
        with par.ledger(config.store_url) as opened:
            par.remembered(opened, config.namespace, what)
            found = life_of_session(opened, config.namespace, what, TokenCounter(config.model))
            found = replace(found, lines=window_and_trigger(config))
            if not found.lines or not found.points:
                return found
            messages = opened.transcript(opened.open(config.namespace, what))
            return with_next(found, messages, ContextCompressor(config, store=opened), what)
    except (SessionNotFound, StoreUnavailable) as error:
        if os.sep not in what and not what.endswith((".json", ".jsonl")):
            raise
        raise Unusable(f"{what}: there is no such file, and no session of that name") from error


# ---------------------------------------------------------------- the page


def render(life: Life) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined  # the other commands do not wait for it

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        clean=clean,
        number=number,
        pluralize=pluralize,
        utc_time=utc_time,
        share=_share,
        money=money,
    )
    template = environment.from_string(_part("page.html"))
    return template.render(
        life=life,
        last=life.last,
        largest=max((point.view for point in life.points), default=0),
        columns=_columns(life),
        standing=[card for card in life.cards if card.standing],
        folded=[card for card in life.cards if not card.standing],
        family=list(family(life.epochs)),
        next=[(part, summary_of(part)) for part in life.next.parts] if life.next else [],
        style=_part("page.css") + _part("uPlot.min.css"),
        library=_part("uPlot.iife.min.js"),
        script=_part("page.js"),
    )


def _part(name: str) -> Markup:
    """Read a file of ours, which the page does not escape."""
    return Markup((files(__package__) / "page" / name).read_text(encoding="utf-8"))


def _columns(life: Life) -> dict[str, Any]:
    """Return the chart's data, column by column."""
    return {
        "requests": [point.request for point in life.points],
        "whole": [point.whole for point in life.points],
        "view": [point.view for point in life.points],
        "lines": dict(life.lines),
        "compressed": [n for n, point in enumerate(life.points) if point.compressed],
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
