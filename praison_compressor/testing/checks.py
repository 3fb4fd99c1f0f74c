"""What OpenAI's chat completions refuse, in the API's words."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from .protocol import Refusal, Rules
from .replies import JSON

__all__ = [
    "PARAMETERS",
    "a_string",
    "an_array",
    "an_object",
    "bad_value",
    "check_alternation",
    "check_function",
    "check_messages",
    "check_parts",
    "check_text",
    "check_tools",
    "json_object_text",
    "known_keys",
    "missing",
    "overflow",
    "wrong_type",
]

KEYS = {
    "system": {"role", "content", "name"},
    # `annotations` is in every reply of the API, and its own examples append replies unchanged.
    "assistant": set(
        "role content name refusal audio annotations tool_calls function_call".split()
    ),
    "user": {"role", "content", "name"},
    "function": {"role", "content", "name"},
    "tool": {"role", "content", "name", "tool_call_id"},
    "developer": {"role", "content", "name"},
}
"""Of a message, by role."""

TEXT = {"text": {"type", "text"}}
PARTS = {
    "user": {**TEXT, **{kind: {"type", kind} for kind in ("image_url", "input_audio", "file")}},
    "assistant": {**TEXT, "refusal": {"type", "refusal"}},
}
"""Keys of a content part, by its type; of other roles text alone."""

PARAMETERS = frozenset(
    "messages model audio frequency_penalty function_call functions logit_bias logprobs "
    "max_completion_tokens max_tokens metadata modalities n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format "
    "safety_identifier seed service_tier stop store stream stream_options temperature tool_choice "
    "tools top_logprobs top_p user verbosity web_search_options".split()
)

FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SPEAKER_NAME = re.compile(r"[^\s<|\\/>]{1,64}")


# ---------------------------------------------------------------- messages
def check_messages(messages: Any, rules: Rules) -> None:
    """Refuse a list of chat messages as the API would; a pure function, for tests without HTTP."""
    for index, message in enumerate(an_array(messages, "messages")):
        _check_message(message, f"messages[{index}]", rules)
    _check_pairs(messages)
    later = messages[1:] if rules.system_first else ()
    if any(message["role"] in ("system", "developer") for message in later):
        raise Refusal("System message must be at the beginning.", type="BadRequestError")
    if rules.alternate:
        # Templates leave tool traffic and system messages out of the alternation.
        said = [m for m in messages if m["role"] in ("user", "assistant")]
        check_alternation([m["role"] for m in said if not m.get("tool_calls")])


def _check_message(message: Any, path: str, rules: Rules) -> None:
    role = a_string(an_object(message, path), "role", path)
    if role not in KEYS:
        bad_value(f"{path}.role", role, KEYS)
    known_keys(message, KEYS[role] | rules.extra_message_keys, path)
    if message.get("name") is not None:
        _check_name(a_string(message, "name", path), f"{path}.name", SPEAKER_NAME)
    if message.get("tool_calls") is not None:
        _check_calls(message["tool_calls"], f"{path}.tool_calls")
    if role == "tool":
        a_string(message, "tool_call_id", path)
    _check_content(message, role, path)


def _check_content(message: JSON, role: str, path: str) -> None:
    content = message.get("content")
    otherwise = ("tool_calls", "function_call", "refusal", "audio")
    if content in (None, "") and role == "assistant" and any(map(message.get, otherwise)):
        return
    if content is None:
        # The API says `messages.[0].content` here and `messages[0].content` elsewhere.
        raise Refusal(
            "Invalid value for 'content': expected a string, got null.",
            param=path.replace("[", ".[", 1) + ".content",
        )
    if isinstance(content, list):
        check_parts(content, PARTS.get(role, TEXT), f"{path}.content")
    elif not isinstance(content, str):
        wrong_type(f"{path}.content", "one of a string or array of objects", content)
    elif role not in ("tool", "function"):  # a command without output is no mistake
        check_text(content, f"{path}.content")


def check_text(text: str, path: str) -> None:
    """Refuse an empty text."""
    if not text:
        _empty(path, "string")


def check_parts(parts: Any, allowed: Mapping[str, set[str]], path: str) -> None:
    """Refuse content that is no array of the allowed parts."""
    for index, part in enumerate(an_array(parts, path)):
        where = f"{path}[{index}]"
        kind = a_string(an_object(part, where), "type", where)
        if kind not in allowed:
            bad_value(f"{where}.type", kind, allowed)
        known_keys(part, allowed[kind], where)
        for key in {"text", "refusal"} & allowed[kind]:
            a_string(part, key, where)
        if kind == "image_url":
            a_string(an_object(part.get(kind), f"{where}.{kind}"), "url", f"{where}.{kind}")


def _check_calls(calls: Any, path: str) -> None:
    seen: set[str] = set()
    for index, call in enumerate(an_array(calls, path)):
        where = f"{path}[{index}]"
        id = a_string(an_object(call, where), "id", where)
        if len(id) > 40:
            raise Refusal(
                f"Invalid '{where}.id': string too long. Expected a string with maximum length 40, "
                f"but got a string with length {len(id)} instead.",
                param=f"{where}.id",
                code="string_above_max_length",
            )
        if id in seen:
            raise Refusal(f"Duplicate value for 'tool_call_id' of '{id}' in '{path}'.", param=path)
        seen.add(id)
        known_keys(call, {"id", "type", "function"}, where)
        function = _function_of(call, where, ("function",))
        _check_name(a_string(function, "name", f"{where}.function"), f"{where}.function.name")
        known_keys(function, {"name", "arguments"}, f"{where}.function")
        json_object_text(function, f"{where}.function")


def _function_of(holder: JSON, path: str, kinds: Collection[str]) -> JSON:
    """Return what is under `function` of a tool or a call of that type."""
    if a_string(holder, "type", path) != "function":
        bad_value(f"{path}.type", holder["type"], kinds)
    if "function" not in holder:
        missing(f"{path}.function")
    return an_object(holder["function"], f"{path}.function")


def _check_pairs(messages: Sequence[JSON]) -> None:
    """Refuse results without a call, calls without a result, and results given twice."""
    waiting: list[str] = []
    step: set[str] = set()
    for index, message in enumerate([*messages, {"role": "end"}]):
        where = f"messages.[{min(index, len(messages) - 1)}]"
        if message["role"] == "tool":
            _check_answer(message["tool_call_id"], waiting, step, where)
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Refusal(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {', '.join(waiting)}",
                param=f"{where}.role",
            )
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        step = set(waiting)


def _check_answer(id: str, waiting: Collection[str], step: set[str], where: str) -> None:
    if not step:
        # "preceeding" is how the API spells it; clients match on these words.
        raise Refusal(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'.",
            param=f"{where}.role",
        )
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


def check_alternation(roles: Sequence[str]) -> None:
    """Refuse anything but user, assistant, user, assistant …, as chat templates do."""
    expected = ("user", "assistant")
    if any(role != expected[index % 2] for index, role in enumerate(roles)):
        raise Refusal(
            "After the optional system message, conversation roles must alternate user and "
            "assistant roles except for tool calls and results.",
            type="BadRequestError",
        )


# ---------------------------------------------------------------- tools
def check_tools(body: JSON) -> None:
    """Refuse tools that are not declared as functions, and a choice among none."""
    tools = body.get("tools")
    if tools is None and body.get("tool_choice") not in (None, "none"):
        raise Refusal(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are "
            "specified.",
            param="tool_choice",
        )
    for index, tool in enumerate([] if tools is None else an_array(tools, "tools")):
        where = f"tools[{index}]"
        function = _function_of(an_object(tool, where), where, ("function", "custom"))
        known_keys(tool, {"type", "function"}, where)
        check_function(function, f"{where}.function")


def check_function(function: JSON, path: str, *, known: frozenset[str] = frozenset()) -> None:
    """Refuse a tool's declaration: its name, its description, the schema of its parameters."""
    name = a_string(function, "name", path)
    _check_name(name, f"{path}.name")
    known_keys(function, {"name", "description", "parameters", "strict"} | known, path)
    if function.get("description") is not None:
        a_string(function, "description", path, filled=False)
    schema = an_object(function.get("parameters") or {}, f"{path}.parameters")
    if schema and schema.get("type") != "object":
        got = schema.get("type")
        raise Refusal(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of "
            f"'type: \"object\"', got 'type: \"{got}\"'.",
            param=f"{path}.parameters",
            code="invalid_function_parameters",
        )


