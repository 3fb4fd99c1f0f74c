"""Split texts into the lines that references count; condense texts.

Long JSON is broken at its members. Pure. Every line is a slice of its text: a line that was wrapped
ends without a line break.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise

from ..quotes.output_lines import is_failure

LONG_LINE, WRAPPED = 400, 200
"""Lines above LONG_LINE characters are wrapped at WRAPPED: JSON is often one line."""
PACKED = 120
"""Members of an object or array share a line of at most this many characters."""

_JSON_TOKEN = re.compile(
    r"""\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}\[\],:]|[^\s"'{}\[\],:]+|.""", re.DOTALL
)
_BEGINS_JSON = re.compile(r"""\{(?=\s*["'])|\[(?=\s*["'{\[\d-])""")
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")


def split_lines(text: str) -> list[str]:
    """Return a text's lines, long ones wrapped, JSON at its members."""
    lines: list[str] = []
    for line in text.split("\n"):
        pieces = _split_members(line) if len(line) > LONG_LINE else [line]
        for piece in pieces:
            lines += _wrap(piece) if len(piece) > LONG_LINE else [piece]
    return lines


def _wrap(line: str) -> Iterator[str]:
    """Yield a line's pieces, each ended by a break, space or comma."""
    start = 0
    while len(line) - start > WRAPPED * 2:
        least, most = start + WRAPPED // 2, start + WRAPPED
        escaped = line.rfind("\\n", least, most) + 2
        cut = max(line.rfind(mark, least, most) for mark in (" ", ",", ";")) + 1
        end = escaped if escaped > 1 else cut or most
        yield line[start:end]
        start = end
    yield line[start:]


def _split_members(line: str) -> list[str]:
    """Split a long JSON line into pieces that end with members."""
    begin = _BEGINS_JSON.search(line)
    if begin is None:
        return [line]
    ends = [0, *_member_ends(line, begin.start()), len(line)]
    pieces: list[str] = []
    for start, end in pairwise(ends):
        piece = line[start:end]
        before = pieces[-1] if pieces else ""
        begins_item = piece[:1] in _OPENING or before.rstrip()[-1:] in _OPENING
        if pieces and len(before) + len(piece) <= PACKED and not begins_item:
            pieces[-1] += piece
        elif piece:
            pieces.append(piece)
    return pieces


def _member_ends(line: str, begin: int) -> Iterator[int]:
    """Yield where members end whose container does not fit a line."""
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
            inside.append(size > WRAPPED)
        elif token[0] in _CLOSING and inside:
            inside.pop()
        # The first member of an array's item stays beside the item's bracket.
        is_end = token[0] == "," or (token[0] in _OPENING and before not in ("[", ","))
        if is_end and inside and inside[-1]:
            yield token.end() + (line[token.end() : token.end() + 1] == " ")
        before = token[0]


def json_paths(text: str, lines: Sequence[str]) -> list[str]:
    """Return the keys that lead to each of a JSON text's `split_lines`.

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
    """Yield each token's place and containers; the next token changes these."""
    stack: list[list[str | int]] = []  # the key or the number of the member that is being read
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
"""The number before a line of a file that a tool shows."""
_NUMBER = re.compile(r"^\s*(\d{1,9})[→\t]")
"""Such a number in the form that `unnumbered` drops."""
LEAST_LISTED = 3
"""Numbered lines from which on their numbers are named once."""


