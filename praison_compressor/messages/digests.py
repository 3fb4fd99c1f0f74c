"""Digests of messages (one finds a message again, one archives it), and the cache of what is known
of each message.

A transcript comes back whole at every turn. Found by identity first (one comparison in C against
a private copy, about 0.2 µs), else by content (about 0.6 µs, for hosts that rebuild their
dictionaries); an edit in place, at any depth, of any old message is noticed in both ways.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import length_hint
from typing import Any, overload

from .forks import renewed
from .shapes import Message, calls_in, is_flat, plain_value, read_call, to_plain

_VOLATILE = frozenset({"id", "cache_control", "timestamp", "created_at", "created", "index"})

_BARE = frozenset({"role", "content", "name", "tool_call_id"})


def canonical(message: Mapping[str, Any]) -> Message:
    """What a provider is sent of the message: the part that makes two messages the same.

    Left out: private `_` keys, cache markers, ids and timestamps of the message itself, and keys
    without a value. Text alone is the same as a list with one text part.
    """
    named = ((str(key), value) for key, value in message.items())
    kept = {
        key: plain_value(value)
        for key, value in named
        if key not in _VOLATILE and not key.startswith("_")
    }
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

# -------------------------------------------------------------- what is known of each message

Key = tuple[Any, ...]

SPARE = 256
"""Objects that are known beside two for each content."""


class Seen:
    """One message's content and what is known of it; shared by all messages of equal content."""

    __slots__ = ("_content_digest", "_digest", "comparable", "plain", "tokens")

    def __init__(self, plain: Message, comparable: bool = False) -> None:
        self.plain = plain
        """A private copy in plain JSON values: it outlives edits of the original."""
        self.comparable = comparable
        """Whether `==` finds every edit: not with numbers in it, since 1 == True == 1.0."""
        self.tokens: dict[str, int] = {}
        """Token counts by the rules that made them."""
        self._digest = self._content_digest = ""

    # Not `cached_property`: until Python 3.12 it takes a lock for every message.
    @property
    def digest(self) -> str:
        """The canonical digest, by which the message is matched."""
        if not self._digest:
            self._digest = digest(self.plain)
            if is_bare(self.plain):
                self._content_digest = self._digest
        return self._digest

    @property
    def content_digest(self) -> str:
        """The digest of everything in the dictionary, by which it is archived."""
        if not self._content_digest:
            self._content_digest = content_digest(self.plain)
        return self._content_digest


