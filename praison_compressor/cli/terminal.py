"""What a command prints: lines, tables and panels for a person, JSON for a program, one for errors.

Every text from a transcript passes `clean`, and no text is read as markup. Output is coloured in a
terminal and plain when piped. An error of the library is one line on stderr and an exit code; a
bug keeps its traceback.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import IO, Any

import typer
from rich import box
from rich.console import Console
from rich.panel import Panel as RichPanel
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
    last_is_total: bool = False


@dataclass(frozen=True)
class Panel:
    """A text with a title, in a frame where a person is watching."""

    title: str
    text: str
    style: str = ""


Piece = str | Line | Table | Panel


@dataclass(frozen=True)
class Answer:
    """What a command found: a value for a program, and the same for a person."""

    value: Any
    """What `--json` prints, or a function that makes it."""
    shown: Iterable[Piece]
    code: int = 0
    """The exit code."""
    on_stderr: bool = False
    """For a command whose standard output is the transcript itself."""

    def print(self, *, as_json: bool) -> None:
        """Print it for whoever asked."""
        screen = Screen(sys.stderr if self.on_stderr else sys.stdout)
        if as_json:
            screen.json(self.value() if callable(self.value) else self.value)
        else:
            screen.show(self.shown)


# ---------------------------------------------------------------- printing

PIPED_WIDTH = 10_000
"""Wide enough that nothing wraps: a line of a piped table is a row."""


def number(value: int | None) -> str:
    """A count for a person."""
    return "-" if value is None else f"{value:,}"


class Screen:
    """Prints to a file, which may be a terminal."""

    def __init__(self, file: IO[str]) -> None:
        self.console = Console(file=file, markup=False, highlight=False, emoji=False)
        self.is_terminal = self.console.is_terminal
        if not self.is_terminal:
            self.console.width = PIPED_WIDTH

    def show(self, pieces: Iterable[Piece]) -> None:
        """Print each piece as it comes."""
        for piece in pieces:
            if isinstance(piece, Table):
                self._table(piece)
            elif isinstance(piece, Panel):
                self._panel(piece)
            else:
                self._line(piece if isinstance(piece, Line) else Line(piece))

    def json(self, value: Any) -> None:
        """Print a value for a program: escaped to ASCII, so that no terminal obeys it either."""
        self.console.file.write(json.dumps(value, indent=2, default=_plain) + "\n")

    def _line(self, line: Line) -> None:
        self.console.print(Text(clean(line.text), line.style), soft_wrap=not self.is_terminal)

    def _table(self, table: Table) -> None:
        drawn = RichTable(box=box.SIMPLE_HEAD if self.is_terminal else None, pad_edge=False)
        for column in table.columns:
            is_number = column.endswith("#")
            drawn.add_column(
                column.rstrip("#"),
                justify="right" if is_number else "left",
                no_wrap=is_number,
                overflow="fold",  # a name cut short names nothing
            )
        for index, row in enumerate(table.rows):
            style = table.styles[index] if index < len(table.styles) else ""
            if table.last_is_total and index == len(table.rows) - 1:
                drawn.add_section()
                style = "bold"
            drawn.add_row(*map(_cell, row), style=style)
        if self.is_terminal:
            self.console.print(drawn)
            return
        with self.console.capture() as captured:
            self.console.print(drawn)
        lines = [line.rstrip() for line in captured.get().splitlines()]
        self.console.file.write("".join(f"{line}\n" for line in lines if line))

    def _panel(self, panel: Panel) -> None:
        title, text = Text(clean(panel.title)), Text(clean(panel.text))
        if self.is_terminal:
            frame = RichPanel(text, title=title, title_align="left", border_style=panel.style)
            self.console.print(frame)
        else:
            self.show([f"--- {panel.title}", panel.text])


def _cell(value: str | int | None) -> Text:
    return Text(clean(value if isinstance(value, str) else number(value)))


def _plain(value: Any) -> Any:
    is_value = is_dataclass(value) and not isinstance(value, type)
    return asdict(value) if is_value else str(value)


@contextlib.contextmanager
def progress(what: str, *, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr where a person is waiting; yields what moves it: done, of how many."""
    screen = Screen(sys.stderr)
    if not (shown and screen.is_terminal):
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=screen.console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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

EXTRAS = {"psycopg": "'praison-compressor[postgres]'"}
"""What to install for a missing module, where it is not named as the module is."""


class Unusable(CompressorError):
    """A file or an option that the command cannot work with."""


def complain(text: str, *, kind: str = "") -> None:
    """Print one line on stderr, whatever is in the text."""
    print(one_line(f"praison-compressor: {kind}{text}"), file=sys.stderr)


@contextlib.contextmanager
def errors_in_a_line() -> Iterator[None]:
    """Turn an error of the library or the system into one line on stderr and an exit code."""
    try:
        yield
    except CompressorError as error:
        complain(str(error))
        raise typer.Exit(_code(error)) from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("praison_compressor"):
            raise
        wanted = EXTRAS.get(str(error.name), error.name)
        complain(f"{error.name} is not installed; pip install {wanted}")
        raise typer.Exit(FOUND_FAULT) from error
    except BrokenPipeError:
        raise  # whoever reads the output has seen enough: click ends without a word
    except OSError as error:
        complain(f"{error.filename or 'output'}: {error.strerror or error}")
        raise typer.Exit(FOUND_FAULT) from error
    except KeyboardInterrupt as error:
        complain("interrupted")
        raise typer.Exit(INTERRUPTED) from error


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