def unnumbered(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    """Split a listing into its lines and the range of its numbers.

    Lines whose numbers do not ascend by one stay, with the range "".

    >>> unnumbered(["  7→def f():", "  8→", "  9→    return 1"])
    (['def f():', '', '    return 1'], '7-9')
    """
    numbers = list(line_numbers(lines))
    first = numbers[0] if numbers and numbers[0] is not None else 0
    if len(lines) < LEAST_LISTED or numbers != [*range(first, first + len(lines))]:
        return lines, ""
    return _drop_numbers(lines), f"{first}-{numbers[-1]}"


def line_numbers(lines: Sequence[str]) -> Iterator[int | None]:
    """Yield each line's number in a listing, or None."""
    for line in lines:
        match = _NUMBER.match(line)
        yield int(match[1]) if match else None


def chars_of(lines: Sequence[str]) -> int:
    """Count lines' characters and breaks, without a listing's own numbers."""
    return sum(len(line) + 1 for line in _drop_numbers(lines))


def _is_listing(lines: Sequence[str]) -> bool:
    return 2 * sum(_NUMBERED.match(line) is not None for line in lines) > len(lines)


def _drop_numbers(lines: Sequence[str]) -> list[str]:
    return [_NUMBER.sub("", line) for line in lines]


# -------------------------------------------------------------- blocks

_COMMENT = re.compile(r"\s*(?://|#|--\s|\*\s|;;)")


def block_around(
    first: int, best: int, last: int, lines: Sequence[str], most: int, longest: int
) -> tuple[int, int]:
    """Widen a range of lines to the block around its best line.

    The block ends with a line of less indentation than the best line. If it ends within `longest`
    characters it is not cut. A longer one is cut at about `most` characters, and no line above is
    added: the lines below explain more. Above, the block begins with a line without
    indentation, or after a blank line if the best line has no indentation.
    """
    texts = [_NUMBERED.sub("", line) for line in lines]
    depth = _indentation(texts[best])
    shown = _drop_numbers(lines)
    fitting, farthest = (
        max(last, first - 1 + count_fitting(shown[first:], room, len)) for room in (most, longest)
    )
    below = range(last + 1, len(texts))
    end = next((n for n in below if 0 <= _indentation(texts[n]) < depth), len(texts) - 1)
    last = end if end <= farthest else _cut_near(fitting, best, farthest, texts)
    room = most - chars_of(texts[first : last + 1]) if end <= fitting else 0
    while first and (room := room - len(shown[first - 1]) - 1) >= 0:
        is_blank = not texts[first].strip()
        if is_blank != bool(depth) and _indentation(texts[first]) <= 0:
            break
        first -= 1
    filled = [n for n in range(first, last + 1) if n == best or texts[n].strip()]
    return filled[0], filled[-1]


def _cut_near(place: int, best: int, farthest: int, texts: Sequence[str]) -> int:
    """Return the next paragraph's end up to `farthest`, else the one before.

    The first line below a comment is an end too, but only after the place.
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
    """Return a line's indentation, -1 for a blank line."""
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
"""Lines that say nothing: frames, progress, passed tests, installers' steps, tags of pictures."""
_HEAD_CHARS = 200


def is_noise(line: str) -> bool:
    """Return whether a line is framing, progress, passed tests or blank."""
    return _NOISE.match(line[:_HEAD_CHARS]) is not None


ENDING_LINES = 12
"""Last lines of a text that are searched for an ending."""
MIN_SHARING_TEXTS = 3
"""Texts that must share a line of an ending."""
MIN_ENDING_CHARS = 120
"""Shortest ending that is left out."""


def shared_endings(texts: Iterable[str]) -> frozenset[str]:
    """Return lines that end several texts, such as host reminders."""
    times: Counter[str] = Counter()
    # Outputs of one command begin alike: what ends them is their conclusion.
    for text in {text.partition("\n")[0]: text for text in texts}.values():
        last = split_lines("\n".join(text.rsplit("\n", ENDING_LINES)[-ENDING_LINES:]))
        times.update({line.strip() for line in last} - {""})
    return frozenset(line for line, number in times.items() if number >= MIN_SHARING_TEXTS)


def length_without_ending(lines: Sequence[str], shared: Collection[str]) -> int:
    """Return the number of lines before a closing paragraph of `shared` lines."""
    number = len(lines)
    while number and (not (line := lines[number - 1].strip()) or line in shared):
        number -= 1
    # What is longer is no ending: the messages are alike.
    is_ending = 0 < len(lines) - number < min(ENDING_LINES, len(lines))
    while is_ending and number < len(lines) and lines[number].strip() and lines[number][0] != "<":
        number += 1
    is_worth = sum(map(len, lines[number:])) >= MIN_ENDING_CHARS
    return number if is_ending and is_worth else len(lines)


def count_fitting(lines: Sequence[str], room: int, count: Callable[[str], int]) -> int:
    """Return how many of the first lines fit."""
    sizes = accumulate(count(line + "\n") for line in lines)
    return next((n for n, size in enumerate(sizes) if size > room), len(lines))


def condense(
    lines: Sequence[str],
    room: int,
    count: Callable[[str], int],
    gap: Callable[[int, int], object],
    seen: Collection[str] = (),
) -> str:
    """Return the lines within a budget of tokens.

    `gap(first, last)` names a gap. Noise and repeated lines (also lines in `seen`) are left out
    first, then the middle except its errors. A numbered listing keeps its first lines, because
    readers go on from there.
    """
    if count("\n".join(lines)) <= room:
        return "\n".join(lines)
    mark = count(f"[… {gap(len(lines), len(lines))} …]") + 1
    sizes = [count(line + "\n") for line in lines]
    kept: Sequence[int] = range(len(lines))
    if not _is_listing(lines):
        kept = _fill_small_gaps([*_new_lines(lines, seen)], sizes, mark)
    if sum(sizes[n] for n in kept) + mark * _count_gaps(kept, len(lines)) > room:
        kept = _fill_small_gaps(_choose_edges(kept, sizes, lines, room, mark), sizes, mark)
    return "\n".join(_mark_gaps(kept, lines, gap))


def _fill_small_gaps(kept: Sequence[int], sizes: Sequence[int], mark: int) -> list[int]:
    """Fill the gaps that cost no more than a mark."""
    filled: list[int] = []
    for number in (*kept, len(sizes)):
        missing = range(filled[-1] + 1 if filled else 0, number)
        if sum(sizes[n] for n in missing) <= mark:
            filled += missing
        filled += [number] if number < len(sizes) else []
    return filled


def _new_lines(lines: Sequence[str], seen: Collection[str]) -> Iterator[int]:
    known = set(seen)
    for number, line in enumerate(lines):
        if not is_noise(line) and line.strip() not in known:
            known.add(line.strip())
            yield number


def _count_gaps(kept: Sequence[int], length: int) -> int:
    numbers = [-1, *kept, length]
    return sum(after - before > 1 for before, after in pairwise(numbers))


def _choose_edges(
    kept: Sequence[int], sizes: Sequence[int], lines: Sequence[str], room: int, mark: int
) -> list[int]:
    """Return first and last lines that fit, and errors between."""
    chosen: set[int] = set()
    bad = islice((number for number in kept if is_failure(lines[number])), 20)
    ahead = room if _is_listing(lines) else room // 2
    shares = ((bad, room // 4), (kept, ahead), (kept[::-1], room))
    for numbers, most in shares:
        for number in numbers:
            if number in chosen:
                continue
            trial = sorted({*chosen, number})
            if sum(sizes[n] for n in trial) + mark * _count_gaps(trial, len(lines)) > most:
                break
            chosen.add(number)
    return sorted(chosen)


def _mark_gaps(
    kept: Sequence[int], lines: Sequence[str], gap: Callable[[int, int], object]
) -> Iterator[str]:
    before = -1
    for number in [*kept, len(lines)]:
        if number - before > 1:
            yield f"[… {gap(before + 2, number)} …]"
        if number < len(lines):
            yield lines[number]
        before = number
