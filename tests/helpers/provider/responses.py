"""OpenAI's responses API: what it refuses, how it reads and answers, whole and streamed."""

from collections.abc import Iterator, Sequence
from typing import Any

from praison_compressor.messages.responses import to_messages
from praison_compressor.testing import Asked, Recorded, Refusal, Reply, Rules
from praison_compressor.testing.checks import (
    ChatCompletions,
    as_array,
    as_object,
    call_id,
    check_alternation,
    check_call_arguments,
    check_content,
    check_function,
    check_keys,
    check_not_empty,
    refuse_missing,
    refuse_type,
    refuse_value,
    split_for_stream,
    sse,
    string_under,
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


class Responses(ChatCompletions):
    """The protocol of `/v1/responses`; it remembers which reasoning an item was issued with."""

    path = "/responses"

    def __init__(self) -> None:
        self._reasoning_of: dict[str, str] = {}
        """Item id -> the id of the reasoning item it was issued with."""

    def check_request(self, body: JSON, rules: Rules) -> None:
        if not body.get("model"):
            refuse_missing("model")
        check_keys(body, PARAMETERS, "")
        check_input(body, rules)
        check_pairs(_items(body))
        self._check_reasoning(_items(body))
        check_tools(body)
        if rules.alternate:
            check_alternation(self.parse_request(body)[0])

    def parse_request(self, body: JSON) -> tuple[list[JSON], list[JSON], int | None]:
        tools = [_chat_tool(tool) for tool in body.get("tools") or ()]
        messages = to_messages(body.get("instructions"), body["input"])
        return messages, tools, body.get("max_output_tokens")

    def overflow_refusal(self, window: int, prompt: int, completion: int) -> Refusal:
        return Refusal(
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again.",
            param="input",
            code="context_length_exceeded",
        )

    def response_body(self, reply: Reply, asked: Recorded) -> JSON:
        output = self._issue(reply, asked)
        body = _envelope(asked, "completed")
        return {**body, "output": output, "usage": _usage(asked)}

    def stream_events(self, reply: Reply, asked: Recorded) -> Iterator[bytes]:
        for number, event in enumerate(self._events(reply, asked)):
            yield sse({**event, "sequence_number": number}, event["type"])

    def _events(self, reply: Reply, asked: Recorded) -> Iterator[JSON]:
        whole = self.response_body(reply, asked)
        begun = {**_envelope(asked, "in_progress"), "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for index, item in enumerate(whole["output"]):
            yield from _item_events(item, index)
        yield {"type": "response.completed", "response": whole}

    # -- what it issued ----------------------------------------------------------------------------

    def _issue(self, reply: Reply, asked: Asked) -> list[JSON]:
        output = _output(reply, asked)
        reasoning = next((item["id"] for item in output if item["type"] == "reasoning"), None)
        for item in output:
            if reasoning and item["id"] != reasoning:
                self._reasoning_of[item["id"]] = reasoning
        return output

    def _check_reasoning(self, items: Sequence[JSON]) -> None:
        """Refuse a call without the reasoning it came from, and reasoning that lost its call."""
        present = {item["id"] for item in items if item.get("type") == "reasoning"}
        for item in items:
            key = item.get("id")
            needed = self._reasoning_of.get(key or "")
            if needed is not None and needed not in present:
                kind = item.get("type", "message")
                raise Refusal(
                    f"Item '{key}' of type '{kind}' was provided without its required "
                    f"'reasoning' item: '{needed}'.",
                    param="input",
                )
        check_reasoning_is_followed(items)


def _items(body: JSON) -> list[JSON]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _chat_tool(tool: JSON) -> JSON:
    function = {key: value for key, value in tool.items() if key != "type"}
    return {"type": "function", "function": {"name": tool["type"], **function}}


def _id(prefix: str, asked: Asked, index: int = 0) -> str:
    return f"{prefix}_{asked.number:06d}_{index}"


def _envelope(asked: Asked, status: str) -> JSON:
    return {
        "id": _id("resp", asked),
        "object": "response",
        "created_at": 1_700_000_000 + asked.number,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": asked.model,
        "parallel_tool_calls": True,
        "tool_choice": asked.body.get("tool_choice", "auto"),
        "tools": asked.body.get("tools") or [],
    }


def _output(reply: Reply, asked: Asked) -> list[JSON]:
    output: list[JSON] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        output.append({"id": _id("rs", asked), "type": "reasoning", "summary": summary})
    if reply.text is not None:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        said = {"status": "completed", "role": "assistant", "content": [part]}
        output.append({"id": _id("msg", asked), "type": "message", **said})
    status = "completed"
    for index, call in enumerate(reply.calls):
        ids = {"id": _id("fc", asked, index), "call_id": call_id(call, asked, index)}
        called = {"name": call.name, "arguments": call.arguments_text(), "status": status}
        output.append({"type": "function_call", **ids, **called})
    return output


def _item_events(item: JSON, index: int) -> Iterator[JSON]:
    place = {"output_index": index}
    is_text = item["type"] == "message"
    empty: JSON = {"content": []} if is_text else {"arguments": ""}
    opened = {**item, **empty, "status": "in_progress"}
    yield {"type": "response.output_item.added", **place, "item": opened}
    yield from (_text_events if is_text else _call_events)(item, {**place, "item_id": item["id"]})
    yield {"type": "response.output_item.done", **place, "item": item}


def _text_events(item: JSON, place: JSON) -> Iterator[JSON]:
    part = item["content"][0]
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    name = "response.output_text"
    for piece in split_for_stream(part["text"]):
        yield {"type": f"{name}.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": f"{name}.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _call_events(item: JSON, place: JSON) -> Iterator[JSON]:
    name = "response.function_call_arguments"
    for piece in split_for_stream(item["arguments"]):
        yield {"type": f"{name}.delta", **place, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": f"{name}.done", **place, **done}


def _usage(asked: Recorded) -> JSON:
    return {
        "input_tokens": asked.prompt_tokens,
        "input_tokens_details": {"cached_tokens": asked.cached_tokens},
        "output_tokens": asked.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked.prompt_tokens + asked.completion_tokens,
    }


# ---------------------------------------------------------------- what it refuses


def check_input(body: JSON, rules: Rules) -> None:
    """Refuse an input that is neither a text nor a list of sound items."""
    given = body.get("input")
    if given is None:
        refuse_missing("input")
    if isinstance(given, str):
        check_not_empty(given, "input")
        return
    for index, item in enumerate(as_array(given, "input")):
        _check_item(as_object(item, f"input[{index}]"), f"input[{index}]", rules)


def _check_item(item: JSON, path: str, rules: Rules) -> None:
    kind = item.get("type", "message")
    if kind not in ITEMS:
        refuse_value(f"{path}.type", kind, ITEMS)
    check_keys(item, ITEMS[kind] | rules.extra_message_keys, path)
    for key in REQUIRED[kind]:
        if key not in item:
            refuse_missing(f"{path}.{key}")
        if key in ("id", "call_id", "name", "role"):
            string_under(item, key, path)
    if kind == "message":
        if item["role"] not in ROLES:
            refuse_value(f"{path}.role", item["role"], ROLES)
        allowed = OUTPUT_PARTS if item["role"] == "assistant" else INPUT_PARTS
        _check_content(item["content"], allowed, f"{path}.content")
    elif kind == "function_call":
        check_call_arguments(item, path)
    elif kind == "function_call_output" and item["output"] != "":
        _check_content(item["output"], INPUT_PARTS, f"{path}.output")


def _check_content(content: Any, allowed: dict[str, set[str]], path: str) -> None:
    if isinstance(content, str):
        check_not_empty(content, path)
    elif isinstance(content, list):
        check_content(content, allowed, path)
    else:
        refuse_type(path, "one of an array of objects or string", content)


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
        if string_under(tool, "type", where) == "function":
            check_function(tool, where)
