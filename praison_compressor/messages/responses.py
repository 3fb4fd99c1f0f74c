"""Convert a request of OpenAI's Responses API to chat messages, and back.

In that API one answer is several items: reasoning, text, calls. They become one message: the API
requires the reasoning item before a call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidMessages
from .shapes import (
    ITEMS,
    Message,
    is_result,
    leading_count,
    parse_json,
    text_of,
    to_plain,
    tool_calls_of,
    words_in,
)

ITEM_FIELDS = "response_item"
"""Key of an item's other fields, in a call or a result."""

_TEXT = frozenset({"input_text", "output_text"})

_CALL_ITEMS = frozenset(
    "function_call custom_tool_call local_shell_call shell_call apply_patch_call "
    "computer_call".split()
)
"""Items that the client answers with an output."""

_OTHER_ITEMS = frozenset(
    "reasoning web_search_call file_search_call code_interpreter_call image_generation_call "
    "mcp_call mcp_list_tools mcp_approval_request mcp_approval_response compaction "
    "compaction_summary item_reference tool_search_call tool_search_output".split()
)
"""Items without a chat shape: they stay items beside an answer."""

_FRAME_KEYS = frozenset(
    "type id call_id status created_by name pending_safety_checks namespace "
    "max_output_length".split()
)
"""Keys of a call's item that are no arguments."""


def to_messages(instructions: Any, items: Any) -> list[Message]:
    """Return the chat messages of a Responses request: its `instructions` and `input`.

    `items` are dictionaries, or a client's objects such as a response's `output`.

    Raises:
        InvalidMessages: `items` is no text or list, or an item is none of the API's.
    """
    if not isinstance(items, (Iterable, type(None))) or isinstance(items, Mapping):
        raise InvalidMessages(None, type(items).__name__, "a text or a list of items")
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    if isinstance(items, str):
        return [*messages, {"role": "user", "content": items}]
    for index, source in enumerate(items or ()):
        item = _as_mapping(index, source)
        kind = _item_kind(index, item)
        if _is_output(kind):
            messages.append(_result_message(kind, item))
        elif kind == "message" and item.get("role") != "assistant":
            messages.append(_chat_message(item))
        elif messages and _continues_answer(messages[-1], kind):
            messages[-1] = _with_item(messages[-1], kind, item)
        else:
            messages.append(_with_item({"role": "assistant", "content": None}, kind, item))
    return messages


def _as_mapping(index: int, item: Any) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    try:
        return to_plain(item)
    except InvalidMessages as error:
        raise InvalidMessages(index, error.wrong, "an item of the Responses API") from error


def _item_kind(index: int, item: Mapping[str, Any]) -> str:
    kind = item.get("type") or ("message" if "role" in item else None)
    kinds = {"message", *_CALL_ITEMS, *_OTHER_ITEMS}
    if str(kind) in kinds or _is_output(kind):
        return str(kind)
    expected = f"one of {', '.join(sorted(kinds))}, or a call's output"
    raise InvalidMessages(index, f"an item of type {kind!r}", expected)


def _is_output(kind: Any) -> bool:
    return isinstance(kind, str) and kind.endswith("_call_output")


def _continues_answer(last: Message, kind: str) -> bool:
    """Return whether an item continues an answer: reasoning, text, calls."""
    is_open = kind in _CALL_ITEMS or not (last["content"] or last.get("tool_calls"))
    return is_open and last.get("role") == "assistant"


def _with_item(answer: Message, kind: str, item: Mapping[str, Any]) -> Message:
    if kind in _CALL_ITEMS:
        return {**answer, "tool_calls": [*answer.get("tool_calls", ()), _tool_call(kind, item)]}
    if kind == "message":
        return {**answer, **_chat_message(item)}
    return {**answer, ITEMS: [*answer.get(ITEMS, ()), dict(item)]}


def _chat_message(item: Mapping[str, Any]) -> Message:
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
        others = {key: value for key, value in part.items() if key not in ("type", "image_url")}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **others}}
    return part


