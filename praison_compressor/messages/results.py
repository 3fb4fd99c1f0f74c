"""Read a tool's result: its exit code, its output, and its call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .calls import ACTS, kind_of
from .shapes import Message, ToolCall, parse_json, tool_calls_of

_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: \w+)?[ _-]?(?:code|status)|return ?code)[^\w-]{0,4}(-?\d+)"
    r"|^\[exit (-?\d+)\]|\b(?:killed|terminated) by signal (\d+)|<returncode>(-?\d+)</returncode>",
    re.I | re.M,
)
_EXIT_WORDS = ("exit", "return", "signal")


def exit_code(text: str) -> str:
    """Return the exit code at either end of an output, or ""."""
    for edge in (text[:400], text[-400:]):
        # To look for the words first saves most searches by the pattern.
        code = _EXIT.search(edge) if any(word in edge.lower() for word in _EXIT_WORDS) else None
        if code:
            return str(next(filter(None, code.groups())))
    return ""


_OUTPUT_KEYS = ("stdout", "output", "stderr", "error")
_CODE_KEYS = ("exit_code", "exitCode", "returncode", "return_code", "code", "status")
_WRAPPER_KEYS = frozenset(
    "command cwd duration duration_ms duration_seconds execution_time interrupted isImage metadata "
    "ok pid signal success timed_out truncated".split()
).union(_OUTPUT_KEYS, _CODE_KEYS)


def unwrap_output(result: str) -> str:
    r"""Return the output inside a tool's JSON wrapper, with its exit code.

    A result with an unknown key is no wrapper, and stays unchanged.

    >>> unwrap_output('{"output": "a\\nb\\n", "metadata": {"exit_code": 2}}')
    'a\nb\nexit code 2'
    """
    value = parse_json(result) if result.startswith("{") and result.endswith("}") else None
    if not isinstance(value, dict) or not value.keys() <= _WRAPPER_KEYS:
        return result
    texts = [value[key].strip("\n") for key in _OUTPUT_KEYS if isinstance(value.get(key), str)]
    if not texts:
        return result
    inner = value.get("metadata")
    members = {**inner, **value} if isinstance(inner, Mapping) else value
    codes = (f"exit code {members[key]}" for key in _CODE_KEYS if type(members.get(key)) is int)
    flags = [f'"{key}": false' for key in ("success", "ok") if value.get(key) is False]
    return "\n".join(text for text in (*texts, *flags, next(codes, "")) if text)


# -------------------------------------------------------------- calls and results


@dataclass(eq=False)
class CallRecord:
    """One call and its result."""

    at: int
    """The position of the message with the call."""
    call: ToolCall
    text: str = ""
    """The result's text; an `is_error` flag is added in words."""
    answered_at: int = -1

    @property
    def is_answered(self) -> bool:
        """Return whether a result was recorded."""
        return self.answered_at >= 0

    @property
    def where(self) -> int:
        """Return the position of the result, else of the call."""
        return self.answered_at if self.is_answered else self.at


def newest_act_first(record: CallRecord) -> tuple[bool, int]:
    """Return a key that sorts calls that act before others, newest first."""
    return kind_of(record.call) != ACTS, -record.at


class CallPairing:
    """Find the call that a result answers, even if ids repeat."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self._open: dict[str, list[CallRecord]] = {}
        self._newest: dict[str, CallRecord] = {}

    def add_calls(self, message: Message, at: int) -> bool:
        """Add a message's calls; return whether there are any."""
        records = [CallRecord(at, call) for call in tool_calls_of(message)]
        if records:
            self._open = {}
        for record in records:
            for key in {record.call.id, record.call.name} - {""}:
                self._open.setdefault(key, []).append(record)
                self._newest[key] = record
        self.calls += records
        return bool(records)

    def add_result(self, key: str, text: str, at: int) -> CallRecord | None:
        """Add a result to the key's first open, else newest, call."""
        waiting = (record for record in self._open.get(key, ()) if not record.is_answered)
        record = next(waiting, None) or self._newest.get(key)
        if record is not None:
            record.text, record.answered_at = text, at
        return record
