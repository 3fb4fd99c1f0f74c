"""Print results, progress and one-line errors; set exit codes.

Text of a transcript passes `clean`; none is read as markup. Output is coloured in a terminal and
plain when piped. A bug keeps its traceback.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import IO, Any, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from ..config import CompressorConfig
from ..errors import BudgetTooSmall, CompressorError, ConfigError, InvalidMessages, LedgerError
from ..messages.display import clean, one_line

# ---------------------------------------------------------------- blocks of an answer


@dataclass(frozen=True)
class Table:
    """Rows under columns, one line for each row unless it wraps.

    A column whose name ends in `#` holds numbers; the mark is not shown.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | None]]
    styles: Sequence[str] = ()
    """Styles of the rows, in their order."""
    spare: Sequence[str] = ()
    """Columns that a narrow terminal leaves out, in this order."""
    wraps: bool = False
    """Whether the last column is wrapped; it is cut if not."""


STYLES: dict[str, dict[str, Any]] = {
    "bold": {"bold": True},
    **{colour: {"fg": colour} for colour in ("red", "green", "yellow", "cyan")},
}


class Line(NamedTuple):
    """A text in one of `STYLES`."""

    text: str
    style: str = ""


Block = str | Line | Table


def print_answer(
    value: Any, blocks: Iterable[Block], as_json: bool, *, file: IO[str] | None = None
) -> None:
    """Print the value as JSON, or the blocks for a person."""
    file = file or sys.stdout
    if as_json:
        # ASCII: a terminal obeys nothing in it.
        file.write(json.dumps(value, indent=2, default=_to_json) + "\n")
    else:
        print_blocks(blocks, file)


def print_blocks(blocks: Iterable[Block], file: IO[str]) -> None:
    """Print each block as it comes, in colour in a terminal."""
    in_terminal = file.isatty() or "FORCE_COLOR" in os.environ
    in_colour = in_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns if in_terminal else None
    for block in blocks:
        lines = _lay_out(block, width) if isinstance(block, Table) else _wrap_text(block, width)
        for text, style in lines:
            styled = click.style(text, **STYLES[style]) if style and in_colour else text
            click.echo(styled, file, color=in_colour)


def _wrap_text(block: str | Line, width: int | None) -> Iterator[Line]:
    """Yield a text's clean lines, wrapped at a width unless None."""
    text, style = block if isinstance(block, Line) else Line(block)
    for line in clean(text).split("\n"):
        parts = [line]
        if width is not None and cell_len(line) > width:
            parts = textwrap.wrap(line, width, break_on_hyphens=False)
        yield from (Line(part, style) for part in parts)


def with_title(title: str, text: str) -> Iterator[Line]:
    """Yield a text of several lines under its title."""
    yield Line(f"--- {title}", "bold")
    yield Line(text, "yellow")


def number(value: int | None) -> str:
    """Return a count as a person reads it."""
    return "-" if value is None else f"{value:,}"


def undone_note(count: int) -> str:
    """Return ", 2 undone", or "" for none."""
    return f", {number(count)} undone" if count else ""


def money(value: float | None) -> str:
    """Return an amount of dollars as a person reads it."""
    if value is None:
        return "-"
    if 0 < value < 0.0001:
        return "< $0.0001"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def _to_json(value: Any) -> Any:
    is_value = is_dataclass(value) and not isinstance(value, type)
    return asdict(value) if is_value else str(value)


# ---------------------------------------------------------------- tables

GAP = "  "
LEAST_TEXT_CELLS = 36  # with less room for the last column, a spare column is left out
LEAST_WORD_CELLS = 6  # with less room, the last column is left out


def _lay_out(table: Table, width: int | None) -> Iterator[Line]:
    """Lay out a table within a width; None for any width."""
    heads = [name.rstrip("#") for name in table.columns]
    rows = [heads, *([_cell_text(value) for value in row] for row in table.rows)]
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths = dict(enumerate(sizes)) if width is None else _fit_widths(table, sizes, width)
    last = widths.get(len(sizes) - 1) if table.wraps else None
    for row, style in itertools.zip_longest(rows, ["bold", *table.styles], fillvalue=""):
        for line in [row] if last is None else _wrap_cells(row, last):
            cells = [_pad(line[i], widths[i], table.columns[i].endswith("#")) for i in widths]
            yield Line(GAP.join(cells).rstrip(), style)


def _wrap_cells(row: Sequence[str], width: int) -> Iterator[Sequence[str]]:
    """Yield the row with its last cell wrapped, one row per line."""
    *cells, text = row
    for line in textwrap.wrap(text, width, break_on_hyphens=False) or [""]:
        yield [*cells, line]
        cells = [""] * len(cells)