def _tool_call(kind: str, item: Mapping[str, Any]) -> Message:
    id = str(item.get("call_id") or item.get("id") or "")
    if kind == "custom_tool_call":
        custom = {"name": item.get("name", ""), "input": item.get("input", "")}
        extra = {k: v for k, v in item.items() if k not in ("call_id", *custom)}
        return {"id": id, "type": "custom", "custom": custom, ITEM_FIELDS: extra}
    if kind == "function_call":
        function = {"name": item.get("name", ""), "arguments": item.get("arguments", "")}
        extra = {k: v for k, v in item.items() if k not in ("type", "call_id", *function)}
    else:
        asked = {key: value for key, value in item.items() if key not in _FRAME_KEYS}
        arguments = json.dumps(to_plain(asked), ensure_ascii=False)
        function = {"name": kind.removesuffix("_call"), "arguments": arguments}
        extra = {key: item[key] for key in item if key in _FRAME_KEYS and key != "call_id"}
    call: Message = {"id": id, "type": "function", "function": function}
    return {**call, ITEM_FIELDS: extra} if extra else call


def _result_message(kind: str, item: Mapping[str, Any]) -> Message:
    output = item.get("output", "")
    message: Message = {
        "role": "tool",
        "tool_call_id": item.get("call_id") or item.get("id") or "",
        "content": _output_text(kind, output),
    }
    if kind != "function_call_output":
        # The API accepts this item only unchanged.
        return {**message, ITEM_FIELDS: dict(item)}
    # The `id` may stay: no digest includes it.
    return {**message, "id": item["id"]} if "id" in item else message


def _output_text(kind: str, output: Any) -> Any:
    if isinstance(output, str):
        return output
    if kind in ("function_call_output", "custom_tool_call_output"):
        parts = isinstance(output, list)
        return [_chat_part(part) for part in output] if parts else json.dumps(output)
    if isinstance(output, Mapping) and isinstance(output.get("image_url"), str):
        return [{"type": "image_url", "image_url": {"url": output["image_url"]}}]
    return "\n".join(words_in(output))


def to_items(messages: Iterable[Message]) -> tuple[str | None, list[Message]]:
    """Return a view as a Responses request: its `instructions` and `input`.

    Leading system messages become `instructions`.

    Raises:
        InvalidMessages: not a list of messages that are mappings.
    """
    if not isinstance(messages, Iterable) or isinstance(messages, (str, Mapping)):
        raise InvalidMessages(None, type(messages).__name__, "a list of chat messages")
    view = list(messages)
    for index, message in enumerate(view):
        if not isinstance(message, Mapping):
            raise InvalidMessages(index, type(message).__name__, "a mapping with a role")
    leading = leading_count(view)
    items = [item for message in view[leading:] for item in _message_items(message)]
    return "\n".join(map(text_of, view[:leading])) if leading else None, items


def _message_items(message: Message) -> Iterator[Message]:
    if is_result(message):
        yield _output_item(message)
        return
    yield from message.get(ITEMS) or ()
    if message.get("content") or not (message.get("tool_calls") or message.get(ITEMS)):
        yield _message_item(message)
    for call, read in zip(message.get("tool_calls") or (), tool_calls_of(message), strict=False):
        extra = call.get(ITEM_FIELDS) or {}
        kind = extra.get("type", "function_call")
        if kind == "function_call":
            asked: Message = {"name": read.name, "arguments": read.arguments}
        elif kind == "custom_tool_call":
            asked = {"name": read.name, "input": read.arguments}
        else:
            asked = parse_json(read.arguments) or {}
        yield {"type": kind, "call_id": read.id, **asked, **extra}


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
        others = {key: value for key, value in image.items() if key != "url"}
        return {"type": "input_image", "image_url": image.get("url"), **others}
    return part


def _output_item(message: Message) -> Message:
    content = message.get("content")
    source = message.get(ITEM_FIELDS)
    if source is not None:
        kind, output = str(source.get("type")), source.get("output", "")
        # A screenshot's item stays unchanged: it cannot be shortened.
        if content == _output_text(kind, output) or kind == "computer_call_output":
            return dict(source)
        text = text_of(message)
        if kind == "shell_call_output":
            end = {"type": "exit", "exit_code": 0}
            return {**source, "output": [{"stdout": text, "stderr": "", "outcome": end}]}
        return {**source, "output": text}
    if isinstance(content, list):
        content = [_response_part(part, "input_text") for part in content]
    item: Message = {
        "type": "function_call_output",
        "call_id": message.get("tool_call_id", ""),
        "output": "" if content is None else content,
    }
    return {**item, "id": message["id"]} if "id" in message else item
