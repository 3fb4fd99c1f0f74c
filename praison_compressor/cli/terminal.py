"""What a person sees: rich in a terminal, plain when piped, and nothing that a transcript slips in.

Every text from a transcript passes `clean`, and no text is ever read as markup.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..compressor.preview import Part, named
from ..compressor.result import CompressResult
from ..messages import Message, digest, read
from ..messages.display import clean
from ..tokens.counter import TokenCounter

__all__ = [
    "Screen",
    "number",
    "of_result",
    "progress",
    "show",
]


# -------------------------------------------------------------- terminal


PIPED_WIDTH = 10_000
"""Wide enough that nothing wraps: a line of a piped table is a row."""


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
                column.rstrip("#"),
                justify="right" if is_number else "left",
                no_wrap=is_number,
                overflow="fold",  # a name cut short names nothing
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


@contextlib.contextmanager
def progress(what: str, *, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr where a person is waiting; yields what moves it: done, of how many."""
    screen = Screen(sys.stderr)
    if not (shown and screen.is_terminal):
        yield lambda done, total: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    counted = (MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, *counted, console=screen.console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# -------------------------------------------------------------- parts


def of_result(given: Sequence[Message], result: CompressResult, tokens: TokenCounter) -> list[Part]:
    """The parts of a view that was made of `given`."""
    originals = read(given).messages
    parts: list[Part] = []
    waiting = list(result.segments)
    at = 0
    for message in result.messages:
        segment = waiting[0] if waiting and message == waiting[0].rendered else None
        end = at + (len(segment.run) if segment else 1)
        before = sum(map(tokens.message, originals[at:end]))
        masked = int(segment is None and digest(message) != digest(originals[at]))
        parts.append(Part("", at, end - at, before, tokens.message(message), masked, segment))
        if segment is not None:
            waiting.pop(0)
        at = end
    return named(parts)


def show(
    screen: Screen, parts: Sequence[Part], what: Sequence[str], *, view_messages: int, opens: int
) -> None:
    """The table of the parts, `what` said of each; `opens` are the tokens of the reply's frame."""
    before = sum(part.tokens_before for part in parts) + opens
    after = sum(part.tokens_after for part in parts) + opens
    messages = sum(part.messages for part in parts)
    saved = f"{100 * (before - after) / before:.0f} % saved" if after < before else ""
    rows = [
        [part.name, number(part.messages), number(part.tokens_before), number(part.tokens_after), w]
        for part, w in zip(parts, what, strict=True)
    ]
    rows.append(
        ["total", f"{messages:,} -> {view_messages:,}", number(before), number(after), saved]
    )
    styles = ["yellow" if part.segment or part.to_write else "" for part in parts]
    screen.table(
        ["part", "messages#", "tokens before#", "tokens after#", "what"],
        rows,
        last_is_total=True,
        styles=styles,
    )
