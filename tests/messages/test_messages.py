"""Messages: read as they come, refused or repaired only in the view, found again by digest."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from dataclasses import FrozenInstanceError
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from praison_compressor import InvalidMessages
from praison_compressor.messages import (
    ORPHAN_OPENS,
    canonical,
    check,
    content_digest,
    digest,
    is_result,
    is_system,
    is_tools_text,
    read,
    result_text,
    steps,
    text_of,
    to_plain,
    tool_calls_of,
)
from praison_compressor.messages.digests import is_bare
from tests.helpers.transcripts import broken_transcripts, step, transcripts
from tests.helpers.transcripts import call as asked_for

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
USER = {"role": "user", "content": "hello"}


def call(id: Any = "a", name: Any = "run", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    """A tool call as OpenAI writes it."""
    function = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": function, **more}


def calling(*calls: Any, **more: Any) -> dict[str, Any]:
    """An assistant message that makes these calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(id: str = "a", content: Any = "done", **more: Any) -> dict[str, Any]:
    """The result of the call with that id."""
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def codes(*messages: Any) -> list[tuple[int, str]]:
    """What a provider would refuse: where, and by which code."""
    return [(problem.index, problem.code) for problem in check(list(messages))]


def sent(*messages: Any) -> list[dict[str, Any]]:
    """The messages as they may be sent."""
    return list(read(list(messages)).messages)


# ---------------------------------------------------------------- any transcript


@given(transcripts())
def test_a_valid_transcript_is_read_as_it_is(messages: Any) -> None:
    """Nothing is repaired that a provider would take: the very same dictionaries come back."""
    got = read(messages)
    assert check(messages) == []
    assert all(a is b for a, b in zip(got.messages, messages, strict=True))
    assert got.repaired == 0


@given(broken_transcripts())
def test_a_faulty_transcript_becomes_valid_and_reading_it_again_changes_nothing(
    messages: Any,
) -> None:
    """Whatever a host drops, doubles or moves, the view is valid, and repair is idempotent."""
    before = copy.deepcopy(messages)
    got = read(messages)
    assert check(got.messages) == []
    assert read(got.messages).messages == got.messages
    assert messages == before


@given(broken_transcripts())
def test_repair_loses_no_message(messages: Any) -> None:
    """Every message of the caller stands exactly once in what is read, or as a text of it."""
    origins = [origin for origin in read(messages).origins if origin is not None]
    assert sorted(origins) == list(range(len(messages)))


@given(transcripts())
def test_steps_cover_the_list_in_order_and_split_no_call_from_its_results(messages: Any) -> None:
    """Steps rejoin to the list; each begins with anything but a tool result."""
    found = steps(messages)
    assert [index for atom in found for index in atom] == list(range(len(messages)))
    assert all(messages[atom.start]["role"] != "tool" for atom in found)


def test_a_late_result_moves_behind_its_call() -> None:
    """A message between call and result goes after the result."""
    asked, answer = step("a", "late")
    got = read([USER, asked, {"role": "user", "content": "hurry"}, answer])
    assert [m["role"] for m in got.messages] == ["user", "assistant", "tool", "user"]
    assert got.origins == (0, 1, 3, 2)


def test_an_id_used_again_later_belongs_to_its_own_step() -> None:
    """Ids repeat within real transcripts: each result stays with the call before it."""
    messages = [USER, *step("a", "first"), USER, *step("a", "second")]
    assert read(messages).messages == tuple(messages)


def test_private_keys_never_leave() -> None:
    """Keys that begin with an underscore are refused by providers: they are not in the view."""
    assert read([{**USER, "_summary": True}]).messages == (USER,)


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
def test_what_is_no_transcript_is_refused_with_its_index(messages: Any, index: Any) -> None:
    """The error says where and what was expected."""
    with pytest.raises(InvalidMessages) as caught:
        read(messages)
    assert caught.value.index == index
    assert "expected" in str(caught.value)


