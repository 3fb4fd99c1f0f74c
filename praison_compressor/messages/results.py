"""Read a tool's result: its exit code, output and call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .calls import ACTS, kind_of
from .shapes import Message, ToolCall, is_result, parse_json, result_text, text_of, tool_calls_of
from .speakers import SHELL_PROMPT, SpokenPart, spoken_parts

AGENT_TEXT = "assistant"
"""Name of a call that is written as text."""

_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: \w+)?[ _-]?(?:code|status)|return ?code)[^\w-]{0,4}(-?\d+)"
    r"|^\[exit (-?\d+)\]|\b(?:killed|terminated) by signal (\d+)|<returncode>(-?\d+)</returncode>",
    re.I | re.M,
)
_EXIT_WORDS = ("exit", "return", "signal")


def exit_code(text: str) -> str:
    """Return the exit code at either end of an output, or ""."""
    for edge in dict.fromkeys((text[:400], text[-400:])):
        # The pattern runs only if its words occur: few texts have them.
        lower = edge.lower()
        code = _EXIT.search(edge) if any(word in lower for word in _EXIT_WORDS) else None
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

    A result with an unknown key is no wrapper.

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


@dataclass(eq=False)
class CallRecord:
    """A call and its result."""

    at: int
    """Index of the message with the call."""
    call: ToolCall
    text: str = ""
    """The result's text, and the flag `is_error` in words."""
    answered_at: int = -1

    @property
    def is_answered(self) -> bool:
        """Whether the call has a result."""
        return self.answered_at >= 0

    @property
    def where(self) -> int:
        """Index of the result, else of the call."""
        return self.answered_at if self.is_answered else self.at


def acts_first(record: CallRecord) -> tuple[bool, int]:
    """Return a sort key: calls that act first, newest first."""
    return kind_of(record.call) != ACTS, -record.at


class CallPairing:
    """Pair results with calls, whatever their ids."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self.last_text: tuple[int, str] | None = None
        """The assistant's newest text, unless a call, a result or the user follows it."""
        self._open: dict[str, list[CallRecord]] = {}
        self._newest: dict[str, CallRecord] = {}

    def add_calls(self, message: Message, text: str, at: int) -> None:
        """Add the calls of an assistant message."""
        records = [CallRecord(at, call) for call in tool_calls_of(message)]
        self.last_text = (at, text) if text.strip() and not records else None
        if records:
            self._open = {}
        for record in records:
            for key in {record.call.id, record.call.name} - {""}:
                self._open.setdefault(key, []).append(record)
                self._newest[key] = record
        self.calls += records

    def add_result(self, result: Message, text: str, at: int) -> CallRecord | None:
        """Add a result; return its call."""
        key = str(result.get("tool_call_id") or result.get("name") or "")
        return self._answer(key, text, at, result)

    def add_part(self, part: SpokenPart, at: int) -> CallRecord | None:
        """Add a part in the user's role; return its call."""
        if part.block is not None:
            return self._answer(str(part.block.get("tool_use_id") or ""), part.text, at, part.block)
        last, record = self.last_text, None
        if last and (part.source == "result" or SHELL_PROMPT.search(part.text[-60:])):
            # The agent wrote the call as text.
            record = CallRecord(last[0], ToolCall("", AGENT_TEXT, last[1]), part.text, at)
            self.calls.append(record)
        if record or part.source == "user":
            self.last_text = None
        return record

    def _answer(
        self, key: str, text: str, at: int, result: Mapping[str, object]
    ) -> CallRecord | None:
        """Answer the key's first open call, else the key's newest call."""
        self.last_text = None
        waiting = (record for record in self._open.get(key, ()) if not record.is_answered)
        record = next(waiting, None) or self._newest.get(key)
        if record is not None:
            is_error = result.get("is_error") is True
            record.text, record.answered_at = f"is_error: {text}" if is_error else text, at
        return record


def pair_calls(messages: Sequence[Message]) -> list[CallRecord]:
    """Return the calls, each with its result."""
    pairing = CallPairing()
    for at, message in enumerate(messages):
        if is_result(message):
            pairing.add_result(message, result_text(message), at)
        elif message.get("role") == "assistant":
            pairing.add_calls(message, text_of(message), at)
        elif message.get("role") == "user":
            for part in spoken_parts(message):
                pairing.add_part(part, at)
    return pairing.calls
