"""What a command prints: lines and tables for a person, JSON for a program, one for errors.

Every text from a transcript passes `clean`, and no text is read as markup. Output is coloured in a
terminal and plain when piped. An error of the library is one line on stderr and an exit code; a
bug keeps its traceback.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import IO, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ..errors import BudgetTooSmall, CompressorError, ConfigError, InvalidMessages, LedgerError
from ..messages.display import clean, one_line

# ---------------------------------------------------------------- what a command has to say


@dataclass(frozen=True)
class Line:
    """A line of text in a style of rich's."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns; a column whose name ends in `#` holds numbers, the mark is not shown."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | None]]
    styles: Sequence[str] = ()
    """Of the rows, in their order."""


Piece = str | Line | Table


@dataclass(frozen=True)
class Answer:
    """What a command found: a value for a program, and the same for a person."""

    value: Any
    """What `--json` prints, or a function that makes it."""
    shown: Iterable[Piece]
    code: int = 0
    """The exit code."""
    on_stderr: bool = False
    """Standard output is the transcript itself."""

    def print(self, *, as_json: bool) -> None:
        """Print it for whoever asked."""
        file = sys.stderr if self.on_stderr else sys.stdout
        if as_json:
            # Escaped to ASCII, so that no terminal obeys it either.
            value = self.value() if callable(self.value) else self.value
            file.write(json.dumps(value, indent=2, default=_plain) + "\n")
        else:
            show(self.shown, file)


# ---------------------------------------------------------------- printing

PIPED_WIDTH = 10_000
"""Wide enough that nothing wraps: a line of a piped table is a row."""


def number(value: int | None) -> str:
    """A count for a person."""
    return "-" if value is None else f"{value:,}"


def money(value: float | None) -> str:
    """An amount of dollars for a person."""
    if value is None:
        return "-"
    if 0 < value < 0.0001:
        return "< $0.0001"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def show(pieces: Iterable[Piece], file: IO[str]) -> None:
    """Print each piece as it comes."""
    console = Console(file=file, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    for piece in pieces:
        if isinstance(piece, Table) and console.is_terminal:
            console.print(_drawn(piece, boxed=True))
        elif isinstance(piece, Table):
            with console.capture() as drawn:
                console.print(_drawn(piece, boxed=False))
            file.writelines(f"{line.rstrip()}\n" for line in drawn.get().splitlines())
        else:
            line = piece if isinstance(piece, Line) else Line(piece)
            console.print(Text(clean(line.text), line.style), soft_wrap=not console.is_terminal)


def titled(title: str, text: str) -> Iterator[Line]:
    """A text of several lines under its title."""
    yield Line(f"--- {title}", "bold")
    yield Line(text, "yellow")


def _drawn(table: Table, *, boxed: bool) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD if boxed else None, pad_edge=False)
    for column in table.columns:
        is_number = column.endswith("#")
        drawn.add_column(
            column.rstrip("#"),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",  # a name cut short names nothing
        )
    for row, style in itertools.zip_longest(table.rows, table.styles):
        drawn.add_row(*map(_cell, row), style=style)
    return drawn


def _cell(value: str | int | None) -> Text:
    return Text(clean(value if isinstance(value, str) else number(value)))


def _plain(value: Any) -> Any:
    is_value = is_dataclass(value) and not isinstance(value, type)
    return asdict(value) if is_value else str(value)


# ---------------------------------------------------------------- errors and exit codes

DONE, FOUND_FAULT, BAD_INPUT, DOES_NOT_FIT, LEDGER, INTERRUPTED = 0, 1, 2, 3, 4, 130

EXIT_CODES = {
    DONE: "done, also when there was nothing to do",
    FOUND_FAULT: "something that is needed does not work (`doctor`) or does not hold (`verify`)",
    BAD_INPUT: "the command line, an option, or the file cannot be used",
    DOES_NOT_FIT: "what cannot be dropped does not fit the window or `--target`",
    LEDGER: "the store: not reachable, no such session, damaged, or changed by another",
    INTERRUPTED: "interrupted",
}
"""Of every command; the documentation's table is made from it."""


class Unusable(CompressorError):
    """A file or an option that the command cannot work with."""


def complain(text: str, *, kind: str = "") -> None:
    """Print one line on stderr, whatever is in the text."""
    print(one_line(f"praison-compressor: {kind}{text}"), file=sys.stderr)


@contextlib.contextmanager
def errors_in_a_line(flags: Mapping[str, str]) -> Iterator[None]:
    """Turn an error of the library or the system into one line on stderr and an exit code.

    Options in it are named as they are on the command line: `flags`, by their names in Python.
    """
    try:
        yield
    except CompressorError as error:
        complain(_as_flags(str(error), flags))
        raise typer.Exit(_code(error)) from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("praison_compressor"):
            raise
        complain(f"{error.name} is not installed; pip install {error.name}")
        raise typer.Exit(FOUND_FAULT) from error
    except BrokenPipeError:
        raise  # whoever reads the output has seen enough: click ends without a word
    except OSError as error:
        complain(f"{error.filename or 'output'}: {error.strerror or error}")
        raise typer.Exit(FOUND_FAULT) from error
    except KeyboardInterrupt as error:
        complain("interrupted")
        raise typer.Exit(INTERRUPTED) from error


def _as_flags(text: str, flags: Mapping[str, str]) -> str:
    """The text with "output_reserve" as "--output-reserve", and "limit=0" as "--limit 0"."""

    def flag(found: re.Match[str]) -> str:
        name, equals = found.groups()
        is_option = name in flags and (equals or "_" in name)
        return flags[name] + " " * len(equals) if is_option else found[0]

    # Not within a path or a URL.
    return re.sub(r"(?<![\w?&/.-])([a-z_]+)\b(?![/.-]\w)(=?)", flag, text)


def _code(error: CompressorError) -> int:
    if isinstance(error, BudgetTooSmall):
        return DOES_NOT_FIT
    if isinstance(error, LedgerError):
        return LEDGER
    return BAD_INPUT if isinstance(error, (Unusable, ConfigError, InvalidMessages)) else FOUND_FAULT


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Keep warnings out of the log where the command says the same in its own words."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
