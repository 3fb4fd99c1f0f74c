"""Speak OpenAI's chat completions: requests, and answers whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .checks import PARAMETERS, Refusal, Rules, check_messages, check_tools, refuse_missing
from .replies import JSON, Asked, Call, Failure, Recorded, Reply


class ChatCompletions:
    """The protocol of `/v1/chat/completions`; another protocol replaces every method."""

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
        """Return the messages, the tools, and the cap on the answer."""
        cap = body.get("max_completion_tokens") or body.get("max_tokens")
        return body["messages"], body.get("tools") or [], cap

    def overflow_refusal(self, window: int, prompt: int, completion: int) -> Refusal:
        """Return the refusal of a request over the window."""
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
        """Return the body of a reply that is not streamed."""
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
    """Cut a text as a stream would, in at most 64 pieces."""
    size = max(12, -(-len(text) // 64))
    return (text[start : start + size] for start in range(0, len(text), size))


def call_id(call: Call, asked: Asked, index: int) -> str:
    """Return the call's own id, or a unique one."""
    return call.id or f"call_{asked.number:06d}_{index}"
