"""Anthropic's messages API: how it reads and answers, whole and streamed."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence

from praison_compressor.testing import Asked, Failure, Recorded, Refusal, Reply, Rules
from praison_compressor.testing.checks import (
    ChatCompletions,
    call_id,
    check_alternation,
    split_for_stream,
    sse,
)
from praison_compressor.testing.replies import JSON

from .anthropic_checks import (
    check_cache_marks,
    check_messages,
    check_pairs,
    check_parameters,
    check_system,
    check_tools,
    merged,
    thinks,
)

ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}

STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}

MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)

BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


class Anthropic(ChatCompletions):
    """The protocol of `/v1/messages`; it remembers the thinking that it signed."""

    path = "/messages"

    def __init__(self) -> None:
        self._signed: dict[str, tuple[str, set[str]]] = {}
        """Signature -> the thinking, and the ids of the calls that were issued with it."""
        self._thought: set[str] = set()
        """Ids of all calls that were issued with thinking."""
        self._behind: dict[str, tuple[str, str]] = {}
        """Signature -> the prefix and the signature before it when it was written."""

    def check_request(self, body: JSON, rules: Rules) -> None:
        check_parameters(body)
        check_system(body.get("system"))
        check_messages(body["messages"], rules)
        check_pairs(merged(body["messages"]))
        self._check_thinking(body)
        if rules.bound_thinking:
            self._check_binding(body)
        check_tools(body)
        check_cache_marks(body)
        if rules.alternate:
            check_alternation(self.parse_request(body)[0])

    def parse_request(self, body: JSON) -> tuple[list[JSON], list[JSON], int | None]:
        system = body.get("system")
        head = [{"role": "system", "content": _chat_content(system)}] if system else []
        messages = [chat for message in body["messages"] for chat in _chat_messages(message)]
        tools = [_chat_tool(tool) for tool in body.get("tools") or ()]
        return [*head, *messages], tools, body["max_tokens"]

    def overflow_refusal(self, window: int, prompt: int, completion: int) -> Refusal:
        if prompt > window:
            return Refusal(f"prompt is too long: {prompt} tokens > {window} maximum")
        return Refusal(
            f"input length and `max_tokens` exceed context limit: {prompt} + {completion} > "
            f"{window}, decrease input length or `max_tokens` and try again"
        )

    def error_body(self, failure: Failure) -> JSON:
        """Return an error body; its type follows from the status alone."""
        kind = ERROR_TYPES.get(failure.status, "api_error")
        error = {"type": kind, "message": failure.message}
        return {"type": "error", "error": error, "request_id": "req_local"}

    def response_body(self, reply: Reply, asked: Recorded) -> JSON:
        return {
            "id": f"msg_{asked.number:06d}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": self._issue(reply, asked),
            "stop_reason": STOP_REASONS.get(reply.finish_reason, "end_turn"),
            "stop_sequence": None,
            "usage": _usage(asked),
        }

    def stream_events(self, reply: Reply, asked: Recorded) -> Iterator[bytes]:
        for event in self._events(reply, asked):
            yield sse(event, event["type"])

    def _events(self, reply: Reply, asked: Recorded) -> Iterator[JSON]:
        whole = self.response_body(reply, asked)
        begun = {**whole, "content": [], "stop_reason": None}
        begun["usage"] = {**whole["usage"], "output_tokens": 1}
        yield {"type": "message_start", "message": begun}
        yield {"type": "ping"}
        for index, block in enumerate(whole["content"]):
            opened, deltas = _pieces_of(block)
            yield {"type": "content_block_start", "index": index, "content_block": opened}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
        yield {"type": "message_stop"}

    # -- what it signed ----------------------------------------------------------------------------

    def _issue(self, reply: Reply, asked: Asked) -> list[JSON]:
        blocks = _blocks(reply, asked)
        if reply.thinking and thinks(asked.body):
            digest = hashlib.sha256(f"{asked.number}:{reply.thinking}".encode()).hexdigest()
            calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
            thought = {"type": "thinking", "thinking": reply.thinking, "signature": digest}
            blocks.insert(0, thought)
            self._signed[digest] = (reply.thinking, calls)
            messages = merged(asked.body["messages"])
            before = ["", *(mark for _, _, mark in _marks(messages))]
            self._behind[digest] = (_prefix(asked.body, messages), before[-1])
            self._thought |= calls
        return blocks

    def _check_thinking(self, body: JSON) -> None:
        """Refuse thinking that is not signed, was moved, or lost its calls."""
        for i, message in enumerate(merged(body["messages"])):
            for j, block in enumerate(message["content"]):
                if block["type"] == "thinking":
                    self._check_signature(
                        block, message["content"][j:], f"messages.{i}.content.{j}"
                    )
        # With adaptive thinking no assistant message has to begin with a block.
        if (body.get("thinking") or {}).get("type") == "enabled":
            self._check_last_step(merged(body["messages"]))

    def _check_binding(self, body: JSON) -> None:
        """Refuse thinking whose prefix has changed, or that lacks an earlier block but the first.

        Documented at platform.claude.com as preserved thinking: thinking is no part of a prefix,
        and blocks may be left out at the start of the history alone.
        """
        binding = (body.get("thinking") or {}).get("block_binding") or {}
        if binding.get("prefix_mismatch_behavior") == "drop_block":
            return
        messages, earlier = merged(body["messages"]), ""
        for i, j, mark in _marks(messages):
            prefix, before = self._behind.get(mark, ("", ""))
            if prefix != _prefix(body, messages[:i]) or (earlier and before != earlier):
                raise Refusal(f"messages.{i}.content.{j}: {BOUND}")
            earlier = mark

    def _check_signature(self, block: JSON, rest: Sequence[JSON], where: str) -> None:
        thinking, calls = self._signed.get(block["signature"], (None, set[str]()))
        if thinking != block["thinking"]:
            raise Refusal(f"{where}: Invalid `signature` in `thinking` block")
        # Cache marks and text of its own may be added (litellm does), calls may not be lost.
        if not calls <= {other.get("id") for other in rest}:
            raise Refusal(f"{where}: {MODIFIED}")

    def _check_last_step(self, messages: Sequence[JSON]) -> None:
        """Refuse a running step without its thinking."""
        if not messages or messages[-1]["role"] != "user" or len(messages) < 2:
            return
        content = messages[-2]["content"]
        running = any(block["type"] == "tool_result" for block in messages[-1]["content"])
        thought = any(block.get("id") in self._thought for block in content)
        kept = any(block["type"] in ("thinking", "redacted_thinking") for block in content)
        if running and thought and not kept:
            found = content[0]["type"]
            raise Refusal(
                f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or "
                f"`redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final "
                "`assistant` message must start with a thinking block (preceeding the lastmost set "
                "of `tool_use` and `tool_result` blocks)."
            )


def _marks(messages: Sequence[JSON]) -> Iterator[tuple[int, int, str]]:
    """Yield message, block and signature of each thinking block."""
    for i, message in enumerate(messages):
        for j, block in enumerate(message["content"]):
            if block["type"] == "thinking":
                yield i, j, block["signature"]


def _prefix(body: JSON, messages: Sequence[JSON]) -> str:
    """Return what a thinking block is bound to; cache marks and thinking are no part of it."""
    said = [
        (m["role"], [block for block in m["content"] if block["type"] != "thinking"])
        for m in messages
    ]
    behind = json.dumps([body.get("system"), body.get("tools"), said], sort_keys=True)
    return hashlib.sha256(
        re.sub(r'"cache_control": \{[^}]*\}(, )?', "", behind).encode()
    ).hexdigest()


def _chat_messages(message: JSON) -> Iterator[JSON]:
    """Yield a message as chat messages, each tool result as one."""
    content = message["content"]
    if isinstance(content, str):
        yield {"role": message["role"], "content": content}
        return
    if message["role"] == "assistant":
        yield _chat_step(content)
        return
    for block in content:
        if block["type"] == "tool_result":
            output = _chat_content(block.get("content") or "")
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": output}
    if said := [block for block in content if block["type"] != "tool_result"]:
        yield {"role": "user", "content": _chat_content(said)}


def _chat_step(content: Sequence[JSON]) -> JSON:
    said = [block["text"] for block in content if block["type"] == "text"]
    message: JSON = {"role": "assistant", "content": "\n".join(said) or None}
    thoughts = [block["thinking"] for block in content if block["type"] == "thinking"]
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    calls = [_chat_call(block) for block in content if block["type"] == "tool_use"]
    return {**message, "tool_calls": calls} if calls else message


def _chat_call(block: JSON) -> JSON:
    arguments = json.dumps(block["input"], ensure_ascii=False)
    function = {"name": block["name"], "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _chat_content(content: str | list[JSON]) -> str | list[JSON]:
    if isinstance(content, str):
        return content
    return [_chat_part(block) for block in content]


def _chat_part(block: JSON) -> JSON:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source = block.get("source") or {}
    url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _chat_tool(tool: JSON) -> JSON:
    function = {
        "name": tool.get("name"),
        "description": tool.get("description", ""),
        "parameters": tool.get("input_schema") or {},
    }
    return {"type": "function", "function": function}


def _blocks(reply: Reply, asked: Asked) -> list[JSON]:
    blocks: list[JSON] = [{"type": "text", "text": reply.text}] if reply.text else []
    for index, call in enumerate(reply.calls):
        input = json.loads(call.arguments_text())
        id = call_id(call, asked, index)
        blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": input})
    return blocks


def _pieces_of(block: JSON) -> tuple[JSON, list[JSON]]:
    """Return a block's opening and its deltas."""
    if block["type"] == "text":
        words = split_for_stream(block["text"])
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": w} for w in words]
    encoded = json.dumps(block["input"], ensure_ascii=False)
    deltas = [{"type": "input_json_delta", "partial_json": p} for p in split_for_stream(encoded)]
    return {**block, "input": {}}, deltas


def _usage(asked: Recorded) -> JSON:
    """Return the usage; a request with marks writes all that it does not read."""
    body, new = json.dumps(asked.body), asked.prompt_tokens - asked.cached_tokens
    written = new if '"cache_control"' in body else 0
    hour = written if '"ttl": "1h"' in body else 0
    return {
        "input_tokens": new - written,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hour,
            "ephemeral_1h_input_tokens": hour,
        },
        "cache_read_input_tokens": asked.cached_tokens,
        "output_tokens": asked.completion_tokens,
    }
