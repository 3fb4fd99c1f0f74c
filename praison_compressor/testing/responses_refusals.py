"""What OpenAI's responses API refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .chat_refusals import check_function
from .replies import JSON
from .strict import (
    Refusal,
    Rules,
    a_string,
    an_array,
    an_object,
    bad_value,
    empty,
    json_object_text,
    known_keys,
    missing,
    wrong_type,
)

__all__ = [
    "check_input",
    "check_pairs",
    "check_reasoning_is_followed",
    "check_tools",
]


ROLES = ("assistant", "system", "developer", "user")


ITEMS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "call_id", "name", "arguments", "id", "status", "namespace"},
    "function_call_output": {"type", "call_id", "output", "id", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "item_reference": {"type", "id"},
}


INPUT_PARTS = {
    "input_text": {"type", "text"},
    "input_image": {"type", "image_url", "file_id", "detail"},
    "input_file": {"type", "file_id", "file_data", "file_url", "filename", "detail"},
}


OUTPUT_PARTS = {
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}


def check_reasoning_is_followed(items: Sequence[JSON]) -> None:
    """Refuse reasoning without the item that it led to."""
    followers = [*items[1:], {"role": "user"}]
    for item, follower in zip(items, followers, strict=True):
        of_model = follower.get("role") == "assistant" or follower.get("type") in (
            "function_call",
            "reasoning",
        )
        if item.get("type") == "reasoning" and not of_model:
            raise Refusal(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                "following item.",
                param="input",
            )


def check_input(body: JSON, rules: Rules) -> None:
    """Refuse an input that is neither a text nor a list of sound items."""
    given = body.get("input")
    if given is None and not body.get("previous_response_id"):
        missing("input")
    if isinstance(given, str):
        if not given:
            empty("input", "string")
        return
    for index, item in enumerate(an_array(given, "input")):
        _check_item(an_object(item, f"input[{index}]"), f"input[{index}]", rules)


def _check_item(item: JSON, path: str, rules: Rules) -> None:
    kind = item.get("type", "message")
    if kind not in ITEMS:
        bad_value(f"{path}.type", kind, ITEMS)
    known_keys(item, ITEMS[kind] | rules.extra_message_keys, path)
    if item.get("id") is not None:
        a_string(item, "id", path)
    if kind == "message":
        _check_message(item, path, rules)
    elif kind == "function_call":
        a_string(item, "call_id", path)
        a_string(item, "name", path)
        json_object_text(item, path)
    elif kind == "function_call_output":
        _check_output(item, path, rules)
    elif kind == "reasoning":
        a_string(item, "id", path)
        if "summary" not in item:
            missing(f"{path}.summary")
    else:
        a_string(item, "id", path)


def _check_message(item: JSON, path: str, rules: Rules) -> None:
    role = a_string(item, "role", path)
    if role not in ROLES:
        bad_value(f"{path}.role", role, ROLES)
    if "content" not in item:
        missing(f"{path}.content")
    allowed = OUTPUT_PARTS if role == "assistant" else INPUT_PARTS
    _check_content(item["content"], allowed, f"{path}.content", rules)


def _check_output(item: JSON, path: str, rules: Rules) -> None:
    a_string(item, "call_id", path)
    if "output" not in item:
        missing(f"{path}.output")
    if item["output"] == "" and rules.empty_tool_output:
        return
    _check_content(item["output"], INPUT_PARTS, f"{path}.output", rules)


def _check_content(content: Any, allowed: Mapping[str, set[str]], path: str, rules: Rules) -> None:
    if isinstance(content, str):
        _check_text(content, path, rules)
        return
    if not isinstance(content, list):
        wrong_type(path, "one of an array of objects or string", content)
    for index, part in enumerate(an_array(content, path)):
        where = f"{path}[{index}]"
        kind = a_string(an_object(part, where), "type", where)
        if kind not in allowed:
            bad_value(where, kind, allowed)
        known_keys(part, allowed[kind], where)
        if "text" in allowed[kind]:
            _check_text(a_string(part, "text", where, filled=False), f"{where}.text", rules)


def _check_text(text: str, path: str, rules: Rules) -> None:
    if not text:
        empty(path, "string")
    if not text.strip() and not rules.blank_text:
        raise Refusal(f"Invalid '{path}': text must not be blank.", param=path)


def check_pairs(items: Sequence[JSON]) -> None:
    """Refuse outputs without a call before them, calls without an output, and doubles."""
    waiting: dict[str, None] = {}
    for item in items:
        kind, id = item.get("type"), item.get("call_id", "")
        if kind == "function_call":
            if id in waiting:
                raise Refusal(f"Duplicate function call with call_id {id}.", param="input")
            waiting[id] = None
        elif kind == "function_call_output":
            if id not in waiting:
                raise Refusal(
                    f"No tool call found for function call output with call_id {id}.",
                    param="input",
                )
            del waiting[id]
        elif waiting and item.get("role") == "user":
            break
    for id in waiting:
        raise Refusal(f"No tool output found for function call {id}.", param="input")


def check_tools(body: JSON) -> None:
    """Refuse tools that are not declared as functions."""
    if body.get("tools") is None:
        return
    if not isinstance(body["tools"], list):
        wrong_type("tools", "an array of objects", body["tools"])
    for index, tool in enumerate(body["tools"]):
        where = f"tools[{index}]"
        if a_string(an_object(tool, where), "type", where) == "function":
            check_function(tool, where, known=frozenset({"type"}))
