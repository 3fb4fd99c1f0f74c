"""Show messages to a person as text that no terminal obeys."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone

from .calls import argument_values, arguments_of, command_of, paths_changed, paths_in
from .shapes import Message, ToolCall, media_count, parse_json, result_text, tool_calls_of
from .shortening import cut_line

_TERMINAL_SEQUENCES = re.compile(
    # A title, clipboard or link sequence, if it ends; then CSI and short escapes.
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)

_LINE_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")

# Control characters; marks that reorder text.
_HIDDEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_SURROGATES = re.compile(r"[\ud800-\udfff]")

_UNSAFE = re.compile(rf"{_HIDDEN.pattern}|{_SURROGATES.pattern}|[\u2028\u2029]")


def clean(text: str) -> str:
    """Return the text without terminal sequences and control characters."""
    text = _LINE_BREAKS.sub("\n", _TERMINAL_SEQUENCES.sub("", text))
    return _SURROGATES.sub("\ufffd", _HIDDEN.sub("", text))


def escape_controls(json_text: str) -> str:
    """Escape control characters and lone surrogates; the JSON value stays equal."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def one_line(text: str) -> str:
    """Return the clean text on one line."""
    return " ".join(clean(text).split())


def truncate_line(text: str, width: int) -> str:
    """Return a text's beginning on one line, at most `width` long."""
    # Only the beginning is cleaned: a message may have megabytes.
    line = one_line(text[: 8 * width + 4_096])
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def message_as_text(message: Message) -> str:
    """Return a message's text, calls, and number of other parts."""
    others = media_count(message)
    omitted = f"[{pluralize(others, 'part')} without text: not shown]" if others else ""
    lines = (result_text(message), *map(call_as_text, tool_calls_of(message)), omitted)
    return "\n".join(filter(None, lines))


def call_as_text(call: ToolCall) -> str:
    """Return a call; multi-line arguments get lines of their own."""
    arguments = parse_json(call.arguments)
    pairs = arguments.items() if isinstance(arguments, dict) else ()
    texts = {name: text for name, text in pairs if isinstance(text, str) and "\n" in text}
    if not texts:
        return f"-> {call.name}({call.arguments})"
    short = {name: value for name, value in pairs if name not in texts}
    below = [f"{name}:\n{text}" for name, text in texts.items()]
    return "\n".join([f"-> {call.name}({json.dumps(short, ensure_ascii=False)})", *below])


_FOLDERS = [re.compile(".*/(?=%s[^/]+$)" % ("[^/]+/" * kept)) for kept in range(3)]
"""Match all folders of a path except the last 0, 1 or 2 folders."""


def short_names(calls: Sequence[ToolCall], width: int) -> list[str]:
    """Return each call's arguments on one line, without the paths' common folders."""
    pairs = [_arguments_and_paths(call, width) for call in calls]
    names: dict[tuple[str, ...], str] = {}
    for folders in _FOLDERS:
        uses = Counter(names.values())
        for values, paths in pairs:
            if uses[names.get(values, "")] != 1:
                shorter = (folders.sub("…/", x) if x in paths else x for x in values)
                names[values] = truncate_line(" ".join(shorter), width)
    return [names[values] for values, _ in pairs]


def _arguments_and_paths(call: ToolCall, width: int) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return a call's command, paths or arguments; and its paths."""
    if line := command_of(call):
        return (cut_line(line, width),), ()
    if changed := paths_changed(call):
        return tuple(changed), changed
    return tuple(argument_values(arguments_of(call))), paths_in(call)


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: "1 summary", "2 summaries"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_dollars(value: float | None) -> str:
    """Return US dollars for a person; "-" for None."""
    if value is None:
        return "-"
    if 0 < value < 0.0001:
        return "< $0.0001"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def utc_time(seconds: float) -> str:
    """Return a time in UTC, or "" if invalid."""
    try:
        time = datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC") if seconds else ""
