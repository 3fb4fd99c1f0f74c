"""Split texts into the lines that references count; show JSON as tables.

Every line is a slice of its text. A wrapped line ends without a line break.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ..messages.display import pluralize

LONG_LINE_CHARS, WRAPPED_CHARS = 400, 200
"""A line longer than LONG_LINE_CHARS is cut into lines of about WRAPPED_CHARS, because JSON is
often one line."""
PACKED_CHARS = 120

_JSON_TOKEN = re.compile(
    r"""\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}\[\],:]|[^\s"'{}\[\],:]+|.""", re.DOTALL
)
_BEGINS_JSON = re.compile(r"""\{(?=\s*["'])|\[(?=\s*["'{\[\d-])""")
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")


def split_lines(text: str) -> list[str]:
    """Return a text's lines; long lines are wrapped, JSON between its members."""
    lines: list[str] = []
    for line in text.split("\n"):
        pieces = _split_members(line) if len(line) > LONG_LINE_CHARS else [line]
        for piece in pieces:
            lines += _wrap(piece) if len(piece) > LONG_LINE_CHARS else [piece]
    return lines


def _wrap(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > WRAPPED_CHARS * 2:
        least, most = start + WRAPPED_CHARS // 2, start + WRAPPED_CHARS
        escaped = line.rfind("\\n", least, most) + 2
        cut = max(line.rfind(mark, least, most) for mark in (" ", ",", ";")) + 1
        end = escaped if escaped > 1 else cut or most
        yield line[start:end]
        start = end
    yield line[start:]


def _split_members(line: str) -> list[str]:
    begin = _BEGINS_JSON.search(line)
    if begin is None:
        return [line]
    ends = [0, *_member_ends(line, begin.start()), len(line)]
    pieces: list[str] = []
    for start, end in pairwise(ends):
        piece = line[start:end]
        before = pieces[-1] if pieces else ""
        begins_item = piece[:1] in _OPENING or before.rstrip()[-1:] in _OPENING
        if pieces and len(before) + len(piece) <= PACKED_CHARS and not begins_item:
            pieces[-1] += piece
        elif piece:
            pieces.append(piece)
    return pieces


def _member_ends(line: str, begin: int) -> Iterator[int]:
    """Yield members' ends in objects and arrays longer than `WRAPPED_CHARS`."""
    tokens = [token for token in _JSON_TOKEN.finditer(line, begin) if not token[0].isspace()]
    ends: dict[int, int] = {}
    open_at: list[int] = []
    for token in tokens:
        if token[0] in _OPENING:
            open_at.append(token.start())
        elif token[0] in _CLOSING and open_at:
            ends[open_at.pop()] = token.end()
    inside: list[bool] = []
    before = ""
    for token in tokens:
        if token[0] in _OPENING:
            size = ends.get(token.start(), len(line)) - token.start()
            inside.append(size > WRAPPED_CHARS)
        elif token[0] in _CLOSING and inside:
            inside.pop()
        # An item's bracket stays beside its first member.
        is_end = token[0] == "," or (token[0] in _OPENING and before not in ("[", ","))
        if is_end and inside and inside[-1]:
            yield token.end() + (line[token.end() : token.end() + 1] == " ")
        before = token[0]


def json_paths(text: str, lines: Sequence[str]) -> list[str]:
    """Return each line's path in a JSON text split by `split_lines`.

    >>> json_paths(text := '{"rows": [\\n{"id": 7,\\n"name": "x"}]}', split_lines(text))
    ['', 'rows', 'rows[0]']
    """
    begin = _BEGINS_JSON.search(text)
    is_json = begin is not None and (text[: begin.start()].strip() == "" or len(lines) > 1)
    if begin is None or not is_json or "\n" in text[: begin.start()].strip():
        return [""] * len(lines)
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line)
        at += text.startswith("\n", at)
    paths, waiting = [""] * len(lines), iter(enumerate(starts))
    number, start = next(waiting)
    for place, around in _containers(text, begin.start()):
        while start <= place:
            keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for (key,) in around[:-1])
            paths[number] = "".join(keys).lstrip(".")
            number, start = next(waiting, (number, len(text) + 1))
    return paths


def _containers(text: str, begin: int) -> Iterator[tuple[int, Sequence[Sequence[str | int]]]]:
    """Yield each token's place and path; the next token changes the path."""
    stack: list[list[str | int]] = []  # keys and indices
    last = ""
    for token in _JSON_TOKEN.finditer(text, begin):
        value = token[0]
        if value.isspace():
            continue
        yield token.start(), stack
        if value in _OPENING:
            stack.append([0] if value == "[" else [""])
        elif value in _CLOSING and stack:
            stack.pop()
        elif value == "," and stack and isinstance(stack[-1][0], int):
            stack[-1][0] += 1
        elif value == ":" and stack and isinstance(stack[-1][0], str):
            stack[-1][0] = last
        last = value.strip("\"'")


# -------------------------------------------------------------- a listing's own numbers

