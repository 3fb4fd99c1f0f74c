"""What a provider would refuse in a list of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .shapes import (
    call_blocks,
    calls_in,
    is_answer_block,
    is_deep,
    is_result,
    is_spoken,
    makes_calls,
    result_blocks,
    text_of,
    tool_calls_of,
)

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


@dataclass(frozen=True)
class Problem:
    """Something a provider would refuse: where, a short code, and words for a person."""

    index: int
    code: str
    text: str


def check(messages: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """What a provider would refuse in this list; empty when nothing."""
    return [*_shape_problems(messages), *_pairing_problems(messages)]


def _shape_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        role = message.get("role")
        if not is_role(role):
            yield Problem(index, "role", f"unknown role {role!r}")
        for key in message:
            if not isinstance(key, str) or key.startswith("_"):
                yield Problem(index, "private_key", f"private key {key!r}")
        if is_empty(message):
            yield Problem(index, "empty", f"{role} message without content")
        for call in calls_in(message.get("tool_calls")):
            if not isinstance(call, Mapping) or not is_sound_call(call):
                yield Problem(index, "tool_call", "a tool call without id, name or JSON arguments")
        yield from _block_problems(index, message)


def _block_problems(index: int, message: Mapping[str, Any]) -> Iterator[Problem]:
    for block in call_blocks(message):
        if not is_sound_block(block):
            yield Problem(index, "tool_call", "a tool_use block without id, name or input object")
    answers = result_blocks(message)
    if answers and not all(map(is_answer_block, message["content"][: len(answers)])):
        yield Problem(index, "order", "a tool_result block behind other content")


def is_role(role: Any) -> bool:
    """Whether a provider knows the role."""
    return isinstance(role, str) and role in ROLES


def is_sound_call(call: Mapping[str, Any]) -> bool:
    """Whether a tool call has an id, a name and arguments as a JSON object."""
    if not is_name(call.get("id")):
        return False
    if call.get("type") == "custom":
        return isinstance(call.get("custom"), Mapping)
    function = call.get("function")
    if not isinstance(function, Mapping) or not is_name(function.get("name")):
        return False
    return is_json_object(function.get("arguments"))


def is_sound_block(block: Mapping[str, Any]) -> bool:
    """Whether a call in Anthropic's shape has an id, a name and an object as its input."""
    named = is_name(block.get("id")) and is_name(block.get("name"))
    return named and isinstance(block.get("input"), dict)


def is_name(value: Any) -> bool:
    """Whether the value is a string that is not empty."""
    return isinstance(value, str) and bool(value)


def is_json_object(text: Any) -> bool:
    """Whether the text is a JSON object that is no deeper than a message may be."""
    if not isinstance(text, str):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and not is_deep(found)


def is_empty(message: Mapping[str, Any]) -> bool:
    """Whether the message says nothing: no call, no text, no picture."""
    if makes_calls(message):
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
        answered = _answered(message)
        for key in answered:
            if open_ids.pop(key, None) is None:
                yield Problem(index, "orphan", f"tool result without a call (id {key!r})")
        if answered and (is_result(message) or not is_spoken(message)):
            continue
        yield from _unanswered(open_ids)
        open_ids = {}
        for call in tool_calls_of(message):
            if call.id in open_ids:
                yield Problem(index, "duplicate_id", f"two calls with the id {call.id!r}")
            open_ids[call.id] = index
    yield from _unanswered(open_ids)


def _answered(message: Mapping[str, Any]) -> list[str]:
    """The ids of the calls that the message answers."""
    if is_result(message):
        return [str(message.get("tool_call_id") or "")]
    return [str(block.get("tool_use_id") or "") for block in result_blocks(message)]


def _unanswered(open_ids: Mapping[str, int]) -> Iterator[Problem]:
    for key, index in open_ids.items():
        yield Problem(index, "unanswered", f"tool call {key!r} has no result")