def test_call_ids_reasoning_and_arguments_are_in_the_digest() -> None:
    """They are sent, so a change of one is a change."""
    asked = {"role": "assistant", "content": None, "tool_calls": [asked_for("a", path="p")]}
    others = [
        {**asked, "tool_calls": [asked_for("b", path="p")]},
        {**asked, "tool_calls": [asked_for("a", path="q")]},
        {**asked, "reasoning_content": "hm"},
        {**asked, "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
    ]
    assert len({digest(message) for message in [asked, *others]}) == 5


@pytest.mark.parametrize("odd", [None, 3, 1.5, True, "text", {"a": 1}, SimpleNamespace(id="x")])
def test_calls_that_are_no_list_call_nothing(odd: Any) -> None:
    """Whatever a host puts in `tool_calls`, reading it ends, and the view is valid."""
    got = read([USER, {"role": "assistant", "content": "hm", "tool_calls": odd}])
    assert check(got.messages) == []
    assert got.messages[1] == {"role": "assistant", "content": "hm"}


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
def test_parts_that_are_none_become_text_or_go(content: Any, sent: Any) -> None:
    """What can be read of them is kept; an empty text block is refused, so it goes."""
    assert read([{"role": "user", "content": content}]).messages[0]["content"] == sent


def test_an_assistant_that_only_calls_has_no_empty_list_of_parts() -> None:
    """`content: []` beside calls is refused as an empty array."""
    asked, result = step("a", "ok")
    got = read([{**asked, "content": []}, result])
    assert got.messages[0]["content"] is None


def test_a_custom_call_is_passed_on_as_it_is() -> None:
    """OpenAI's custom tools take text instead of JSON."""
    asked = {"id": "c", "type": "custom", "custom": {"name": "grep", "input": "a b"}}
    result = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [asked]}, result]
    got = read(messages)
    assert [a is b for a, b in zip(got.messages, messages, strict=True)] == [True] * 3
    assert tool_calls_of(messages[1])[0][:2] == ("c", "grep")


def test_an_iterator_of_messages_is_read_once() -> None:
    """A generator is a list of messages too."""
    assert read(message for message in [USER, USER]).messages == (USER, USER)


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ({"role": "user", "content": "[tool result whose call is not in this conversation]"}, True),
        ({"role": "user", "content": [{"type": "tool_result", "content": "x"}]}, True),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, False),
        (USER, False),
    ],
)
def test_a_tools_words_in_the_users_role_are_known(message: Any, tools: Any) -> None:
    """Orphan results and tool_result blocks are never the user's words."""
    assert is_tools_text(message) is tools


@given(broken_transcripts())
def test_a_bare_message_is_digested_as_any_other(messages: Any) -> None:
    """Plain text has one digest of two meanings: both are what the long way gives."""
    for message in map(to_plain, messages):
        sealed = json.dumps(message, sort_keys=True, separators=(",", ":")).encode("ascii")
        assert content_digest(message) == "sha256:" + hashlib.sha256(sealed).hexdigest()
        assert not is_bare(message) or digest(message) == content_digest(message)
        assert not is_bare(message) or canonical(message) == message


def test_results_find_their_calls_whatever_their_order_and_names() -> None:
    """By id first of all, by name where there is no id, each once, the first that came first."""
    calls = [asked_for("a"), asked_for("b", "bash"), {**asked_for("c"), "id": None}]
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


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([USER], []),
        ([{"role": "narrator", "content": "x"}], [(0, "role")]),
        ([{"role": ["user"], "content": "x"}], [(0, "role")]),
        ([{"content": "x"}], [(0, "role")]),
        ([USER, {**USER, "_mine": 1}], [(1, "private_key")]),
        ([{**USER, "_": 1, 7: 1}], [(0, "private_key"), (0, "private_key")]),
        ([{"role": "user", "content": ""}], [(0, "empty")]),
        ([{"role": "user", "content": " \n"}], [(0, "empty")]),
        ([{"role": "user"}], [(0, "empty")]),
        ([{"role": "user", "content": []}], [(0, "empty")]),
        ([{"role": "user", "content": {}}], [(0, "empty")]),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], [(0, "empty")]),
        ([{"role": "user", "content": [{"text": " "}]}], [(0, "empty")]),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], []),
        ([{"role": "user", "content": {"type": "image_url", "image_url": {}}}], []),
        ([{"role": "assistant", "content": ""}], [(0, "empty")]),
        ([calling(call()), result(content="")], []),
        ([calling(call()), result(content=None)], [(1, "empty")]),
        ([calling(call()), result()], []),
        ([calling(call(id=5)), {**result(), "tool_call_id": "5"}], [(0, "tool_call")]),
        ([calling(call(id="")), result("")], [(0, "tool_call")]),
        ([calling(call(name="")), result()], [(0, "tool_call")]),
        ([calling(call(arguments="[1]")), result()], [(0, "tool_call")]),
        ([calling(call(arguments="{")), result()], [(0, "tool_call")]),
        ([calling(call(arguments={})), result()], [(0, "tool_call")]),
        ([calling({"id": "a", "type": "custom", "custom": {"name": "x"}}), result()], []),
        ([calling({"id": "a", "type": "custom", "custom": "x"}), result()], [(0, "tool_call")]),
        ([calling({"id": "a", "type": "function"}), result()], [(0, "tool_call")]),
        ([calling(call()), USER], [(0, "unanswered")]),
        ([calling(call())], [(0, "unanswered")]),
        ([USER, result()], [(1, "orphan")]),
        ([calling(call()), result(), result()], [(2, "orphan")]),
        ([calling(call()), USER, result()], [(0, "unanswered"), (2, "orphan")]),
        ([calling(call(), call()), result()], [(0, "duplicate_id")]),
    ],
)
def test_each_thing_that_a_provider_refuses_is_told(
    messages: list[Any], found: list[tuple[int, str]]
) -> None:
    """By the place of the message and a short code; what it takes is not told."""
    assert codes(*messages) == found


