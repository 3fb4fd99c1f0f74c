"""What Anthropic's messages API refuses."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from praison_compressor.testing import Refusal, Rules
from praison_compressor.testing.replies import JSON

PARAMETERS = frozenset(
    "cache_control container context_management max_tokens mcp_servers messages metadata model "
    "output_config output_format service_tier stop_sequences stream system temperature thinking "
    "tool_choice tools top_k top_p".split()
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

OPTIONAL = {"cache_control", "title", "context", "citations", "caller", "content", "is_error"}

BLOCKS_OF = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
}

IDENTIFIER = re.compile(r"[a-zA-Z0-9_-]+")


def check_parameters(body: JSON) -> None:
    """Refuse missing and unknown parameters."""
    for key in ("model", "messages", "max_tokens"):
        if body.get(key) is None:
            raise Refusal(f"{key}: Field required")
    _known(body, PARAMETERS, "")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise Refusal("max_tokens: Input should be greater than or equal to 1")


def _known(value: Mapping[str, Any], allowed: Collection[str], where: str) -> None:
    for key in value:
        if key not in allowed:
            raise Refusal(f"{where}{key}: Extra inputs are not permitted")


def thinks(body: JSON) -> bool:
    """Return whether a request asks for thinking."""
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def check_system(system: Any) -> None:
    """Refuse a system prompt that is no text."""
    for index, block in enumerate(_list(system, "system") if isinstance(system, list) else ()):
        _check_block(block, ("text",), f"system.{index}")


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise Refusal(f"{where}: Input should be a valid list")
    return value


def check_messages(messages: Any, rules: Rules) -> None:
    """Refuse messages of the wrong shape, or in the wrong order."""
    if not _list(messages, "messages"):
        raise Refusal("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, f"messages.{index}", rules)
    if messages[0]["role"] != "user":
        raise Refusal('messages: first message must use the "user" role')


def _check_message(message: Any, where: str, rules: Rules) -> None:
    if not isinstance(message, dict):
        raise Refusal(f"{where}: Input should be a valid dictionary")
    role = message.get("role")
    if role not in BLOCKS_OF:
        raise Refusal(
            f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
        )
    _known(message, {"role", "content"} | rules.extra_message_keys, f"{where}.")
    _check_content(message.get("content"), role, where)


def _check_content(content: Any, role: str, where: str) -> None:
    if content is None:
        raise Refusal(f"{where}.content: Field required")
    if not content:
        raise Refusal(f"{where}: all messages must have non-empty content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for index, block in enumerate(_list(content, f"{where}.content")):
        _check_block(block, BLOCKS_OF[role], f"{where}.content.{index}")


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
    for key in BLOCKS[kind] - OPTIONAL:
        if key not in block:
            raise Refusal(f"{where}.{kind}.{key}: Field required")
    checks = {"text": _check_text, "tool_use": _check_use, "tool_result": _check_result}
    if kind in checks:
        checks[kind](block, f"{where}.{kind}")


def _check_text(block: JSON, where: str) -> None:
    if not isinstance(block["text"], str):
        raise Refusal(f"{where}.text: Input should be a valid string")
    if not block["text"]:
        raise Refusal("messages: text content blocks must be non-empty")
    if not block["text"].strip():
        raise Refusal("messages: text content blocks must contain non-whitespace text")


def _check_use(block: JSON, where: str) -> None:
    for key in ("id", "name"):
        if not isinstance(block[key], str) or not IDENTIFIER.fullmatch(block[key]):
            raise Refusal(f"{where}.{key}: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block["input"], dict):
        raise Refusal(f"{where}.input: Input should be a valid dictionary")


def _check_result(block: JSON, where: str) -> None:
    content = block.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            _check_block(part, ("text", "image", "document"), f"{where}.content.{index}")
    elif not isinstance(content, (str, type(None))):
        raise Refusal(f"{where}.content: Input should be a valid string or list")


def merged(messages: Sequence[JSON]) -> list[JSON]:
    """Return the messages as blocks, neighbours of one role joined."""
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


def check_pairs(messages: Sequence[JSON]) -> None:
    """Refuse unanswered calls, orphan results and doubles."""
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


def check_tools(body: JSON) -> None:
    """Refuse invalid tools."""
    for index, tool in enumerate(_list(body.get("tools") or [], "tools")):
        where = f"tools.{index}.custom"
        if not IDENTIFIER.fullmatch(tool.get("name", "")):
            raise Refusal(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if (tool.get("input_schema") or {}).get("type") != "object":
            raise Refusal(f"{where}.input_schema.type: Input should be 'object'")


def check_cache_marks(body: JSON) -> None:
    """Refuse more cache marks than the API takes."""
    system = body.get("system")
    holders = [*(body.get("tools") or ()), *(system if isinstance(system, list) else ())]
    holders += [block for message in merged(body["messages"]) for block in message["content"]]
    marks = sum(1 for holder in holders if holder.get("cache_control"))
    if marks > 4:
        raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
