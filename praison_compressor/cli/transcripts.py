"""Read transcripts from files and write views, or raise `Unusable`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..messages.display import escape_controls
from ..messages.repair import RESPONSES_REMEDY
from .terminal import Unusable

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
    """Return the JSON values that should be conversations."""
    try:
        value = json.loads(text)
    except ValueError as error:
        value = _parse_lines(text, error)
    # A list with any message is a conversation: the error names its other items.
    is_several = isinstance(value, list) and value and not any(map(_is_message, value))
    return value if is_several else [value]


def _parse_lines(text: str, whole_error: ValueError) -> list[Any]:
    values: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            values += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            # If the first line is no JSON, the file is one broken value.
            raise (ValueError(_position(error, number)) if values else whole_error) from error
    return values


def _position(error: json.JSONDecodeError, line: int | None = None) -> str:
    """Return what is wrong, in which line and column of the file."""
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
    is_jsonl = path.endswith(".jsonl")
    indent = None if is_jsonl else 2
    texts = (
        json.dumps(value, ensure_ascii=False, indent=indent)
        for value in (messages if is_jsonl else [messages])
    )
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
    with _refuse_unusable(path), open(path, "wb", opener=_open_private) as file:
        file.write(text.encode("utf-8"))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


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
