"""Lay out JSON of like objects as tables, each key once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

__all__ = ["as_table", "table_of"]

LEAST_CHARS, MOST_SHARE = 800, 0.7
"""A shorter text stays as it is; so does a text whose table takes a larger share of it."""
LIKE = 3
"""Objects with the same keys from which on they are a table."""

_ENDS_A_CELL = frozenset(";\n")

Record = tuple[str, dict[str, str]]
"""The path to an object, and its values by key."""


def table_of(text: str) -> str:
    """Return long JSON as tables, or "" if they save little."""
    table = as_table(text) if len(text) >= LEAST_CHARS else ""
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
    try:
        records = list(_records(json.loads(text), ""))
    except (ValueError, RecursionError):
        return ""
    times = Counter(tuple(values) for _, values in records)
    if max(times.values(), default=0) < LIKE:
        return ""
    lines, keys, before = list[str](), tuple[str, ...](), ""
    for path, values in records:
        above, _, key = path.rpartition(".")
        if times[tuple(values)] < LIKE:
            pairs = ", ".join(f"{name}: {value}" for name, value in values.items())
            lines.append(f"{path}: {pairs}" if path else pairs)
        else:
            if keys != tuple(values):
                lines.append(f"{above}.*: {'; '.join(values)}".removeprefix("."))
            elif above != before:
                lines.append(f"{above}.*:")
            row = "; ".join(values.values())
            lines.append(row if key[:1] == "[" or key in values.values() else f"{key}: {row}")
        keys, before = tuple(values), above
    return "\n".join(lines)


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
