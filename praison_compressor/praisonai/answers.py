"""Read the usage and the tool calls of a model's answer, whole or in the pieces of a stream.

A turn may be stopped while a tool runs. No later request of the turn then carries the call, and the
agent would not know that it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..compressor.bills import field_of
from ..errors import InvalidMessages
from ..messages import Message, responses, to_plain


def calls_in(answer: Any) -> Message | None:
    """Return the assistant's message of a whole answer, if it makes calls."""
    if isinstance(answer, tuple):  # the host's text, calls, response
        answer = answer[-1] if answer else None
    output = field_of(answer, "output")
    if isinstance(output, list):
        return _of_items(output)
    choices = field_of(answer, "choices")
    if not isinstance(choices, list) or not choices:
        return None
    message = field_of(choices[0], "message")
    return _message(field_of(message, "content"), field_of(message, "tool_calls") or ())


class CallPieces:
    """Collects the calls of an answer from the pieces of its stream."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, Message] = {}
        self._items: Message | None = None

    def take(self, piece: Any) -> None:
        """Read one piece of a stream of chat completions or of responses."""
        if field_of(piece, "type") == "response.completed":
            self._items = calls_in(field_of(piece, "response"))
        choices = field_of(piece, "choices")
        delta = field_of(choices[0], "delta") if isinstance(choices, list) and choices else None
        if isinstance(text := field_of(delta, "content"), str):
            self._text.append(text)
        for part in field_of(delta, "tool_calls") or ():
            self._add(part)

    @property
    def message(self) -> Message | None:
        """Return the assistant's message so far, if it makes calls."""
        return self._items or _message("".join(self._text), list(self._calls.values()))

    def _add(self, part: Any) -> None:
        index, function = field_of(part, "index"), field_of(part, "function")
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index if isinstance(index, int) else 0, empty)
        call["id"] = field_of(part, "id") or call["id"]
        call["function"]["name"] += field_of(function, "name") or ""
        call["function"]["arguments"] += field_of(function, "arguments") or ""


def _of_items(output: Sequence[Any]) -> Message | None:
    try:
        found = [m for m in responses.to_messages(None, output) if m.get("tool_calls")]
    except InvalidMessages:
        return None  # an item that is newer than this package
    return found[-1] if found else None


def _message(content: Any, calls: Iterable[Any]) -> Message | None:
    made = [to_plain(call) for call in calls if field_of(call, "function") is not None]
    if not made:
        return None
    kept = [{key: call.get(key) for key in ("id", "type", "function")} for call in made]
    return {"role": "assistant", "content": content or None, "tool_calls": kept}