# ---------------------------------------------------------------- fields
def missing(param: str) -> NoReturn:
    """Refuse for want of a required parameter."""
    raise Refusal(
        f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter"
    )


def wrong_type(param: str, expected: str, got: Any) -> NoReturn:
    """Refuse a value of the wrong JSON type."""
    names = {type(None): "null", bool: "a boolean", int: "an integer", float: "a decimal"}
    names |= {str: "a string", list: "an array"}
    said = names.get(type(got), "an object")
    raise Refusal(
        f"Invalid type for '{param}': expected {expected}, but got {said} instead.",
        param=param,
        code="invalid_type",
    )


def bad_value(param: str, got: Any, supported: Iterable[str]) -> NoReturn:
    """Refuse a value outside an enumeration."""
    names = [f"'{name}'" for name in supported]
    listed = ", ".join(names[:-1]) + f", and {names[-1]}" if len(names) > 1 else names[0]
    raise Refusal(
        f"Invalid value: '{got}'. Supported values are: {listed}.",
        param=param,
        code="invalid_value",
    )


def known_keys(value: Mapping[str, Any], allowed: Collection[str], path: str) -> None:
    """Refuse the first key that the API does not know."""
    for key in value:
        if key not in allowed:
            param = f"{path}.{key}" if path else key
            raise Refusal(f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")


def an_object(value: Any, path: str) -> dict[str, Any]:
    """Return the value if it is a JSON object, else refuse."""
    if not isinstance(value, dict):
        wrong_type(path, "an object", value)
    return value


def an_array(value: Any, path: str) -> list[Any]:
    """Return the value if it is an array with something in it, else refuse."""
    if not isinstance(value, list):
        wrong_type(path, "an array of objects", value)
    if not value:
        _empty(path, "array")
    return value


def a_string(holder: Mapping[str, Any], key: str, path: str, *, filled: bool = True) -> str:
    """Return the string under a key, else refuse; `filled` refuses the empty one too."""
    param = f"{path}.{key}" if path else key
    if key not in holder:
        missing(param)
    value = holder[key]
    if not isinstance(value, str):
        wrong_type(param, "a string", value)
    if filled:
        check_text(value, param)
    return value


def json_object_text(holder: Mapping[str, Any], path: str) -> None:
    """Refuse tool-call arguments that are not a string holding a JSON object."""
    text = a_string(holder, "arguments", path, filled=False)
    param = f"{path}.arguments"
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise Refusal(
            f"Invalid '{param}': the string is not valid JSON ({error}).",
            param=param,
            code="invalid_value",
        ) from error
    if not isinstance(parsed, dict):
        wrong_type(param, "a string that holds a JSON object", parsed)


def _empty(param: str, what: str) -> NoReturn:
    article = "an" if what == "array" else "a"
    raise Refusal(
        f"Invalid '{param}': empty {what}. Expected {article} {what} with minimum length 1, "
        f"but got an empty {what} instead.",
        param=param,
        code=f"empty_{what}",
    )


def _check_name(name: str, param: str, pattern: re.Pattern[str] = FUNCTION_NAME) -> None:
    if not pattern.fullmatch(name):
        raise Refusal(
            f"Invalid '{param}': string does not match pattern. "
            f"Expected a string that matches the pattern '{pattern.pattern}'.",
            param=param,
            code="invalid_value",
        )


# ---------------------------------------------------------------- the window
def overflow(window: int, messages: int, tools: int, completion: int) -> Refusal:
    """Return OpenAI's refusal of a request over the window; clients parse its words and numbers."""
    prompt = messages + tools
    parts = f"{messages} in the messages" + (f", {tools} in the functions" if tools else "")
    remedy = "messages, functions" if tools else "messages"
    if prompt > window:
        said = f"your messages resulted in {prompt} tokens" + (f" ({parts})" if tools else "")
        remedy = remedy.replace(",", " or")
    else:
        said = (
            f"you requested {prompt + completion} tokens ({parts}, {completion} in the completion)"
        )
        remedy += ", or completion" if tools else " or completion"
    return Refusal(
        f"This model's maximum context length is {window} tokens. However, {said}. "
        f"Please reduce the length of the {remedy}.",
        param="messages",
        code="context_length_exceeded",
    )
