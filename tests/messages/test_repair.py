"""One message, repaired as a provider accepts it, or the caller's own object."""

import copy
import functools
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from praison_compressor import InvalidMessages
from praison_compressor.messages import read_transcript, to_plain, tool_calls_of
from tests.helpers.native import Block
from tests.helpers.transcripts import calling, find_repairs

USER = {"role": "user", "content": "hello"}


def call(id: Any = "a", name: Any = "run", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    """Return a tool call in OpenAI's shape."""
    function = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": function, **more}


def sent(*messages: Any) -> list[dict[str, Any]]:
    """Return the messages as they may be sent."""
    return list(read_transcript(list(messages)).messages)


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
        ([{"role": ["user"], "content": "x"}], 0),
    ],
)
def test_a_wrong_message_is_refused_with_its_index(messages, index):
    """The error has the index and what was expected."""
    with pytest.raises(InvalidMessages) as caught:
        read_transcript(messages)
    assert caught.value.index == index
    assert "expected" in str(caught.value)


class HumanMessage(Block):
    """A message of LangChain, as far as its shape goes."""


HumanMessage.__module__ = "langchain_core.messages.human"


@pytest.mark.parametrize("kind", ["human", "ai", "system", "tool"])
def test_a_message_of_langchain_is_named(kind):
    """The error names the class or type, and LangChain's own converter."""
    dumped = {"type": kind, "content": "x"}
    nested = {"type": kind, "data": {"content": "x"}}
    for given, name in ((HumanMessage(**dumped), "HumanMessage"), (dumped, kind), (nested, kind)):
        with pytest.raises(InvalidMessages, match=rf"LangChain message \({name}\)") as caught:
            read_transcript([USER, given])
        assert caught.value.index == 1
        assert "convert_to_openai_messages" in str(caught.value)


def test_half_characters_are_mended_wherever_they_stand():
    """At any depth a surrogate becomes the character of its pair, else U+FFFD."""
    half, pair = "a \ud83d b", "\ud83d\ude00"
    blocks = [{"type": "text", "text": half}, {"type": "odd", "data": {half: [half, 1, None]}}]
    given = [
        {"role": "user", "content": half},
        {"role": "user", "content": blocks},
        calling(call(arguments=json.dumps({"p": half}, ensure_ascii=False))),
        {"role": "tool", "tool_call_id": "a", "content": pair},
    ]
    before = copy.deepcopy(given)
    got = sent(*given)
    assert json.dumps(got, ensure_ascii=False).encode().count("�".encode()) == 5
    assert got[-1]["content"] == "😀"
    assert given == before


def test_a_valid_message_is_returned_as_the_same_object():
    """A valid message is returned as the same object."""
    custom = {"id": "c", "type": "custom", "custom": {"name": "grep", "input": "a b"}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u", "name": "ann"},
        calling(call()),
        {"role": "tool", "tool_call_id": "a", "content": "", "name": "run"},
        {"role": "assistant", "content": [{"type": "image_url", "image_url": {}}]},
        calling(custom),
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    assert [a is b for a, b in zip(sent(*messages), messages, strict=True)] == [True] * 7
    assert tool_calls_of(messages[5])[0][:2] == ("c", "grep")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "(empty)"),
        (None, "(empty)"),
        ([None], "(empty)"),
        ([{"type": "text", "text": " "}], "(empty)"),
        (["a", 5], [{"type": "text", "text": "a"}, {"type": "text", "text": "5"}]),
        (
            [{"type": "text", "text": ""}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": "b"}],
        ),
        ({"type": "text", "text": "one"}, [{"type": "text", "text": "one"}]),
    ],
)
def test_content_that_no_provider_takes_becomes_text_or_goes(content, expected):
    """Content becomes what every provider accepts."""
    assert sent({"role": "user", "content": content})[0]["content"] == expected
    assert find_repairs([{"role": "user", "content": content}]) == ["messages[0]"]


def test_private_keys_and_keys_of_other_roles_never_leave():
    """Keys that a role may not have are dropped."""
    assert sent({**USER, "_summary": True}) == [USER]
    assert sent({**USER, "tool_calls": [call()], "function_call": {"name": "f"}, "x": 1}) == [
        {**USER, "x": 1}
    ]
    assert sent({**USER, "tool_call_id": "a"}) == [USER]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("not json", '{"arguments": "not json"}'),
        ("[1]", '{"arguments": "[1]"}'),
        (" ", "{}"),
        ({"q": "ü"}, '{"q": "ü"}'),
        (None, "{}"),
    ],
)
def test_arguments_become_one_json_object_that_loses_nothing(arguments, expected):
    """Broken arguments become a JSON object that holds their text."""
    broken = {"id": "a", "function": {"arguments": arguments, "more": 1}, "index": 3}
    (mended,) = sent(calling(broken))[0]["tool_calls"]
    function = {"name": "unnamed", "arguments": expected, "more": 1}
    assert mended == {"id": "a", "type": "function", "function": function, "index": 3}


def test_a_call_without_an_id_gets_one_by_what_it_calls():
    """Only equal calls without an id get equal ids."""
    one, same, other = (
        sent(calling(call(None, arguments=text)))[0]["tool_calls"][0]["id"]
        for text in ('{"a": 1}', '{"a": 1}', '{"a": 2}')
    )
    assert re.fullmatch(r"call_[0-9a-f]{16}", one)
    assert one == same != other


def test_the_older_shape_of_a_call_becomes_the_newer():
    """`function_call` and its result become a tool call and its result."""
    older = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": {}}}
    answer = {"role": "function", "name": "f", "content": "done"}
    asked, got, after = sent(older, answer, USER)
    (made,) = asked["tool_calls"]
    assert made["function"] == {"name": "f", "arguments": "{}"}
    assert got == {"role": "tool", "name": "f", "content": "done", "tool_call_id": made["id"]}
    assert after == USER


def test_objects_become_plain_values():
    """Objects at any depth become plain JSON values."""

    class Role(str):
        pass

    given = Block(
        role=Role("user"),
        name=None,
        content=[Block(type="text", text="x"), (1, 2.5, True, None)],
        data=b"\xff\x41",
        extra=SimpleNamespace(a=1, _hidden=2),
        kind=int,
        number={3: 4},
    )
    plain = {
        "role": "user",
        "content": [{"type": "text", "text": "x"}, [1, 2.5, True, None]],
        "data": "\ufffdA",
        "extra": {"a": 1},
        "kind": "<class 'int'>",
        "number": {"3": 4},
    }
    assert to_plain(given) == plain
    assert type(to_plain(given)["role"]) is str
    with pytest.raises(InvalidMessages, match="messages: list; expected a mapping"):
        to_plain([1])


def test_a_hundred_levels_are_read_and_one_more_is_not():
    """The limit of 100 levels is the same for messages and arguments."""
    least, most = ({"deep": functools.reduce(lambda v, _: [v], range(n), [])} for n in (99, 100))
    assert sent({**USER, **least})
    with pytest.raises(InvalidMessages, match="100 levels") as caught:
        sent(USER, {**USER, **most})
    assert caught.value.index == 1
    for deep, kept in ((least, True), (most, False)):
        text = json.dumps(deep)
        (made,) = sent(calling(call(arguments=text)))[0]["tool_calls"]
        assert (made["function"]["arguments"] == text) is kept
