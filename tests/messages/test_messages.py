"""Messages: read as they come, repaired only in the view, found again by digest."""

from __future__ import annotations

import copy
import hashlib
import json
from types import SimpleNamespace

import pytest
from hypothesis import given

from praison_compressor.errors import InvalidMessages
from praison_compressor.messages import (
    DEEPEST,
    NO_RESULT,
    ORPHAN_OPENS,
    canonical,
    check,
    content_digest,
    digest,
    is_tools_text,
    read,
    result_text,
    steps,
    text_of,
    to_plain,
    tool_calls_of,
)
from praison_compressor.messages.digests import is_bare
from tests.helpers.transcripts import broken_transcripts, call, step, transcripts

USER = {"role": "user", "content": "go"}


def codes(messages: list[dict]) -> list[str]:
    return [problem.code for problem in check(messages)]


@given(transcripts())
def test_a_valid_transcript_is_read_as_it_is(messages):
    """Nothing is repaired that a provider would take: the very same dictionaries come back."""
    got = read(messages)
    assert check(messages) == []
    assert all(a is b for a, b in zip(got.messages, messages, strict=True))
    assert got.repaired == 0


@given(broken_transcripts())
def test_a_faulty_transcript_becomes_valid_and_reading_it_again_changes_nothing(messages):
    """Whatever a host drops, doubles or moves, the view is valid, and repair is idempotent."""
    before = copy.deepcopy(messages)
    got = read(messages)
    assert check(got.messages) == []
    assert read(got.messages).messages == got.messages
    assert messages == before


@given(broken_transcripts())
def test_repair_loses_no_message(messages):
    """Every message of the caller stands exactly once in what is read, or as a text of it."""
    origins = [origin for origin in read(messages).origins if origin is not None]
    assert sorted(origins) == list(range(len(messages)))


@given(transcripts())
def test_steps_cover_the_list_in_order_and_split_no_call_from_its_results(messages):
    """Steps rejoin to the list; each begins with anything but a tool result."""
    found = steps(messages)
    assert [index for atom in found for index in atom] == list(range(len(messages)))
    assert all(messages[atom.start]["role"] != "tool" for atom in found)


def test_a_missing_result_gets_a_stub_that_says_so():
    """A call without a result is answered at once, by id, in words."""
    got = read([USER, {"role": "assistant", "content": None, "tool_calls": [call("a")]}, USER])
    assert got.messages[2] == {"role": "tool", "tool_call_id": "a", "content": NO_RESULT}
    assert got.origins == (0, 1, None, 2)


def test_an_orphan_result_becomes_plain_text_that_keeps_its_words():
    """A result without a call is no tool message any more, and says what it was."""
    got = read([USER, {"role": "tool", "tool_call_id": "x", "content": "42 rows"}])
    assert got.messages[1]["role"] == "user"
    assert got.messages[1]["content"].startswith(ORPHAN_OPENS)
    assert "42 rows" in got.messages[1]["content"]


def test_a_late_result_moves_behind_its_call():
    """A message between call and result goes after the result."""
    asked, answer = step("a", "late")
    got = read([USER, asked, {"role": "user", "content": "hurry"}, answer])
    assert [m["role"] for m in got.messages] == ["user", "assistant", "tool", "user"]
    assert got.origins == (0, 1, 3, 2)


def test_two_calls_with_one_id_are_told_apart_and_so_are_their_results():
    """Ids are made unique within a step; results are taken in their order."""
    twins = [call("a", path="one"), call("a", path="two")]
    got = read(
        [
            USER,
            {"role": "assistant", "content": None, "tool_calls": twins},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "a", "content": "2"},
        ]
    )
    ids = [c.id for c in tool_calls_of(got.messages[1])]
    assert len(set(ids)) == 2
    assert [(m["tool_call_id"], m["content"]) for m in got.messages[2:]] == [
        (ids[0], "1"),
        (ids[1], "2"),
    ]


def test_an_id_used_again_later_belongs_to_its_own_step():
    """Ids repeat within real transcripts: each result stays with the call before it."""
    messages = [USER, *step("a", "first"), USER, *step("a", "second")]
    assert read(messages).messages == tuple(messages)


def test_twenty_parallel_calls_are_one_step():
    """However many calls an assistant message carries, it and their results are one atom."""
    calls = [call(f"c{n}") for n in range(20)]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": str(n)} for n in range(20)]
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    assert read(messages).steps == (range(1), range(1, 22))


