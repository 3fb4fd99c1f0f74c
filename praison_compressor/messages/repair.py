"""Repair messages, calls and results that a provider would refuse.

In Anthropic's API results are `tool_result` blocks. The blocks come first in a user message, which
directly follows the message with the `tool_use` blocks.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ..errors import InvalidMessages
from .digests import is_bare, sha256_of
from .shapes import (
    MOST_DEPTH,
    ORPHAN_OPENS,
    Message,
    ToolCall,
    call_blocks,
    calls_beside,
    calls_list,
    has_user_part,
    is_call_block,
    is_result,
    is_result_block,
    json_text,
    makes_calls,
    part_text,
    plain_value,
    read_call,
    replace_surrogates,
    result_blocks,
    text_of,
    to_plain,
    tool_calls_of,
)

EMPTY_CONTENT = "(empty)"

REPEATED_ID = "--again"
"""Separates a repeated id from its number: `a--again2`."""

RESPONSES_REMEDY = "praison_compressor: to_messages(instructions, items), to_items(view)"
"""For errors: how to pass items of OpenAI's Responses API."""

_LANGCHAIN_TYPES = frozenset("human ai system tool function chat AIMessageChunk".split())

VALID_ROLES = ("assistant", "developer", "function", "system", "tool", "user")


def repair_message(index: int, message: Any) -> Message:
    """Return the message if it can be sent, else a repaired copy.

    Raises:
        InvalidMessages: the message is no mapping, has an unknown role, or is nested too deep.
    """
    if _is_sound_text(message):
        return message
    if _is_langchain(message):
        named = message.get("type") if isinstance(message, Mapping) else type(message).__name__
        wrong = f"a LangChain message ({named})"
        remedy = "langchain_core.messages.convert_to_openai_messages(messages)"
        raise InvalidMessages(index, wrong, f"chat messages; see {remedy}")
    if not isinstance(message, Mapping) and not hasattr(message, "model_dump"):
        raise InvalidMessages(index, type(message).__name__, "a mapping with a role")
    try:
        plain = to_plain(message)
    except InvalidMessages as error:
        raise InvalidMessages(index, error.wrong, error.expected) from error
    role = plain.get("role")
    if role is None and isinstance(plain.get("type"), str):
        wrong = f"an item of OpenAI's Responses API (type {plain['type']!r})"
        raise InvalidMessages(index, wrong, f"chat messages; see {RESPONSES_REMEDY}")
    if role not in VALID_ROLES:
        raise InvalidMessages(index, f"role {role!r}", "one of " + ", ".join(VALID_ROLES))
    repaired = _repair_fields(plain)
    return message if isinstance(message, dict) and repaired == message else repaired


def _is_langchain(message: Any) -> bool:
    if type(message).__module__.startswith(("langchain", "langgraph")):
        return True
    if not isinstance(message, Mapping) or "role" in message:
        return False
    is_dump = "content" in message or "data" in message
    return "lc" in message or (is_dump and str(message.get("type")) in _LANGCHAIN_TYPES)


def _is_sound_text(message: Any) -> TypeGuard[Message]:
    if not is_bare(message):
        return False
    role, content = message.get("role"), message.get("content", "")
    is_placed = role == "tool" or "tool_call_id" not in message
    has_text = role in VALID_ROLES and role != "function" and bool(content.strip())
    if not (is_placed and has_text):
        return False
    return all(map(str.isascii, message.values())) or replace_surrogates(message) == message


def _repair_fields(plain: Message) -> Message:
    """Return a plain message as a provider accepts it.

    OpenAI's older shape (`function_call`, role `function`) becomes the newer one.
    """
    repaired = {key: value for key, value in plain.items() if not key.startswith("_")}
    calls, older = repaired.pop("tool_calls", None), repaired.pop("function_call", None)
    if is_result(repaired):
        repaired["role"] = "tool"
    else:
        repaired.pop("tool_call_id", None)
    if repaired["role"] == "assistant":
        if entries := [*calls_list(calls), *([{"function": older}] if older else ())]:
            repaired["tool_calls"] = [*_with_distinct_ids(map(_repair_call, entries))]
        if blocks := call_blocks(repaired):
            distinct = _with_distinct_ids(map(_repair_block, blocks))
            parts = repaired["content"]
            repaired["content"] = [next(distinct) if is_call_block(p) else p for p in parts]
    content = repaired.get("content")
    if content is not None and not isinstance(content, str):
        repaired["content"] = _repair_content(content)
    if _is_empty(repaired):
        repaired["content"] = EMPTY_CONTENT
    return replace_surrogates(repaired)


