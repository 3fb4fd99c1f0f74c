"""One chat message, whatever its shape: its text, its tool calls, its plain copy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeGuard

from ..errors import InvalidMessages

Message = dict[str, Any]

DEEPEST = 100
"""Levels of lists and mappings in one message; more is no chat message, and a cycle has no end."""

TOO_DEEP = (f"nested deeper than {DEEPEST} levels", "content that a provider can read")

ORPHAN_OPENS = "[tool result whose call is not in this conversation]"


class ToolCall(NamedTuple):
    """One call an assistant message makes; `arguments` is always a JSON string."""

    id: str
    name: str
    arguments: str


def is_system(message: Mapping[str, Any]) -> bool:
    """Whether the message is an instruction of the host (system or developer)."""
    return message.get("role") in ("system", "developer")


def is_result(message: Mapping[str, Any]) -> bool:
    """Whether the message is, as a whole, the result of a tool or function call."""
    return message.get("role") in ("tool", "function")


def call_blocks(message: Mapping[str, Any]) -> Sequence[Message]:
    """The calls among the blocks of an assistant's message, where Anthropic's API has them."""
    content = message.get("content")
    if type(content) is not list or message.get("role") != "assistant":
        return ()
    return [part for part in content if is_call_block(part)]


def result_blocks(message: Mapping[str, Any]) -> Sequence[Message]:
    """The results among the blocks of a user's message, where Anthropic's API has them."""
    content = message.get("content")
    if type(content) is not list or message.get("role") != "user":
        return ()
    return [part for part in content if is_answer_block(part)]


def is_call_block(part: Any) -> bool:
    """Whether a part of a content is a call in Anthropic's shape."""
    return _is_dict(part) and part.get("type") == "tool_use"


def is_answer_block(part: Any) -> bool:
    """Whether a part of a content is a result in Anthropic's shape."""
    return _is_dict(part) and part.get("type") == "tool_result"


def _is_dict(value: Any) -> bool:
    # `type` first: a check against an abstract class costs more than all the rest.
    return type(value) is dict or isinstance(value, Mapping)


def is_tools_text(message: Mapping[str, Any]) -> bool:
    """Whether a message in the user's role carries a tool's words, perhaps beside the user's."""
    content = message.get("content")
    if isinstance(content, list):
        return any(map(_is_tools_part, content))
    return isinstance(content, str) and content.startswith(ORPHAN_OPENS)


def is_spoken(message: Mapping[str, Any]) -> bool:
    """Whether a message in the user's role carries anything that is not a tool's."""
    content = message.get("content")
    if isinstance(content, list):
        return not all(map(_is_tools_part, content))
    return not (isinstance(content, str) and content.startswith(ORPHAN_OPENS))


def _is_tools_part(part: Any) -> bool:
    return is_answer_block(part) or part_text(part).startswith(ORPHAN_OPENS)


# ---------------------------------------------------------------- reading one message
def text_of(message: Mapping[str, Any]) -> str:
    """The readable text of a message's content; images, audio and files are not text."""
    return _content_text(message.get("content"))


def result_text(message: Mapping[str, Any]) -> str:
    """The text of a tool's result as the tool wrote it.

    Hosts pass results on as JSON string literals: one long line, its breaks and quotes escaped.
    """
    text = text_of(message)
    if not (is_result(message) and len(text) > 1 and text[0] == text[-1] == '"'):
        return text
    try:
        written = json.loads(text)
    except ValueError:
        return text
    return written if isinstance(written, str) else text


def _content_text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return part_text(content)
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return "\n".join(text for text in map(part_text, content) if text)
    return str(content)


def part_text(part: Any) -> str:
    """The text of one part of a content; "" where it has none."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if part.get("type") == "tool_result":
        return _content_text(part.get("content"))
    return ""


def media_in(message: Mapping[str, Any]) -> int:
    """How many parts of a content, or of a result in it, are images, audio or files."""
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return sum(
        media_in(part) if is_answer_block(part) else part.get("type") not in _IN_WORDS
        for part in parts
        if isinstance(part, Mapping)
    )


_IN_WORDS = (
    *("text", "input_text", "output_text", "refusal", "tool_use"),
    *("thinking", "redacted_thinking"),
)


def tool_calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a message, whatever their shape; a legacy function_call has id "".

    A call that a client has both among the content's blocks and beside them is one.
    """
    beside = calls_beside(message)
    # Most contents are text: what every message is asked must not look any further.
    blocks = call_blocks(message) if type(message.get("content")) is list else ()
    if not blocks:
        return beside
    known = {call.id for call in beside}
    return beside + tuple(call for call in map(read_call, blocks) if call.id not in known)