def test_every_role_of_the_providers_is_known() -> None:
    """And no other; two of them are the host's instructions, two are results."""
    assert codes(*({"role": role, "content": "x"} for role in ROLES[:4])) == []
    assert [role for role in ROLES if is_system({"role": role})] == ["system", "developer"]
    assert [role for role in ROLES if is_result({"role": role})] == ["tool", "function"]
    with pytest.raises(InvalidMessages, match="assistant, developer, function, system, tool, user"):
        read([{"role": "narrator", "content": "x"}])


def test_a_problem_is_a_value() -> None:
    """It names the place and says it in words for a person."""
    (problem,) = check([calling(call("c7"))])
    assert problem == Problem(0, "unanswered", "tool call 'c7' has no result")
    with pytest.raises(FrozenInstanceError):
        problem.code = "x"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        read([USER]).steps = ()  # type: ignore[misc]


# ---------------------------------------------------------------- reading


def test_what_can_be_sent_is_the_callers_own_message() -> None:
    """Not a copy: the host's marks on it stay where the host put them."""
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u", "name": "ann"},
        calling(call()),
        result(name="run"),
        {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
    ]
    assert [a is b for a, b in zip(sent(*messages), messages, strict=True)] == [True] * 5


def test_system_messages_in_front_are_counted() -> None:
    """Up to the first message of anybody else; there may be nothing else."""
    system, developer = {"role": "system", "content": "s"}, {"role": "developer", "content": "d"}
    assert read([system, developer, USER, system]).leading == 2
    assert read([USER, system]).leading == 0
    assert read([system, developer]).leading == 2
    assert read([]).leading == 0


def test_stubs_are_counted_and_have_no_place_in_the_callers_list() -> None:
    """One for each call that nobody answered, at the end of its step."""
    transcript = read([calling(call("a"), call("b"), call("c")), result("b"), USER])
    assert transcript.origins == (0, 1, None, None, 2)
    assert transcript.repaired == 2
    assert [m.get("tool_call_id") for m in transcript.messages] == [None, "b", "a", "c", None]
    assert transcript.steps == (range(4), range(4, 5))
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
    stub = read([legacy]).messages[1]
    assert (stub["role"], stub["name"], set(stub)) == ("function", "f", {"role", "name", "content"})


def test_three_calls_with_one_id_get_three_ids_and_their_results_in_order() -> None:
    """Names that every provider takes; what is renamed is told apart the same way next time."""
    given = [calling(call("x"), call("x"), call("x"), call("y"))]
    given += [result("x", "first"), result("x", "second"), result("x", "third"), result("y", "own")]
    messages = sent(*given)
    ids = [told.id for told in tool_calls_of(messages[0])]
    assert len(set(ids)) == 4
    assert (ids[0], ids[3]) == ("x", "y")
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) for id in ids)
    answers = {m["tool_call_id"]: m["content"] for m in messages[1:]}
    assert [answers[id] for id in ids] == ["first", "second", "third", "own"]
    assert sent(*messages) == messages
    assert given[0]["tool_calls"][1]["id"] == "x"


def test_a_call_without_an_id_gets_one_by_what_it_calls() -> None:
    """The same every time, so that its digest holds; another call has another."""
    one, same, other = (
        sent(calling(call(None, arguments=text)))[0]["tool_calls"][0]["id"]
        for text in ('{"a": 1}', '{"a": 1}', '{"a": 2}')
    )
    assert re.fullmatch(r"call_[0-9a-f]{16}", one)
    assert one == same != other


