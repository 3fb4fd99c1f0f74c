"""Digests of messages, and the cache of messages."""

import hashlib
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.messages import content_digest, digest, to_plain
from praison_compressor.messages.digests import MessageCache, canonical, is_bare
from tests.helpers.transcripts import broken_transcripts, calling

USER = {"role": "user", "content": "hello"}


def call(arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "run", "arguments": arguments}
    return calling({"id": "a", "type": "function", "function": function})


def test_known_digests_never_change():
    """Known digests never change: every ledger would lose its summaries."""
    plain = {"role": "user", "content": "grüße 漢字 \ud800", "name": "ann"}
    calls = {**call('{"x": 1}'), "reasoning_content": "thought"}
    stored = [digest(plain), content_digest(plain), digest(calls), content_digest(calls)]
    assert [one.removeprefix("sha256:")[:16] for one in stored] == [
        *("ca4f34fdbb80023b", "ca4f34fdbb80023b", "8684e1f9f0e415a9", "dfcc883ba8322c12")
    ]


@pytest.mark.parametrize(
    "key", ["id", "cache_control", "timestamp", "created_at", "created", "index", "_private"]
)
def test_marks_do_not_change_a_messages_digest(key):
    """Marks of a message change its content digest alone."""
    marked = {**USER, key: "x"}
    assert digest(marked) == digest(USER)
    assert content_digest(marked) != content_digest(USER)
    assert digest({**USER, "other": "x"}) != digest(USER)


TEXT = {"type": "text", "text": "hello"}
MARK = {"cache_control": {"type": "ephemeral"}}
BREAK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


@pytest.mark.parametrize(
    ("same", "others"),
    [
        (
            [{}, *({"audio": empty} for empty in (None, [], {}))],
            [{"audio": v} for v in (False, 0, "")],
        ),
        (
            [{}, *({"content": given} for given in ([TEXT], [{**TEXT, **MARK, **BREAK}], (TEXT,)))],
            [
                {"content": given}
                for given in ([TEXT, TEXT], [{**TEXT, "lang": "en"}], [{**TEXT, "type": "x"}], TEXT)
            ],
        ),
        ([{"x": [{**MARK, "y": {**MARK}}]}, {"x": [{"y": {}}]}], [{"x": [{"y": {"z": 2}}]}]),
    ],
    ids=["values that say nothing", "text alone as one part", "cache marks at any depth"],
)
def test_a_digest_changes_with_what_a_provider_distinguishes(same, others):
    """The canonical digest changes exactly with what a provider distinguishes."""
    one = {digest({**USER, **each}) for each in same}
    assert len(one) == 1
    assert one.isdisjoint(digest({**USER, **each}) for each in others)


def test_call_ids_reasoning_and_arguments_are_in_the_digest():
    """Call ids, reasoning and arguments are part of the canonical digest."""
    other_id = [{**call()["tool_calls"][0], "id": "b"}]
    thinking = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    others = [call("[]"), {**call(), "tool_calls": other_id}, {**call(), "reasoning_content": "hm"}]
    others.append({**call(), "thinking_blocks": thinking})
    assert len({digest(each) for each in [call(), *others]}) == 5


@given(broken_transcripts())
def test_a_bare_message_is_digested_as_any_other(messages):
    """The short cut for plain text gives the same digests."""
    for message in map(to_plain, messages):
        sealed = json.dumps(message, sort_keys=True, separators=(",", ":")).encode("ascii")
        assert content_digest(message) == "sha256:" + hashlib.sha256(sealed).hexdigest()
        assert not is_bare(message) or canonical(message) == message


# ---------------------------------------------------------------- what is known of each

leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text(max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
messages = st.dictionaries(st.sampled_from(["role", "content", "name", "x"]), values, min_size=1)


@given(messages, messages)
def test_two_messages_are_one_only_if_they_are_equal(one, other):
    """The cache shares an entry only between messages of equal content."""
    cache = MessageCache()
    first, second = cache(one), cache(other)
    assert first.content_digest == content_digest(one)
    assert second.content_digest == content_digest(other)
    assert (first is second) <= (content_digest(one) == content_digest(other))


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.update(content="edited"),
        lambda m: m.pop("tool_calls"),
        lambda m: m["tool_calls"][0]["function"].update(arguments="[]"),
        lambda m: m["tool_calls"].append({"id": "2"}),
    ],
)
def test_an_edit_in_place_is_noticed(edit):
    """An edit at any depth of the same object changes the digest."""
    message, cache = call(), MessageCache()
    before = cache(message).digest
    assert cache(message).digest == before
    edit(message)
    assert cache(message).digest == digest(message) != before


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0.0, -0.0), (0, False)])
def test_numbers_that_python_calls_equal_have_different_digests(old, new):
    """1, True and 1.0 have three digests."""
    message: dict[str, Any] = {"role": "user", "content": [{"type": "x", "value": old}]}
    cache = MessageCache()
    before = cache(message)
    message["content"][0]["value"] = new
    assert cache(message) is not before
    assert cache(message).digest == digest(message)


def test_objects_inside_a_message_are_read_by_value():
    """The entry follows the content of objects inside a message."""
    function = SimpleNamespace(name="run", arguments="{}")
    message = {**call(), "tool_calls": [SimpleNamespace(id="a", function=function)]}
    cache = MessageCache()
    assert cache(message).digest == cache(call()).digest
    function.arguments = "[]"
    assert cache(message).digest == cache(call("[]")).digest


@pytest.mark.parametrize("bounds", [{"max_messages": 10}, {"max_chars": 60}])
def test_the_cache_of_digests_is_bounded(bounds):
    """A cache of at most twice its bound keeps the entry in use."""
    cache = MessageCache(**bounds)
    used = {"role": "u", "content": "kept"}
    first = cache(used)
    for n in range(1000):
        assert cache({"role": "u", "content": str(n)}).plain["content"] == str(n)
        assert cache(used) is first
    assert cache.size <= 20
    assert len(cache._by_id) <= 20


def test_the_longest_transcript_fits():
    """A transcript above the bound is not read again at every look-up."""
    cache = MessageCache(max_messages=10)
    talk = [{"role": "user", "content": f"message {n}"} for n in range(500)]
    known = cache.all(talk)
    assert all(a is b for a, b in zip(known, cache.all([dict(m) for m in talk]), strict=True))
