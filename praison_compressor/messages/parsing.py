"""Read a list of messages as a valid transcript of steps; pair calls with results.

A result is a message, or a `tool_result` block of a user message (Anthropic's API). Such blocks
stand first in their message, and the message directly follows the one with the `tool_use` blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..concurrency import lazy
from ..errors import InvalidMessages
from .repair import AGAIN, cleaned
from .shapes import (
    ORPHAN_OPENS,
    Message,
    ToolCall,
    calls_beside,
    is_answer_block,
    is_result,
    is_spoken,
    leading_in,
    makes_calls,
    part_text,
    result_blocks,
    text_of,
    tool_calls_of,
)


@dataclass(frozen=True)
class Transcript:
    """A valid list of messages, with its steps and its origins."""

    messages: tuple[Message, ...]
    """The caller's own dictionaries, and copies of repaired ones."""
    origins: tuple[int | None, ...]
    """Each message's index in the caller's list; None for an inserted stub."""
    steps: tuple[range, ...]

    @lazy
    def leading(self) -> int:
        """Return the number of system and developer messages at the front."""
        return leading_in(self.messages)

    @lazy
    def users(self) -> tuple[int, ...]:
        """Return the indices of user messages that carry more than results."""
        found = enumerate(self.messages)
        return tuple(n for n, m in found if m.get("role") == "user" and is_spoken(m))

    @property
    def repaired(self) -> int:
        """Number of inserted stubs."""
        return sum(origin is None for origin in self.origins)


def read(messages: Any) -> Transcript:
    """Read chat messages, repaired where a provider would refuse them.

    The caller's list is never changed. Objects become dictionaries, private keys are dropped, empty
    content is marked, arguments become JSON text, results move behind their calls, a missing result
    becomes a stub, a result without a call becomes plain text.

    Raises:
        InvalidMessages: not a list, a message that is no mapping, or an unknown role.
    """
    placed = list(paired([cleaned(i, message) for i, message in enumerate(as_list(messages))]))
    sent = tuple(message for _, message in placed)
    return Transcript(
        messages=sent,
        origins=tuple(origin for origin, _ in placed),
        steps=tuple(steps(sent)),
    )