def _repair_call(call: Any) -> Message:
    entry = call if isinstance(call, dict) else {}
    if entry.get("type") == "custom" and entry.get("id") and isinstance(entry.get("custom"), dict):
        return entry
    read = read_call(call)
    arguments = _object_json(read.arguments)
    name = read.name or "unnamed"
    function = entry.get("function")
    return {
        **entry,
        "id": read.id or _id_for(name, arguments),
        "type": "function",
        "function": {
            **(function if isinstance(function, dict) else {}),
            "name": name,
            "arguments": arguments,
        },
    }


def _repair_block(block: Message) -> Message:
    call, arguments = read_call(block), block.get("input")
    if not isinstance(arguments, dict):
        arguments = json.loads(_object_json(call.arguments))
    name = call.name or "unnamed"
    return {**block, "id": call.id or _id_for(name, arguments), "name": name, "input": arguments}


def _with_distinct_ids(calls: Iterable[Message]) -> Iterator[Message]:
    seen: Counter[str] = Counter()
    for call in calls:
        id = call["id"]
        seen[id] += 1
        yield call if seen[id] == 1 else {**call, "id": f"{id}{REPEATED_ID}{seen[id]}"}


def _id_for(name: str, arguments: Any) -> str:
    return "call_" + sha256_of([name, arguments])[7:23]


def _object_json(text: str) -> str:
    """Return a JSON object unchanged; wrap any other text in an object."""
    try:
        value = json.loads(text)
        is_deep = text.count("{") + text.count("[") > MOST_DEPTH
        if isinstance(plain_value(value) if is_deep else value, dict):
            return text
    except (ValueError, RecursionError):
        pass
    return json.dumps({"arguments": text} if text.strip() else {}, ensure_ascii=False)


def _repair_content(content: Any) -> Any:
    if not isinstance(content, (list, dict)):
        return str(content)
    parts = map(_repair_part, content if isinstance(content, list) else [content])
    return [part for part in parts if part is not None] or None


def _repair_part(part: Any) -> Message | None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and not part.get("text"):
        return None
    if isinstance(kind, str) and kind and (kind != "text" or isinstance(part["text"], str)):
        return dict(part)
    text = part_text(part) or ("" if part in (None, [], {}) else json_text(part))
    return {"type": "text", "text": text} if text else None


def _is_empty(message: Message) -> bool:
    content = message.get("content")
    if makes_calls(message) or (content == "" and is_result(message)):
        return False  # a result may be empty
    others = content if isinstance(content, list) else ()
    return not text_of(message).strip() and all(part["type"] == "text" for part in others)


# -------------------------------------------------------------- calls and their results

MISSING_RESULT = "[no result was recorded for this tool call]"

WHOLE_MESSAGE = -1

ResultPlace = tuple[int, int]
"""Index of the message; index of the part, or WHOLE_MESSAGE."""

PlacedMessage = tuple["int | None", Message]
"""A message and its index in the caller's list; a stub's index is None."""


def pair_results(clean: Sequence[Message]) -> Iterator[PlacedMessage]:
    """Yield calls before their results; results without a call become text."""
    taken: set[int] = set()
    for index, message in enumerate(clean):
        if makes_calls(message):
            step = _paired_step(clean, index)
            taken.update(at for at, _ in step if at is not None)
            yield from step
        elif index in taken:
            continue
        elif is_result(message):
            yield index, _orphan_as_text(message)
        else:
            yield index, _results_first(message, {}) if result_blocks(message) else message


def _paired_step(clean: Sequence[Message], index: int) -> list[PlacedMessage]:
    """Return a message with calls, and its results or stubs."""
    message = clean[index]
    calls = tool_calls_of(message)
    following = clean[index + 1 : index + 1 + len(calls)]
    if [call.id for call in calls] == [m.get("tool_call_id") for m in following if is_result(m)]:
        return [*enumerate((message, *following), index)]
    results = _Results(clean, index + 1)
    ids: dict[int, dict[int, str]] = {}
    for call in calls:
        place = results.take(call)
        if place is not None:
            ids.setdefault(place[0], {})[place[1]] = call.id
    # Results keep their order.
    whole = sorted(at for at in ids if WHOLE_MESSAGE in ids[at])
    moved = _movable_results(
        clean, index + 1, {at: ids[at] for at in sorted(ids.keys() - {*whole})}
    )
    answered = {id for at in (*whole, *moved) for id in ids[at].values()}
    return [
        (index, message),
        *((at, _with_id(clean[at], "tool_call_id", ids[at][WHOLE_MESSAGE])) for at in whole),
        *_stubs(message, [call for call in calls if call.id not in answered]),
        *((at, _results_first(clean[at], ids[at])) for at in moved),
    ]