_NUMBERED = re.compile(r"^\s*\d+(?:[→|:\t]|\s{2,})")
"""A line number that a tool puts before a line."""
_NUMBER = re.compile(r"^\s*(\d{1,9})[→\t]")
LEAST_LISTED_LINES = 3
"""Fewer numbered lines keep their numbers."""


def unnumbered(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    """Split a listing into its lines and the range of its numbers.

    If the numbers do not ascend by one, return the lines unchanged, and "".

    >>> unnumbered(["  7→def f():", "  8→", "  9→    return 1"])
    (['def f():', '', '    return 1'], '7-9')
    """
    numbers = list(line_numbers(lines))
    first = numbers[0] if numbers and numbers[0] is not None else 0
    if len(lines) < LEAST_LISTED_LINES or numbers != [*range(first, first + len(lines))]:
        return lines, ""
    return _drop_numbers(lines), f"{first}-{numbers[-1]}"


def line_numbers(lines: Sequence[str]) -> Iterator[int | None]:
    """Yield each line's number in a listing, or None."""
    for line in lines:
        match = _NUMBER.match(line)
        yield int(match[1]) if match else None


def chars_of(lines: Sequence[str]) -> int:
    """Count the lines' characters without a listing's numbers."""
    return sum(len(line) + 1 for line in _drop_numbers(lines))


def is_listing(lines: Sequence[str]) -> bool:
    """Return whether most lines have a tool's line numbers."""
    return 2 * sum(_NUMBERED.match(line) is not None for line in lines) > len(lines)


def _drop_numbers(lines: Sequence[str]) -> list[str]:
    return [_NUMBER.sub("", line) for line in lines]


# -------------------------------------------------------------- blocks

_COMMENT = re.compile(r"\s*(?://|#|--\s|\*\s|;;)")


def block_around(
    first: int, best: int, last: int, lines: Sequence[str], most: int, longest: int
) -> tuple[int, int]:
    """Widen a range of lines to the block around its best line.

    The block ends with the next line of less indentation than the best line. A block of more than
    `longest` characters is cut at about `most` characters. Lines above the range are added last,
    while the block has at most `most` characters.
    """
    texts = [_NUMBERED.sub("", line) for line in lines]
    depth = _indentation(texts[best])
    shown = _drop_numbers(lines)
    fitting, farthest = (
        max(last, first - 1 + count_fitting(shown[first:], chars, len)) for chars in (most, longest)
    )
    below = range(last + 1, len(texts))
    end = next((n for n in below if 0 <= _indentation(texts[n]) < depth), len(texts) - 1)
    last = end if end <= farthest else _cut_near(fitting, best, farthest, texts)
    left = most - chars_of(texts[first : last + 1]) if end <= fitting else 0
    while first and (left := left - len(shown[first - 1]) - 1) >= 0:
        is_blank = not texts[first].strip()
        if is_blank != bool(depth) and _indentation(texts[first]) <= 0:
            break
        first -= 1
    filled = [n for n in range(first, last + 1) if n == best or texts[n].strip()]
    return filled[0], filled[-1]


def _cut_near(place: int, best: int, farthest: int, texts: Sequence[str]) -> int:
    """Return the line near `place` at which to cut a block.

    From `place` to `farthest` the first end of a paragraph is taken, or a line below a comment.
    Without such a line the last end of a paragraph before `place` is taken.
    """
    depth = _indentation(texts[best])
    ends = [
        n
        for n in range(best, farthest)
        if not texts[n + 1].strip() and 0 <= _indentation(texts[n]) <= depth
    ]
    explained = (
        n
        for n in range(max(1, place), farthest + 1)
        if _COMMENT.match(texts[n - 1]) and texts[n].strip() and not _COMMENT.match(texts[n])
    )
    after = [n for n in (*ends, *explained) if n >= place]
    return min(after, default=max(ends, default=place))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else -1


# -------------------------------------------------------------- condensed

_NOISE = re.compile(
    r"[\W_]*$|.{0,80}?\b\d{1,3}(?:\.\d+)?%\s*(?:[|\[█▏#=(]|$)|.*[█▓░━╸─═]{3}|.*(?:={6}|-{6}|#{6})"
    r"|\s*% Total\s+% Received|\s*Dload\s+Upload|(?:\s*[\d.]+[kMG]?){6,}(?:\s+[\d:-]+){3}"
    r"|.* (?:PASSED|SKIPPED|XFAIL)\b|\s*(?:--- PASS|=== RUN|ok \d+\b|[✓✔√]\s)"
    r"|ok\s+\S+\s+(?:\(cached\)|[\d.]+s$)|\?\s+\S+\s+\[no test files\]"
    r"|(?:Collecting|Downloading|Requirement already satisfied|Preparing metadata|Using cached|"
    r"Get:\d+|Unpacking|Selecting previously|Preparing to unpack|Setting up)\b"
    r"|\s*<!--.*-->\s*$"
    r"|(?:\s*</?(?:a|br|img|p|picture|source)\b[^>]*(?:>|$))+\s*$",
)
"""Matches frames, progress, passed tests, installers' steps, picture tags."""
_HEAD_CHARS = 200


def is_noise(line: str) -> bool:
    """Return whether a line is framing, progress, passed tests or blank."""
    return _NOISE.match(line[:_HEAD_CHARS]) is not None


ENDING_LINES = 12
LEAST_SHARING_TEXTS = 3
LEAST_ENDING_CHARS = 120


def shared_endings(texts: Iterable[str]) -> frozenset[str]:
    """Return last lines that several texts share, such as a host's notes."""
    times: Counter[str] = Counter()
    # Outputs of one command begin alike and end alike: compare one of them.
    for text in {text.partition("\n")[0]: text for text in texts}.values():
        last = split_lines("\n".join(text.rsplit("\n", ENDING_LINES)[-ENDING_LINES:]))
        times.update({line.strip() for line in last} - {""})
    return frozenset(line for line, number in times.items() if number >= LEAST_SHARING_TEXTS)


def length_without_ending(lines: Sequence[str], shared: Collection[str]) -> int:
    """Return the number of lines before a shared ending."""
    number = len(lines)
    while number and (not (line := lines[number - 1].strip()) or line in shared):
        number -= 1
    # If more lines are shared, the messages are alike as a whole.
    is_ending = 0 < len(lines) - number < min(ENDING_LINES, len(lines))
    while is_ending and number < len(lines) and lines[number].strip() and lines[number][0] != "<":
        number += 1
    is_worth = sum(map(len, lines[number:])) >= LEAST_ENDING_CHARS
    return number if is_ending and is_worth else len(lines)


def count_fitting(lines: Sequence[str], most: int, count: Callable[[str], int]) -> int:
    """Return the number of first lines that fit."""
    sizes = accumulate(count(line + "\n") for line in lines)
    return next((n for n, size in enumerate(sizes) if size > most), len(lines))


# -------------------------------------------------------------- JSON of like objects as tables

LEAST_TABLE_CHARS, MOST_TABLE_SHARE = 800, 0.8
"""Shorter texts have no table; a table must be shorter than this share."""
LEAST_LIKE_OBJECTS = 3
"""Fewest objects with equal keys in a table."""

_ENDS_A_CELL = frozenset(";\n")

Record = tuple[str, dict[str, str]]


class Row(NamedTuple):
    """A line of a table."""

    line: str
    heads: tuple[int, ...] = ()
    """Indices of the rows above that name this row's keys and path."""


def may_be_table(text: str) -> bool:
    """Return whether a text is long and looks like JSON."""
    return len(text) >= LEAST_TABLE_CHARS and text.lstrip()[:1] in ("{", "[")


def table_of(text: str) -> str:
    """Return long JSON as tables, or "" unless these are much shorter."""
    table = as_table(text) if may_be_table(text) else ""
    return table if len(table) <= MOST_TABLE_SHARE * len(text) else ""


def as_table(text: str) -> str:
    """Return JSON as tables, or "" if few objects have equal keys.

    >>> print(as_table('{"of": {"a": {"n": 1, "ok": true}, "b": {"n": 2, "ok": false}, '
    ...                '"c": {"n": 3, "ok": true}}}'))
    of.*: n; ok
    a: 1; true
    b: 2; false
    c: 3; true
    """
    return "\n".join(row.line for row in table_rows(text))


def table_rows(text: str) -> list[Row]:
    """Return the rows of JSON's tables; [] if few objects are alike."""
    try:
        records = list(_records(json.loads(text), ""))
    except (ValueError, RecursionError):
        return []
    times = Counter(tuple(values) for _, values in records)
    if max(times.values(), default=0) < LEAST_LIKE_OBJECTS:
        return []
    rows, keys, before = list[Row](), tuple[str, ...](), ""
    heads = tuple[int, ...]()
    for path, values in records:
        above, _, key = path.rpartition(".")
        if times[tuple(values)] < LEAST_LIKE_OBJECTS:
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

    If a row has a score, the rows without a score fill at most half of the table. A mark in each
    gap counts the rows left out.
    """
    heads = {head for row in rows for head in row.heads}
    scores = [0.0 if n in heads else score for n, score in enumerate(scores)]
    # Prefer a row beside another match.
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
    return f"\n… {pluralize(omitted, 'row')} left out" if omitted else ""


def _records(value: Any, path: str) -> Iterator[Record]:
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
    inside = value.values() if isinstance(value, dict) else value
    return isinstance(value, (dict, list)) and any(
        isinstance(each, (dict, list)) for each in inside
    )


def _flat(values: dict[Any, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{path}.{key}".removeprefix(".")
        if isinstance(value, dict) and value:
            yield from _flat(value, name)
        elif isinstance(value, str) and not _ENDS_A_CELL & set(value):
            yield name, value
        else:
            yield name, json.dumps(value, ensure_ascii=False)