def test_objects_dictionaries_and_legacy_calls_are_one():
    """Clients hand over objects, and arguments as dictionaries: both are read, sent as JSON."""
    function = SimpleNamespace(name="f", arguments={"x": 1})
    asked = {"role": "assistant", "content": None, "tool_calls": None}
    asked["tool_calls"] = [SimpleNamespace(id="a", type="function", function=function)]
    got = read([USER, asked, {"role": "tool", "tool_call_id": "a", "content": "ok"}])
    assert tool_calls_of(got.messages[1]) == (("a", "f", '{"x": 1}'),)
    assert got.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"x": 1}'
    legacy = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    messages = [USER, legacy, {"role": "function", "name": "f", "content": "ok"}]
    assert read(messages).messages == tuple(messages)


@pytest.mark.parametrize("arguments", ["", "{'single': 1}", '{"cut": "o', "[1]"])
def test_arguments_that_are_no_json_object_are_made_one_and_lose_nothing(arguments):
    """What a model cut off or misquoted stays readable in a valid call."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call("a")]}
    asked["tool_calls"][0]["function"]["arguments"] = arguments
    got = read([USER, asked, {"role": "tool", "tool_call_id": "a", "content": "ok"}])
    sent = tool_calls_of(got.messages[1])[0].arguments
    assert codes(list(got.messages)) == []
    assert arguments in (sent.replace('\\"', '"'))


def test_private_keys_never_leave():
    """Keys that begin with an underscore are refused by providers: they are not in the view."""
    assert read([{**USER, "_summary": True}]).messages == (USER,)


def test_empty_content_is_named():
    """A provider refuses empty content: the view says that there was none."""
    for content in (None, "", "  ", [], [{"type": "text", "text": ""}]):
        assert codes([{"role": "user", "content": content}]) == ["empty"]
        assert codes(list(read([{"role": "user", "content": content}]).messages)) == []


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ("text", None),
        (None, None),
        ({"role": "user"}, None),
        ([USER, 7], 1),
        ([USER, "x"], 1),
        ([USER, USER, {"role": "robot", "content": "x"}], 2),
        ([{"content": "x"}], 0),
    ],
)
def test_what_is_no_transcript_is_refused_with_its_index(messages, index):
    """The error says where and what was expected."""
    with pytest.raises(InvalidMessages) as caught:
        read(messages)
    assert caught.value.index == index
    assert "expected" in str(caught.value)


def test_the_canonical_digest_is_over_what_the_provider_is_sent():
    """Ids, timestamps, private keys, cache markers and empty keys of a message do not matter."""
    plain = digest(USER)
    same = {**USER, "id": "m1", "timestamp": 3, "_x": 1, "tool_calls": None, "name": None}
    parts = {"role": "user", "content": [{"type": "text", "text": "go"}]}
    marked = copy.deepcopy(parts)
    marked["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert {digest(same), digest(parts), digest(marked)} == {plain}
    assert digest({**USER, "content": "gone"}) != plain
    assert digest({**USER, "name": "bob"}) != plain
    assert content_digest(same) != content_digest(USER)
    assert plain.startswith("sha256:")


def test_call_ids_reasoning_and_arguments_are_in_the_digest():
    """They are sent, so a change of one is a change."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call("a", path="p")]}
    others = [
        {**asked, "tool_calls": [call("b", path="p")]},
        {**asked, "tool_calls": [call("a", path="q")]},
        {**asked, "reasoning_content": "hm"},
        {**asked, "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
    ]
    assert len({digest(message) for message in [asked, *others]}) == 5


def test_text_is_what_is_readable():
    """Strings, parts and results are text; images are not; None is nothing."""
    assert text_of({"content": None}) == ""
    assert (
        text_of({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, "b"]}) == "a\nb"
    )


# ---------------------------------------------------------------- hardly messages


@pytest.mark.parametrize("odd", [None, 3, 1.5, True, "text", {"a": 1}, SimpleNamespace(id="x")])
def test_calls_that_are_no_list_call_nothing(odd):
    """Whatever a host puts in `tool_calls`, reading it ends, and the view is valid."""
    got = read([USER, {"role": "assistant", "content": "hm", "tool_calls": odd}])
    assert check(got.messages) == []
    assert got.messages[1] == {"role": "assistant", "content": "hm"}


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_only_an_assistant_calls(role):
    """Calls of anybody else are left out: a provider refuses them."""
    got = read([{"role": role, "content": "x", "tool_calls": [call("a")], "function_call": {}}])
    assert "tool_calls" not in got.messages[0]
    assert "function_call" not in got.messages[0]
    assert check(got.messages) == []


