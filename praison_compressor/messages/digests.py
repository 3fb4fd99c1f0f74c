"""Digests of messages (one finds a message again, one archives it), and the cache of what is known
of each message.

A transcript comes back whole at every turn. Found by identity first (one comparison in C against
a private copy, about 0.2 µs), else by content (about 0.6 µs, for hosts that rebuild their
dictionaries); an edit in place, at any depth, of any old message is noticed in both ways.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
    told = ((key, value) for key, value in kept.items() if value not in (None, [], {}))
    result: Message = {key: unmarked(value) for key, value in told}
    if content is not None:
        result["content"] = _canonical_content(content)
    if calls:
        result["tool_calls"] = [list(read_call(call)) for call in calls_in(calls)]
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
    return sha256_of(message if is_bare(message) else canonical(message))


def content_digest(message: Mapping[str, Any]) -> str:
    """The digest of everything in the dictionary, by which the original is archived."""
    return sha256_of(message if is_bare(message) else plain_value(message))


def is_bare(message: Any) -> bool:
    """Whether the message is its own canonical form, so that its two digests are one: plain text
    and whose it is. Most messages are."""
    if type(message) is not dict:
        return False
    return message.keys() <= _BARE and set(map(type, message.values())) == {str}


def sha256_of(value: Any) -> str:
    """The digest of a plain JSON value."""
    return "sha256:" + hashlib.sha256(_json(value).encode("ascii")).hexdigest()


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode

# -------------------------------------------------------------- what is known of each message

_PLAIN = 2
"""A version of Python's own format that has no references: equal contents are equal bytes."""

SPARE = 256
"""Objects that are known beside two for each content."""


class Seen:
    """One message's content and what is known of it; shared by all messages of equal content."""

    __slots__ = ("_content_digest", "_digest", "comparable", "plain", "tokens")

    def __init__(self, plain: Message, comparable: bool) -> None:
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

    @property
    def comparable(self) -> bool:
        """Return whether `==` finds every edit of them."""
        return all(seen.comparable for seen in self._seen)

    def content_digests(self) -> list[str]:
        """By which they are archived."""
        return [seen.content_digest for seen in self._seen]


class MessageCache:
    """A bounded cache of `Seen`, in two generations: a hit costs no bookkeeping.

    When the young generation is full it becomes the old one, and what the old one still holds
    is dropped. So at most twice the bounds are held. The bound in messages is no less than the
    longest transcript: one that did not fit would be read anew, whole, at every look.
    """

    def __init__(self, max_messages: int = 65_536, max_chars: int = 64 * 1024 * 1024) -> None:
        self._max_messages = max_messages
        self._max_chars = max_chars
        self._lock = renewed(threading.Lock())
        self._chars = 0
        self._young: dict[Hashable, Seen] = {}
        self._old: dict[Hashable, Seen] = {}
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
            # The pairs are the key, and their strings are shared.
            pairs = tuple(message.items())
            seen = self._young.get(pairs) or self._keep(
                pairs, Seen(dict(message), True), sum(map(len, chain(*pairs)))
            )
            self._know(message, seen)
            return seen
        try:
            data, plain = marshal.dumps(dict(message), _PLAIN), message
        except ValueError:  # objects inside: only a plain copy of it can be compared
            plain = to_plain(message)
            data = marshal.dumps(plain, _PLAIN)
        key = hashlib.blake2b(data).digest()
        known = self._young.get(key)
        if known is None:
            new = Seen(to_plain(plain), not _has_number(plain))
            known = self._keep(key, new, len(data))
        if plain is message and known.comparable:
            self._know(message, known)
        return known

    def _keep(self, key: Hashable, new: Seen, weight: int) -> Seen:
        seen = self._old.get(key) or new
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


def _has_number(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return any(map(_has_number, value.values() if isinstance(value, dict) else value))
    return value is not None and not isinstance(value, str)
