"""Results among the blocks of users' messages, as Anthropic's API has them, brought to their calls.

There a result is a `tool_result` block, in front of whatever else the user's message holds, and
the message comes right after the one whose `tool_use` it answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .shapes import (
    ORPHAN_OPENS,
    Message,
    ToolCall,
    is_answer_block,
    is_result,
    is_spoken,
    makes_calls,
    result_blocks,
    text_of,
)

__all__ = ["AGAIN", "Waiting", "carriers", "without_orphans"]

AGAIN = "--again"
"""Marks the second of two calls that came with one id."""


def carriers(messages: Sequence[Message], start: int) -> Iterator[int]:
    """The messages before the next call whose blocks can answer the one before `start`.

    In the order in which they may follow it: what the user says beside a result, or said before
    it, stands behind all results.
    """
    spoken, last = False, None
    for index in range(start, len(messages)):
        message = messages[index]
        if makes_calls(message):
            break
        if is_result(message):
            continue
        if result_blocks(message) and not is_spoken(message):
            yield index
            continue
        if result_blocks(message) and not spoken:
            last = index
        spoken = True
    if last is not None:
        yield last


class Waiting:
    """The calls of one message that wait for their results; each is answered once."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self._calls = {call.id: call for call in calls}
        self._known = frozenset(self._calls)
        self._times: Counter[str] = Counter()

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls.values())

    def answered(self, message: Message) -> Message | None:
        """The message with its results of these calls in front; None where it has none."""
        names = [self._take(block) for block in result_blocks(message)]
        return _in_order(message, names) if any(names) else None

    def _take(self, block: Mapping[str, Any]) -> str | None:
        """The id of the first call that this can be the result of."""
        given = name = str(block.get("tool_use_id") or "")
        while name in self._known:
            self._times[given] += 1
            if self._calls.pop(name, None) is not None:
                return name
            name = f"{given}{AGAIN}{self._times[given] + 1}"
        return None


def without_orphans(message: Message) -> Message:
    """The message itself, or with its results as text where they answer no call."""
    blocks = result_blocks(message)
    return _in_order(message, [None] * len(blocks)) if blocks else message


def _in_order(message: Message, names: Sequence[str | None]) -> Message:
    """The results that answer a call in front, by its id; the others, as text, in their place."""
    name = iter(names)
    results: list[Any] = []
    rest: list[Any] = []
    for part in message["content"]:
        found = next(name) if is_answer_block(part) else None
        if found is not None:
            same = part.get("tool_use_id") == found
            results.append(part if same else {**part, "tool_use_id": found})
        else:
            rest.extend(_as_text(part) if is_answer_block(part) else [part])
    content = [*results, *rest]
    if len(content) == len(message["content"]) and all(map(_is, content, message["content"])):
        return message
    return {**message, "content": content}


def _is(one: Any, other: Any) -> bool:
    return one is other


def _as_text(block: Mapping[str, Any]) -> list[Any]:
    """A result without a call: its words as text, its pictures as they are."""
    inside = block.get("content")
    media = [part for part in inside if _is_media(part)] if isinstance(inside, list) else []
    return [{"type": "text", "text": f"{ORPHAN_OPENS}\n{text_of(block)}"}, *media]


def _is_media(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("image", "document")