def test_calls_are_mended_and_keep_what_else_they_carry() -> None:
    """A name for the nameless, the type, arguments as one JSON object that loses nothing."""
    broken = {"id": "a", "function": {"arguments": "not json"}, "index": 3}
    (mended,) = sent(calling(broken))[0]["tool_calls"]
    assert mended["function"]["name"] == "unnamed"
    assert (mended["type"], mended["index"]) == ("function", 3)
    assert json.loads(mended["function"]["arguments"]) == {"arguments": "not json"}
    (blank,) = sent(calling(call(arguments=" ")))[0]["tool_calls"]
    assert blank["function"]["arguments"] == "{}"
    (spoken,) = sent(calling(call(arguments={"q": "ü"})))[0]["tool_calls"]
    assert spoken["function"]["arguments"] == '{"q": "ü"}'
    (quoted,) = sent(calling(call(arguments="ü")))[0]["tool_calls"]
    assert quoted["function"]["arguments"] == '{"arguments": "ü"}'


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ({"name": "f", "arguments": '{"a": 1}'}, {"name": "f", "arguments": '{"a": 1}'}),
        ({"name": "f", "arguments": {"a": 1}}, {"name": "f", "arguments": '{"a": 1}'}),
        ({"name": "f", "arguments": "no"}, {"name": "f", "arguments": '{"arguments": "no"}'}),
        ({"arguments": "{}"}, {"name": "unnamed", "arguments": "{}"}),
        ({"name": "f"}, {"name": "f", "arguments": "{}"}),
    ],
)
def test_a_legacy_call_is_mended_too(function: Any, expected: Any) -> None:
    """Name and arguments as a provider takes them; its id is empty."""
    message = {"role": "assistant", "content": None, "function_call": function}
    assert sent(message)[0]["function_call"] == expected
    assert [told.id for told in tool_calls_of(message)] == [""]


def test_only_an_assistant_calls_and_only_results_have_an_id_of_a_call() -> None:
    """The rest of the message stays as it was."""
    (user, *_) = sent({**USER, "tool_calls": [call()], "function_call": {"name": "f"}, "x": 1})
    assert user == {**USER, "x": 1}
    assert sent({**USER, "tool_call_id": "a"})[0] == USER


def test_results_of_a_legacy_call_are_taken_by_their_name() -> None:
    """Whatever role and id they carry, in the role and by the name that belong to the call."""
    legacy = {"name": "f", "arguments": "{}"}
    message = {"role": "assistant", "content": None, "function_call": legacy}
    wanted = {"role": "function", "name": "f", "content": "done"}
    for answer in (
        {"role": "tool", "content": "done"},
        {"role": "function", "content": "done", "name": "f", "tool_call_id": ""},
        {"role": "function", "content": "done"},
    ):
        assert sent(message, answer)[1] == wanted
    assert sent(message, wanted)[1] is wanted
    kept = sent(message, result("other", "not mine"))
    assert [m["role"] for m in kept] == ["assistant", "function", "user"]


def test_an_orphan_says_whose_result_it_was() -> None:
    """By the name of its tool, where that is a name."""
    named, nameless, odd = sent(result("x", name="grep"), result("y"), result("z", name=["grep"]))
    assert "(grep)" in named["content"]
    assert "(" not in nameless["content"]
    assert "(" not in odd["content"]
    assert {m["role"] for m in (named, nameless, odd)} == {"user"}
    assert named["content"].endswith("\ndone")


# ---------------------------------------------------------------- shapes


class Call:
    """A tool call as a client's object has it."""

    def __init__(self, id: str, **parts: Any) -> None:
        self.id = id
        self.__dict__.update(parts)


