"""What benchmarks share: options, tables, sessions made up and recorded, databases, times."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import string
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import tiktoken
from rich.console import Console
from rich.live import Live
from rich.table import Table
from tiktoken_ext import openai_public

from praison_compressor.tokens.models import litellm_folder
from tests.helpers.stores import Postgres
from tests.helpers.transcripts import call

Message = dict[str, Any]
DATABASES = ("sqlite", "postgresql")


def options(doc: str | None, **defaults: Any) -> argparse.Namespace:
    """The command line's options: each by its default, a type where it has none, or its choices."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, type):
            parser.add_argument(flag, type=default)
        elif isinstance(default, tuple):
            parser.add_argument(flag, choices=default)
        elif default is False:
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; at a terminal each row as soon as it is measured. An empty row is a line."""
    table = Table(*columns, title=title)
    with Live(table, console=Console(width=180), auto_refresh=False) as live:
        for row in rows:
            table.add_row(*map(_cell, row)) if row else table.add_section()
            live.refresh()
    print()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "[green]yes[/]" if value else "[red]no[/]"
    return f"{value:,}" if isinstance(value, int) else str(value)


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    """The conversations of a file, one a line."""
    lines = path.read_text("utf-8").split("\n")  # other ends of lines stand within JSON
    yield from (json.loads(line) for line in lines if line)


def words(chance: random.Random, count: int) -> str:
    """Words that no vocabulary has."""
    lengths = (chance.randint(2, 9) for _ in range(count))
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=n)) for n in lengths)


def transcript(turns: int) -> list[Message]:
    """Four messages a turn: a question, a call, its result, an answer."""
    chance = random.Random(1)
    messages: list[Message] = []
    for turn in range(turns):
        asked = call(f"call_{turn}", path=f"src/f{turn}.py")
        messages += [
            {"role": "user", "content": words(chance, 60)},
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": asked["id"], "content": words(chance, 130)},
            {"role": "assistant", "content": words(chance, 60)},
        ]
    return messages


def databases(names: Sequence[str] = DATABASES) -> Iterator[tuple[str, Callable[[], str]]]:
    """Each kind of database, with a function that makes the URL of an empty one."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            server = Postgres() if name == "postgresql" else None
            paths = (f"sqlite:///{folder}/{number}.db" for number in itertools.count())
            try:
                yield name, server.empty if server else paths.__next__
            finally:
                if server:
                    server.close()


def best(function: Callable[[], Any], runs: int) -> float:
    """The fastest of several runs, in milliseconds: what is left is the work itself."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def published(name: str) -> tiktoken.Encoding:
    """The encoding as tiktoken itself builds it."""
    folder = litellm_folder()
    assert folder is not None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder / "litellm_core_utils" / "tokenizers")
    return tiktoken.Encoding(**getattr(openai_public, name)())
