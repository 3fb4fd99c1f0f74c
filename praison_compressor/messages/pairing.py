"""Pair every call with its results, in time linear in the messages; results may stand in blocks of
a user message, as in Anthropic's API.

There a result is a `tool_result` block, in front of whatever else the user's message holds, and
the message comes right after the one whose `tool_use` it answers.
"""

from __future__ import annotations

import operator
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .shapes import (
    ORPHAN_OPENS,
    Message,
    ToolCall,
    call_blocks,
    calls_beside,
    is_answer_block,
    is_call_block,
    is_result,
    is_spoken,
    makes_calls,
    result_blocks,
    text_of,
    tool_calls_of,
)

AGAIN = "--again"
"""Marks the second of two calls that came with one id."""


NO_RESULT = "[no result was recorded for this tool call]"

Placed = tuple["int | None", Message]
"""A message and its index in the caller's list; None for a stub that repair put in."""


def paired(clean: Sequence[Message]) -> Iterator[Placed]:
    """Every call followed at once by its results, every other result turned into text."""
    taken: set[int] = set()
    for index, message in enumerate(clean):
        if makes_calls(message):
            yield from _step(clean, index, taken)
        elif index not in taken:
            yield index, _orphan(message) if is_result(message) else _without_orphans(message)


def _step(clean: Sequence[Message], index: int, taken: set[int]) -> Iterator[Placed]:
    message = _with_unique_ids(clean[index])
    calls = tool_calls_of(message)
    if len(calls) == 1 and _is_result_of(calls[0], clean[index + 1 : index + 2]):
        # One call with its result behind it, as most steps are: nothing has to be looked for.
        taken.add(index + 1)
        yield index, message
        yield index + 1, clean[index + 1]
        return
    results = _Results(clean, index + 1)
    answers = [(call, results.take(call)) for call in calls]
    yield index, message
    # In the order they came: a provider asks only that they follow at once.
    for found, call in sorted((at, call) for call, at in answers if at is not None):
        taken.add(found)
        yield found, _answering(call, clean[found])
    left = _Waiting(call for call, at in answers if at is None)
    brought = _carried(clean, index + 1, left) if any(left) else []
    taken.update(at for at, _ in brought)
    yield from _stubs(message, left)
    yield from brought


def _stubs(message: Message, left: Iterable[ToolCall]) -> Iterator[Placed]:
    """Results that say there is none, each in the shape of its call."""
    beside = {call.id for call in calls_beside(message)}
    blocks = []
    for call in left:
        if call.id in beside:
            yield None, _stub(call)
        else:
            blocks.append({"type": "tool_result", "tool_use_id": call.id, "content": NO_RESULT})
    if blocks:
        yield None, {"role": "user", "content": blocks}


def _is_result_of(call: ToolCall, following: Sequence[Message]) -> bool:
    """Whether the message that follows is the call's result, just as a provider wants it."""
    return any(_answers_only(message) == call.id != "" for message in following)


def _answers_only(message: Message) -> Any:
    """The id of the one call that the message answers, and does nothing else."""
    if message["role"] == "tool":
        return message.get("tool_call_id")
    blocks = result_blocks(message)
    return blocks[0].get("tool_use_id") if len(blocks) == 1 == len(message["content"]) else None


class _Results:
    """The results before the next message that makes calls; each is taken once.

    In a queue for each id, or for each name where they carry no id: a search through all of them
    for every call would make thousands of parallel calls quadratic.
    """

    def __init__(self, clean: Sequence[Message], start: int) -> None:
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str | None, deque[int]] = {}
        for index in range(start, len(clean)):
            message = clean[index]
            if is_result(message):
                self._waiting(message).append(index)
            elif makes_calls(message):
                break

    def _waiting(self, message: Message) -> deque[int]:
        given, name = message.get("tool_call_id"), message.get("name")
        if given:
            return self._by_id.setdefault(str(given), deque())
        return self._by_name.setdefault(None if name is None else str(name), deque())

    def take(self, call: ToolCall) -> int | None:
        """The index of the first result that can be this call's."""
        queues = [queue for queue in self._queues(call) if queue]
        return min(queues, key=lambda queue: queue[0]).popleft() if queues else None

    def _queues(self, call: ToolCall) -> Iterator[deque[int] | None]:
        if not call.id:  # a legacy call: whichever result is not another's
            yield from self._by_name.values()
            return
        yield self._by_id.get(call.id)
        yield self._by_id.get(call.id.partition(AGAIN)[0])
        yield self._by_name.get(None)
        yield self._by_name.get(call.name)


def _answering(call: ToolCall, message: Message) -> Message:
    """The result as a provider wants it for this call: by id, or by name for a legacy call."""
    if call.id and (message["role"] != "tool" or message.get("tool_call_id") != call.id):
        return {**message, "role": "tool", "tool_call_id": call.id}
    if not call.id and not _is_functions(message):
        rest = {key: value for key, value in message.items() if key != "tool_call_id"}
        return {**rest, "role": "function", "name": call.name}
    return message


def _is_functions(message: Message) -> bool:
    """Whether it is a legacy result as it should be: it has a name, and no id."""
    named = isinstance(message.get("name"), str) and bool(message["name"])
    return message["role"] == "function" and named and "tool_call_id" not in message


def _with_unique_ids(message: Message) -> Message:
    calls, blocks = message.get("tool_calls") or [], call_blocks(message)
    if len(calls) + len(blocks) < 2:
        return message
    return _renamed(_renamed(message, "tool_calls", calls), "content", blocks)


def _renamed(message: Message, key: str, calls: Sequence[Message]) -> Message:
    """The message with the calls under that key told apart by their ids."""
    ids = [call["id"] for call in calls]
    if len(set(ids)) == len(ids):
        return message
    seen: Counter[str] = Counter()
    parts = []
    for part in message[key]:
        if key == "tool_calls" or is_call_block(part):
            seen[part["id"]] += 1
            nth = seen[part["id"]]
            part = part if nth == 1 else {**part, "id": f"{part['id']}{AGAIN}{nth}"}
        parts.append(part)
    return {**message, key: parts}


def _stub(call: ToolCall) -> Message:
    if not call.id:
        return {"role": "function", "name": call.name, "content": NO_RESULT}
    return {"role": "tool", "tool_call_id": call.id, "content": NO_RESULT}


def _orphan(message: Message) -> Message:
    name = message.get("name")
    by = f" ({name})" if isinstance(name, str) and name else ""
    return {"role": "user", "content": f"{ORPHAN_OPENS}{by}\n{text_of(message)}"}


# -------------------------------------------------------------- results as blocks


class _Waiting:
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


def _carried(
    messages: Sequence[Message], start: int, waiting: _Waiting
) -> list[tuple[int, Message]]:
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


def _without_orphans(message: Message) -> Message:
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
    if len(content) == len(message["content"]) and all(
        map(operator.is_, content, message["content"])
    ):
        return message
    return {**message, "content": content}


def _as_text(block: Mapping[str, Any]) -> list[Any]:
    """A result without a call: its words as text, its pictures as they are."""
    inside = block.get("content")
    media = [part for part in inside if _is_media(part)] if isinstance(inside, list) else []
    return [{"type": "text", "text": f"{ORPHAN_OPENS}\n{text_of(block)}"}, *media]


def _is_media(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("image", "document")
