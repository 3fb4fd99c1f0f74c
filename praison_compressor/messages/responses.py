"""The Responses API's `instructions` and `input` items as chat messages, and back. Pure.

```python
result = compressor.compress_sync(to_messages(None, items))
_, items = to_items(result.messages)
```

One step (text, reasoning and calls of one answer) is several items there. The items become one
message, so that a function call keeps the reasoning item that the API requires before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .shapes import Message, is_system, text_of, to_plain, tool_calls_of

ITEMS = "response_items"  # items of an answer that chat messages have no place for

ITEM = "response_item"  # on a tool call or result: its own item, with ids and status

_TEXT = frozenset({"input_text", "output_text"})


def to_messages(instructions: Any, items: Any) -> list[Message]:
    """Return a request's chat messages, digests equal on both APIs.

    `items` are dictionaries, or a client's objects, as a response's `output`.
    """
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    if isinstance(items, str):
        return [*messages, {"role": "user", "content": items}]
    answer: Message | None = None
    for item in map(_plain, items or ()):
        kind = str(item.get("type") or "message")
        if kind == "function_call_output":
            answer = None
            messages.append(_result(item))
        elif kind == "message" and item.get("role") != "assistant":
            answer = None
            messages.append(_spoken(item))
        else:
            if answer is None or not _belongs(answer, kind):
                answer = {"role": "assistant", "content": None}
                messages.append(answer)
            _add(answer, kind, item)
    return messages


def _plain(item: Any) -> Mapping[str, Any]:
    return item if isinstance(item, Mapping) else to_plain(item)


def _belongs(answer: Message, kind: str) -> bool:
    """Return whether an item continues the answer: reasoning, then text, then calls."""
    return kind == "function_call" or not (answer["content"] or answer.get("tool_calls"))


def _add(answer: Message, kind: str, item: Mapping[str, Any]) -> None:
    if kind == "function_call":
        answer.setdefault("tool_calls", []).append(_call(item))
    elif kind == "message":
        answer.update(_spoken(item))
    else:
        answer.setdefault(ITEMS, []).append(dict(item))


def _spoken(item: Mapping[str, Any]) -> Message:
    content = item.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        content = [_chat_part(part) for part in content]
    return {**item, "content": content}


def _chat_part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    if part.get("type") in _TEXT:
        return {**part, "type": "text"}
    if part.get("type") == "input_image" and isinstance(part.get("image_url"), str):
        rest = {key: value for key, value in part.items() if key not in ("type", "image_url")}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **rest}}
    return part


def _call(item: Mapping[str, Any]) -> Message:
    function = {"name": item.get("name", ""), "arguments": item.get("arguments", "")}
    call: Message = {"id": item.get("call_id", ""), "type": "function", "function": function}
    extra = {key: item[key] for key in item if key not in ("type", "call_id", *function)}
    return {**call, ITEM: extra} if extra else call


def _result(item: Mapping[str, Any]) -> Message:
    output = item.get("output", "")
    if isinstance(output, list):
        output = [_chat_part(part) for part in output]
    message: Message = {
        "role": "tool",
        "tool_call_id": item.get("call_id", ""),
        "content": output if isinstance(output, (str, list)) else json.dumps(output),
    }
    # `id` is not part of a digest. The status of a finished call is dropped.
    return {**message, "id": item["id"]} if "id" in item else message


def to_items(messages: Iterable[Message]) -> tuple[str | None, list[Message]]:
    """Return `instructions` (leading system messages) and `input` of a view."""
    instructions: list[str] = []
    items: list[Message] = []
    for message in messages:
        if is_system(message) and not items:
            instructions.append(text_of(message))
        else:
            items.extend(_items(message))
    return "\n".join(instructions) if instructions else None, items


def _items(message: Message) -> Iterator[Message]:
    if message.get("role") in ("tool", "function"):
        yield _output_item(message)
        return
    yield from message.get(ITEMS) or ()
    if message.get("content") or not (message.get("tool_calls") or message.get(ITEMS)):
        yield _message_item(message)
    for call, read in zip(message.get("tool_calls") or (), tool_calls_of(message), strict=False):
        yield {
            "type": "function_call",
            "call_id": read.id,
            "name": read.name,
            "arguments": read.arguments,
            **(call.get(ITEM) or {}),
        }


def _message_item(message: Message) -> Message:
    left_out = ("tool_calls", "function_call", ITEMS)
    item = {key: value for key, value in message.items() if key not in left_out}
    if isinstance(item.get("content"), list):
        text = "output_text" if message.get("role") == "assistant" else "input_text"
        item["content"] = [_response_part(part, text) for part in item["content"]]
    return item


def _response_part(part: Any, text: str) -> Any:
    if not isinstance(part, Mapping):
        return part
    if part.get("type") == "text":
        kept = {key: value for key, value in part.items() if key != "cache_control"}
        return {**kept, "type": text}
    if part.get("type") == "image_url":
        image = part.get("image_url")
        image = image if isinstance(image, Mapping) else {"url": image}
        rest = {key: value for key, value in image.items() if key != "url"}
        return {"type": "input_image", "image_url": image.get("url"), **rest}
    return part


def _output_item(message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        content = [_response_part(part, "input_text") for part in content]
    item: Message = {
        "type": "function_call_output",
        "call_id": message.get("tool_call_id", ""),
        "output": "" if content is None else content,
    }
    return {**item, "id": message["id"]} if "id" in message else item
