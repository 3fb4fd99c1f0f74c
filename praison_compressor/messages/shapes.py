"""Read a chat message of OpenAI's or Anthropic's shape."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast

from ..errors import InvalidMessages

Message = dict[str, Any]

T = TypeVar("T")

MOST_DEPTH = 100
"""Lists and mappings of a message may be nested this number of levels deep."""

TOO_DEEP = (f"nested deeper than {MOST_DEPTH} levels", "content that a provider can read")

ORPHAN_OPENS = "[tool result whose call is not in this conversation]"

MASK_OPENS = "[masked]"
"""Begins the line that replaces a tool output."""


class ToolCall(NamedTuple):
    """A call; `arguments` is a JSON string."""

    id: str
    name: str
    arguments: str


def replace_surrogates(value: T) -> T:
    """Return a plain value without surrogates, which requests cannot encode.

    A pair becomes one character, a lone surrogate U+FFFD.
    """
    if isinstance(value, str) and value.isascii():
        return value
    plain: Any = value
    if isinstance(value, str):
        plain = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif isinstance(value, dict):
        plain = {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    elif isinstance(value, list):
        plain = list(map(replace_surrogates, value))
    return cast("T", plain)


def is_system(message: Mapping[str, Any]) -> bool:
    """Return whether the role is system or developer."""
    return message.get("role") in ("system", "developer")


def leading_count(messages: Iterable[Message]) -> int:
    """Return the number of system and developer messages at the front."""
    return len([*takewhile(is_system, messages)])


def is_result(message: Mapping[str, Any]) -> bool:
    """Return whether the whole message is a result."""
    return message.get("role") in ("tool", "function")


def call_blocks(message: Mapping[str, Any]) -> Sequence[Message]:
    """Return the `tool_use` blocks of an assistant message."""
    content = message.get("content")
    if type(content) is not list or message.get("role") != "assistant":
        return ()
    return [part for part in content if is_call_block(part)]


def result_blocks(message: Mapping[str, Any]) -> Sequence[Message]:
    """Return the `tool_result` blocks of a user message."""
    content = message.get("content")
    if type(content) is not list or message.get("role") != "user":
        return ()
    return [part for part in content if is_result_block(part)]


def is_call_block(part: Any) -> bool:
    """Return whether a content part is a `tool_use` block."""
    return _is_mapping(part) and part.get("type") == "tool_use"


def is_result_block(part: Any) -> bool:
    """Return whether a content part is a `tool_result` block."""
    return _is_mapping(part) and part.get("type") == "tool_result"


def _is_mapping(value: Any) -> bool:
    # `isinstance` with an abstract class is slow.
    return type(value) is dict or isinstance(value, Mapping)


def has_tool_part(message: Mapping[str, Any]) -> bool:
    """Return whether a tool wrote a part of a user message."""
    return any(_written_by_tools(message))


def has_user_part(message: Mapping[str, Any]) -> bool:
    """Return whether the user wrote a part of a user message."""
    return not all(_written_by_tools(message))


def _written_by_tools(message: Mapping[str, Any]) -> list[bool]:
    content = message.get("content")
    if type(content) is str:
        return [content.startswith(ORPHAN_OPENS)]
    parts = content if isinstance(content, list) else [content]
    return [is_result_block(part) or part_text(part).startswith(ORPHAN_OPENS) for part in parts]


# ---------------------------------------------------------------- words
def text_of(message: Mapping[str, Any]) -> str:
    """Return the words of a message, without calls, reasoning and files."""
    content = message.get("content")
    if (content is None or type(content) is str) and _BESIDE.isdisjoint(message):
        return content or ""
    items = (part_text(item) for item in items_of(message))
    return "\n".join(filter(None, (_content_text(content), text_beside(message), *items)))


def text_beside(message: Mapping[str, Any]) -> str:
    """Return a refusal, an audio's transcript and citations."""
    audio = message.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, Mapping) else None
    words = [message.get("refusal"), transcript, *words_in(message.get("annotations"))]
    return "\n".join(text for text in words if isinstance(text, str) and text)


def items_of(message: Mapping[str, Any]) -> Sequence[Any]:
    """Return the Responses items beside a message."""
    items = message.get(ITEMS)
    return items if isinstance(items, list) else ()


