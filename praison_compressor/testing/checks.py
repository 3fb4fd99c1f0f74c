"""Speak OpenAI's chat completions; refuse what the API refuses, in its words.

Two checks come from other servers of this protocol: MiniMax and LM Studio refuse an empty message,
vLLM and SGLang refuse arguments that are no JSON object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from .replies import JSON, Asked, Call, Failure, Recorded, Reply


@dataclass(frozen=True)
class Rules:
    """Refusals of some providers."""

    alternate: bool = False
    """Refuse two user or two assistant messages in a row, like chat templates."""

    answered_results: bool = False
    """Refuse a user message right after a tool result, like Mistral's API."""

    bound_thinking: bool = False
    """Refuse signed thinking after a changed prefix, in a protocol of Anthropic's."""

    extra_message_keys: frozenset[str] = frozenset()
    """More keys of messages to accept, such as `reasoning_content`."""


class Refusal(Exception):
    """A refused request; `failure` is the error's body."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.failure = Failure(status, message, "invalid_request_error", code, param)


COMMON_KEYS = {"role", "content", "name"}
MESSAGE_KEYS = {
    **dict.fromkeys(("system", "developer", "user", "function"), COMMON_KEYS),
    # All keys of a reply are allowed: OpenAI's examples append replies unchanged.
    "assistant": {*COMMON_KEYS, *"refusal audio annotations tool_calls function_call".split()},
    "tool": {*COMMON_KEYS, "tool_call_id"},
}

TEXT_PART = {"text": {"type", "text"}}
CONTENT_PARTS = {
    "user": {
        **TEXT_PART,
        **{kind: {"type", kind} for kind in ("image_url", "input_audio", "file")},
    },
    "assistant": {**TEXT_PART, "refusal": {"type", "refusal"}},
}
"""Keys of a content part, by role and type; other roles have text alone."""

PARAMETERS = frozenset(
    "messages model audio frequency_penalty function_call functions logit_bias logprobs "
    "max_completion_tokens max_tokens metadata modalities n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format "
    "safety_identifier seed service_tier stop store stream stream_options temperature tool_choice "
    "tools top_logprobs top_p user verbosity web_search_options".split()
)


def parse_body(raw: bytes) -> JSON:
    """Return the JSON object of a request, or refuse invalid JSON."""
    try:
        body = json.loads(raw.decode("utf-8"))
        # Real APIs refuse half a surrogate pair.
        json.dumps(body, ensure_ascii=False).encode("utf-8")
        if not isinstance(body, dict):
            raise ValueError("expected an object")
    except (ValueError, RecursionError) as error:
        text = f"We could not parse the JSON body of your request. ({error})"
        raise Refusal(text, code="invalid_json") from error
    return body


# ---------------------------------------------------------------- messages
def check_messages(messages: Any, rules: Rules) -> None:
    """Refuse chat messages as the API would."""
    for index, message in enumerate(as_array(messages, "messages")):
        _check_message(message, f"messages[{index}]", rules)
    _check_pairs(messages)
    if rules.alternate:
        check_alternation(messages)
    if rules.answered_results and ("tool", "user") in pairwise(m["role"] for m in messages):
        text = "Unexpected role 'user' after role 'tool'"
        raise Refusal(text, code="invalid_request_message_order")


def _check_message(message: Any, path: str, rules: Rules) -> None:
    role = string_under(as_object(message, path), "role", path)
    if role not in MESSAGE_KEYS:
        refuse_value(f"{path}.role", role, MESSAGE_KEYS)
    check_keys(message, MESSAGE_KEYS[role] | rules.extra_message_keys, path)
    if message.get("tool_calls") is not None:
        _check_calls(message["tool_calls"], f"{path}.tool_calls")
    if role == "tool":
        string_under(message, "tool_call_id", path)
    _check_content(message, role, path)


def _check_content(message: JSON, role: str, path: str) -> None:
    content = message.get("content")
    alternatives = ("tool_calls", "function_call", "refusal", "audio")
    if content in (None, "") and role == "assistant" and any(map(message.get, alternatives)):
        return
    if content is None:
        text = "Invalid value for 'content': expected a string, got null."
        raise Refusal(text, param=f"{path}.content")
    if isinstance(content, list):
        check_content(content, CONTENT_PARTS.get(role, TEXT_PART), f"{path}.content")
    elif not isinstance(content, str):
        refuse_type(f"{path}.content", "one of a string or array of objects", content)
    elif role not in ("tool", "function"):  # an output may be empty
        check_not_empty(content, f"{path}.content")


def check_content(parts: Any, allowed: Mapping[str, set[str]], path: str) -> None:
    """Refuse content that is not an array of the allowed parts."""
    for index, part in enumerate(as_array(parts, path)):
        where = f"{path}[{index}]"
        kind = string_under(as_object(part, where), "type", where)
        if kind not in allowed:
            refuse_value(f"{where}.type", kind, allowed)
        check_keys(part, allowed[kind], where)
        for key in {"text", "refusal"} & allowed[kind]:
            check_not_empty(string_under(part, key, where), f"{where}.{key}")


def _check_calls(calls: Any, path: str) -> None:
    seen: set[str] = set()
    for index, call in enumerate(as_array(calls, path)):
        where = f"{path}[{index}]"
        id = string_under(as_object(call, where), "id", where)
        if id in seen:
            raise Refusal(f"Duplicate value for 'tool_call_id' of '{id}' in '{path}'.", param=path)
        seen.add(id)
        check_keys(call, {"id", "type", "function"}, where)
        function = _function_of(call, where)
        check_keys(function, {"name", "arguments"}, f"{where}.function")
        _check_name(function, f"{where}.function")
        check_call_arguments(function, f"{where}.function")


def _function_of(holder: JSON, path: str) -> JSON:
    if string_under(holder, "type", path) != "function":
        refuse_value(f"{path}.type", holder["type"], ["function"])
    return as_object(holder.get("function"), f"{path}.function")


def _check_pairs(messages: Sequence[JSON]) -> None:
    waiting: list[str] = []
    for message in [*messages, {"role": "end"}]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                # The spelling is the API's: clients match it.
                raise Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    param="messages",
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Refusal(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {', '.join(waiting)}",
                param="messages",
            )
        waiting = [call["id"] for call in message.get("tool_calls") or ()]


def check_alternation(messages: Sequence[JSON]) -> None:
    """Refuse roles that do not alternate."""
    roles = [m["role"] for m in messages if not m.get("tool_calls")]
    roles = [role for role in roles if role in ("user", "assistant")]
    if any(role != ("user", "assistant")[index % 2] for index, role in enumerate(roles)):
        raise Refusal(
            "After the optional system message, conversation roles must alternate user and "
            "assistant roles except for tool calls and results."
        )


# ---------------------------------------------------------------- tools
def check_tools(body: JSON) -> None:
    """Refuse tools that are not functions, and a choice without tools."""
    tools = body.get("tools")
    if tools is None and body.get("tool_choice") not in (None, "none"):
        text = "'tool_choice' is only allowed when 'tools' are specified."
        raise Refusal(f"Invalid value for 'tool_choice': {text}", param="tool_choice")
    for index, tool in enumerate([] if tools is None else as_array(tools, "tools")):
        where = f"tools[{index}]"
        check_keys(as_object(tool, where), {"type", "function"}, where)
        check_function(_function_of(tool, where), f"{where}.function")


def check_function(function: JSON, path: str) -> None:
    """Refuse an invalid declaration of a tool."""
    _check_name(function, path)
    check_keys(function, {"type", "name", "description", "parameters", "strict"}, path)
    schema = as_object(function.get("parameters") or {}, f"{path}.parameters")
    if schema and schema.get("type") != "object":
        text = f"schema must be a JSON Schema of 'type: \"object\"', got {schema.get('type')!r}."
        raise Refusal(text, param=f"{path}.parameters", code="invalid_function_parameters")


# ---------------------------------------------------------------- fields
def refuse_missing(param: str) -> NoReturn:
    """Refuse a missing parameter."""
    text = f"Missing required parameter: '{param}'."
    raise Refusal(text, param=param, code="missing_required_parameter")


def refuse_type(param: str, expected: str, value: Any) -> NoReturn:
    """Refuse a value of the wrong JSON type."""
    names = {dict: "an object", list: "an array", str: "a string", type(None): "null"}
    kind = names.get(type(value), "a number or boolean")
    text = f"Invalid type for '{param}': expected {expected}, but got {kind} instead."
    raise Refusal(text, param=param, code="invalid_type")


def refuse_value(param: str, value: Any, supported: Iterable[str]) -> NoReturn:
    """Refuse a value outside an enumeration."""
    names = ", ".join(f"'{name}'" for name in supported)
    text = f"Invalid value: '{value}'. Supported values are: {names}."
    raise Refusal(text, param=param, code="invalid_value")


def check_keys(value: Mapping[str, Any], allowed: Collection[str], path: str) -> None:
    """Refuse an unknown key."""
    for key in value:
        if key not in allowed:
            param = f"{path}.{key}" if path else key
            raise Refusal(f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")


def as_object(value: Any, path: str) -> JSON:
    """Return the value if it is a JSON object, else refuse."""
    if not isinstance(value, dict):
        refuse_type(path, "an object", value)
    return value


def as_array(value: Any, path: str) -> list[Any]:
    """Return the value if it is a non-empty array, else refuse."""
    if not isinstance(value, list):
        refuse_type(path, "an array of objects", value)
    check_not_empty(value, path)
    return value


def string_under(holder: Mapping[str, Any], key: str, path: str) -> str:
    """Return the string under a key, else refuse."""
    if key not in holder:
        refuse_missing(f"{path}.{key}")
    value = holder[key]
    if not isinstance(value, str):
        refuse_type(f"{path}.{key}", "a string", value)
    return value


def check_not_empty(value: str | list[Any], path: str) -> None:
    """Refuse an empty string or array."""
    if not value:
        article, what = ("a", "string") if isinstance(value, str) else ("an", "array")
        text = (
            f"Invalid '{path}': empty {what}. Expected {article} {what} with minimum length 1, but "
            f"got an empty {what} instead."
        )
        raise Refusal(text, param=path, code=f"empty_{what}")


def check_call_arguments(holder: Mapping[str, Any], path: str) -> None:
    """Refuse arguments that are not the text of a JSON object."""
    param = f"{path}.arguments"
    try:
        parsed = json.loads(string_under(holder, "arguments", path))
    except ValueError as error:
        text = f"Invalid '{param}': the string is not valid JSON ({error})."
        raise Refusal(text, param=param, code="invalid_value") from error
    if not isinstance(parsed, dict):
        refuse_type(param, "a string that holds a JSON object", parsed)


def _check_name(function: JSON, path: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", string_under(function, "name", path)):
        text = "string does not match pattern '^[a-zA-Z0-9_-]{1,64}$'."
        raise Refusal(f"Invalid '{path}.name': {text}", param=f"{path}.name", code="invalid_value")


# ---------------------------------------------------------------- chat completions


class ChatCompletions:
    """The protocol of `/v1/chat/completions`; another one replaces every method."""

    path = "/chat/completions"

    def check_request(self, body: JSON, rules: Rules) -> None:
        """Raise Refusal for a body that the API refuses."""
        if not body.get("model"):
            raise Refusal("you must provide a model parameter")
        for key in body.keys() - PARAMETERS:
            raise Refusal(f"Unrecognized request argument supplied: {key}")
        if "messages" not in body:
            refuse_missing("messages")
        check_messages(body["messages"], rules)
        check_tools(body)

    def parse_request(self, body: JSON) -> tuple[list[JSON], list[JSON], int | None]:
        """Return messages, tools, and the limit of the answer's tokens."""
        cap = body.get("max_completion_tokens") or body.get("max_tokens")
        return body["messages"], body.get("tools") or [], cap

    def overflow_refusal(self, window: int, prompt: int, completion: int) -> Refusal:
        """Return the refusal of a request above the window."""
        excess = f"your messages resulted in {prompt} tokens"
        if prompt <= window:
            parts = f"{prompt} in the messages, {completion} in the completion"
            excess = f"you requested {prompt + completion} tokens ({parts})"
        return Refusal(
            f"This model's maximum context length is {window} tokens. However, {excess}. "
            "Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )

    def error_body(self, failure: Failure) -> JSON:
        """Return an error body."""
        names = ("message", "type", "param", "code")
        return {"error": {name: getattr(failure, name) for name in names}}

    def response_body(self, reply: Reply, asked: Recorded) -> JSON:
        """Return the body of a whole reply."""
        message: JSON = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = _calls(reply, asked)
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        body = _envelope(asked, "chat.completion")
        return {**body, "choices": [choice], "usage": _usage_body(asked)}

    def stream_events(self, reply: Reply, asked: Recorded) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        head = _envelope(asked, "chat.completion.chunk")
        for delta in _deltas(reply, asked):
            yield sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        end = {"index": 0, "delta": {}, "finish_reason": reply.finish_reason}
        yield sse({**head, "choices": [end]})
        if (asked.body.get("stream_options") or {}).get("include_usage"):
            yield sse({**head, "choices": [], "usage": _usage_body(asked)})
        yield b"data: [DONE]\n\n"


def _envelope(asked: Asked, kind: str) -> JSON:
    id, created = f"chatcmpl-{asked.number:06d}", 1_700_000_000 + asked.number
    return {"id": id, "object": kind, "created": created, "model": asked.model}


def _calls(reply: Reply, asked: Asked) -> list[JSON]:
    return [
        {
            "id": call_id(call, asked, index),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text()},
        }
        for index, call in enumerate(reply.calls)
    ]


def _deltas(reply: Reply, asked: Asked) -> Iterator[JSON]:
    yield {"role": "assistant", "content": None if reply.calls else ""}
    texts = {"reasoning_content": reply.thinking, "content": reply.text, "refusal": reply.refusal}
    for key, text in texts.items():
        for piece in split_for_stream(text or ""):
            yield {key: piece}
    for index, call in enumerate(_calls(reply, asked)):
        function = call["function"]
        opened = {**call, "function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **opened}]}
        for piece in split_for_stream(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _usage_body(asked: Recorded) -> JSON:
    return {
        "prompt_tokens": asked.prompt_tokens,
        "completion_tokens": asked.completion_tokens,
        "total_tokens": asked.prompt_tokens + asked.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": asked.cached_tokens},
    }


def sse(payload: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def split_for_stream(text: str) -> Iterator[str]:
    """Cut a text into at most 64 pieces."""
    size = max(12, -(-len(text) // 64))
    return (text[start : start + size] for start in range(0, len(text), size))


def call_id(call: Call, asked: Asked, index: int) -> str:
    """Return the call's id, or a new one."""
    return call.id or f"call_{asked.number:06d}_{index}"
