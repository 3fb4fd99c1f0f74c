"""The message cache: found again while unchanged, never after an edit."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.messages import content_digest, digest
from praison_compressor.messages.digests import SPARE, MessageCache

leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text(max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
messages = st.dictionaries(st.sampled_from(["role", "content", "name", "x"]), values, min_size=1)


def call(arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "read_file", "arguments": arguments}
    tool_calls = [{"id": "call_1", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


@given(messages, messages)
def test_two_messages_are_one_only_if_they_are_equal(one: Any, other: Any) -> None:
    """What the cache calls the same has the same digests, numbers and booleans told apart."""
    cache = MessageCache()
    first, second = cache(one), cache(other)
    assert first.content_digest == content_digest(one)
    assert second.content_digest == content_digest(other)
    assert (first is second) <= (content_digest(one) == content_digest(other))


@given(messages)
def test_a_rebuilt_message_is_found_again(message: Any) -> None:
    """A host that makes new dictionaries every turn pays for no digest twice."""
    cache = MessageCache()
    assert cache(copy.deepcopy(message)) is cache(message)


EDITS = {
    "content": lambda m: m.update(content="edited"),
    "key added": lambda m: m.update(name="x"),
    "key removed": lambda m: m.pop("tool_calls"),
    "arguments, two levels down": lambda m: m["tool_calls"][0]["function"].update(arguments="[]"),
    "call added": lambda m: m["tool_calls"].append({"id": "2"}),
    "call removed": lambda m: m["tool_calls"].clear(),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edit_in_place_is_noticed(edit: Any) -> None:
    """The same object with other content is another message, at any depth."""
    message, cache = call(), MessageCache()
    before = cache(message).digest
    assert cache(message).digest == before
    edit(message)
    assert cache(message).digest == digest(message) != before


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0.0, -0.0), (0, False)])
def test_numbers_that_python_calls_equal_are_told_apart(old: Any, new: Any) -> None:
    """1, True and 1.0 are three values to a provider."""
    message: dict[str, Any] = {"role": "user", "content": [{"type": "x", "value": old}]}
    cache = MessageCache()
    before = cache(message)
    message["content"][0]["value"] = new
    assert cache(message) is not before
    assert cache(message).digest == digest(message)


def test_an_edit_does_not_reach_what_is_known() -> None:
    """The private copy keeps the content that was digested, even when asked for its digest late."""
    message, cache = call(), MessageCache()
    seen, before = cache(message), digest(message)
    message["tool_calls"][0]["function"]["arguments"] = "[1]"
    assert seen.digest == before


class Function:
    def __init__(self, arguments: str) -> None:
        self.name = "read_file"
        self.arguments = arguments


class Call:
    def __init__(self, arguments: str) -> None:
        self.id = "call_1"
        self.type = "function"
        self.function = Function(arguments)


def test_objects_inside_a_message_are_read_by_value() -> None:
    """Tool calls as a client's objects: found again by content, and their edits are noticed."""
    message = {**call(), "tool_calls": [Call("{}")]}
    cache = MessageCache()
    assert cache(message).digest == cache(call()).digest
    message["tool_calls"][0].function.arguments = "[]"  # type: ignore[index]
    assert cache(message).digest == cache(call("[]")).digest


@pytest.mark.parametrize("bounds", [{"max_messages": 10}, {"max_chars": 60}])
def test_it_is_bounded(bounds: Any) -> None:
    """However many messages pass, at most twice the bound are held."""
    cache = MessageCache(**bounds)
    kept = [{"role": "u", "content": str(n)} for n in range(1000)]
    assert [cache(message).plain for message in kept] == kept
    assert cache.size <= 20
    assert bool(cache)
    assert len(cache._by_id) <= 20


def test_the_longest_transcript_fits() -> None:
    """One larger than the bound would be read anew, whole, at every look."""
    cache = MessageCache(max_messages=10)
    talk = [{"role": "user", "content": f"message {n}"} for n in range(500)]
    known = cache.all(talk)
    again = cache.all([dict(message) for message in talk])
    assert [one is other for one, other in zip(known, again, strict=True)] == [True] * 500
    assert cache.size == 500


def test_objects_are_not_held_for_ever() -> None:
    """A host that makes new dictionaries of old contents for every request leaves few of them."""
    cache = MessageCache()
    for _ in range(50):
        cache.all([{"role": "user", "content": f"message {number}"} for number in range(100)])
    assert cache.size == 100
    assert len(cache._by_id) <= 2 * 100 + SPARE


def test_what_is_in_use_outlives_what_is_not() -> None:
    """A message asked for again while others pass through is not worked out anew."""
    cache = MessageCache(max_messages=10)
    message = {"role": "user", "content": "kept"}
    first = cache(message)
    for n in range(100):
        cache({"role": "user", "content": str(n)})
        assert cache(message) is first


def test_threads_may_share_it() -> None:
    """Every thread gets the right answer while others fill and turn over the same cache."""
    cache = MessageCache(max_messages=50)
    wrong: list[str] = []

    def work(seed: int) -> None:
        for n in range(300):
            content = str((n * seed) % 170)
            if cache({"role": "user", "content": content}).plain["content"] != content:
                wrong.append(content)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (3, 5, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