def result_text(message: Mapping[str, Any]) -> str:
    """Return a result's text as the tool wrote the text."""
    text = text_of(message)
    # Some hosts encode a result as a JSON string.
    if is_result(message) and len(text) > 1 and text[0] == text[-1] == '"':
        value = parse_json(text)
        return text if value is None else str(value)
    return text


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
    """Return the words of a content part, or ""."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    text, kind = part.get("text"), str(part.get("type"))
    if isinstance(text, str):
        cited = part.get("annotations") or part.get("citations")
        return "\n".join([text, *words_in(cited)]) if cited else text
    if kind == "tool_result":
        return _content_text(part.get("content"))
    return "" if kind in _WITHOUT_WORDS else "\n".join(words_in(part))


def words_in(value: Any) -> Iterator[str]:
    """Yield the words inside a value, without ids, codes and files."""
    if isinstance(value, str):
        if value and not is_payload(value):
            yield value
    elif isinstance(value, Mapping):
        is_text = value.get("type") == "text" or str(value.get("media_type")).startswith("text/")
        for key, item in value.items():
            if key in _EXIT_KEYS and type(item) is int:
                yield f"exit code {item}"
            elif key not in _WORDLESS or (key == "data" and is_text):
                yield from words_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from words_in(item)


def is_payload(text: str) -> bool:
    """Return whether a text is a data URL or base64."""
    if text.startswith("data:"):
        return ";base64," in text[:200]
    return len(text) >= LEAST_PAYLOAD_CHARS and bool(
        _BASE64.fullmatch(text[: 4 * LEAST_PAYLOAD_CHARS])
    )


class Bodies(NamedTuple):
    """Characters without words."""

    files: int = 0
    """Characters of pictures, audio and files."""
    sealed: int = 0
    """Characters of encrypted text, which the model reads."""


def without_bodies(value: Any) -> tuple[Any, Bodies]:
    """Return the value without files and encrypted text, and their sizes."""
    if isinstance(value, str):
        return ("", Bodies(len(value))) if is_payload(value) else (value, Bodies())
    if isinstance(value, Mapping):
        sealed = value.get("encrypted_content")
        pairs = {k: without_bodies(v) for k, v in value.items() if k != "encrypted_content"}
        size = len(sealed) if isinstance(sealed, str) else 0
        return {key: bare for key, (bare, _) in pairs.items()}, _sum_bodies(pairs.values(), size)
    if isinstance(value, (list, tuple)):
        items = list(map(without_bodies, value))
        return [bare for bare, _ in items], _sum_bodies(items)
    return value, Bodies()


def _sum_bodies(pairs: Iterable[tuple[Any, Bodies]], sealed: int = 0) -> Bodies:
    sizes = [bodies for _, bodies in pairs]
    return Bodies(sum(b.files for b in sizes), sealed + sum(b.sealed for b in sizes))


def media_count(message: Mapping[str, Any]) -> int:
    """Return the number of images, audio and files."""
    content = message.get("content")
    if not isinstance(content, list):
        return 0
    return sum(
        media_count(part)
        if is_result_block(part)
        else str(part.get("type")) not in _NOT_MEDIA and not part_text(part)
        for part in content
        if isinstance(part, Mapping)
    )


LEAST_PAYLOAD_CHARS = 256
"""A shorter text is no base64."""

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{60,}={0,2}\s*)+[A-Za-z0-9+/_=-]*\s*")

ITEMS = "response_items"
"""Key of Responses items without a chat shape."""

_BESIDE = frozenset({"refusal", "audio", "annotations", ITEMS})

_NOT_MEDIA = frozenset(
    "text input_text output_text refusal tool_use server_tool_use mcp_tool_use thinking "
    "redacted_thinking reasoning".split()
)
"""Kinds of parts that are no pictures, audio or files."""

_WITHOUT_WORDS = frozenset(
    "text image image_url input_image video video_url input_video audio_url file input_file "
    "container_upload thinking redacted_thinking reasoning tool_use".split()
)
"""Kinds of parts without words; parts of every other kind are searched at any depth."""

_WORDLESS = frozenset(
    "type id tool_use_id call_id item_id approval_request_id status role encrypted_content "
    "encrypted_index signature data cache_control media_type mime_type format file_id container_id "
    "server_label index start_index end_index logprobs image_url b64_json file_data page_age "
    "retrieved_at prompt_cache_breakpoint output_format size quality background".split()
)
"""Keys without words."""

_EXIT_KEYS = ("exit_code", "return_code")


# ---------------------------------------------------------------- calls
def tool_calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return a message's tool calls, of both shapes."""
    beside, blocks = calls_beside(message), call_blocks(message)
    if not blocks:
        return beside
    ids = {call.id for call in beside}
    return beside + tuple(call for call in map(read_call, blocks) if call.id not in ids)


