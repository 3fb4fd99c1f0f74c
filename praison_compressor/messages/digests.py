"""Digest messages; cache their digests and token counts.

Every turn looks up the whole transcript. A message takes 0.2 µs if the object is known, 0.6 µs if
only the content is known. An edit in place is noticed at any depth.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from operator import length_hint
from typing import Any, overload

from ..concurrency import renew_after_fork
from .shapes import Message, calls_list, is_flat, plain_value, read_call, to_plain

_NOT_COMPARED = frozenset(
    "id cache_control prompt_cache_breakpoint timestamp created_at created index".split()
)

_CACHE_MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Keys that mark a part for the provider's cache."""

_BARE = frozenset({"role", "content", "name", "tool_call_id"})


def canonical(plain: Message) -> Message:
    """Return what two plain messages must share to count as equal.

    Private `_` keys, cache markers, ids, timestamps and keys without a value are left out. A list
    with one text part equals its text.
    """
    members = {k: v for k, v in plain.items() if k not in _NOT_COMPARED and not k.startswith("_")}
    content, calls = members.pop("content", None), members.pop("tool_calls", None)
    valued = {key: value for key, value in members.items() if value not in (None, [], {})}
    result: Message = without_cache_markers(valued)
    if content is not None:
        result["content"] = _canonical_content(content)
    if calls:
        result["tool_calls"] = [list(read_call(call)) for call in calls_list(calls)]
    return result


def _canonical_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts = without_cache_markers(content)
    if isinstance(parts, list) and len(parts) == 1:
        only = parts[0]
        if isinstance(only, dict) and only.keys() == {"type", "text"} and only["type"] == "text":
            return only["text"]
    return parts


def without_cache_markers(value: Any) -> Any:
    """Return the value without cache markers, at any depth."""
    if isinstance(value, dict):
        return {k: without_cache_markers(v) for k, v in value.items() if k not in _CACHE_MARKERS}
    if isinstance(value, list):
        return [without_cache_markers(item) for item in value]
    return value


def digest(message: Mapping[str, Any]) -> str:
    """Return the canonical digest, which matches messages: `sha256:` and 64 hex digits."""
    return _bare_digest(message) if is_bare(message) else sha256_of(canonical(plain_value(message)))


def content_digest(message: Mapping[str, Any]) -> str:
    """Return the digest of the whole dictionary, which names the archived original."""
    return _bare_digest(message) if is_bare(message) else sha256_of(plain_value(message))


def is_bare(message: Any) -> bool:
    """Return whether all keys are in `_BARE` and all values texts."""
    if type(message) is not dict:
        return False
    return message.keys() <= _BARE and set(map(type, message.values())) == {str}


def sha256_of(value: Any) -> str:
    """Return the digest of a plain JSON value."""
    return _sha256(_json(value))


def _bare_digest(message: Mapping[str, str]) -> str:
    # The same JSON as `_json`, in two thirds of the time.
    members = [f'"{key}":{encode_basestring_ascii(message[key])}' for key in sorted(message)]
    return _sha256(f"{{{','.join(members)}}}")


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode

# -------------------------------------------------------------- the cache

_MARSHAL_VERSION = 2
"""Later versions of marshal give equal contents different bytes."""

SPARE_IDS = 256
"""Number of cached ids beyond three for each message."""


class CachedMessage:
    """A message's copy, digests and token counts, shared by equal messages."""

    __slots__ = ("_content_digest", "_digest", "comparable", "plain", "size", "tokens")

    def __init__(self, plain: Message, comparable: bool, size: int) -> None:
        """Take a plain copy, its number of characters, and whether `==` suffices."""
        self.plain = plain
        self.size = size
        self.comparable = comparable
        """Whether `==` finds every edit. With numbers it does not, since 1 == True == 1.0."""
        self.tokens: dict[str, int] = {}
        """Counting rules -> token count."""
        self._digest = self._content_digest = ""

    # `cached_property` takes a lock for every message until Python 3.12.
    @property
    def digest(self) -> str:
        """The canonical digest."""
        if not self._digest:
            if is_bare(self.plain):
                self._digest = self._content_digest = _bare_digest(self.plain)
            else:
                self._digest = sha256_of(canonical(self.plain))
        return self._digest

    @property
    def content_digest(self) -> str:
        """The digest of the whole dictionary."""
        if not self._content_digest:
            self._content_digest = sha256_of(self.plain)
        return self._content_digest