class Originals(Sequence[Message]):
    """Private copies of messages, which nobody edits, with what is known of them."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        self._seen = seen

    def __len__(self) -> int:
        return len(self._seen)

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Originals: ...
    def __getitem__(self, at: int | slice) -> Message | Originals:
        return Originals(self._seen[at]) if isinstance(at, slice) else self._seen[at].plain

    def at(self, indices: Iterable[int]) -> Originals:
        """Those of them, in that order."""
        return Originals([self._seen[index] for index in indices])

    def content_digests(self) -> list[str]:
        """By which they are archived."""
        return [seen.content_digest for seen in self._seen]


class MessageCache:
    """A bounded cache of `Seen`, in two generations: a hit costs no bookkeeping.

    When the young generation is full it becomes the old one, and what the old one still holds
    is dropped unless it was asked for meanwhile. So at most twice the bounds are held. The bound in
    messages is no less than the longest transcript: one that did not fit would be read anew, whole,
    at every look.
    """

    def __init__(self, max_messages: int = 65_536, max_chars: int = 64 * 1024 * 1024) -> None:
        self._max_messages = max_messages
        self._max_chars = max_chars
        self._lock = renewed(threading.Lock())
        self._chars = 0
        self._young: dict[Key, Seen] = {}
        self._old: dict[Key, Seen] = {}
        # The message is held too, so that its id cannot come to mean another object.
        self._by_id: dict[int, tuple[Seen, Any]] = {}

    @property
    def size(self) -> int:
        """Messages held. Not `__len__`: an empty cache is a cache, and must not be falsy."""
        return len(self._young) + len(self._old)

    def __call__(self, message: Mapping[str, Any]) -> Seen:
        """What is known of this message as it is now."""
        hit = self._by_id.get(id(message))
        if hit is not None and hit[0].plain == message:
            return hit[0]
        return self._find(message)

    def all(self, messages: Iterable[Mapping[str, Any]]) -> list[Seen]:
        """The same for a list; the loop is the whole cost of a quiet turn."""
        self._max_messages = max(self._max_messages, length_hint(messages))
        known, find = self._by_id.get, self._find
        found = []
        for message in messages:
            hit = known(id(message))
            if hit is not None and hit[0].plain == message:
                found.append(hit[0])
            else:
                found.append(find(message))
        return found

    def _find(self, message: Mapping[str, Any]) -> Seen:
        if is_flat(message):
            # The pairs are the key.
            frozen: Key = tuple(message.items())
            copy: Callable[[], Message] = functools.partial(dict, message)
            seen = self._young.get(frozen) or self._keep(frozen, chain(*frozen), copy)
            self._know(message, seen)
            return seen
        key: list[Any] = []
        plain = _read(message, key)
        frozen = tuple(key)
        seen = self._young.get(frozen) or self._keep(
            frozen,
            [part for part in key if isinstance(part, str)],
            functools.partial(_copy, plain),
            _NUMBER not in key,
        )
        if plain is message and seen.comparable:
            self._know(message, seen)
        return seen

    def _keep(
        self, key: Key, texts: Iterable[str], copy: Callable[[], Message], comparable: bool = True
    ) -> Seen:
        seen = self._old.get(key) or Seen(copy(), comparable)
        weight = sum(map(len, texts))
        with self._lock:
            if len(self._young) >= self._max_messages or self._chars + weight > self._max_chars:
                self._old, self._young, self._chars = self._young, {}, 0
                self._by_id = {}
            self._chars += weight
            return self._young.setdefault(key, seen)

    def _know(self, message: Mapping[str, Any], seen: Seen) -> None:
        # Without the lock: each step is whole, and an entry lost to a race is only read again.
        # Who makes new objects of old contents for each request would leave them all here.
        if len(self._by_id) >= min(self._max_messages, 2 * self.size + SPARE):
            self._by_id = {}
        self._by_id[id(message)] = (seen, message)


# ---------------------------------------------------------------- content as a key
_NUMBER = object()

_LIST = object()

_DICT = object()


class _NotPlain(Exception):
    """The message holds an object: only a plain copy of it can be compared."""


def _read(message: Mapping[str, Any], key: list[Any]) -> Message:
    """Write the message's content to `key`, strings by reference; return what was read.

    That is the message itself, or a plain copy where it holds objects.
    """
    if type(message) is dict:
        try:
            _read_dict(message, key)
        except _NotPlain:
            key.clear()
        else:
            return message
    plain = to_plain(message)
    _read_dict(plain, key)
    return plain


def _read_dict(value: dict[Any, Any], key: list[Any]) -> None:
    for name, item in value.items():
        if type(name) is not str:
            raise _NotPlain
        key.append(name)
        if type(item) is str or item is None:
            key.append(item)
        else:
            _read_value(item, key)


def _read_value(value: Any, key: list[Any]) -> None:
    kind = type(value)
    if kind is str or value is None:
        key.append(value)
    elif kind is dict:
        key += (_DICT, len(value))
        _read_dict(value, key)
    elif kind is list:
        key += (_LIST, len(value))
        for item in value:
            _read_value(item, key)
    elif isinstance(value, (str, int, float)):
        # Told apart by type and by spelling: True is not 1, and -0.0 is not 0.0.
        key += (_NUMBER, kind, repr(value))
    else:
        raise _NotPlain


def _copy(value: Any) -> Any:
    """The frame anew, the strings shared."""
    if type(value) is dict:
        return {name: _copy(item) for name, item in value.items()}
    return [_copy(item) for item in value] if type(value) is list else value
