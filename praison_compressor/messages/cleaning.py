"""Clean each message by itself: as a provider takes it, in a copy where it has to be mended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidMessages
from .digests import sha256_of
from .shapes import (
    TOO_DEEP,
    Message,
    call_blocks,
    calls_in,
    is_deep,
    is_result,
    json_text,
    part_text,
    read_call,
    to_plain,
)
from .validity import (
    ROLES,
    is_empty,
    is_json_object,
    is_name,
    is_role,
    is_sound_block,
    is_sound_call,
)

EMPTY = "(empty)"

CONVERTED = (
    "praison_compressor.messages.responses: to_messages(instructions, items), to_items(view)"
)
"""Who makes chat messages of the items of OpenAI's Responses API, and items of a view."""

_TEXT_KEYS = frozenset({"role", "content", "name"})

_RESULT_KEYS = _TEXT_KEYS | {"tool_call_id"}

_KEYS = dict.fromkeys(("system", "developer", "user", "assistant"), _TEXT_KEYS) | {
    "tool": _RESULT_KEYS
}


def cleaned(index: int, message: Any) -> Message:
    """The message itself where it can be sent as it is, else a repaired copy.

    Raises:
        InvalidMessages: no mapping, an unknown role, or nested too deep.
    """
    if type(message) is dict and _is_bare_and_clean(message):
        return message
    if not isinstance(message, Mapping):
        if not hasattr(message, "model_dump"):
            raise InvalidMessages(index, f"a {type(message).__name__}", "a mapping with a role")
        message = _placed(index, message)
    role = message.get("role")
    if role is None and isinstance(message.get("type"), str):
        wrong = f"an item of OpenAI's Responses API (type {message['type']!r})"
        raise InvalidMessages(index, wrong, f"chat messages; see {CONVERTED}")
    if not is_role(role):
        raise InvalidMessages(index, f"role {role!r}", "one of " + ", ".join(sorted(ROLES)))
    if is_deep(message):
        raise InvalidMessages(index, *TOO_DEEP)
    if isinstance(message, dict) and _is_clean(message):
        return message
    return _mended(_placed(index, message))


def _placed(index: int, message: Any) -> Message:
    """The message as a dictionary; what cannot be one is told with its index."""
    try:
        return to_plain(message)
    except InvalidMessages as error:
        raise InvalidMessages(index, error.wrong, error.expected) from error


def _is_bare_and_clean(message: Message) -> bool:
    """Whether it is one of the many that only say something: no more need be looked at."""
    if set(map(type, message.values())) != {str}:
        return False
    content = message.get("content")
    known = message.keys() <= _KEYS.get(message.get("role", ""), frozenset())
    return known and isinstance(content, str) and bool(content) and not content.isspace()


def _is_clean(message: Message) -> bool:
    if is_empty(message):
        return False
    if any(not isinstance(key, str) or key.startswith("_") for key in message):
        return False
    if not _is_clean_content(message.get("content")):
        return False
    if not is_result(message) and "tool_call_id" in message:
        return False
    if message["role"] != "assistant":
        return "tool_calls" not in message and "function_call" not in message
    if not all(map(is_sound_block, call_blocks(message))):
        return False
    if "tool_calls" in message:
        calls = message["tool_calls"]
        if not isinstance(calls, list) or not calls:
            return False
        if not all(isinstance(call, dict) and is_sound_call(call) for call in calls):
            return False
    return "function_call" not in message or _is_sound_legacy(message["function_call"])


def _is_sound_legacy(function: Any) -> bool:
    if not isinstance(function, dict) or not is_name(function.get("name")):
        return False
    return is_json_object(function.get("arguments"))


def _is_clean_content(content: Any) -> bool:
    if isinstance(content, list):
        return bool(content) and all(map(_is_part, content))
    return content is None or isinstance(content, str)


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or not is_name(part.get("type")):
        return False
    return part["type"] != "text" or (isinstance(part.get("text"), str) and bool(part["text"]))


def _mended(message: Message) -> Message:
    plain = {k: v for k, v in message.items() if not k.startswith("_")}
    calls, legacy = plain.pop("tool_calls", None), plain.pop("function_call", None)
    if not is_result(plain):
        plain.pop("tool_call_id", None)
    if plain["role"] == "assistant":
        plain.update(_mended_calls(calls, legacy))
    plain["content"] = _mended_content(plain.get("content"))
    for block in call_blocks(plain):
        if not is_sound_block(block):
            block.update(_mended_block(block))
    if is_empty(plain):
        plain["content"] = EMPTY
    return plain


def _mended_calls(calls: Any, legacy: Any) -> Message:
    found: Message = {}
    if calls_in(calls):
        found["tool_calls"] = [_mended_call(call) for call in calls]
    if legacy:
        call = read_call({"function": legacy})
        arguments = _arguments(call.arguments)
        found["function_call"] = {"name": call.name or "unnamed", "arguments": arguments}
    return found


def _mended_content(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, (list, dict)):
        return str(content)
    given = content if isinstance(content, list) else [content]
    parts = [part if _is_part(part) else _mended_part(part) for part in given]
    return [part for part in parts if part is not None] or None


def _mended_part(part: Any) -> Message | None:
    """What no provider takes for a part, as text; None where it says nothing."""
    if isinstance(part, dict) and is_name(part.get("type")) and part["type"] != "text":
        return part
    text = part_text(part) or ("" if part in (None, [], {}) else json_text(part))
    bare = isinstance(part, dict) and part.get("type") == "text" and not part.get("text")
    return {"type": "text", "text": text} if text and not bare else None


def _mended_call(call: Any) -> Message:
    told = read_call(call)
    arguments = _arguments(told.arguments)
    name = told.name or "unnamed"
    kept = call if isinstance(call, dict) else {}
    function = {"name": name, "arguments": arguments}
    return {
        **kept,
        "id": told.id or _made_id(name, arguments),
        "type": "function",
        "function": function,
    }


def _mended_block(block: Any) -> Message:
    """The id, name and input of a call in Anthropic's shape as its API takes them."""
    told = read_call(block)
    given = json.loads(_arguments(told.arguments))
    name = told.name or "unnamed"
    return {"id": told.id or _made_id(name, given), "name": name, "input": given}


def _made_id(name: str, arguments: Any) -> str:
    return "call_" + sha256_of([name, arguments])[7:23]


def _arguments(text: str) -> str:
    """The arguments as a JSON object: what a model cut off or misquoted is kept as a string."""
    if is_json_object(text):
        return text
    return json.dumps({"arguments": text} if text.strip() else {}, ensure_ascii=False)
