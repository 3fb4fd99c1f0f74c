"""Calls and results as blocks of a content, Anthropic's own shape: read, mended, kept together."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given

from praison_compressor.messages import (
    NO_RESULT,
    ORPHAN_OPENS,
    ToolCall,
    check,
    digest,
    is_tools_text,
    read,
    steps,
    tool_calls_of,
)
from tests.helpers.native import (
    asks,
    brings,
    broken_natives,
    natives,
    refusal_of,
    result,
    text,
    use,
)
from tests.helpers.transcripts import Message

USER: Message = {"role": "user", "content": "go"}
PICTURE: Message = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


def codes(messages: list[Message]) -> list[str]:
    return [problem.code for problem in check(messages)]


@given(natives)
def test_a_valid_conversation_is_read_as_it_is(messages: list[Message]) -> None:
    """Nothing is repaired that the API would take: the very same dictionaries come back."""
    got = read(messages)
    assert check(messages) == []
    assert all(a is b for a, b in zip(got.messages, messages, strict=True))
    assert refusal_of(got.messages) is None


@given(natives)
def test_no_step_parts_a_call_from_its_result(messages: list[Message]) -> None:
    """Steps cover the list in order; each alone, between a user's words, is a conversation."""
    atoms = steps(messages)
    assert [index for atom in atoms for index in atom] == list(range(len(messages)))
    for atom in atoms:
        assert refusal_of([USER, *messages[atom.start : atom.stop], USER]) is None


@given(broken_natives())
def test_what_hosts_spoil_is_mended_to_what_the_api_takes(messages: list[Message]) -> None:
    """Lost, doubled, moved, mixed: the view is valid, reading it again changes nothing, and every
    message of the caller is in it once."""
    before = copy.deepcopy(messages)
    got = read(messages)
    assert check(got.messages) == []
    assert refusal_of([*got.messages, USER]) is None
    assert read(got.messages).messages == got.messages
    assert sorted(o for o in got.origins if o is not None) == list(range(len(messages)))
    assert messages == before


def test_calls_are_read_from_blocks() -> None:
    """Whatever the shape, a call is an id, a name and JSON; one in both shapes is one call."""
    block = asks(text("I look."), use("a", path="x"), use("b", "bash", command="ls"))
    expected = (
        ToolCall("a", "read_file", '{"path": "x"}'),
        ToolCall("b", "bash", '{"command": "ls"}'),
    )
    assert tool_calls_of(block) == expected
    beside = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert [c.id for c in tool_calls_of({**block, "tool_calls": [beside]})] == ["a", "b"]
    assert tool_calls_of(brings(use("a"))) == ()


def test_a_missing_result_gets_a_block_that_says_so() -> None:
    """In the shape of its call, in front of what the user says next."""
    messages = [USER, asks(use("a"), use("b")), brings(result("b"), text("and?"))]
    assert codes(messages) == ["unanswered"]
    got = read(messages)
    assert got.messages[2] == brings(result("a", NO_RESULT))
    assert got.messages[3] is messages[2]
    assert got.origins == (0, 1, None, 2)
    assert got.steps == (range(1), range(1, 4))


def test_a_result_without_a_call_becomes_text_beside_the_users() -> None:
    """Its words and pictures stay, it is no tool_result any more, nor the user's word."""
    lost = brings(result("gone", [text("42 rows"), PICTURE]), text("thanks"))
    messages = [USER, asks(text("Hm.")), lost]
    assert codes(messages) == ["orphan"]
    view = read(messages).messages
    assert view[2]["content"] == [text(f"{ORPHAN_OPENS}\n42 rows"), PICTURE, text("thanks")]
    assert is_tools_text(view[2])


def test_a_result_behind_text_moves_to_the_front() -> None:
    """The API refuses text before results in one message, and across neighbouring ones."""
    behind = brings(text("by the way"), result("a"))
    messages = [USER, asks(use("a")), behind]
    assert codes(messages) == ["order"]
    assert read(messages).messages[2]["content"] == [result("a"), text("by the way")]
    late = [USER, asks(use("a")), {"role": "user", "content": "hurry"}, brings(result("a"))]
    assert read(late).origins == (0, 1, 3, 2)