def calls_beside(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the calls in `tool_calls`."""
    calls = message.get("tool_calls")
    return tuple(map(read_call, calls_list(calls))) if calls else ()


def makes_calls(message: Mapping[str, Any]) -> bool:
    """Return whether a message has calls."""
    return bool(calls_list(message.get("tool_calls")) or call_blocks(message))


def calls_list(value: Any) -> Sequence[Any]:
    """Return the list of `tool_calls`, else ()."""
    return value if isinstance(value, (list, tuple)) else ()


def read_call(call: Any) -> ToolCall:
    """Return the call of a `tool_calls` entry or `tool_use` block."""
    outer = _reader(call)
    # Blocks have name and arguments at the top level.
    inner = _reader(outer("function") or outer("custom") or call)
    arguments = inner("arguments")
    if arguments is None:
        arguments = inner("input")
    id, name = outer("id"), inner("name")
    return ToolCall(str(id or ""), str(name or ""), json_text(arguments))


def _reader(holder: Any) -> Callable[[str], Any]:
    """Return a function from a field's name to its value or None."""
    return holder.get if _is_mapping(holder) else lambda name: getattr(holder, name, None)


def json_text(arguments: Any) -> str:
    """Return arguments as text: a string unchanged, else JSON."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(plain_value({} if arguments is None else arguments), ensure_ascii=False)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# ---------------------------------------------------------------- plain copies
def to_plain(message: Any) -> Message:
    """Return a deep copy of the message in plain JSON values."""
    if is_flat(message):
        return message.copy()
    plain = plain_value(message)
    if not isinstance(plain, dict):
        raise InvalidMessages(None, type(message).__name__, "a mapping with a role")
    return plain


def is_flat(message: Any) -> TypeGuard[Message]:
    """Return whether all keys and values are strings."""
    return type(message) is dict and set(map(type, chain(message, message.values()))) == {str}


def plain_value(value: Any, levels: int = MOST_DEPTH) -> Any:
    """Return a deep copy of the value in plain JSON types."""
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return float(value) if isinstance(value, float) else int(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if levels < 0:
        raise InvalidMessages(None, *TOO_DEEP)
    below = levels - 1
    if _is_mapping(value):
        return {
            str(key): item if type(item) is str else plain_value(item, below)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain_value(item, below) for item in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain_value(dump(exclude_none=True), below)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        named = ((str(key), item) for key, item in vars(value).items())
        return {key: plain_value(item, below) for key, item in named if not key.startswith("_")}
    return str(value)


# ---------------------------------------------------------------- signed thinking
#
# Newer models of Anthropic bind a thinking block to everything before the block (*preserved
# thinking*). After a change there, the API refuses the block ("bound to a different conversation").
# Older models require the blocks of the running tool loop.

BLOCKS = "thinking_blocks"
"""litellm's key for thinking beside the content."""

_LEFT_OUT = "[only thinking, left out]"
"""Replaces content that was only thinking: no content may be empty."""


def signatures(message: Mapping[str, Any]) -> frozenset[str]:
    """Return the signatures of thinking, or its encrypted data."""
    if BLOCKS not in message and not isinstance(message.get("content"), list):
        return frozenset()
    blocks: list[Any] = []
    for parts in (message.get("content"), message.get(BLOCKS)):
        blocks += filter(is_thinking, parts) if isinstance(parts, list) else ()
    marks = (block.get("signature") or block.get("data") for block in blocks)
    return frozenset(mark for mark in marks if isinstance(mark, str) and mark)


def binds_thinking(model: str | None) -> bool:
    """Return whether a model binds its thinking (Claude from 5.1)."""
    version = _CLAUDE_VERSION.search(model or "")
    return version is not None and (int(version[1]), int(version[2])) >= (5, 1)


_CLAUDE_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})[-.](\d{1,2})(?!\d)", re.IGNORECASE)


def is_thinking(part: object) -> bool:
    """Return whether a content part is thinking."""
    return isinstance(part, Mapping) and part.get("type") in ("thinking", "redacted_thinking")


def without_thinking(message: Message) -> Message:
    """Return a message without its signed thinking; calls and text stay.

    >>> block = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    >>> without_thinking({"role": "assistant", "content": [block, {"type": "text", "text": "Hi"}]})
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'Hi'}]}
    """
    # The other keys are left out too: they repeat the blocks.
    left_out = (BLOCKS, "reasoning_content", "reasoning") if message.get(BLOCKS) else ()
    stripped = {key: value for key, value in message.items() if key not in left_out}
    content = stripped.get("content")
    if isinstance(content, list):
        stripped["content"] = [part for part in content if not is_thinking(part)]
    if not stripped.get("content") and not stripped.get("tool_calls"):
        text = {"type": "text", "text": _LEFT_OUT}
        stripped["content"] = [text] if isinstance(content, list) else _LEFT_OUT
    return stripped
