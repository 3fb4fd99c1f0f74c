"""Print a session's cost and write its page: `bill`, `report`.

The page loads nothing from the network. The text of a transcript is escaped, never markup.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from markupsafe import Markup

from ..compressor.account import stored_bill
from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..errors import SessionNotFound, StoreUnavailable
from ..ledger.memory_store import MemoryStore
from ..messages.display import clean, format_dollars, pluralize, utc_time
from .compressing import summary_of
from .parameters import (
    AS_JSON,
    CONVERSATION,
    Tenant,
    command,
    open_ledger,
    option,
    with_config,
    with_guessed_window,
    with_tenant,
)
from .report_data import ReportData, data_of_session, data_of_transcript
from .store_commands import tree_rows
from .terminal import (
    Unusable,
    load_transcript,
    mute_log,
    print_answer,
    show_progress,
    undone_note,
    write_text,
)


@command
@click.argument("session_or_file", metavar="SESSION|FILE")
@option(
    "--out FILE", "Write the page there; - is stdout. Default: report.html.", default="report.html"
)
@CONVERSATION
@with_config
@AS_JSON
def report(
    session_or_file: str,
    out: str,
    conversation: int | None,
    config: CompressorConfig,
    as_json: bool,
) -> None:
    """Write one self-contained page that shows the life of a session.

    The page has the context's size at each request, each summary beside its originals, masked
    outputs, lineage and cost. FILE is a transcript as `compress` takes it, and is replayed request
    by request with these options. Without an auxiliary model no model is called.

    $ praison-compressor report talk.jsonl --window 32k --out page.html
    """
    is_file = os.path.isfile(session_or_file)  # never raises
    if conversation is not None and not is_file:
        raise Unusable(f"--conversation: {session_or_file} is no file with several conversations")
    with mute_log():
        if is_file:
            data = _replay_file(session_or_file, conversation, config)
        else:
            data = _load_session(session_or_file, config)
    write_text(out, render(data), source=session_or_file if is_file else "-")
    target = "" if out == "-" else f"Written to {out}; "
    compressions = f"{pluralize(data.compressions, 'compression')}{undone_note(data.undone)}"
    lines = [f"{target}{compressions}", *data.bill_lines]
    value = {
        "out": out,
        "requests": data.requests,
        "compressions": data.compressions,
        "undone": data.undone,
        "summaries": len(data.cards),
        "masks": len(data.masks),
        "tokens_whole": data.tokens,
        "tokens_view": data.last.view,
        "tokens_not_sent": data.tokens_not_sent,
        "bill": asdict(data.bill),
    }
    print_answer(value, lines, as_json, file=sys.stderr if out == "-" else None)


@command
@click.argument("session")
@with_tenant
@AS_JSON
def bill(session: str, tenant: Tenant, as_json: bool) -> None:
    """Show what a session cost, and would have cost without this package.

    An agent records the usage that the provider reports. An application passes the usage to
    `record_usage`.

    $ praison-compressor bill audit --store ledger.db
    """
    total = stored_bill(tenant.store, tenant.find_readable_session(session))
    empty = (
        f"No request of {session} is known. An agent's requests are billed, and those that an "
        "application passes to `record_usage`; `compress` sends none."
    )
    print_answer(asdict(total), total.lines() if total.requests else [empty], as_json)


def _replay_file(path: str, conversation: int | None, config: CompressorConfig) -> ReportData:
    # Replay in memory: a report leaves no session in the user's store.
    compressor = ContextCompressor(with_guessed_window(config), store=MemoryStore())
    messages = load_transcript(path, conversation)
    with show_progress("Sending it as it grew"):
        return data_of_transcript(messages, compressor, title=Path(path).name)


def _load_session(name: str, config: CompressorConfig) -> ReportData:
    """Return the data of a stored session.

    Raises:
        Unusable: the name looks like a file, and neither file nor session exists.
    """
    try:
        with open_ledger(config) as store:
            Tenant(store, config.namespace, config.store_url).find_readable_session(name)
            return data_of_session(ContextCompressor(config, store=store), name)
    except (SessionNotFound, StoreUnavailable) as error:
        if os.sep not in name and not name.endswith((".json", ".jsonl")):
            raise
        raise Unusable(f"{name}: there is no such file, and no session of that name") from error


# ---------------------------------------------------------------- the page


def render(data: ReportData) -> str:
    """Return the page's HTML."""
    from jinja2 import Environment, StrictUndefined  # the other commands do not wait for it

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = (clean, format_dollars, format_share, pluralize, undone_note, utc_time)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["thousands"] = "{:,}".format
    return environment.from_string(_page_file("page.html")).render(
        data=data,
        last=data.last,
        largest=max((point.view for point in data.points), default=0),
        columns=_chart_columns(data),
        in_view=[card for card in data.cards if card.is_in_view],
        folded=[card for card in data.cards if not card.is_in_view],
        family=list(tree_rows(data.epochs)),
        next=[(part, summary_of(part)) for part in data.next.parts] if data.next else [],
        style=_page_file("page.css") + _page_file("uPlot.min.css"),
        library=_page_file("uPlot.iife.min.js"),
        script=_page_file("page.js"),
    )


def _page_file(name: str) -> Markup:
    """Return the text of a packaged file, marked as safe HTML."""
    return Markup((files(__package__) / "page" / name).read_text(encoding="utf-8"))


def _chart_columns(data: ReportData) -> dict[str, Any]:
    return {
        "requests": [point.request for point in data.points],
        "whole": [point.whole for point in data.points],
        "view": [point.view for point in data.points],
        "limits": dict(data.limits),
        "compressed": [n for n, point in enumerate(data.points) if point.is_compressed],
    }


def format_share(part: int, whole: int) -> str:
    """Return a part of the whole in percent."""
    return f"{100 * part / whole:.0f} %" if whole else "-"