class _Results:
    """Hold the results before the next calls, by call id or name.

    Each id or name has a queue of results: a search through all results for each call would take
    quadratic time.
    """

    def __init__(self, clean: Sequence[Message], start: int) -> None:
        self._queues: dict[Hashable, deque[ResultPlace]] = {}
        for index in range(start, len(clean)):
            message = clean[index]
            if makes_calls(message):
                break
            if is_result(message):
                id, name = message.get("tool_call_id"), message.get("name")
                key = str(id) if id else (str(name) if name else None,)
                self._add(key, (index, WHOLE_MESSAGE))
            elif result_blocks(message):
                for at, part in enumerate(message["content"]):
                    if is_result_block(part):
                        self._add(str(part.get("tool_use_id") or ""), (index, at))

    def _add(self, key: Hashable, place: ResultPlace) -> None:
        self._queues.setdefault(key, deque()).append(place)

    def take(self, call: ToolCall) -> ResultPlace | None:
        """Return the place of a result for the call, or None."""
        keys = (call.id, call.id.partition(REPEATED_ID)[0], (None,), (call.name,))
        queues = [queue for queue in map(self._queues.get, keys) if queue]
        return min(queues, key=lambda queue: queue[0]).popleft() if queues else None


def _movable_results(
    clean: Sequence[Message], start: int, blocks: Mapping[int, Mapping[int, str]]
) -> list[int]:
    """Return the user messages that may move directly after the calls.

    Results move, because providers refuse text between calls and results. A message with the user's
    words may not move before earlier words of the user.
    """
    whole = [at for at in blocks if len(blocks[at]) == len(clean[at]["content"])]
    mixed = [at for at in blocks if len(blocks[at]) < len(clean[at]["content"])][:1]
    for at in mixed:
        earlier = (m for m in clean[start:at] if not is_result(m))
        if has_user_part(clean[at]) and any(map(has_user_part, earlier)):
            return whole
    return whole + mixed


def _stubs(message: Message, unanswered: Sequence[ToolCall]) -> Iterator[PlacedMessage]:
    beside = {call.id for call in calls_beside(message)}
    blocks = []
    for call in unanswered:
        if call.id in beside:
            yield None, {"role": "tool", "tool_call_id": call.id, "content": MISSING_RESULT}
        else:
            blocks.append(
                {"type": "tool_result", "tool_use_id": call.id, "content": MISSING_RESULT}
            )
    if blocks:
        yield None, {"role": "user", "content": blocks}


def _with_id(message: Message, key: str, id: str) -> Message:
    return message if message.get(key) == id else {**message, key: id}


def _orphan_as_text(message: Message) -> Message:
    name = message.get("name")
    by = f" ({name})" if isinstance(name, str) and name else ""
    return {"role": "user", "content": f"{ORPHAN_OPENS}{by}\n{text_of(message)}"}


def _results_first(message: Message, ids: Mapping[int, str]) -> Message:
    results: list[Any] = []
    others: list[Any] = []
    for at, part in enumerate(message["content"]):
        if at in ids:
            results.append(_with_id(part, "tool_use_id", ids[at]))
        else:
            others += _block_as_text(part) if is_result_block(part) else [part]
    content = [*results, *others]
    return message if content == message["content"] else {**message, "content": content}


def _block_as_text(block: Mapping[str, Any]) -> list[Any]:
    """Return a result without a call as text, with its pictures."""
    inside = block.get("content")
    parts = inside if isinstance(inside, list) else ()
    kinds = ("image", "document")
    media = [
        p for p in parts if isinstance(p, dict) and p.get("type") in kinds and not part_text(p)
    ]
    return [{"type": "text", "text": f"{ORPHAN_OPENS}\n{text_of(block)}"}, *media]