def test_two_calls_with_one_id_are_told_apart_and_so_are_their_results() -> None:
    """Ids are made unique within a step; results are taken in their order."""
    got = read(
        [
            USER,
            asks(use("a", path="1"), use("a", path="2")),
            brings(result("a", "one"), result("a", "two")),
        ]
    )
    ids = [call.id for call in tool_calls_of(got.messages[1])]
    assert len(set(ids)) == 2
    assert [(b["tool_use_id"], b["content"]) for b in got.messages[2]["content"]] == [
        (ids[0], "one"),
        (ids[1], "two"),
    ]


def test_results_in_several_messages_stand_in_front_of_all_words() -> None:
    """The API joins neighbours: what holds more than results comes last."""
    messages = [USER, asks(use("a"), use("b")), brings(result("a"), result("gone", "x"))]
    got = read([*messages, brings(result("b"))])
    assert refusal_of(got.messages) is None
    assert got.origins == (0, 1, 3, 2)
    assert got.messages[3]["content"] == [result("a"), text(f"{ORPHAN_OPENS}\nx")]


def test_of_two_messages_with_words_one_can_bring_its_results() -> None:
    """The other's become text, and its call is answered by a block that says so."""
    first, second = brings(result("a"), text("one")), brings(result("b", "rows"), text("two"))
    got = read([USER, asks(use("a"), use("b")), first, second])
    assert refusal_of(got.messages) is None
    assert got.messages[2:4] == (brings(result("b", NO_RESULT)), first)
    assert got.messages[4] == brings(text(f"{ORPHAN_OPENS}\nrows"), text("two"))


def test_twins_are_answered_in_order_across_messages() -> None:
    """The second result with an id is that of the second call with it."""
    calls = asks(use("a", path="1"), use("a", path="2"))
    got = read([USER, calls, brings(result("a", "one")), brings(result("a", "two"))])
    ids = [call.id for call in tool_calls_of(got.messages[1])]
    brought = [message["content"][0] for message in got.messages[2:]]
    assert [(b["tool_use_id"], b["content"]) for b in brought] == [
        (ids[0], "one"),
        (ids[1], "two"),
    ]


@pytest.mark.parametrize(
    ("block", "mended"),
    [
        ({"type": "tool_use", "id": "a", "name": "f", "input": '{"x": 1}'}, use("a", "f", x=1)),
        ({"type": "tool_use", "id": "a", "name": "f", "input": "x"}, use("a", "f", arguments="x")),
        ({"type": "tool_use", "id": "a", "name": "", "input": {}}, use("a", "unnamed")),
        ({"type": "tool_use", "id": "a", "name": "f"}, use("a", "f")),
    ],
)
def test_a_call_that_the_api_refuses_is_mended(block: Message, mended: Message) -> None:
    """Input as text, or none; a name is needed."""
    messages = [USER, asks(block), brings(result("a"))]
    assert "tool_call" in codes(messages)
    assert read(messages).messages[1] == asks(mended)


def test_only_what_the_user_says_makes_a_turn() -> None:
    """Messages with results alone are none; one with words beside them is."""
    messages = [USER, asks(use("a")), brings(result("a")), asks(use("b"))]
    messages += [brings(result("b"), text("use port 9090")), asks(text("ok"))]
    assert read(messages).users == (0, 4)


def test_marks_change_no_digest_of_blocks() -> None:
    """A cache mark on a result moves from turn to turn: the message is the same."""
    assert digest(brings(result("a"))) == digest(
        brings(result("a", cache_control={"type": "ephemeral"}))
    )


class Block:
    """A client's object."""

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, object]:
        return {k: v for k, v in self._fields.items() if not (exclude_none and v is None)}


def test_a_clients_objects_are_blocks() -> None:
    """`{"role": "assistant", "content": response.content}`, as the vendor's guide has it."""
    said = Block(type="text", text="I look.", citations=None)
    called = Block(type="tool_use", id="a", name="read_file", input={"path": "x"})
    messages = [USER, {"role": "assistant", "content": [said, called]}, brings(result("a"))]
    got = read(messages)
    assert got.messages[1] == asks(text("I look."), use("a", path="x"))
    assert got.steps == (range(1), range(1, 3))