class Originals(Sequence[Message]):
    """Private copies of messages, with their digests."""

    def __init__(self, cached: Sequence[CachedMessage]) -> None:
        self._cached = cached

    def __len__(self) -> int:
        return len(self._cached)

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Originals: ...
    def __getitem__(self, at: int | slice) -> Message | Originals:
        return Originals(self._cached[at]) if isinstance(at, slice) else self._cached[at].plain

    def at(self, indices: Iterable[int]) -> Originals:
        """Return the messages at these indices."""
        return Originals([self._cached[index] for index in indices])

    @property
    def comparable(self) -> bool:
        """Whether `==` finds every edit."""
        return all(item.comparable for item in self._cached)

    def content_digests(self) -> list[str]:
        """Return the content digests, in order."""
        return [item.content_digest for item in self._cached]

    def sizes(self) -> list[int]:
        """Return each message's approximate characters."""
        return [item.size for item in self._cached]


class MessageCache:
    """A bounded cache of `CachedMessage`.

    A full young generation replaces the old one, so the cache holds at most twice its bounds.
    `max_messages` grows to the longest transcript.
    """

    def __init__(self, max_messages: int = 65_536, max_chars: int = 64 * 1024 * 1024) -> None:
        self._max_messages = max_messages
        self._max_chars = max_chars
        self._lock = renew_after_fork(threading.Lock())
        self._chars = 0
        self._young: dict[Hashable, CachedMessage] = {}
        self._old: dict[Hashable, CachedMessage] = {}
        # The cache holds each message, so that no other object gets the message's id.
        self._by_id: dict[int, tuple[CachedMessage, Any]] = {}

    @property
    def size(self) -> int:
        """Number of messages. `__len__` would make an empty cache falsy."""
        return len(self._young) + len(self._old)

    def __call__(self, message: Mapping[str, Any]) -> CachedMessage:
        """Return a message with its digests."""
        hit = self._by_id.get(id(message))
        if hit is not None and hit[0].plain == message:
            return hit[0]
        return self._find(message)

    def all(self, messages: Iterable[Mapping[str, Any]]) -> list[CachedMessage]:
        """Return messages with their digests.

        A quiet turn spends most of its time here.
        """
        self._max_messages = max(self._max_messages, length_hint(messages))
        get, find = self._by_id.get, self._find
        cached = []
        for message in messages:
            hit = get(id(message))
            if hit is not None and hit[0].plain == message:
                cached.append(hit[0])
            else:
                cached.append(find(message))
        return cached

    def _find(self, message: Mapping[str, Any]) -> CachedMessage:
        if is_flat(message):
            # The message's keys and values are the cache's key.
            texts = (*message, *message.values())
            entry = self._young.get(texts)
            if entry is None:
                size = sum(map(len, texts))
                entry = self._remember_content(texts, CachedMessage(message.copy(), True, size))
            self._remember_object(message, entry)
            return entry
        members, is_own = dict(message), True
        try:
            data = marshal.dumps(members, _MARSHAL_VERSION)
        except ValueError:  # objects inside
            members, is_own = to_plain(message), False
            data = marshal.dumps(members, _MARSHAL_VERSION)
        key = hashlib.blake2b(data).digest()
        entry = self._young.get(key)
        if entry is None:
            entry = self._remember_content(key, _nested_entry(members, len(data)))
        if is_own and entry.comparable:
            self._remember_object(message, entry)
        return entry

    def _remember_content(self, key: Hashable, new: CachedMessage) -> CachedMessage:
        entry = self._old.get(key, new)
        with self._lock:
            if len(self._young) >= self._max_messages or self._chars + new.size > self._max_chars:
                self._old, self._young, self._chars = self._young, {}, 0
                self._by_id = {}
            self._chars += new.size
            entry = self._young.setdefault(key, entry)
        # The copy's id is remembered too: a compression looks up the copy.
        self._by_id[id(entry.plain)] = (entry, entry.plain)
        return entry

    def _remember_object(self, message: Mapping[str, Any], entry: CachedMessage) -> None:
        # No lock: an entry lost to a race is read again. Hosts may make new objects for each
        # request, hence the bound.
        if len(self._by_id) > 3 * len(self._young) + SPARE_IDS:
            self._by_id = {}
        self._by_id[id(message)] = (entry, message)


def _nested_entry(members: Message, size: int) -> CachedMessage:
    try:
        return CachedMessage(_share_texts(members), True, size)
    except TypeError:
        return CachedMessage(to_plain(members), False, size)


def _share_texts(value: Any) -> Any:
    """Return a copy of nested texts that shares the texts.

    Raises:
        TypeError: the value has another type, in which `==` may miss an edit.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict and set(map(type, value)) <= {str}:
        return {key: _share_texts(item) for key, item in value.items()}
    if kind is list:
        return list(map(_share_texts, value))
    raise TypeError(f"a {kind.__name__}")
