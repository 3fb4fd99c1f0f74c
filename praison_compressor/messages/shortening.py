"""Shorten texts and calls' arguments; share a budget among texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from .shapes import Message, call_blocks, calls_list, is_call_block, parse_json, read_call

_STOPS = ("\n", ". ", "! ", "? ", "。", "！", "？", "; ", ", ", " ")
BLOCK_LINES = 8
"""Longer pasted blocks are cut first."""
KEPT_LINES = (100, 40, 20, 10, 5)
"""Lines at each end of a block; the first number that fits is used."""
MACHINE_LINE = re.compile(
    r"\s*(?:\[?\d{1,4}[-/:.]\d\d[-/:.]|\[?\d+\]?[:|\s]\s*\S|[<>{}\[\]|+$#@/\\*=~`]|\w+\(|-{2,}|"
    r"(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL)\b|at \S+\(|File \"|\w[\w.-]*: |"
    r"\S*[^\w\s.,!?]\S*$|\"|- (?:\w+ )?(?:\"|\[|\w+:)|(?:\S+\s{2,})+\S)"
)
"""Matches a line of a log, of code, of data or of a page."""


def cut_line(text: str, most: int) -> str:
    """Return a text on one line; cut its middle beyond `most` characters."""
    near = text if len(text) <= 8 * most else f"{text[: 4 * most]} {text[-4 * most :]}"
    flat = " ".join(near.split())
    if len(flat) <= most:
        return flat
    tail = most // 4
    head, tail_text = flat[: most - tail - 3], flat[-tail:]
    if " " in head[len(head) // 2 :]:
        head = head.rpartition(" ")[0]
    if " " in tail_text[: tail // 2]:
        tail_text = tail_text.partition(" ")[2]
    return f"{head.rstrip()} … {tail_text.lstrip()}"


def keep_ends(text: str, most: int) -> str:
    """Return a text's beginning and end within `most` characters.

    Blocks of code, logs and files lose their middle first.
    """
    if len(text) <= most:
        return text
    thin = text
    if text.count("\n") > BLOCK_LINES:
        for keep in (*KEPT_LINES, 2):
            thin = thin_blocks(text, keep)
            if len(thin) <= most:
                return thin
    first = most * 3 // 5
    head, tail = thin[:first], thin[-(most - first) :]
    head = head[: next((a + len(s) for s in _STOPS if (a := head.rfind(s)) >= first // 2), first)]
    near = len(tail) // 2
    tail = tail[next((a + len(s) for s in _STOPS if 0 <= (a := tail.find(s)) < near), 0) :]
    left = len(text) - len(head) - len(tail)
    mark = f" [… {left:,} of {len(text):,} characters …] "
    return text if left < 2 * len(mark) else f"{head.rstrip()}{mark}{tail.lstrip()}"


def thin_blocks(text: str, keep: int = 2) -> str:
    r"""Return a text whose pasted blocks keep `keep` lines at each end.

    >>> thin_blocks("Why?\n" + "{'a': 1}\n" * 20 + "Please mend it.").splitlines()[3]
    '[… 16 lines …]'
    """
    out: list[str] = []
    block: list[str] = []
    for line in (*text.split("\n"), None):
        if line is not None and (not line.strip() or MACHINE_LINE.match(line)):
            block.append(line)
            continue
        if len(block) >= max(BLOCK_LINES, 2 * keep + 2):
            block[keep:-keep] = [f"[… {len(block) - 2 * keep} lines …]"]
        out += block if line is None else [*block, line]
        block = []
    return "\n".join(out)


# -------------------------------------------------------------- arguments

LEAST_STRING_CHARS = 200
"""Each string keeps at least this length."""
LEAST_CALL_CHARS = 1_000
"""Shorter arguments are not cut."""

CutText = Callable[[str, int], str]
"""(text, characters) -> shorter text."""


def with_shorter_calls(
    message: Message, chars: int, shorten: CutText, ids: Container[str] | None = None
) -> Message:
    """Return the message with each call's arguments within about `chars` characters.

    The longest strings inside the JSON are cut first. `ids`: the calls to shorten; None: all.
    """

    def is_cut(call: Any) -> bool:
        read = read_call(call)
        is_long = len(read.arguments) > max(chars, LEAST_CALL_CHARS)
        return is_long and isinstance(call, Mapping) and (ids is None or read.id in ids)

    shorter = dict(message)
    if calls := calls_list(message.get("tool_calls")):
        shorter["tool_calls"] = [
            _shorten_entry(c, chars, shorten) if is_cut(c) else c for c in calls
        ]
    if call_blocks(message):
        parts = message["content"]
        shorter["content"] = [
            {**part, "input": _shorten_arguments(read_call(part).arguments, chars, shorten)}
            if is_call_block(part) and is_cut(part)
            else part
            for part in parts
        ]
    return shorter


def _shorten_entry(call: Message, chars: int, shorten: CutText) -> Message:
    text, function = read_call(call).arguments, call.get("function")
    if call.get("type") == "custom":
        return {**call, "custom": {**call["custom"], "input": shorten(text, chars)}}
    cut = {"arguments": json.dumps(_shorten_arguments(text, chars, shorten), ensure_ascii=False)}
    return {**call, **({"function": {**function, **cut}} if isinstance(function, dict) else cut)}


def _shorten_arguments(arguments: str, chars: int, shorten: CutText) -> dict[str, Any]:
    """Return arguments as an object of about `chars` characters."""
    value = parse_json(arguments)
    if not isinstance(value, dict):
        return {"arguments": shorten(arguments, chars)}
    frame = len(json.dumps(_cut_strings(value, 0, lambda _, __: "")))
    most = common_limit(list(map(len, _strings_in(value))), chars - frame)
    cut = _cut_strings(value, max(LEAST_STRING_CHARS, most), shorten)
    # The object may still be too long: thousands of short strings are not cut.
    is_short = len(json.dumps(cut, ensure_ascii=False)) <= 2 * chars + LEAST_STRING_CHARS
    return cut if is_short else {"arguments": shorten(arguments, chars)}


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(item)


def _cut_strings(value: Any, most: int, shorten: CutText) -> Any:
    if isinstance(value, str):
        return shorten(value, most) if len(value) > most else value
    if isinstance(value, dict):
        return {key: _cut_strings(item, most, shorten) for key, item in value.items()}
    return [_cut_strings(i, most, shorten) for i in value] if isinstance(value, list) else value


# -------------------------------------------------------------- shares of a budget


def common_limit(sizes: Sequence[int], room: int) -> int:
    """Return the largest limit at which all sizes together fit `room`."""
    for place, size in enumerate(sorted(sizes)):
        limit = room // (len(sizes) - place)
        if size > limit:
            return limit
        room -= size
    return max(sizes, default=0)


def share_budget(needs: Sequence[int], weights: Sequence[float], budget: int) -> list[int]:
    """Give each section at most its need and at least its share.

    >>> share_budget([10, 500, 500], [.5, .25, .25], 400)
    [10, 195, 195]
    """
    rooms, waiting = [0] * len(needs), list(range(len(needs)))
    while waiting:
        left = budget - sum(rooms)
        total = sum(weights[n] for n in waiting)
        offers = {n: int(left * weights[n] / total) for n in waiting}
        small = [n for n in waiting if needs[n] <= offers[n]]
        for n in small or waiting:
            rooms[n] = min(needs[n], offers[n])
        waiting = [n for n in waiting if n not in small] if small else []
    return rooms
