"""Print results, progress and one-line errors; read and write transcripts.

Text of a transcript passes `clean`: a terminal must obey no control character in the text.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from ..config import CompressorConfig
from ..errors import BudgetTooSmall, CompressorError, ConfigError, InvalidMessages, LedgerError
from ..messages.display import clean, escape_controls, one_line
from ..messages.repair import RESPONSES_REMEDY

# ---------------------------------------------------------------- blocks of an answer


@dataclass(frozen=True)
class Table:
    """Rows under column names.

    A column whose name ends in `#` has numbers; the `#` is not shown.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | None]]
    styles: Sequence[str] = ()
    """A style for each row."""
    spare: Sequence[str] = ()
    """Columns that a narrow terminal leaves out, in this order."""
    wraps: bool = False
    """Whether the last column is wrapped, not cut."""


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
        # JSON in ASCII has no control character that a terminal obeys.
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


def undone_note(count: int) -> str:
    """Return ", 2 undone", or "" for none."""
    return f", {count:,} undone" if count else ""


def _to_json(value: Any) -> Any:
    is_value = is_dataclass(value) and not isinstance(value, type)
    return asdict(value) if is_value else str(value)


# ---------------------------------------------------------------- tables

GAP = "  "
LEAST_TEXT_CELLS = 36
"""A spare column is left out if the last column would be narrower."""


def _lay_out(table: Table, width: int | None) -> Iterator[Line]:
    """Lay out a table within a width; None for any width.

    `rich.table` is not used: it takes 40 s for 20,000 messages, fifty times longer.
    """
    heads = [name.rstrip("#") for name in table.columns]
    rows = [heads, *([_cell_text(value) for value in row] for row in table.rows)]
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths = dict(enumerate(sizes)) if width is None else _fit_widths(table, sizes, width)
    for row, style in itertools.zip_longest(rows, ["bold", *table.styles], fillvalue=""):
        for line in _wrap_cells(row, widths[len(sizes) - 1]) if table.wraps else [row]:
            cells = [_pad(line[i], widths[i], table.columns[i].endswith("#")) for i in widths]
            yield Line(GAP.join(cells).rstrip(), style)


def _wrap_cells(row: Sequence[str], width: int) -> Iterator[Sequence[str]]:
    *cells, text = row
    for line in textwrap.wrap(text, width, break_on_hyphens=False) or [""]:
        yield [*cells, line]
        cells = [""] * len(cells)


def _fit_widths(table: Table, sizes: Sequence[int], width: int) -> dict[int, int]:
    """Return column widths by index, without spare columns that do not fit."""
    *others, last = range(len(sizes))
    room = width - sum(sizes[index] + len(GAP) for index in others)
    for name in table.spare:
        if room < min(sizes[last], LEAST_TEXT_CELLS):
            index = list(table.columns).index(name)
            others.remove(index)
            room += sizes[index] + len(GAP)
    return {**{index: sizes[index] for index in others}, last: max(1, min(sizes[last], room))}


def _cell_text(value: str | int | None) -> str:
    return one_line(value) if isinstance(value, str) else "-" if value is None else f"{value:,}"


def _pad(text: str, width: int, is_number: bool) -> str:
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + "…"
    padding = " " * (width - cell_len(text))
    return padding + text if is_number else text + padding


# ---------------------------------------------------------------- waiting

SECONDS_BEFORE_SIGN = 2.0
"""A shorter wait shows no sign of work."""


@contextlib.contextmanager
def show_progress(title: str) -> Iterator[None]:
    """Show in a terminal, after two seconds, that work goes on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(title)
    timer = threading.Timer(SECONDS_BEFORE_SIGN, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


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
"""Exit code → meaning, for every command."""


class Unusable(CompressorError):
    """A file or an option that the command cannot use."""


FLAGS = {
    # The key of the store comes from the environment: not every command has `--set`.
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

_OPTION = re.compile(r"(?<![\w'./-])(?<!\w\()(?:[a-z]+_[a-z_]+|[a-z]+(?==))(?![\w'(])")
"""Finds `trigger_ratio` and `limit=`, but no names in quotes, paths or calls."""


def options_as_flags(text: str) -> str:
    """Replace the library's options in a text by their flags."""
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
    except Unusable as error:
        print_complaint(str(error))
        raise click.exceptions.Exit(BAD_INPUT) from error
    except CompressorError as error:
        print_complaint(options_as_flags(str(error)))
        raise click.exceptions.Exit(_exit_code(error)) from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("praison_compressor"):
            raise
        print_complaint(f"{error.name} is not installed; pip install {error.name}")
        raise click.exceptions.Exit(FOUND_FAULT) from error
    except BrokenPipeError as error:
        # Redirect stdout: after `| head` closed the pipe, Python would complain when it flushes.
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
    return BAD_INPUT if isinstance(error, (ConfigError, InvalidMessages)) else FOUND_FAULT


