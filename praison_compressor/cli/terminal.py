"""What a person sees: rich in a terminal, plain when piped, and nothing that a transcript slips in.

Every text from a transcript passes `clean`, and no text is ever read as markup.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

__all__ = ["Screen", "clean", "excerpt", "number", "one_line"]

_SEQUENCES = re.compile(
    # Strings for the terminal (titles, clipboard, links), only where they end: an unclosed one
    # must not swallow the text after it. Then CSI and the short escapes.
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
_LINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters, marks that reorder what is read, and halves of characters.
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_HALVES = re.compile(r"[\ud800-\udfff]")

PIPED_WIDTH = 10_000
"""Wide enough that nothing wraps: a line of a piped table is a row."""


def clean(text: str) -> str:
    """The text without anything that a terminal would obey; line breaks and tabs stay."""
    text = _SEQUENCES.sub("", text)
    text = _LINES.sub("\n", text)
    return _HALVES.sub("\ufffd", _UNSEEN.sub("", text))


def one_line(text: str) -> str:
    """The text, clean, on one line."""
    return " ".join(clean(text).split())


def excerpt(text: str, width: int) -> str:
    """The beginning of a text on one line of at most `width` characters."""
    # Cutting first: a message may have megabytes.
    line = one_line(text[: 8 * width + 4_096])
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def number(value: int | None) -> str:
    """A count for a person."""
    return "-" if value is None else f"{value:,}"


class Screen:
    """Where a command writes: standard output unless told otherwise."""

    def __init__(self, file: IO[str] | None = None, *, width: int | None = None) -> None:
        out = sys.stdout if file is None else file
        self.console = Console(file=out, markup=False, highlight=False, emoji=False, width=width)
        if not self.is_terminal and width is None:
            self.console.width = PIPED_WIDTH

    @property
    def is_terminal(self) -> bool:
        """Whether a person is watching."""
        return self.console.is_terminal

    @property
    def width(self) -> int:
        """Columns to fill; a pipe has no end of them."""
        return min(self.console.width, 120) if self.is_terminal else 120

    def say(self, text: str = "", style: str = "") -> None:
        """A line of text."""
        self.console.print(Text(clean(text), style=style), soft_wrap=not self.is_terminal)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        last_is_total: bool = False,
        styles: Sequence[str] = (),
    ) -> None:
        """A table; a column whose name ends in `#` holds numbers, the mark is not shown."""
        table = Table(box=box.SIMPLE_HEAD if self.is_terminal else None, pad_edge=False)
        for column in columns:
            is_number = column.endswith("#")
            table.add_column(
                column.rstrip("#"), justify="right" if is_number else "left", no_wrap=is_number
            )
        body = list(rows)
        for index, row in enumerate(body):
            is_total = last_is_total and index == len(body) - 1
            if is_total and self.is_terminal:
                table.add_section()
            style = "bold" if is_total else styles[index] if index < len(styles) else ""
            table.add_row(*(Text(clean(cell)) for cell in row), style=style)
        self._print(table)

    def _print(self, table: Table) -> None:
        if self.is_terminal:
            self.console.print(table)
            return
        with self.console.capture() as captured:
            self.console.print(table)
        lines = [line.rstrip() for line in captured.get().splitlines()]
        self.console.file.write("\n".join(lines) + "\n")

    def panel(self, title: str, text: str, style: str = "") -> None:
        """A text with a title, in a frame where a person is watching."""
        if self.is_terminal:
            body = Text(clean(text))
            self.console.print(
                Panel(body, title=Text(clean(title)), title_align="left", border_style=style)
            )
            return
        self.say(f"--- {title}")
        self.say(text)

    def json(self, value: Any) -> None:
        """A value for a program: escaped to ASCII, so that no terminal obeys it either."""
        self.console.file.write(json.dumps(value, indent=2, default=str) + "\n")
