"""What OpenAI's responses API refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from praison_compressor.testing import Refusal, Rules
from praison_compressor.testing.checks import (
    a_string,
    an_array,
    an_object,
    bad_value,
    check_function,
    check_parts,
    filled,
    json_object_text,
    known_keys,
    missing,
    wrong_type,
)
from praison_compressor.testing.replies import JSON

PARAMETERS = frozenset(
    "background conversation context_management include input instructions max_output_tokens "
    "max_tool_calls metadata model parallel_tool_calls previous_response_id prompt "
    "prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store stream "
    "stream_options temperature text tool_choice tools top_logprobs top_p truncation user".split()
)
ROLES = ("assistant", "system", "developer", "user")
ITEMS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "call_id", "name", "arguments", "id", "status", "namespace"},
    "function_call_output": {"type", "call_id", "output", "id", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}
REQUIRED = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "reasoning": ("id", "summary"),
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


def check_input(body: JSON, rules: Rules) -> None:
    """Refuse an input that is neither a text nor a list of sound items."""
    given = body.get("input")
    if given is None:
        missing("input")
    if isinstance(given, str):
        filled(given, "input")
        return
    for index, item in enumerate(an_array(given, "input")):
        _check_item(an_object(item, f"input[{index}]"), f"input[{index}]", rules)


def _check_item(item: JSON, path: str, rules: Rules) -> None:
    kind = item.get("type", "message")
    if kind not in ITEMS:
        bad_value(f"{path}.type", kind, ITEMS)
    known_keys(item, ITEMS[kind] | rules.extra_message_keys, path)
    for key in REQUIRED[kind]:
        if key not in item:
            missing(f"{path}.{key}")
        if key in ("id", "call_id", "name", "role"):
            a_string(item, key, path)
    if kind == "message":
        if item["role"] not in ROLES:
            bad_value(f"{path}.role", item["role"], ROLES)
        allowed = OUTPUT_PARTS if item["role"] == "assistant" else INPUT_PARTS
        _check_content(item["content"], allowed, f"{path}.content")
    elif kind == "function_call":
        json_object_text(item, path)
    elif kind == "function_call_output" and item["output"] != "":
        _check_content(item["output"], INPUT_PARTS, f"{path}.output")


def _check_content(content: Any, allowed: dict[str, set[str]], path: str) -> None:
    if isinstance(content, str):
        filled(content, path)
    elif isinstance(content, list):
        check_parts(content, allowed, path)
    else:
        wrong_type(path, "one of an array of objects or string", content)


def check_reasoning_is_followed(items: Sequence[JSON]) -> None:
    """Refuse reasoning without the item that it led to."""
    for item, follower in zip(items, [*items[1:], {"role": "user"}], strict=True):
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
    for index, tool in enumerate(body.get("tools") or ()):
        where = f"tools[{index}]"
        if a_string(tool, "type", where) == "function":
            check_function(tool, where)
