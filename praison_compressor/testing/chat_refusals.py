"""What OpenAI's chat completions refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

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
    "check_alternation",
    "check_function",
    "check_messages",
    "check_parameters",
    "check_tools",
    "overflow",
]


ROLES = ("system", "assistant", "user", "function", "tool", "developer")


KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "function": {"role", "content", "name"},
    "tool": {"role", "content", "name", "tool_call_id"},
    # `annotations` is in every reply of the API, and its own examples append replies unchanged.
    "assistant": {
        *("role", "content", "name", "refusal", "audio", "annotations"),
        *("tool_calls", "function_call"),
    },
}


PARTS = {
    "text": {"type", "text"},
    "image_url": {"type", "image_url"},
    "input_audio": {"type", "input_audio"},
    "file": {"type", "file"},
    "refusal": {"type", "refusal"},
}


PARTS_OF = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}


PARAMETERS = frozenset(
    {
        *(
            "messages",
            "model",
            "audio",
            "frequency_penalty",
            "function_call",
            "functions",
            "logit_bias",
            "logprobs",
        ),
        *(
            "max_completion_tokens",
            "max_tokens",
            "metadata",
            "modalities",
            "n",
            "parallel_tool_calls",
        ),
        *(
            "prediction",
            "presence_penalty",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning_effort",
        ),
        *(
            "response_format",
            "safety_identifier",
            "seed",
            "service_tier",
            "stop",
            "store",
            "stream",
            "stream_options",
        ),
        *(
            "temperature",
            "tool_choice",
            "tools",
            "top_logprobs",
            "top_p",
            "user",
            "verbosity",
            "web_search_options",
        ),
    }
)


FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


SPEAKER_NAME = re.compile(r"[^\s<|\\/>]{1,64}")


def check_messages(messages: Any, rules: Rules) -> None:
    """Refuse a list of chat messages as the API would; a pure function, for tests without HTTP."""
    for index, message in enumerate(an_array(messages, "messages")):
        _check_message(message, f"messages[{index}]", rules)
    _check_pairs(messages)
    if rules.system_first:
        _check_system_first(messages)
    if rules.alternate:
        check_alternation([m["role"] for m in messages if not _part_of_a_step(m)])


def check_parameters(body: JSON) -> None:
    """Refuse what is no parameter of a request."""
    for key in body:
        if key not in PARAMETERS:
            raise Refusal(f"Unrecognized request argument supplied: {key}")


def _check_message(message: Any, path: str, rules: Rules) -> None:
    role = a_string(an_object(message, path), "role", path)
    if role not in ROLES:
        bad_value(f"{path}.role", role, ROLES)
    known_keys(message, KEYS[role] | rules.extra_message_keys, path)
    if message.get("name") is not None and not SPEAKER_NAME.fullmatch(
        a_string(message, "name", path)
    ):
        raise _mismatch(f"{path}.name", r"^[^\s<|\\/>]+$")
    if role == "assistant":
        _check_calls(message, path)
    if role == "tool":
        a_string(message, "tool_call_id", path)
    if role == "function":
        a_string(message, "name", path)
    _check_content(message, role, path, rules)


def _check_content(message: JSON, role: str, path: str, rules: Rules) -> None:
    content = message.get("content")
    if role == "assistant" and _speaks_otherwise(message) and content in (None, ""):
        return
    if content is None:
        # The API says `messages.[0].content` here and `messages[0].content` elsewhere.
        raise Refusal(
            "Invalid value for 'content': expected a string, got null.",
            param=path.replace("[", ".[", 1) + ".content",
        )
    if isinstance(content, list):
        _check_parts(content, role, f"{path}.content", rules)
    elif isinstance(content, str):
        may_be_empty = role in ("tool", "function") and rules.empty_tool_output
        _check_text(content, f"{path}.content", rules, may_be_empty=may_be_empty)
    else:
        wrong_type(f"{path}.content", "one of a string or array of objects", content)


def _speaks_otherwise(message: JSON) -> bool:
    return any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))


def _check_text(text: str, path: str, rules: Rules, *, may_be_empty: bool = False) -> None:
    if not text and not may_be_empty:
        empty(path, "string")
    if text and not text.strip() and not rules.blank_text:
        raise Refusal(
            f"Invalid '{path}': text must contain non-whitespace characters.",
            param=path,
            code="invalid_value",
        )


def _check_parts(parts: list[Any], role: str, path: str, rules: Rules) -> None:
    allowed = PARTS_OF.get(role, ("text",))
    for index, part in enumerate(an_array(parts, path)):
        where = f"{path}[{index}]"
        kind = a_string(an_object(part, where), "type", where)
        if kind not in allowed:
            bad_value(f"{where}.type", kind, allowed)
        known_keys(part, PARTS[kind], where)
        if kind in ("text", "refusal"):
            _check_text(a_string(part, kind, where, filled=False), f"{where}.{kind}", rules)
        else:
            _check_medium(part, kind, where)


def _check_medium(part: JSON, kind: str, path: str) -> None:
    if kind not in part:
        missing(f"{path}.{kind}")
    medium = an_object(part[kind], f"{path}.{kind}")
    if kind == "image_url":
        a_string(medium, "url", f"{path}.{kind}")


def _check_calls(message: JSON, path: str) -> None:
    if message.get("function_call") is not None:
        where = f"{path}.function_call"
        _check_function_call(an_object(message["function_call"], where), where)
    calls = message.get("tool_calls")
    if calls is None:
        return
    seen: set[str] = set()
    for index, call in enumerate(an_array(calls, f"{path}.tool_calls")):
        where = f"{path}.tool_calls[{index}]"
        id = _check_call(an_object(call, where), where)
        if id in seen:
            raise Refusal(
                f"Duplicate value for 'tool_call_id' of '{id}' in '{path}.tool_calls'.",
                param=f"{path}.tool_calls",
            )
        seen.add(id)


def _check_call(call: JSON, path: str) -> str:
    id = a_string(call, "id", path)
    if len(id) > 40:
        raise Refusal(
            f"Invalid '{path}.id': string too long. Expected a string with maximum length 40, "
            f"but got a string with length {len(id)} instead.",
            param=f"{path}.id",
            code="string_above_max_length",
        )
    kind = a_string(call, "type", path)
    if kind != "function":
        bad_value(f"{path}.type", kind, ("function",))
    if "function" not in call:
        missing(f"{path}.function")
    known_keys(call, {"id", "type", "function"}, path)
    _check_function_call(an_object(call["function"], f"{path}.function"), f"{path}.function")
    return id


def _check_function_call(function: JSON, path: str) -> None:
    if not FUNCTION_NAME.fullmatch(a_string(function, "name", path)):
        raise _mismatch(f"{path}.name", "^[a-zA-Z0-9_-]+$")
    json_object_text(function, path)
    known_keys(function, {"name", "arguments"}, path)


def _mismatch(param: str, pattern: str) -> Refusal:
    return Refusal(
        f"Invalid '{param}': string does not match pattern. "
        f"Expected a string that matches the pattern '{pattern}'.",
        param=param,
        code="invalid_value",
    )


def _check_pairs(messages: Sequence[JSON]) -> None:
    """Refuse results without a call, calls without a result, and results given twice."""
    waiting: list[str] = []
    step: set[str] | None = None
    function: str | None = None
    for index, message in enumerate(messages):
        where = f"messages.[{index}]"
        if message["role"] == "tool":
            waiting = _answered(message["tool_call_id"], waiting, step, where)
            continue
        _check_nothing_waits(waiting, where)
        if message["role"] == "function" and message["name"] != function:
            raise _orphan("function", "function_call", where)
        function = (message.get("function_call") or {}).get("name")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        step = set(waiting) or None
    _check_nothing_waits(waiting, f"messages.[{len(messages) - 1}]")


def _answered(id: str, waiting: list[str], step: set[str] | None, where: str) -> list[str]:
    if step is None:
        raise _orphan("tool", "tool_calls", where)
    if id not in step:
        raise Refusal(
            f"Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous "
            "message.",
            param=f"{where}.tool_call_id",
        )
    if id not in waiting:
        raise Refusal(
            f"Duplicate value for 'tool_call_id' of '{id}'.", param=f"{where}.tool_call_id"
        )
    return [other for other in waiting if other != id]


def _check_nothing_waits(waiting: Sequence[str], where: str) -> None:
    if waiting:
        raise Refusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(waiting),
            param=f"{where}.role",
        )


def _orphan(role: str, key: str, where: str) -> Refusal:
    # "preceeding" is how the API spells it; clients match on these words.
    return Refusal(
        f"Invalid parameter: messages with role '{role}' must be a response to a preceeding "
        f"message with '{key}'.",
        param=f"{where}.role",
    )


def _check_system_first(messages: Sequence[JSON]) -> None:
    if any(message["role"] in ("system", "developer") for message in messages[1:]):
        raise Refusal("System message must be at the beginning.", type="BadRequestError")


def _part_of_a_step(message: JSON) -> bool:
    """Tell tool traffic and system messages, which templates leave out of the alternation."""
    other = message["role"] not in ("user", "assistant")
    return other or bool(message.get("tool_calls") or message.get("function_call"))


def check_alternation(roles: Sequence[str]) -> None:
    """Refuse anything but user, assistant, user, assistant …, as chat templates do."""
    expected = ("user", "assistant")
    if any(role != expected[index % 2] for index, role in enumerate(roles)):
        raise Refusal(
            "After the optional system message, conversation roles must alternate user and "
            "assistant roles except for tool calls and results.",
            type="BadRequestError",
        )


def check_tools(body: JSON) -> None:
    """Refuse tools that are not declared as functions, and a choice among none."""
    tools = body.get("tools")
    if tools is None:
        for key in ("tool_choice", "parallel_tool_calls"):
            if body.get(key) not in (None, "none"):
                raise Refusal(
                    f"Invalid value for '{key}': '{key}' is only allowed when 'tools' are "
                    "specified.",
                    param=key,
                )
        return
    for index, tool in enumerate(an_array(tools, "tools")):
        where = f"tools[{index}]"
        kind = a_string(an_object(tool, where), "type", where)
        if kind != "function":
            bad_value(f"{where}.type", kind, ("function", "custom"))
        if "function" not in tool:
            missing(f"{where}.function")
        known_keys(tool, {"type", "function"}, where)
        check_function(an_object(tool["function"], f"{where}.function"), f"{where}.function")


def check_function(function: JSON, path: str, *, known: frozenset[str] = frozenset()) -> None:
    """Refuse a tool's declaration: its name, its description, the schema of its parameters."""
    name = a_string(function, "name", path)
    if not FUNCTION_NAME.fullmatch(name):
        raise _mismatch(f"{path}.name", "^[a-zA-Z0-9_-]+$")
    known_keys(function, {"name", "description", "parameters", "strict"} | known, path)
    if function.get("description") is not None:
        a_string(function, "description", path, filled=False)
    schema = function.get("parameters")
    if schema is not None:
        _check_schema(an_object(schema, f"{path}.parameters"), name, f"{path}.parameters")


