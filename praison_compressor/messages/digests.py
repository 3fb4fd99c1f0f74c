"""Digests: by which a message is found again, and by which its original is archived."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .shapes import Message, calls_in, plain_value, read_call

__all__ = ["bare_digest", "canonical", "content_digest", "digest", "is_bare", "sha256_of"]

_VOLATILE = frozenset({"id", "cache_control", "timestamp", "created_at", "created", "index"})
_BARE = frozenset({"role", "content", "name", "tool_call_id"})


def canonical(message: Mapping[str, Any]) -> Message:
    """What a provider is sent of the message: the part that makes two messages the same.

    Left out: private `_` keys, cache markers, ids and timestamps of the message itself, and keys
    without a value. Text alone is the same as a list with one text part.
    """
    named = ((str(key), value) for key, value in message.items())
    return _canonical({key: plain_value(value) for key, value in named if _is_sent(key)})


def _is_sent(key: str) -> bool:
    return key not in _VOLATILE and not key.startswith("_")


def _canonical(kept: Message) -> Message:
    """The same of the keys that are sent, in plain values; `kept` is used up."""
    content = kept.pop("content", None)
    calls = kept.pop("tool_calls", None)
    legacy = kept.pop("function_call", None)
    told = ((key, value) for key, value in kept.items() if value not in (None, [], {}))
    result: Message = {key: unmarked(value) for key, value in told}
    if content is not None:
        result["content"] = _canonical_content(content)
    if calls:
        result["tool_calls"] = [list(read_call(call)) for call in calls_in(calls)]
    if legacy:
        result["function_call"] = list(read_call({"id": "", "function": legacy}))
    return result


def _canonical_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts = unmarked(content)
    if isinstance(parts, list) and len(parts) == 1:
        only = parts[0]
        if isinstance(only, dict) and only.keys() == {"type", "text"} and only["type"] == "text":
            return only["text"]
    return parts


def unmarked(value: Any) -> Any:
    """The value without cache markers, at any depth."""
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    return value


def digest(message: Mapping[str, Any]) -> str:
    """The canonical digest, by which a message is found again: `sha256:` and 64 hex digits."""
    return bare_digest(message) if is_bare(message) else sha256_of(canonical(message))


def content_digest(message: Mapping[str, Any]) -> str:
    """The digest of everything in the dictionary, by which the original is archived."""
    return bare_digest(message) if is_bare(message) else sha256_of(plain_value(message))


def content_digest_of_plain(message: Message) -> str:
    """`content_digest` of a message in plain JSON values: nothing has to be copied for it."""
    return bare_digest(message) if is_bare(message) else sha256_of(message)


def digest_of_plain(message: Message) -> str:
    """`digest` of a message in plain JSON values that is not bare."""
    kept = {key: value for key, value in message.items() if _is_sent(key)}
    return sha256_of(_canonical(kept))


def is_bare(message: Any) -> bool:
    """Whether the message is its own canonical form, so that its two digests are one: plain text
    and whose it is. Most messages are."""
    if type(message) is not dict:
        return False
    return message.keys() <= _BARE and set(map(type, message.values())) == {str}


def sha256_of(value: Any) -> str:
    """The digest of a plain JSON value."""
    return _sha256(_json(value))


def bare_digest(message: Mapping[str, Any]) -> str:
    """The same as `sha256_of`, in half the time: strings alone need no encoder but their own."""
    pairs = [f'"{key}":{_quoted(message[key])}' for key in sorted(message)]
    return _sha256("{" + ",".join(pairs) + "}")


def _sha256(data: str) -> str:
    return "sha256:" + hashlib.sha256(data.encode("ascii")).hexdigest()


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
_quoted = json.encoder.encode_basestring_ascii
