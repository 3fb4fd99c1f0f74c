"""Chat messages as they really come: read once, repaired only in the view, grouped, digested.

A *step* is one atom that is never split: an assistant message with its tool calls and all their
results; every other message is a step alone. A *turn* starts with a user message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .errors import InvalidMessages

__all__ = [
    "Message",
    "Problem",
    "ToolCall",
    "Transcript",
    "as_list",
    "canonical",
    "check",
    "content_digest",
    "digest",
    "is_result",
    "is_system",
    "is_tools_text",
    "read",
    "result_text",
    "steps",
    "text_of",
    "to_plain",
    "tool_calls_of",
]

Message = dict[str, Any]

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
EMPTY = "(empty)"
DEEPEST = 100
"""Levels of lists and mappings in one message; more is no chat message, and a cycle has no end."""

_TOO_DEEP = (f"nested deeper than {DEEPEST} levels", "content that a provider can read")
NO_RESULT = "[no result was recorded for this tool call]"
ORPHAN_OPENS = "[tool result whose call is not in this conversation]"

_VOLATILE = frozenset({"id", "cache_control", "timestamp", "created_at", "created", "index"})


class ToolCall(NamedTuple):
    """One call an assistant message makes; `arguments` is always a JSON string."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Problem:
    """Something a provider would refuse: where, a short code, and words for a person."""

    index: int
    code: str
    text: str


@dataclass(frozen=True)
class Transcript:
    """A list of messages read once: valid to send, with what it takes to find it again."""

    messages: tuple[Message, ...]
    """What may be sent: the caller's own dictionaries, except where one had to be repaired."""
    origins: tuple[int | None, ...]
    """For each message its index in the caller's list; None for a stub that repair put in."""
    steps: tuple[range, ...]

    @property
    def leading(self) -> int:
        """How many system and developer messages stand in front."""
        count = 0
        while count < len(self.messages) and is_system(self.messages[count]):
            count += 1
        return count

    @property
    def repaired(self) -> int:
        """How many stubs repair put in."""
        return sum(origin is None for origin in self.origins)


def is_system(message: Mapping[str, Any]) -> bool:
    """Whether the message is an instruction of the host (system or developer)."""
    return message.get("role") in ("system", "developer")


def is_result(message: Mapping[str, Any]) -> bool:
    """Whether the message is the result of a tool or function call."""
    return message.get("role") in ("tool", "function")