@pytest.mark.parametrize(
    "given",
    [
        call("a", "run", '{"x": 1}'),
        call("a", "run", {"x": 1}),
        MappingProxyType(call("a", "run", MappingProxyType({"x": 1}))),
        {"id": "a", "function": MappingProxyType({"name": "run", "arguments": '{"x": 1}'})},
        Call("a", function=SimpleNamespace(name="run", arguments='{"x": 1}')),
        Call("a", name="run", arguments={"x": 1}),
        {"id": "a", "type": "custom", "custom": {"name": "run", "input": '{"x": 1}'}},
        {"id": "a", "type": "tool_use", "name": "run", "input": {"x": 1}},
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_call_is_read_in_every_shape_it_comes_in(given: Any) -> None:
    """Dictionaries, other mappings, objects; nested or flat; arguments or input."""
    (told,) = tool_calls_of({"role": "assistant", "tool_calls": (given,)})
    assert (told.id, told.name, told.arguments) == ("a", "run", '{"x": 1}')


def test_what_a_call_lacks_is_empty() -> None:
    """No id, no name: empty strings; no arguments: an empty object."""
    (told,) = tool_calls_of({"tool_calls": [{}]})
    assert tuple(told) == ("", "", "{}")
    assert tool_calls_of({"role": "user"}) == ()
    assert tool_calls_of({"tool_calls": "run"}) == ()
    both = {"tool_calls": [call("a")], "function_call": {"name": "f", "arguments": "{}"}}
    assert [tuple(told)[:2] for told in tool_calls_of(both)] == [("a", "run"), ("", "f")]


class Model:
    """What a client hands out: knows how to write itself down."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def model_dump(self, exclude_none: bool = False) -> dict[str, Any]:
        return {k: v for k, v in self.values.items() if not (exclude_none and v is None)}


def test_objects_become_plain_values() -> None:
    """Models at any depth, attributes, bytes, sets in one order, classes by their name."""
    plain = to_plain(
        Model(
            role="user",
            name=None,
            content=[Model(type="text", text="x"), (1, 2.5, True, None)],
            data=b"\xff\x41",
            tags={"b", "a"},
            extra=SimpleNamespace(a=1, _hidden=2),
            kind=int,
            number={3: 4},
        )
    )
    assert plain == {
        "role": "user",
        "content": [{"type": "text", "text": "x"}, [1, 2.5, True, None]],
        "data": "\ufffdA",
        "tags": ["a", "b"],
        "extra": {"a": 1},
        "kind": "<class 'int'>",
        "number": {"3": 4},
    }
    with pytest.raises(InvalidMessages, match="a list"):
        to_plain([1])


def nested(levels: int) -> Any:
    """Lists in lists, that many."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_a_hundred_levels_are_read_and_one_more_is_not() -> None:
    """The same depth wherever it is measured: in reading, in plain copies, in arguments."""
    assert read([{**USER, "deep": nested(100)}]).messages
    assert to_plain({**USER, "deep": nested(100)})["deep"] == nested(100)
    with pytest.raises(InvalidMessages, match="100 levels"):
        read([{**USER, "deep": nested(101)}])
    with pytest.raises(InvalidMessages, match="100 levels"):
        to_plain({**USER, "deep": nested(101)})
    for levels, kept in ((100, True), (101, False)):
        text = json.dumps({"deep": nested(levels)})
        (told,) = sent(calling(call(arguments=text)))[0]["tool_calls"]
        assert (told["function"]["arguments"] == text) is kept
    with pytest.raises(InvalidMessages) as caught:
        read([USER, SimpleNamespace(model_dump=lambda exclude_none: {"deep": nested(200)})])
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("words", "words"),
        (["one", {"type": "text", "text": "two"}, 3, {"type": "image_url"}], "one\ntwo"),
        ({"type": "text", "text": "alone"}, "alone"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "inner"}]}], "inner"),
        ([{"type": "tool_result", "text": "outer", "content": "inner"}], "outer"),
        ([{"type": "other", "content": "inner"}], ""),
        (5, "5"),
        (b"ab", "b'ab'"),
    ],
)
def test_the_text_of_every_content(content: Any, text: str) -> None:
    """What can be read in it, part by part, a line each."""
    assert text_of({"role": "user", "content": content}) == text


def test_only_a_result_that_is_one_json_string_is_unpacked() -> None:
    """Not a user's quotation, not a single quote, not what only begins like one."""
    assert result_text({"role": "tool", "content": '"a\\nb"'}) == "a\nb"
    assert result_text({"role": "function", "content": '""'}) == ""
    for role, text in (
        ("user", '"a\\nb"'),
        ("tool", '"'),
        ("tool", '"a" or "b"'),
        ("tool", '"a'),
        ("tool", 'a"'),
        ("tool", "5"),
        ("tool", ""),
    ):
        assert result_text({"role": role, "content": text}) == text