def calls_beside(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls that stand beside the content, as OpenAI's API has them."""
    given, legacy = message.get("tool_calls"), message.get("function_call")
    if not given and not legacy:
        return ()
    calls = tuple(map(read_call, calls_in(given)))
    if legacy:
        calls += (read_call({"id": "", "function": legacy}),)
    return calls


def makes_calls(message: Mapping[str, Any]) -> bool:
    """Whether `tool_calls_of` finds any, without reading them."""
    given, legacy = message.get("tool_calls"), message.get("function_call")
    if legacy or (given and calls_in(given)):
        return True
    return type(message.get("content")) is list and bool(call_blocks(message))


def calls_in(value: Any) -> Sequence[Any]:
    """The value of `tool_calls` where it is a list; whatever else stands there calls nothing."""
    return value if isinstance(value, (list, tuple)) else ()


def read_call(call: Any) -> ToolCall:
    """One entry of `tool_calls`, in whatever shape."""
    usual = usual_call(call)
    if usual is not None:
        return usual
    function = _field(call, "function") or _field(call, "custom")
    # An object of ours or of a client without "function" carries name and arguments itself.
    source = function or call
    arguments = _field(source, "arguments")
    if arguments is None:
        arguments = _field(source, "input")
    return ToolCall(
        str(_field(call, "id") or ""), str(_field(source, "name") or ""), json_text(arguments)
    )


def usual_call(call: Any) -> ToolCall | None:
    """One in the shape that nearly all have, which needs no reading; None: it has another."""
    function = call.get("function") if type(call) is dict else None
    if type(function) is not dict:
        return None
    id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    if type(id) is str and type(name) is str and type(arguments) is str:
        return ToolCall(id, name, arguments)
    return None


def _field(thing: Any, name: str) -> Any:
    if type(thing) is dict or isinstance(thing, Mapping):
        return thing.get(name)
    return getattr(thing, name, None)


def json_text(arguments: Any) -> str:
    """A call's arguments as they are sent: a string as it is, anything else as JSON."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(plain_value({} if arguments is None else arguments), ensure_ascii=False)


def to_plain(message: Any) -> Message:
    """The message as a dictionary of plain JSON values, sharing nothing with the original."""
    if is_flat(message):
        return message.copy()
    plain = plain_value(message)
    if not isinstance(plain, dict):
        raise InvalidMessages(None, f"a {type(message).__name__}", "a mapping with a role")
    return plain


def is_flat(message: Any) -> TypeGuard[Message]:
    """Whether it is a dictionary of strings alone, as most messages are."""
    return type(message) is dict and set(map(type, chain(message, message.values()))) == {str}


def plain_value(value: Any, room: int = DEEPEST) -> Any:
    """The value in plain JSON types, sharing no list or dictionary with the original."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if room < 0:
        raise InvalidMessages(None, *TOO_DEEP)
    room -= 1
    # `type` first: a check against an abstract class costs more than all the rest.
    if type(value) is dict or isinstance(value, Mapping):
        return {
            str(key): item if type(item) is str else plain_value(item, room)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain_value(item, room) for item in value]
    if isinstance(value, (set, frozenset)):
        # Sets have no order of their own: two processes would read two messages.
        return sorted((plain_value(item, room) for item in value), key=repr)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain_value(dump(exclude_none=True), room)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        named = ((str(key), item) for key, item in vars(value).items())
        return {key: plain_value(item, room) for key, item in named if not key.startswith("_")}
    return str(value)


def is_deep(value: Any, room: int = DEEPEST) -> bool:
    """Whether lists and mappings are nested deeper than `room` levels."""
    if type(value) is dict or isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    if room < 0:
        return True
    nested = [item for item in value if type(item) is not str]
    return bool(nested) and any(is_deep(item, room - 1) for item in nested)