def is_tools_text(message: Mapping[str, Any]) -> bool:
    """Whether a message in the user's role carries a tool's words, not the user's."""
    content = message.get("content")
    if isinstance(content, list):
        return any(
            isinstance(part, Mapping) and part.get("type") == "tool_result" for part in content
        )
    return isinstance(content, str) and content.startswith(ORPHAN_OPENS)


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
        return _part_text(content)
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return "\n".join(text for text in map(_part_text, content) if text)
    return str(content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if part.get("type") == "tool_result":
        return _content_text(part.get("content"))
    return ""


def tool_calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a message, whatever their shape; a legacy function_call has id ""."""
    given, legacy = message.get("tool_calls"), message.get("function_call")
    if not given and not legacy:
        return ()
    calls = tuple(map(_tool_call, _calls_in(given)))
    if legacy:
        calls += (_tool_call({"id": "", "function": legacy}),)
    return calls


def _calls_in(value: Any) -> Sequence[Any]:
    """The value of `tool_calls` where it is a list; whatever else stands there calls nothing."""
    return value if isinstance(value, (list, tuple)) else ()


def _tool_call(call: Any) -> ToolCall:
    function = _field(call, "function") or _field(call, "custom")
    # An object of ours or of a client without "function" carries name and arguments itself.
    source = function or call
    arguments = _field(source, "arguments")
    if arguments is None:
        arguments = _field(source, "input")
    return ToolCall(
        str(_field(call, "id") or ""), str(_field(source, "name") or ""), _json_text(arguments)
    )


def _field(thing: Any, name: str) -> Any:
    # `type` first: a check against an abstract class costs more than all the rest.
    if type(thing) is dict or isinstance(thing, Mapping):
        return thing.get(name)
    return getattr(thing, name, None)


def _json_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(_plain({} if arguments is None else arguments), ensure_ascii=False)


def to_plain(message: Any) -> Message:
    """The message as a dictionary of plain JSON values, sharing nothing with the original."""
    plain = _plain(message)
    if not isinstance(plain, dict):
        raise InvalidMessages(None, f"a {type(message).__name__}", "a mapping with a role")
    return plain


def _plain(value: Any, room: int = DEEPEST) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if room < 0:
        raise InvalidMessages(None, *_TOO_DEEP)
    room -= 1
    if isinstance(value, Mapping):
        return {str(key): _plain(item, room) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, room) for item in value]
    if isinstance(value, (set, frozenset)):
        # Sets have no order of their own: two processes would read two messages.
        return sorted((_plain(item, room) for item in value), key=repr)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _plain(dump(exclude_none=True), room)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        named = ((str(key), item) for key, item in vars(value).items())
        return {key: _plain(item, room) for key, item in named if not key.startswith("_")}
    return str(value)


def _is_deep(value: Any, room: int = DEEPEST) -> bool:
    if type(value) is dict or isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    if room < 0:
        return True
    return any(_is_deep(item, room - 1) for item in value if type(item) is not str)


# ---------------------------------------------------------------- digests


def canonical(message: Mapping[str, Any]) -> Message:
    """What a provider is sent of the message: the part that makes two messages the same.

    Left out: private `_` keys, cache markers, ids and timestamps of the message itself, and keys
    without a value. Text alone is the same as a list with one text part.
    """
    named = ((str(key), value) for key, value in message.items())
    kept = {k: v for k, v in named if k not in _VOLATILE and not k.startswith("_")}
    content = kept.pop("content", None)
    calls = kept.pop("tool_calls", None)
    legacy = kept.pop("function_call", None)
    result: Message = {k: _unmarked(_plain(v)) for k, v in kept.items() if v not in (None, [], {})}
    if content is not None:
        result["content"] = _canonical_content(content)
    if calls:
        result["tool_calls"] = [list(_tool_call(call)) for call in _calls_in(calls)]
    if legacy:
        result["function_call"] = list(_tool_call({"id": "", "function": legacy}))
    return result


def _canonical_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts = _unmarked(_plain(content))
    if isinstance(parts, list) and len(parts) == 1:
        only = parts[0]
        if isinstance(only, dict) and only.keys() == {"type", "text"} and only["type"] == "text":
            return only["text"]
    return parts


def _unmarked(value: Any) -> Any:
    """The value without cache markers, at any depth."""
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    return value


def digest(message: Mapping[str, Any]) -> str:
    """The canonical digest, by which a message is found again: `sha256:` and 64 hex digits."""
    return _sha256(canonical(message))


def content_digest(message: Mapping[str, Any]) -> str:
    """The digest of everything in the dictionary, by which the original is archived."""
    return _sha256(_plain(message))


def _sha256(value: Any) -> str:
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(data.encode("ascii")).hexdigest()


# ---------------------------------------------------------------- steps


def steps(messages: Sequence[Mapping[str, Any]]) -> list[range]:
    """The atoms of a valid list, as ranges of indices that together cover it in order."""
    found: list[range] = []
    start = 0
    while start < len(messages):
        end = start + 1
        if tool_calls_of(messages[start]):
            while end < len(messages) and is_result(messages[end]):
                end += 1
        found.append(range(start, end))
        start = end
    return found


# ---------------------------------------------------------------- validity


def check(messages: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """What a provider would refuse in this list; empty when nothing."""
    return [*_shape_problems(messages), *_pairing_problems(messages)]


def _shape_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        role = message.get("role")
        if not _is_role(role):
            yield Problem(index, "role", f"unknown role {role!r}")
        for key in message:
            if not isinstance(key, str) or key.startswith("_"):
                yield Problem(index, "private_key", f"private key {key!r}")
        if _is_empty(message):
            yield Problem(index, "empty", f"{role} message without content")
        for call in _calls_in(message.get("tool_calls")):
            if not isinstance(call, Mapping) or not _is_sound(call):
                yield Problem(index, "tool_call", "a tool call without id, name or JSON arguments")


def _is_role(role: Any) -> bool:
    return isinstance(role, str) and role in ROLES


def _is_sound(call: Mapping[str, Any]) -> bool:
    if not _is_name(call.get("id")):
        return False
    if call.get("type") == "custom":
        return isinstance(call.get("custom"), Mapping)
    function = call.get("function")
    if not isinstance(function, Mapping) or not _is_name(function.get("name")):
        return False
    return _is_json_object(function.get("arguments"))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_json_object(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and not _is_deep(found)


def _is_empty(message: Mapping[str, Any]) -> bool:
    if tool_calls_of(message):
        return False
    content = message.get("content")
    if content == "" and is_result(message):
        return False  # a tool that says nothing is taken by every provider
    if content is None or content == [] or content == {}:
        return True
    if isinstance(content, str):
        return not content.strip()
    return not text_of(message).strip() and not _has_media(content)


def _has_media(content: Any) -> bool:
    parts = content if isinstance(content, list) else [content]
    return any(isinstance(p, Mapping) and p.get("type") not in (None, "text") for p in parts)


def _pairing_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    open_ids: dict[str, int] = {}
    for index, message in enumerate(messages):
        if is_result(message):
            key = str(message.get("tool_call_id") or "")
            if open_ids.pop(key, None) is None:
                yield Problem(index, "orphan", f"tool result without a call (id {key!r})")
            continue
        yield from _unanswered(open_ids)
        open_ids = {}
        for call in tool_calls_of(message):
            if call.id in open_ids:
                yield Problem(index, "duplicate_id", f"two calls with the id {call.id!r}")
            open_ids[call.id] = index
    yield from _unanswered(open_ids)


def _unanswered(open_ids: Mapping[str, int]) -> Iterator[Problem]:
    for key, index in open_ids.items():
        yield Problem(index, "unanswered", f"tool call {key!r} has no result")


# ---------------------------------------------------------------- reading a list


def read(messages: Any) -> Transcript:
    """Read and, where a provider would refuse it, repair a list of chat messages.

    Repaired in the result only, never in the caller's list: objects become dictionaries, private
    keys go, empty content is named, arguments become JSON text, results move behind their calls,
    a missing result gets a stub that says so, a result without a call becomes plain text.

    Raises:
        InvalidMessages: not a list, a message that is no mapping, or an unknown role.
    """
    clean = [(index, _clean(index, message)) for index, message in enumerate(as_list(messages))]
    paired = list(_pair(clean))
    sent = tuple(message for _, message in paired)
    return Transcript(
        messages=sent,
        origins=tuple(index for index, _ in paired),
        steps=tuple(steps(sent)),
    )


def as_list(messages: Any) -> Sequence[Any]:
    """The messages as a sequence; an iterator is read here, once.

    Raises:
        InvalidMessages: something else than a list of messages.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidMessages(None, f"a {type(messages).__name__}", "a list of chat messages")
    return messages if isinstance(messages, Sequence) else list(messages)


def _clean(index: int, message: Any) -> Message:
    """The message itself where it can be sent as it is, else a repaired copy."""
    if not isinstance(message, Mapping):
        if not hasattr(message, "model_dump"):
            raise InvalidMessages(index, f"a {type(message).__name__}", "a mapping with a role")
        message = _placed(index, message)
    role = message.get("role")
    if not _is_role(role):
        raise InvalidMessages(index, f"role {role!r}", "one of " + ", ".join(sorted(ROLES)))
    if _is_deep(message):
        raise InvalidMessages(index, *_TOO_DEEP)
    if isinstance(message, dict) and _is_clean(message):
        return message
    return _mended(_placed(index, message))


def _placed(index: int, message: Any) -> Message:
    """The message as a dictionary; what cannot be one is told with its index."""
    try:
        return to_plain(message)
    except InvalidMessages as error:
        raise InvalidMessages(index, error.wrong, error.expected) from error


def _is_clean(message: Message) -> bool:
    if _is_empty(message):
        return False
    if any(not isinstance(key, str) or key.startswith("_") for key in message):
        return False
    if not _is_clean_content(message.get("content")):
        return False
    if not is_result(message) and "tool_call_id" in message:
        return False
    if message["role"] != "assistant":
        return "tool_calls" not in message and "function_call" not in message
    if "tool_calls" in message:
        calls = message["tool_calls"]
        if not isinstance(calls, list) or not calls:
            return False
        if not all(isinstance(call, dict) and _is_sound(call) for call in calls):
            return False
    legacy = message.get("function_call", {"name": "-", "arguments": "{}"})
    if not isinstance(legacy, dict) or not _is_name(legacy.get("name")):
        return False
    return _is_json_object(legacy.get("arguments"))


def _is_clean_content(content: Any) -> bool:
    if isinstance(content, list):
        return bool(content) and all(map(_is_part, content))
    return content is None or isinstance(content, str)


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or not _is_name(part.get("type")):
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
    if _is_empty(plain):
        plain["content"] = EMPTY
    return plain


def _mended_calls(calls: Any, legacy: Any) -> Message:
    found: Message = {}
    if _calls_in(calls):
        found["tool_calls"] = [_mended_call(call) for call in calls]
    if legacy:
        call = _tool_call({"function": legacy})
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
    if isinstance(part, dict) and _is_name(part.get("type")) and part["type"] != "text":
        return part
    text = _part_text(part) or ("" if part in (None, [], {}) else _json_text(part))
    bare = isinstance(part, dict) and part.get("type") == "text" and not part.get("text")
    return {"type": "text", "text": text} if text and not bare else None


def _mended_call(call: Any) -> Message:
    read_call = _tool_call(call)
    arguments = _arguments(read_call.arguments)
    name = read_call.name or "unnamed"
    kept = call if isinstance(call, dict) else {}
    function = {"name": name, "arguments": arguments}
    return {
        **kept,
        "id": read_call.id or "call_" + _sha256([name, arguments])[7:23],
        "type": "function",
        "function": function,
    }


def _arguments(text: str) -> str:
    """The arguments as a JSON object: what a model cut off or misquoted is kept as a string."""
    if _is_json_object(text):
        return text
    return json.dumps({"arguments": text} if text.strip() else {}, ensure_ascii=False)


Placed = tuple["int | None", Message]


def _pair(clean: list[tuple[int, Message]]) -> Iterator[Placed]:
    """Every call followed at once by its results, every other result turned into text."""
    taken: set[int] = set()
    for position, (index, message) in enumerate(clean):
        if index in taken:
            continue
        if is_result(message):
            yield index, _orphan(message)
        elif tool_calls_of(message):
            yield from _step(clean, position, taken)
        else:
            yield index, message


def _step(clean: list[tuple[int, Message]], position: int, taken: set[int]) -> Iterator[Placed]:
    index, message = clean[position]
    message = _with_unique_ids(message)
    calls = tool_calls_of(message)
    answers = [_answer(clean, position, call, taken) for call in calls]
    yield index, message
    # In the order they came: a provider asks only that they follow at once.
    yield from sorted(filter(None, answers), key=lambda answer: answer[0] or 0)
    for call, answer in zip(calls, answers, strict=True):
        if answer is None:
            yield None, _stub(call)


def _answer(
    clean: list[tuple[int, Message]], position: int, call: ToolCall, taken: set[int]
) -> Placed | None:
    """The result of `call`: by id, before the next message that makes calls."""
    names = {call.id, call.id.partition(_AGAIN)[0]}
    # Not a slice: copying the rest for every call is quadratic.
    for later in range(position + 1, len(clean)):
        index, message = clean[later]
        if tool_calls_of(message):
            return None
        if index in taken or not is_result(message):
            continue
        given = str(message.get("tool_call_id") or "")
        if given in names or (not given and message.get("name") in (None, call.name)):
            taken.add(index)
            return index, _answering(call, message)
    return None


def _answering(call: ToolCall, message: Message) -> Message:
    """The result as a provider wants it for this call: by id, or by name for a legacy call."""
    if call.id and (message["role"] != "tool" or message.get("tool_call_id") != call.id):
        return {**message, "role": "tool", "tool_call_id": call.id}
    if not call.id and (message["role"] != "function" or "tool_call_id" in message):
        rest = {key: value for key, value in message.items() if key != "tool_call_id"}
        return {**rest, "role": "function", "name": call.name}
    return message


_AGAIN = "--again"  # marks the second of two calls that came with one id


def _with_unique_ids(message: Message) -> Message:
    calls = message.get("tool_calls") or []
    ids = [call["id"] for call in calls]
    if len(set(ids)) == len(ids):
        return message
    seen: dict[str, int] = {}
    renamed = []
    for call in calls:
        nth = seen[call["id"]] = seen.get(call["id"], 0) + 1
        renamed.append(call if nth == 1 else {**call, "id": f"{call['id']}{_AGAIN}{nth}"})
    return {**message, "tool_calls": renamed}


def _stub(call: ToolCall) -> Message:
    if not call.id:
        return {"role": "function", "name": call.name, "content": NO_RESULT}
    return {"role": "tool", "tool_call_id": call.id, "content": NO_RESULT}


def _orphan(message: Message) -> Message:
    name = message.get("name")
    by = f" ({name})" if isinstance(name, str) and name else ""
    return {"role": "user", "content": f"{ORPHAN_OPENS}{by}\n{text_of(message)}"}
