"""One chat message, whatever its shape: its text, its tool calls, its plain copy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast

from ..errors import InvalidMessages

Message = dict[str, Any]

T = TypeVar("T")

DEEPEST = 100
"""Levels of lists and mappings in one message; more is no chat message, and a cycle has no end."""

TOO_DEEP = (f"nested deeper than {DEEPEST} levels", "content that a provider can read")

ORPHAN_OPENS = "[tool result whose call is not in this conversation]"


class ToolCall(NamedTuple):
    """One call an assistant message makes; `arguments` is always a JSON string."""

    id: str
    name: str
    arguments: str


def encodable(value: T) -> T:
    """A plain value without half characters, with which no request can be sent: two that belong
    together become one, the others U+FFFD."""
    found: Any = value
    if isinstance(value, str) and not value.isascii():
        found = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif isinstance(value, dict):
        found = {encodable(key): encodable(held) for key, held in value.items()}
    elif isinstance(value, list):
        found = list(map(encodable, value))
    return cast("T", found)


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
    return any(_are_tools(message))


def is_spoken(message: Mapping[str, Any]) -> bool:
    """Whether a message in the user's role carries anything that is not a tool's."""
    return not all(_are_tools(message))


def _are_tools(message: Mapping[str, Any]) -> list[bool]:
    """For each part of a content whether it is a tool's."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    return [is_answer_block(part) or part_text(part).startswith(ORPHAN_OPENS) for part in parts]


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


_IN_WORDS = "text input_text output_text refusal tool_use thinking redacted_thinking".split()


def tool_calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a message, whatever their shape.

    A call that a client has both among the content's blocks and beside them is one.
    """
    beside, blocks = calls_beside(message), map(read_call, call_blocks(message))
    known = {call.id for call in beside}
    return beside + tuple(call for call in blocks if call.id not in known)


def calls_beside(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls that stand beside the content, as OpenAI's API has them."""
    return tuple(map(read_call, calls_in(message.get("tool_calls"))))


def makes_calls(message: Mapping[str, Any]) -> bool:
    """Whether `tool_calls_of` finds any, without reading them."""
    return bool(calls_in(message.get("tool_calls")) or call_blocks(message))


def calls_in(value: Any) -> Sequence[Any]:
    """The value of `tool_calls` where it is a list; whatever else stands there calls nothing."""
    return value if isinstance(value, (list, tuple)) else ()


def read_call(call: Any) -> ToolCall:
    """One entry of `tool_calls`, in whatever shape."""
    function = _field(call, "function") or _field(call, "custom")
    # An object of ours or of a client without "function" carries name and arguments itself.
    source = function or call
    arguments = _field(source, "arguments")
    if arguments is None:
        arguments = _field(source, "input")
    id, name = _field(call, "id"), _field(source, "name")
    return ToolCall(str(id or ""), str(name or ""), json_text(arguments))


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
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return float(value) if isinstance(value, float) else int(value)
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
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain_value(dump(exclude_none=True), room)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        named = ((str(key), item) for key, item in vars(value).items())
        return {key: plain_value(item, room) for key, item in named if not key.startswith("_")}
    return str(value)
