"""Anthropic's messages API: what it refuses, how it answers, whole and streamed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .replies import JSON, Asked, Reply, Usage
from .strict import Refusal, Rules
from .wire import call_id, pieces, sse

__all__ = ["Anthropic"]

PARAMETERS = frozenset(
    {
        *("cache_control", "container", "context_management", "max_tokens", "mcp_servers"),
        *("messages", "metadata", "model", "output_config", "output_format", "service_tier"),
        *("stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice"),
        *("tools", "top_k", "top_p"),
    }
)
BLOCKS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "cache_control", "title", "context", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
BLOCKS_OF = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
IDENTIFIER = re.compile(r"[a-zA-Z0-9_-]+")
MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


class Anthropic:
    """The protocol of `/v1/messages`; it remembers the thinking that it signed."""

    name = "anthropic"

    def __init__(self) -> None:
        self._signed: dict[str, tuple[str, set[str]]] = {}
        """Signature -> the thinking, and the ids of the calls that were issued with it."""
        self._thought: set[str] = set()
        """Ids of all calls that were issued with thinking."""

    def check(self, body: JSON, rules: Rules) -> None:
        """Raise Refusal for what the API refuses."""
        _check_parameters(body, rules)
        _check_system(body.get("system"))
        _check_messages(body["messages"], rules)
        _check_pairs(_merged(body["messages"]))
        self._check_thinking(body)
        _check_tools(body)
        _check_cache_marks(body)

    def asked(self, body: JSON) -> Asked:
        """Read a request that passed the checks."""
        system = body.get("system")
        head = [{"role": "system", "content": _chat_content(system)}] if system else []
        messages = [chat for message in body["messages"] for chat in _chat_messages(message)]
        return Asked(
            model=str(body["model"]),
            messages=[*head, *messages],
            tools=[_chat_tool(tool) for tool in body.get("tools") or ()],
            stream=bool(body.get("stream")),
            max_tokens=body["max_tokens"],
            body=body,
        )

    def overflow(self, window: int, messages: int, tools: int, completion: int) -> Refusal:
        """Return the refusal of a request that does not fit the window."""
        prompt = messages + tools
        if prompt > window:
            return Refusal(f"prompt is too long: {prompt} tokens > {window} maximum")
        return Refusal(
            f"input length and `max_tokens` exceed context limit: {prompt} + {completion} > "
            f"{window}, decrease input length or `max_tokens` and try again"
        )

    def error(self, refusal: Refusal) -> JSON:
        """Return an error body; its type follows from the status alone."""
        kind = ERROR_TYPES.get(refusal.status, "api_error")
        error = {"type": kind, "message": refusal.message}
        return {"type": "error", "error": error, "request_id": "req_local"}

    def whole(self, reply: Reply, asked: Asked, usage: Usage) -> JSON:
        """Return the body of a reply that is not streamed."""
        return {
            "id": f"msg_{asked.number:06d}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": self._issue(reply, asked),
            "stop_reason": _stop_reason(reply),
            "stop_sequence": None,
            "usage": _usage(usage),
        }

    def frames(self, reply: Reply, asked: Asked, usage: Usage) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        for event in self._events(reply, asked, usage):
            yield sse(event, event["type"])

    def _events(self, reply: Reply, asked: Asked, usage: Usage) -> Iterator[JSON]:
        whole = self.whole(reply, asked, usage)
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
        if reply.thinking and _thinks(asked.body):
            digest = hashlib.sha256(f"{asked.number}:{reply.thinking}".encode()).hexdigest()
            calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
            thought = {"type": "thinking", "thinking": reply.thinking, "signature": digest}
            blocks.insert(0, thought)
            self._signed[digest] = (reply.thinking, calls)
            self._thought |= calls
        return blocks

    def _check_thinking(self, body: JSON) -> None:
        """Refuse thinking that we did not sign, that was moved, or that its calls lost."""
        for i, message in enumerate(_merged(body["messages"])):
            for j, block in enumerate(message["content"]):
                if block["type"] == "thinking":
                    self._check_signature(
                        block, message["content"][j:], f"messages.{i}.content.{j}"
                    )
        if _thinks(body):
            self._check_last_step(_merged(body["messages"]))

    def _check_signature(self, block: JSON, rest: Sequence[JSON], where: str) -> None:
        thinking, calls = self._signed.get(block["signature"], (None, set[str]()))
        if thinking != block["thinking"]:
            raise Refusal(f"{where}: Invalid `signature` in `thinking` block")
        # Cache marks and text of its own may be added (litellm does), calls may not be lost.
        if not calls <= {other.get("id") for other in rest}:
            raise Refusal(f"{where}: {MODIFIED}")

    def _check_last_step(self, messages: Sequence[JSON]) -> None:
        """Refuse a step in progress whose thinking is gone; finished steps may lose theirs."""
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


# -- refusing -------------------------------------------------------------------------------------


def _check_parameters(body: JSON, rules: Rules) -> None:
    for key in ("model", "messages", "max_tokens"):
        if body.get(key) is None:
            raise Refusal(f"{key}: Field required")
    if not rules.unknown_parameters:
        _known(body, PARAMETERS, "")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise Refusal("max_tokens: Input should be greater than or equal to 1")
    if _thinks(body) and body["thinking"].get("budget_tokens", 0) >= body["max_tokens"]:
        raise Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _known(value: Mapping[str, Any], allowed: Collection[str], where: str) -> None:
    for key in value:
        if key not in allowed:
            raise Refusal(f"{where}{key}: Extra inputs are not permitted")


def _thinks(body: JSON) -> bool:
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def _check_system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    for index, block in enumerate(_list(system, "system")):
        if not isinstance(block, dict) or block.get("type") != "text":
            raise Refusal(f"system.{index}: Input should be a text block")
        _check_text(block.get("text"), f"system.{index}.text", "system")


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise Refusal(f"{where}: Input should be a valid list")
    return value


def _check_messages(messages: Any, rules: Rules) -> None:
    if not _list(messages, "messages"):
        raise Refusal("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, index, last=index == len(messages) - 1, rules=rules)
    roles = [message["role"] for message in messages]
    if roles[0] != "user":
        raise Refusal('messages: first message must use the "user" role')
    if rules.alternate:
        _check_alternation(roles)


def _check_message(message: Any, index: int, *, last: bool, rules: Rules) -> None:
    where = f"messages.{index}"
    if not isinstance(message, dict):
        raise Refusal(f"{where}: Input should be a valid dictionary")
    role = message.get("role")
    if role == "system":
        raise Refusal(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
            'parameter, not "system" as an input message role.'
        )
    if role not in BLOCKS_OF:
        raise Refusal(
            f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
        )
    _known(message, {"role", "content"} | rules.extra_message_keys, f"{where}.")
    _check_content(message.get("content"), role, where, last=last)


def _check_content(content: Any, role: str, where: str, *, last: bool) -> None:
    if content is None:
        raise Refusal(f"{where}.content: Field required")
    if not content and not (last and role == "assistant"):
        raise Refusal(
            f"{where}: all messages must have non-empty content except for the optional final "
            "assistant message"
        )
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    for index, block in enumerate(_list(content, f"{where}.content")):
        _check_block(block, BLOCKS_OF[role], f"{where}.content.{index}")
    final = content[-1] if content and last and role == "assistant" else {}
    if final.get("text", "") != final.get("text", "").rstrip():
        raise Refusal("messages: final assistant content cannot end with trailing whitespace")


def _check_block(block: Any, allowed: Sequence[str], where: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind is None:
        raise Refusal(f"{where}.type: Field required")
    if kind not in allowed:
        names = ", ".join(f"'{name}'" for name in allowed)
        raise Refusal(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {names}"
        )
    _known(block, BLOCKS[kind], f"{where}.{kind}.")
    checks = {"text": _check_text_block, "tool_use": _check_use, "tool_result": _check_result}
    checks.get(kind, _check_fields)(block, f"{where}.{kind}")


def _check_fields(block: JSON, where: str) -> None:
    optional = {"cache_control", "title", "context", "citations"}
    for key in BLOCKS[block["type"]] - optional:
        if key not in block:
            raise Refusal(f"{where}.{key}: Field required")


def _check_text_block(block: JSON, where: str) -> None:
    _check_text(block.get("text"), f"{where}.text", "messages")


def _check_text(text: Any, where: str, place: str) -> None:
    if not isinstance(text, str):
        raise Refusal(f"{where}: Input should be a valid string")
    if not text:
        raise Refusal(f"{place}: text content blocks must be non-empty")
    if not text.strip():
        raise Refusal(f"{place}: text content blocks must contain non-whitespace text")


def _check_use(block: JSON, where: str) -> None:
    for key in ("id", "name", "input"):
        if key not in block:
            raise Refusal(f"{where}.{key}: Field required")
    for key in ("id", "name"):
        if not isinstance(block[key], str) or not IDENTIFIER.fullmatch(block[key]):
            raise Refusal(f"{where}.{key}: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block["input"], dict):
        raise Refusal(f"{where}.input: Input should be a valid dictionary")


def _check_result(block: JSON, where: str) -> None:
    if not isinstance(block.get("tool_use_id"), str):
        raise Refusal(f"{where}.tool_use_id: Field required")
    content = block.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            _check_block(part, ("text", "image", "document"), f"{where}.content.{index}")
    elif not isinstance(content, (str, type(None))):
        raise Refusal(f"{where}.content: Input should be a valid string or list")


def _check_alternation(roles: Sequence[str]) -> None:
    for before, after in pairwise(roles):
        if before == after:
            raise Refusal(
                'messages: roles must alternate between "user" and "assistant", but found multiple '
                f'"{after}" roles in a row'
            )


def _merged(messages: Sequence[JSON]) -> list[JSON]:
    """Return the messages as the API reads them: blocks only, neighbours of one role joined."""
    merged: list[JSON] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}] if content else []
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] = [*merged[-1]["content"], *content]
        else:
            merged.append({"role": message["role"], "content": list(content)})
    return merged


def _check_pairs(messages: Sequence[JSON]) -> None:
    """Refuse calls without a result at once after them, results without a call, and doubles."""
    asked: list[str] = []
    for index, message in enumerate(messages):
        results = _results(message, f"messages.{index}")
        if lost := [id for id in asked if id not in results]:
            _refuse_unanswered(lost, index - 1)
        for id in results:
            if id not in asked:
                raise Refusal(
                    f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` "
                    f"blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )
            if results.count(id) > 1:
                raise Refusal(
                    f"messages.{index}.content.0: each tool_use must have a single result. Found "
                    f"multiple `tool_result` blocks with id: {id}"
                )
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        if len(set(asked)) < len(asked):
            raise Refusal(f"messages.{index}: `tool_use` ids must be unique")
    if asked:
        _refuse_unanswered(asked, len(messages) - 1)


def _results(message: JSON, where: str) -> list[str]:
    kinds = [block["type"] for block in message["content"]]
    ids = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
    if any(kind != "tool_result" for kind in kinds[: len(ids)]):
        raise Refusal(f"{where}: `tool_result` blocks must come before all other content")
    return ids


def _refuse_unanswered(ids: Sequence[str], index: int) -> None:
    raise Refusal(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message."
    )


def _check_tools(body: JSON) -> None:
    for index, tool in enumerate(_list(body.get("tools") or [], "tools")):
        if not isinstance(tool, dict) or tool.get("type", "custom") != "custom":
            continue
        where = f"tools.{index}.custom"
        for key in ("name", "input_schema"):
            if key not in tool:
                raise Refusal(f"{where}.{key}: Field required")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(tool["name"])):
            raise Refusal(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(tool["input_schema"], dict):
            raise Refusal(f"{where}.input_schema: Input should be a valid dictionary")
        if tool["input_schema"].get("type") != "object":
            raise Refusal(f"{where}.input_schema.type: Input should be 'object'")


def _check_cache_marks(body: JSON) -> None:
    system = body.get("system")
    holders = [*(body.get("tools") or ()), *(system if isinstance(system, list) else ())]
    holders += [block for message in _merged(body["messages"]) for block in message["content"]]
    marks = sum(1 for holder in holders if holder.get("cache_control"))
    if marks > 4:
        raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


# -- reading --------------------------------------------------------------------------------------


def _chat_messages(message: JSON) -> Iterator[JSON]:
    """Yield the chat messages that one message stands for: each tool result is one of its own."""
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


# -- answering ------------------------------------------------------------------------------------


def _blocks(reply: Reply, asked: Asked) -> list[JSON]:
    said = reply.text or reply.refusal
    blocks: list[JSON] = [{"type": "text", "text": said}] if said else []
    for index, call in enumerate(reply.calls):
        input = json.loads(call.encoded())
        id = call_id(call, asked, index)
        blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": input})
    return blocks


def _stop_reason(reply: Reply) -> str:
    if reply.refusal:
        return "refusal"
    return STOP_REASONS.get(reply.finish_reason, "end_turn")


def _pieces_of(block: JSON) -> tuple[JSON, list[JSON]]:
    """Return a block as it opens, and the deltas that fill it."""
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        return {"type": "text", "text": ""}, deltas
    if block["type"] == "tool_use":
        encoded = json.dumps(block["input"], ensure_ascii=False)
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces(encoded)]
        return {**block, "input": {}}, deltas
    deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"])]
    deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return {"type": "thinking", "thinking": "", "signature": ""}, deltas


def _usage(usage: Usage) -> JSON:
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