def check(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the places that `read` would repair."""
    got = read(messages)
    placed = enumerate(zip(got.origins, got.messages, strict=True))
    return [f"messages[{at}]" for at, (old, new) in placed if old != at or new != messages[at]]


def as_list(messages: Any) -> Sequence[Any]:
    """Return the messages as a sequence; an iterator is read once.

    Raises:
        InvalidMessages: it is no list of messages.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidMessages(None, f"a {type(messages).__name__}", "a list of chat messages")
    return messages if isinstance(messages, Sequence) else list(messages)


def steps(messages: Sequence[Mapping[str, Any]]) -> list[range]:
    """Return the steps of a valid list, as ranges in order."""
    found: list[range] = []
    start = 0
    while start < len(messages):
        end = start + 1
        if makes_calls(messages[start]):
            while end < len(messages) and _is_answer(messages[end]):
                end += 1
        found.append(range(start, end))
        start = end
    return found


def _is_answer(message: Mapping[str, Any]) -> bool:
    return is_result(message) or bool(result_blocks(message))


# -------------------------------------------------------------- calls and their results


NO_RESULT = "[no result was recorded for this tool call]"

WHOLE = -1

ResultPlace = tuple[int, int]
"""Where a result stands: a message's index, and its part's index or WHOLE."""

Placed = tuple["int | None", Message]
"""A message and its index in the caller's list; None for an inserted stub."""


def paired(clean: Sequence[Message]) -> Iterator[Placed]:
    """Yield calls directly followed by their results, other results as text."""
    taken: set[int] = set()
    for index, message in enumerate(clean):
        if makes_calls(message):
            yield from _step(clean, index, taken)
        elif index in taken:
            continue
        elif is_result(message):
            yield index, _orphan(message)
        else:
            yield index, _in_order(message, {}) if result_blocks(message) else message


def _step(clean: Sequence[Message], index: int, taken: set[int]) -> Iterator[Placed]:
    message = clean[index]
    yield index, message
    calls = tool_calls_of(message)
    behind = clean[index + 1 : index + 1 + len(calls)]
    if [call.id for call in calls] == [m.get("tool_call_id") for m in behind if is_result(m)]:
        taken.update(range(index + 1, index + 1 + len(calls)))
        yield from enumerate(behind, index + 1)
        return
    results = _Results(clean, index + 1)
    given: dict[int, dict[int, str]] = {}
    for call in calls:
        place = results.take(call)
        if place is not None:
            given.setdefault(place[0], {})[place[1]] = call.id
    # In their own order: a provider only requires that results directly follow.
    whole = sorted(at for at in given if WHOLE in given[at])
    brought = _brought(clean, index + 1, {at: given[at] for at in sorted(given.keys() - {*whole})})
    taken.update(whole, brought)
    answered = {id for at in (*whole, *brought) for id in given[at].values()}
    for at in whole:
        yield at, _with(clean[at], "tool_call_id", given[at][WHOLE])
    yield from _stubs(message, [call for call in calls if call.id not in answered])
    for at in brought:
        yield at, _in_order(clean[at], given[at])


class _Results:
    """The results before the next message with calls; each is taken once.

    One queue for each id, or each name without an id: a search through all results for every call
    would be quadratic in thousands of parallel calls.
    """

    def __init__(self, clean: Sequence[Message], start: int) -> None:
        self._queues: dict[Hashable, deque[ResultPlace]] = {}
        for index in range(start, len(clean)):
            message = clean[index]
            if makes_calls(message):
                break
            if is_result(message):
                given, name = message.get("tool_call_id"), message.get("name")
                key = str(given) if given else (str(name) if name else None,)
                self._add(key, (index, WHOLE))
            elif result_blocks(message):
                for at, part in enumerate(message["content"]):
                    if is_answer_block(part):
                        self._add(str(part.get("tool_use_id") or ""), (index, at))

    def _add(self, key: Hashable, place: ResultPlace) -> None:
        self._queues.setdefault(key, deque()).append(place)

    def take(self, call: ToolCall) -> ResultPlace | None:
        """Return the place of the first result that may answer the call."""
        keys = (call.id, call.id.partition(AGAIN)[0], (None,), (call.name,))
        queues = [queue for queue in map(self._queues.get, keys) if queue]
        return min(queues, key=lambda queue: queue[0]).popleft() if queues else None


def _brought(
    clean: Sequence[Message], start: int, blocks: Mapping[int, Mapping[int, str]]
) -> list[int]:
    """Return the user messages with results that may directly follow the calls.

    Providers refuse text before a result, so at most one message with text is taken, the last. It
    is left where it would move the user's words before earlier ones.
    """
    whole = [at for at in blocks if len(blocks[at]) == len(clean[at]["content"])]
    mixed = [at for at in blocks if len(blocks[at]) < len(clean[at]["content"])][:1]
    for at in mixed:
        earlier = (m for m in clean[start:at] if not is_result(m))
        if is_spoken(clean[at]) and any(map(is_spoken, earlier)):
            return whole
    return whole + mixed


def _stubs(message: Message, left: Sequence[ToolCall]) -> Iterator[Placed]:
    """Yield stubs for missing results, each in the shape of its call."""
    beside = {call.id for call in calls_beside(message)}
    blocks = []
    for call in left:
        if call.id in beside:
            yield None, {"role": "tool", "tool_call_id": call.id, "content": NO_RESULT}
        else:
            blocks.append({"type": "tool_result", "tool_use_id": call.id, "content": NO_RESULT})
    if blocks:
        yield None, {"role": "user", "content": blocks}


def _with(message: Message, key: str, id: str) -> Message:
    return message if message.get(key) == id else {**message, key: id}


def _orphan(message: Message) -> Message:
    name = message.get("name")
    by = f" ({name})" if isinstance(name, str) and name else ""
    return {"role": "user", "content": f"{ORPHAN_OPENS}{by}\n{text_of(message)}"}


def _in_order(message: Message, ids: Mapping[int, str]) -> Message:
    """Return the message with its results first, unmatched ones as text."""
    results: list[Any] = []
    rest: list[Any] = []
    for at, part in enumerate(message["content"]):
        if at in ids:
            results.append(_with(part, "tool_use_id", ids[at]))
        else:
            rest += _as_text(part) if is_answer_block(part) else [part]
    content = [*results, *rest]
    return message if content == message["content"] else {**message, "content": content}


def _as_text(block: Mapping[str, Any]) -> list[Any]:
    """Return a result without a call as text, with its pictures."""
    inside = block.get("content")
    parts = inside if isinstance(inside, list) else ()
    kinds = ("image", "document")
    media = [
        p for p in parts if isinstance(p, dict) and p.get("type") in kinds and not part_text(p)
    ]
    return [{"type": "text", "text": f"{ORPHAN_OPENS}\n{text_of(block)}"}, *media]