def test_a_step_is_a_call_with_all_results_that_follow() -> None:
    """Everything else is a step alone, results without a call too."""
    plain = [USER, calling(call("a"), call("b")), result("a"), result("b"), USER, result("c")]
    assert steps(plain) == [range(1), range(1, 4), range(4, 5), range(5, 6)]
    assert steps([]) == []


# ---------------------------------------------------------------- digests


KNOWN = {
    "plain": {"role": "user", "content": "grüße 漢字 \ud800", "name": "ann"},
    "result": {"role": "tool", "tool_call_id": "a", "content": "done"},
    "calls": calling(call("a", "run", '{"x": 1}'), reasoning_content="thought"),
    "legacy": {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    "parts": {
        "role": "user",
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "u"}},
        ],
    },
}
STORED: dict[str, tuple[str, str]] = {
    "plain": (
        "sha256:ca4f34fdbb80023b4e5dc473284c66865c13d06793c04a852a5c08a9b194b7eb",
        "sha256:ca4f34fdbb80023b4e5dc473284c66865c13d06793c04a852a5c08a9b194b7eb",
    ),
    "result": (
        "sha256:d6aedc2fe3b42c139ece454ee0eb1e837cc16f68a48d66565b6c450e1a69a042",
        "sha256:d6aedc2fe3b42c139ece454ee0eb1e837cc16f68a48d66565b6c450e1a69a042",
    ),
    "calls": (
        "sha256:8684e1f9f0e415a970ca18ff7923da81c142248a43834eff2f244812abc8a225",
        "sha256:dfcc883ba8322c12cdbe1ef1702a8a9f20ec632866538e69bac3d19b143a2955",
    ),
    "legacy": (
        "sha256:aef537392fcfac1e8f59348d1b483cff6e05e5f21e6ca2c1b9938a00829617e0",
        "sha256:ceed876cbc7f5deacfafc75f9501171d55381958c24d726db164a35ceff93597",
    ),
    "parts": (
        "sha256:dfba1256efcf81d1bb2d88c6e77d34890fb2ab8ddbb22e16ca8d9aaecbaeb2a7",
        "sha256:dfba1256efcf81d1bb2d88c6e77d34890fb2ab8ddbb22e16ca8d9aaecbaeb2a7",
    ),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_a_digest_that_was_stored_is_the_digest_of_the_message_for_ever(kind: str) -> None:
    """Worked out once: another one would make every ledger lose its summaries."""
    assert (digest(KNOWN[kind]), content_digest(KNOWN[kind])) == STORED[kind]


@pytest.mark.parametrize(
    "key", ["id", "cache_control", "timestamp", "created_at", "created", "index", "_private"]
)
def test_what_only_marks_a_message_does_not_change_which_it_is(key: str) -> None:
    """It is found again without it; the archive tells the two apart."""
    marked = {**USER, key: "x"}
    assert digest(marked) == digest(USER)
    assert content_digest(marked) != content_digest(USER)
    assert digest({**USER, "other": "x"}) != digest(USER)


def test_values_that_say_nothing_do_not_change_which_it_is() -> None:
    """None, an empty list and an empty mapping are as good as no key; False and 0 are not."""
    for nothing in (None, [], {}):
        assert digest({**USER, "audio": nothing}) == digest(USER)
    for something in (False, 0, ""):
        assert digest({**USER, "audio": something}) != digest(USER)


def test_text_alone_is_the_same_as_one_text_part_and_nothing_else_is() -> None:
    """Two parts, another key in the part, another type: another message."""
    text = {"type": "text", "text": "hello"}
    marked = {**text, "cache_control": {"type": "ephemeral"}}
    for content in ([text], [marked], (text,)):
        assert digest({"role": "user", "content": content}) == digest(USER)
    for content in ([text, text], [{**text, "lang": "en"}], [{**text, "type": "input_text"}], text):
        assert digest({"role": "user", "content": content}) != digest(USER)
    assert canonical({"role": "user", "content": ["hello"]})["content"] == ["hello"]


def test_cache_marks_are_left_out_at_any_depth() -> None:
    """They move from turn to turn."""
    image = {"type": "image_url", "image_url": {"url": "u", "cache_control": 1}}
    clean = {"type": "image_url", "image_url": {"url": "u"}}
    assert digest({"role": "user", "content": [image]}) == digest(
        {"role": "user", "content": [clean]}
    )
    assert digest({**USER, "x": [{"cache_control": 1, "y": 2}]}) == digest(
        {**USER, "x": [{"y": 2}]}
    )