@contextlib.contextmanager
def mute_log() -> Iterator[None]:
    """Disable log warnings, because the command itself reports the same."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


# -------------------------------------------------------------- files with messages

ACCEPTED = (
    'a JSON list of chat messages, {"messages": [...]}, or JSON Lines with one message a line '
    "or one conversation a line"
)


def load_transcript(path: str, number: int | None = None) -> list[Any]:
    """Return a file's only or chosen conversation; `-` is standard input."""
    with _refuse_unusable(path):
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        conversations = [_check_messages(value) for value in _parse_values(raw.decode("utf-8-sig"))]
    except (ValueError, RecursionError) as error:
        wrong = _position(error) if isinstance(error, json.JSONDecodeError) else error
        raise Unusable(f"{path}: not a transcript: {wrong}; expected {ACCEPTED}") from error
    if not any(conversations):
        raise Unusable(f"{path}: holds no messages; expected {ACCEPTED}")
    count = len(conversations)
    if number is None and count > 1:
        raise Unusable(f"{path}: {count} conversations; choose one by --conversation 1 to {count}")
    if number is not None and not 1 <= number <= count:
        raise Unusable(f"{path}: no conversation {number}, there are {count}")
    return conversations[(number or 1) - 1]


def _parse_values(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        value = _parse_lines(text, error)
    # A list with any message is one conversation, perhaps with faulty items.
    is_several = isinstance(value, list) and value and not any(map(_is_message, value))
    return value if is_several else [value]


def _parse_lines(text: str, whole_error: ValueError) -> list[Any]:
    values: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                values.append(json.loads(line))
        except json.JSONDecodeError as error:
            # If the first line is no JSON, the file is one broken value.
            raise (ValueError(_position(error, number)) if values else whole_error) from error
    return values


def _position(error: json.JSONDecodeError, line: int | None = None) -> str:
    return f"line {line or error.lineno}, column {error.colno}: {error.msg}"


def _check_messages(value: Any) -> list[Any]:
    messages = value.get("messages") if isinstance(value, Mapping) else value
    if not isinstance(messages, list):
        raise ValueError(f"found {_describe_kind(value)}")
    for index, message in enumerate(messages):
        if not _is_message(message):
            raise ValueError(f"message {index} is {_describe_kind(message)}")
    return messages


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "role" in value


def _describe_kind(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return f"an item of OpenAI's Responses API (see {RESPONSES_REMEDY})"
    return "an object without a role" if isinstance(value, Mapping) else type(value).__name__


# ---------------------------------------------------------------- writing


def write_messages(path: str, messages: Sequence[Any], *, source: str) -> None:
    """Write messages as JSON, or as JSON Lines to a `.jsonl` file."""
    values, indent = (messages, None) if path.endswith(".jsonl") else ([messages], 2)
    texts = (json.dumps(value, ensure_ascii=False, indent=indent) for value in values)
    write_text(path, "".join(f"{escape_controls(text)}\n" for text in texts), source=source)


def write_text(path: str, text: str, *, source: str = "-") -> None:
    """Write a file that only its owner reads; `-` is stdout.

    Raises:
        Unusable: the file is `source` or a ledger, or cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    check_writable(path, source=source)
    with (
        _refuse_unusable(path),
        open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file,
    ):
        file.write(text.encode("utf-8"))


def check_writable(path: str, *, source: str = "-") -> None:
    """Refuse an unwritable path, a database, and the source itself."""
    target = Path(path)
    with _refuse_unusable(path):
        if not target.absolute().parent.is_dir():
            raise Unusable(f"{path}: there is no folder {target.parent}")
        if source != "-" and target.exists() and target.samefile(source):
            raise Unusable(f"{path}: is the transcript itself; its originals would be lost")
        if target.is_file() and _is_database(target):
            raise Unusable(f"{path}: is a database; the sessions in it would be lost")


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


@contextlib.contextmanager
def _refuse_unusable(path: str) -> Iterator[None]:
    """Raise `Unusable` where the system refuses a path."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: {getattr(error, 'strerror', None) or error}") from error
