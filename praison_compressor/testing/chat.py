"""OpenAI's chat completions: how it answers, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .checks import PARAMETERS, check_messages, check_tools, missing, overflow
from .protocol import Refusal, Rules, call_id, openai_error, pieces, sse
from .replies import JSON, Asked, Failure, Reply, Usage

__all__ = [
    "ChatCompletions",
]


class ChatCompletions:
    """The protocol of `/v1/chat/completions`.

    Where a reply had `reasoning_content` it plays a provider such as DeepSeek and takes it back;
    as long as none had, it is as strict as OpenAI.
    """

    name = "chat"
    path = "/chat/completions"

    def __init__(self) -> None:
        self._thinks = False

    def check(self, body: JSON, rules: Rules) -> None:
        """Raise Refusal for what the API refuses."""
        if not body.get("model"):
            raise Refusal("you must provide a model parameter")
        for key in body.keys() - PARAMETERS:
            raise Refusal(f"Unrecognized request argument supplied: {key}")
        if "messages" not in body:
            missing("messages")
        extra = rules.extra_message_keys | ({"reasoning_content"} if self._thinks else set())
        check_messages(body["messages"], replace(rules, extra_message_keys=extra))
        check_tools(body)

    def asked(self, body: JSON) -> Asked:
        """Read a request that passed the checks."""
        return Asked(
            model=str(body["model"]),
            messages=list(body["messages"]),
            tools=list(body.get("tools") or ()),
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
            body=body,
        )

    def overflow(self, window: int, messages: int, tools: int, completion: int) -> Refusal:
        """Return the refusal of a request that does not fit the window."""
        return overflow(window, messages, tools, completion)

    def error(self, why: Refusal | Failure) -> JSON:
        """Return an error body."""
        return openai_error(why)

    def whole(self, reply: Reply, asked: Asked, usage: Usage) -> JSON:
        """Return the body of a reply that is not streamed."""
        self._thinks = self._thinks or bool(reply.thinking)
        choice = {
            "index": 0,
            "message": _message(reply, asked),
            "logprobs": None,
            "finish_reason": reply.finish_reason,
        }
        body = _envelope(asked, "chat.completion")
        return {**body, "choices": [choice], "usage": _usage(usage)}

    def frames(self, reply: Reply, asked: Asked, usage: Usage) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        wanted = bool((asked.body.get("stream_options") or {}).get("include_usage"))
        self._thinks = self._thinks or bool(reply.thinking)
        head = _envelope(asked, "chat.completion.chunk")
        null = {"usage": None} if wanted else {}
        for delta in _deltas(reply, asked):
            yield sse({**head, "choices": [_chunk(delta, None)], **null})
        yield sse({**head, "choices": [_chunk({}, reply.finish_reason)], **null})
        if wanted:
            yield sse({**head, "choices": [], "usage": _usage(usage)})
        yield b"data: [DONE]\n\n"


def _envelope(asked: Asked, kind: str) -> JSON:
    return {
        "id": f"chatcmpl-{asked.number:06d}",
        "object": kind,
        "created": 1_700_000_000 + asked.number,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": "fp_local",
    }


def _message(reply: Reply, asked: Asked) -> JSON:
    message: JSON = {
        "role": "assistant",
        "content": reply.text,
        "refusal": reply.refusal,
        "annotations": [],
    }
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = _calls(reply, asked)
    return message


def _calls(reply: Reply, asked: Asked) -> list[JSON]:
    return [
        {
            "id": call_id(call, asked, index),
            "type": "function",
            "function": {"name": call.name, "arguments": call.encoded()},
        }
        for index, call in enumerate(reply.calls)
    ]


def _deltas(reply: Reply, asked: Asked) -> Iterator[JSON]:
    opening: JSON = {"role": "assistant", "content": None if reply.calls else "", "refusal": None}
    yield opening
    for key, text in (
        ("reasoning_content", reply.thinking),
        ("content", reply.text),
        ("refusal", reply.refusal),
    ):
        for piece in pieces(text or ""):
            yield {key: piece}
    for index, call in enumerate(_calls(reply, asked)):
        function = call["function"]
        opened = {**call, "function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **opened}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunk(delta: JSON, finish: str | None) -> JSON:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _usage(usage: Usage) -> JSON:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
