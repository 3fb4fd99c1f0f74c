"""Parse options, print tables, read recorded sessions and count faults, for all benchmarks."""

import argparse
import contextlib
import io
import itertools
import json
import logging
import os
import random
import string
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tests.helpers.stores import Postgres

DATABASES = ("sqlite", "postgresql")


def options(
    doc: str | None, *, required: Sequence[str] = (), **defaults: Any
) -> argparse.Namespace:
    """Parse the command line; each option is named with its default, type or choices.

    An option with choices takes several of them; all are its default. `required` names options of a
    type that must be given.
    """
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, type):
            parser.add_argument(flag, type=default, required=name in required)
        elif isinstance(default, tuple):
            parser.add_argument(flag, choices=default, nargs="+", default=default)
        elif default is False:
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; at a terminal each row once it is measured. An empty row is a line.

    What the host prints while a row is measured is dropped.
    """
    table, console = Table(*columns, title=title), Console(width=180, file=sys.stdout)
    hidden = contextlib.redirect_stdout(io.StringIO())
    with hidden, Live(table, console=console, auto_refresh=False, redirect_stdout=False) as live:
        for row in rows:
            table.add_row(*map(_cell, row)) if row else table.add_section()
            live.refresh()
    print()


def silence_host() -> None:
    """Silence logs and warnings of the host."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "[green]yes[/]" if value else "[red]no[/]"
    return f"{value:,}" if isinstance(value, int) else str(value)


def read_sessions(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a file, one a line."""
    lines = path.read_text("utf-8").split("\n")  # other ends of lines stand within JSON
    yield from (json.loads(line) for line in lines if line)


def words(chance: random.Random, count: int) -> str:
    """Return words that no vocabulary has."""
    lengths = (chance.randint(2, 9) for _ in range(count))
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=n)) for n in lengths)


def databases(names: Sequence[str] = DATABASES) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each database with a function that returns the URL of an empty one."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            server = Postgres() if name == "postgresql" else None
            paths = (f"sqlite:///{folder}/{number}.db" for number in itertools.count())
            try:
                yield name, server.empty if server else paths.__next__
            finally:
                if server:
                    server.close()


def faults(sent: Iterable[Any]) -> tuple[int, int, int]:
    """Count refused requests, requests over the window, and calls or results without the other."""
    records = list(sent)
    refused = sum(record.status != 200 for record in records)
    return refused, sum(record.over_window for record in records), sum(map(unpaired, records))


def unpaired(record: Any) -> int:
    """Count results without a call before them and calls without a result after them."""
    waiting: list[str] = []
    orphans = 0
    for is_call, id in _calls_and_results(record.body.get("messages", record.body.get("input"))):
        if is_call:
            waiting.append(id)
        elif id in waiting:
            waiting.remove(id)
        else:
            orphans += 1
    return orphans + len(waiting)


def _calls_and_results(body: Any) -> Iterator[tuple[bool, str]]:
    """Yield the ids of calls and results in order, on any of the three wires."""
    for part in body if isinstance(body, list) else ():
        yield from _calls_and_results(part)
    if not isinstance(body, dict):
        return
    kind = body.get("type")
    result = body.get("tool_call_id") or body.get("tool_use_id")
    if result or kind == "function_call_output":
        yield False, result or body["call_id"]
    elif kind in ("function", "tool_use", "function_call"):
        yield True, body.get("call_id") or body["id"]
    else:
        yield from _calls_and_results(body.get("tool_calls"))
        yield from _calls_and_results(body.get("content"))