def test_an_id_of_a_call_belongs_to_results_only():
    """A leftover `tool_call_id` on another message is an unknown parameter to a provider."""
    got = read([{**USER, "tool_call_id": "call_1"}])
    assert got.messages == (USER,)


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ([], "(empty)"),
        ([None], "(empty)"),
        (["a", 5], [{"type": "text", "text": "a"}, {"type": "text", "text": "5"}]),
        (
            [{"type": "text", "text": ""}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": "b"}],
        ),
        ([{"text": "no type"}], [{"type": "text", "text": "no type"}]),
        ({"type": "text", "text": "one"}, [{"type": "text", "text": "one"}]),
        (7, "7"),
    ],
)
def test_parts_that_are_none_become_text_or_go(content, sent):
    """What can be read of them is kept; an empty text block is refused, so it goes."""
    assert read([{"role": "user", "content": content}]).messages[0]["content"] == sent


def test_an_assistant_that_only_calls_has_no_empty_list_of_parts():
    """`content: []` beside calls is refused as an empty array."""
    asked, result = step("a", "ok")
    got = read([{**asked, "content": []}, result])
    assert got.messages[0]["content"] is None


def test_a_custom_call_is_passed_on_as_it_is():
    """OpenAI's custom tools take text instead of JSON."""
    asked = {"id": "c", "type": "custom", "custom": {"name": "grep", "input": "a b"}}
    result = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [asked]}, result]
    got = read(messages)
    assert [a is b for a, b in zip(got.messages, messages, strict=True)] == [True] * 3
    assert tool_calls_of(messages[1])[0][:2] == ("c", "grep")


def test_a_result_in_the_old_role_answers_a_call_by_id_in_the_new_one():
    """A function result for a tool call is sent as a tool result, and the other way round."""
    asked, result = step("a", "ok")
    assert read([asked, {**result, "role": "function", "name": "f"}]).messages[1]["role"] == "tool"
    legacy = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    answer = read([legacy, {"role": "tool", "tool_call_id": "", "content": "ok"}]).messages[1]
    assert answer == {"role": "function", "name": "f", "content": "ok"}


def test_an_iterator_of_messages_is_read_once():
    """A generator is a list of messages too."""
    assert read(message for message in [USER, USER]).messages == (USER, USER)


def test_depth_has_an_end_and_a_set_an_order():
    """The deepest message that is read, and one level more; sets read alike in every process."""
    value = "core"
    for _ in range(DEEPEST):
        value = [value]
    assert read([{**USER, "extra": value}]).messages[0]["extra"] == value
    with pytest.raises(InvalidMessages, match=r"messages\[0\]: nested deeper than 100"):
        read([{**USER, "extra": [value]}])
    assert to_plain({"role": "user", "tags": {"b", "a"}})["tags"] == ["a", "b"]


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ({"role": "user", "content": "[tool result whose call is not in this conversation]"}, True),
        ({"role": "user", "content": [{"type": "tool_result", "content": "x"}]}, True),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, False),
        (USER, False),
    ],
)
def test_a_tools_words_in_the_users_role_are_known(message, tools):
    """Orphan results and tool_result blocks are never the user's words."""
    assert is_tools_text(message) is tools


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('"line 1\\nsays \\"no\\""', 'line 1\nsays "no"'),
        ("plain", "plain"),
        ('"not closed', '"not closed'),
        ('"a" and "b"', '"a" and "b"'),
        ('{"rows": 3}', '{"rows": 3}'),
        ('""', ""),
    ],
)
def test_a_result_that_a_host_wrote_as_a_json_string_is_read_as_the_tool_wrote_it(content, text):
    """Facts and masks see lines, not one escaped line; what is sent stays as it came."""
    assert result_text({"role": "tool", "tool_call_id": "a", "content": content}) == text
    assert result_text({"role": "user", "content": content}) == content


# ---------------------------------------------------------------- the short ways are the long ones


@given(broken_transcripts())
def test_a_bare_message_is_digested_as_any_other(messages):
    """Plain text has one digest of two meanings: both are what the long way gives."""
    for message in map(to_plain, messages):
        sealed = json.dumps(message, sort_keys=True, separators=(",", ":")).encode("ascii")
        assert content_digest(message) == "sha256:" + hashlib.sha256(sealed).hexdigest()
        assert not is_bare(message) or digest(message) == content_digest(message)
        assert not is_bare(message) or canonical(message) == message


def test_results_find_their_calls_whatever_their_order_and_names():
    """By id first of all, by name where there is no id, each once, the first that came first."""
    calls = [call("a"), call("b", "bash"), {**call("c"), "id": None}]
    results = [
        {"role": "tool", "tool_call_id": "b", "content": "of b"},
        {"role": "tool", "name": "read_file", "content": "first without id"},
        {"role": "tool", "content": "second without id"},
        {"role": "tool", "tool_call_id": "x", "content": "of nobody"},
    ]
    got = read([USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results])
    said = [message["content"] for message in got.messages if message["role"] == "tool"]
    assert said == ["of b", "first without id", "second without id"]
    assert check(got.messages) == []
    assert got.messages[-1]["content"] == f"{ORPHAN_OPENS}\nof nobody"
