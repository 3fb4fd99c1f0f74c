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

__all__ = ["AGAIN", "Waiting", "carried", "without_orphans"]

AGAIN = "--again"
"""Marks the second of two calls that came with one id."""


class Waiting:
    """The calls of one message that wait for their results; each is answered once."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self._calls = {call.id: call for call in calls}
        self._times: Counter[str] = Counter()
        """How many results have come with an id: the second is that of the second call with it."""

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls.values())

    def names(self, message: Message) -> list[str | None]:
        """For each result in the message the id of the call that it can answer."""
        seen: set[str] = set()
        names: list[str | None] = []
        times: Counter[str] = Counter()
        for block in result_blocks(message):
            given = str(block.get("tool_use_id") or "")
            nth = self._times[given] + times[given] + 1
            name = given if nth == 1 else f"{given}{AGAIN}{nth}"
            times[given] += 1
            free = name in self._calls and name not in seen
            names.append(name if free else None)
            seen.add(name)
        return names

    def answer(self, message: Message, names: Sequence[str | None]) -> Message:
        """The message with these results in front; their calls wait no longer."""
        for block, name in zip(result_blocks(message), names, strict=True):
            if name is not None:
                del self._calls[name]
                self._times[str(block.get("tool_use_id") or "")] += 1
        return _in_order(message, names)


def carried(messages: Sequence[Message], start: int, waiting: Waiting) -> list[tuple[int, Message]]:
    """The users' messages before the next call that bring results of those that wait.

    Each with its index, in the order in which they may follow the calls: text before a result is
    refused, so that of those which hold more than results one is taken, and stands last.
    """
    whole: list[tuple[int, Message]] = []
    last: list[tuple[int, Message]] = []
    spoken = False
    for index in range(start, len(messages)):
        message = messages[index]
        if makes_calls(message):
            break
        says = not is_result(message) and is_spoken(message)
        names = waiting.names(message)
        if any(names):
            if all(names) and not says:
                whole.append((index, waiting.answer(message, names)))
            elif not last and not (says and spoken):
                last.append((index, waiting.answer(message, names)))
        spoken = spoken or says
    return whole + last


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