def _fit_widths(table: Table, sizes: Sequence[int], width: int) -> dict[int, int]:
    """Return the widths of the columns that fit, by index.

    First spare columns are left out, then the last column is cut or left out.
    """
    *others, last = range(len(sizes))
    room = width - sum(sizes[index] + len(GAP) for index in others)
    for name in table.spare:
        if room < min(sizes[last], LEAST_TEXT_CELLS):
            index = list(table.columns).index(name)
            others.remove(index)
            room += sizes[index] + len(GAP)
    widths = {index: sizes[index] for index in others}
    if room >= min(sizes[last], LEAST_WORD_CELLS) or not others:
        widths[last] = max(1, min(sizes[last], room))
    return widths


def _cell_text(value: str | int | None) -> str:
    return one_line(value) if isinstance(value, str) else number(value)


def _pad(text: str, width: int, is_number: bool) -> str:
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + "…"
    padding = " " * (width - cell_len(text))
    return padding + text if is_number else text + padding


# ---------------------------------------------------------------- waiting

SECONDS_BEFORE_BAR = 2.0
"""A shorter wait needs no bar."""


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[None]:
    """Draw a bar on stderr after two seconds, in a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
    bar.add_task(title, total=None)
    timer = threading.Timer(SECONDS_BEFORE_BAR, bar.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


# ---------------------------------------------------------------- errors and exit codes

DONE, FOUND_FAULT, BAD_INPUT, DOES_NOT_FIT, LEDGER, INTERRUPTED = 0, 1, 2, 3, 4, 130

EXIT_CODES = {
    DONE: "done, also when there was nothing to do",
    FOUND_FAULT: "a part that is needed does not work (`doctor`), or a hash disagrees (`verify`)",
    BAD_INPUT: "the command line, an option, or the file cannot be used",
    DOES_NOT_FIT: "what cannot be dropped does not fit the window or `--target`",
    LEDGER: (
        "the store is unreachable, damaged or changed by another process, or has no such session"
    ),
    INTERRUPTED: "interrupted",
}
"""Exit code → meaning, for every command; the documentation has the same table."""


class Unusable(CompressorError):
    """A file or an option that the command cannot use."""


FLAGS = {
    # Not every command that opens an encrypted store has `--set`: the environment has its key.
    **{name: f"--set {name}" for name in CompressorConfig.names() if name != "store_key"},
    **{name: f"--{name}" for name in ("model", "namespace", "keep", "since", "until")},
    "auxiliary_model": "--auxiliary-model",
    "context_window": "--window",
    "protect_last_n_tokens": "--keep-tokens",
    "pinned": "--pin",
    "store_url": "--store",
    "target_tokens": "--target",
}
"""Option of the library -> option of the command line."""

_OPTION = re.compile(
    r"(?<!--set )(?<!\w\()(?<![\w'.\-/])"
    r"(?:[a-z]+_[a-z_]+|(?:keep|since|until|model|namespace|pinned)(?==))(?![\w'(])"
)


def options_as_flags(text: str) -> str:
    """Replace the library's options in a text by their flags."""
    if text.startswith("no option"):  # it lists what `--set` takes
        return text
    return _OPTION.sub(lambda match: FLAGS.get(match[0], match[0]), text)


def print_complaint(text: str, *, kind: str = "") -> None:
    """Print one line on stderr."""
    print(one_line(f"praison-compressor: {kind}{text}"), file=sys.stderr)


@contextlib.contextmanager
def report_errors() -> Iterator[None]:
    """Turn an expected error into one line and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except CompressorError as error:
        print_complaint(options_as_flags(str(error)))
        raise click.exceptions.Exit(_exit_code(error)) from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("praison_compressor"):
            raise
        print_complaint(f"{error.name} is not installed; pip install {error.name}")
        raise click.exceptions.Exit(FOUND_FAULT) from error
    except BrokenPipeError as error:
        # `| head` has read enough. Python would complain at exit when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(DONE) from error
    except OSError as error:
        print_complaint(f"{error.filename or 'output'}: {error.strerror or error}")
        raise click.exceptions.Exit(FOUND_FAULT) from error
    except KeyboardInterrupt as error:
        print_complaint("interrupted")
        raise click.exceptions.Exit(INTERRUPTED) from error


def _exit_code(error: CompressorError) -> int:
    if isinstance(error, BudgetTooSmall):
        return DOES_NOT_FIT
    if isinstance(error, LedgerError):
        return LEDGER
    return BAD_INPUT if isinstance(error, (Unusable, ConfigError, InvalidMessages)) else FOUND_FAULT


@contextlib.contextmanager
def mute_log() -> Iterator[None]:
    """Disable log warnings, because the command itself reports the same."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
