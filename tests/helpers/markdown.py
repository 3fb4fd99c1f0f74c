"""Write Markdown tables."""

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of these columns, a line for each row."""
    return "\n".join([_line(columns), "|" + "---|" * len(columns), *map(_line, rows)])


def _cell(value: object) -> str:
    """Return a value on one line, its bars escaped."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"
