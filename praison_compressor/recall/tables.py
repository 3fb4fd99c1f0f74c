"""Lay out JSON of like objects as tables, each key once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

LEAST_CHARS, MOST_SHARE = 800, 0.8
"""A text stays without a table if it is shorter, or if the table takes a larger share of it."""
LIKE = 3
"""Least number of objects with the same keys that are a table."""

_ENDS_A_CELL = frozenset(";\n")

Record = tuple[str, dict[str, str]]
"""The path to an object, and its values by key."""


class Row(NamedTuple):
    """A line of a table."""

    line: str
    heads: tuple[int, ...] = ()
    """Places of the lines that name the row's keys and path."""


def may_be_table(text: str) -> bool:
    """Return whether a text is long, and begins as JSON does."""
    return len(text) >= LEAST_CHARS and text.lstrip()[:1] in ("{", "[")


def table_of(text: str) -> str:
    """Return long JSON as tables, or "" if they save little."""
    table = as_table(text) if may_be_table(text) else ""
    return table if len(table) <= MOST_SHARE * len(text) else ""


def as_table(text: str) -> str:
    """Return JSON with like objects as tables, "" without any.

    >>> print(as_table('{"of": {"a": {"n": 1, "ok": true}, "b": {"n": 2, "ok": false}, '
    ...                '"c": {"n": 3, "ok": true}}}'))
    of.*: n; ok
    a: 1; true
    b: 2; false
    c: 3; true
    """
    return "\n".join(row.line for row in table_rows(text))


def table_rows(text: str) -> list[Row]:
    """Return the lines of JSON as tables, nothing without like objects."""
    try:
        records = list(_records(json.loads(text), ""))
    except (ValueError, RecursionError):
        return []
    times = Counter(tuple(values) for _, values in records)
    if max(times.values(), default=0) < LIKE:
        return []
    rows, keys, before = list[Row](), tuple[str, ...](), ""
    heads = tuple[int, ...]()
    for path, values in records:
        above, _, key = path.rpartition(".")
        if times[tuple(values)] < LIKE:
            pairs = ", ".join(f"{name}: {value}" for name, value in values.items())
            rows.append(Row(f"{path}: {pairs}" if path else pairs))
        else:
            if keys != tuple(values):
                heads = (len(rows),)
                rows.append(Row(f"{above}.*: {'; '.join(values)}".removeprefix(".")))
            elif above != before:
                heads = heads[0], len(rows)
                rows.append(Row(f"{above}.*:", heads[:1]))
            cells = "; ".join(values.values())
            is_named = key[:1] == "[" or key in values.values()
            rows.append(Row(cells if is_named else f"{key}: {cells}", heads))
        keys, before = tuple(values), above
    return rows


def best_rows(rows: Sequence[Row], scores: Sequence[float], most: int) -> str:
    """Return a table's best rows with their heads, up to `most` characters.

    Equal rows are shown once. Rows without a score, those beside the best one first, fill half of
    the room beside ones with a score. A mark counts the rows of each gap.
    """
    heads = {head for row in rows for head in row.heads}
    scores = [0.0 if n in heads else score for n, score in enumerate(scores)]
    # Objects of one list belong together: of equal rows the one beside another match.
    pairs = zip([0.0, *scores], scores, [*scores[1:], 0.0], strict=False)
    beside = [score + max(above, below) / 2 for above, score, below in pairs]
    best = beside.index(max(beside))
    filled = most // 2 if scores[best] and rows[best].heads else most
    kept, size = dict[int, str](), 0
    for number in sorted(range(len(rows)), key=lambda n: (-scores[n], abs(n - best))):
        if rows[number].line in kept.values():
            continue
        added = {n: rows[n].line for n in (number, *rows[number].heads) if n not in kept}
        size += sum(map(len, added.values())) + len(added)
        if kept and size > (most if scores[number] else filled):
            break
        kept |= added
    ends = zip(numbers := sorted(kept), [*numbers[1:], len(rows)], strict=True)
    return "\n".join(kept[n] + _row_gap(end - n - 1) for n, end in ends)


def _row_gap(omitted: int) -> str:
    return f"\n… {omitted} row{'s' * (omitted > 1)} left out" if omitted else ""


def _records(value: Any, path: str) -> Iterator[Record]:
    """Yield the objects in order; plain objects join their parent."""
    if isinstance(value, list):
        value = {f"[{number}]": each for number, each in enumerate(value)}
    if not isinstance(value, dict):
        return
    inner = {key: each for key, each in value.items() if _is_nested(each)}
    plain = {key: each for key, each in value.items() if key not in inner}
    if all(isinstance(each, dict) for each in plain.values()):
        inner, plain = value, {}
    if plain:
        yield path, dict(_flat(plain, ""))
    for key, each in inner.items():
        yield from _records(each, f"{path}.{key}".removeprefix("."))


def _is_nested(value: Any) -> bool:
    """Return whether a value holds objects or lists below its first level."""
    inside = value.values() if isinstance(value, dict) else value
    return isinstance(value, (dict, list)) and any(
        isinstance(each, (dict, list)) for each in inside
    )


def _flat(values: dict[Any, Any], path: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values, those of inner objects with the path."""
    for key, value in values.items():
        name = f"{path}.{key}".removeprefix(".")
        if isinstance(value, dict) and value:
            yield from _flat(value, name)
        elif isinstance(value, str) and not _ENDS_A_CELL & set(value):
            yield name, value
        else:
            yield name, json.dumps(value, ensure_ascii=False)