def _check_schema(schema: JSON, name: str, path: str) -> None:
    if schema and schema.get("type") != "object":
        got = schema.get("type")
        why = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{got}\"'"
        raise _bad_schema(name, why, path)
    for key, value in (schema.get("properties") or {}).items():
        if isinstance(value, dict) and value.get("type") == "array" and "items" not in value:
            raise _bad_schema(
                name, f"In context=('properties', '{key}'), array schema missing items", path
            )


def _bad_schema(name: str, why: str, path: str) -> Refusal:
    return Refusal(
        f"Invalid schema for function '{name}': {why}.",
        param=path,
        code="invalid_function_parameters",
    )


def overflow(window: int, messages: int, tools: int, completion: int) -> Refusal:
    """Return OpenAI's refusal of a request over the window; clients parse its words and numbers."""
    prompt = messages + tools
    parts = [f"{messages} in the messages", f"{tools} in the functions"]
    if prompt > window:
        detail = f" ({', '.join(parts)})" if tools else ""
        said = f"your messages resulted in {prompt} tokens{detail}"
        remedy = "messages or functions" if tools else "messages"
    else:
        kept = parts if tools else parts[:1]
        said = (
            f"you requested {prompt + completion} tokens "
            f"({', '.join(kept)}, {completion} in the completion)"
        )
        remedy = "messages, functions, or completion" if tools else "messages or completion"
    return Refusal(
        f"This model's maximum context length is {window} tokens. However, {said}. "
        f"Please reduce the length of the {remedy}.",
        param="messages",
        code="context_length_exceeded",
    )
