"""Lists of messages: calls paired with results, in OpenAI's and Anthropic's shape."""

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.messages import (
    Message,
    digest,
    read_transcript,
    split_steps,
    text_of,
    tool_calls_of,
)
from praison_compressor.messages.repair import MISSING_RESULT
from praison_compressor.messages.shapes import ORPHAN_OPENS, has_tool_part
from praison_compressor.testing import Refusal, Rules, check_messages
from tests.helpers import native
from tests.helpers.native import Block, asks, brings, text, use
from tests.helpers.transcripts import broken_transcripts, call, calling, find_repairs, transcripts

USER: Message = {"role": "user", "content": "go"}
PICTURE: Message = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


def result(id: str, content: Any = "done", **more: Any) -> Message:
    """Return the result of a call, in OpenAI's shape."""
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def refusal_of_openai(messages: Any) -> str | None:
    """Return the strict provider's refusal of these messages, or None."""
    # Others than OpenAI take pictures in results: of these the text is looked at.
    said = [{**m, "content": text_of(m)} if m["role"] == "tool" else m for m in messages]
    try:
        check_messages(said, Rules())
    except Refusal as refusal:
        return refusal.message
    return None


SHAPES = {
    "openai": (transcripts(), broken_transcripts(), refusal_of_openai),
    "anthropic": (
        native.natives,
        native.broken_natives(),
        lambda messages: native.refusal_of([*messages, USER]),
    ),
}
shapes = pytest.mark.parametrize("shape", SHAPES)


@shapes
@given(data=st.data())
def test_a_valid_transcript_is_read_as_it_is(shape, data):
    """A valid transcript is returned as the same objects."""
    valid, _, refusal_of = SHAPES[shape]
    messages = data.draw(valid)
    got = read_transcript(messages)
    assert find_repairs(messages) == []
    assert all(a is b for a, b in zip(got.messages, messages, strict=True))
    assert got.stub_count == 0
    assert refusal_of(got.messages) is None


@shapes
@given(data=st.data())
def test_a_faulty_transcript_becomes_valid_and_loses_nothing(shape, data):
    """Reading makes any faulty transcript valid without a loss."""
    _, broken, refusal_of = SHAPES[shape]
    messages = data.draw(broken)
    before = copy.deepcopy(messages)
    got = read_transcript(messages)
    assert refusal_of(got.messages) is None
    assert read_transcript(got.messages).messages == got.messages
    assert sorted(o for o in got.origins if o is not None) == list(range(len(messages)))
    assert messages == before


@shapes
@given(data=st.data())
def test_no_step_parts_a_call_from_its_result(shape, data):
    """Steps divide a list into conversations that are valid alone."""
    valid, _, refusal_of = SHAPES[shape]
    messages = data.draw(valid)
    steps = split_steps(messages)
    assert [index for step in steps for index in step] == list(range(len(messages)))
    for step in steps:
        assert refusal_of([USER, *messages[step.start : step.stop], USER]) is None


def test_a_call_and_its_results_are_one_step():
    """Only a call and its results share a step."""
    plain = [USER, calling(call("a"), call("b")), result("a"), result("b"), USER, result("c")]
    assert split_steps(plain) == [range(1), range(1, 4), range(4, 5), range(5, 6)]


def test_leading_messages_are_the_systems_before_any_other():
    """System and developer messages lead until another message comes, in any iterable."""
    system, developer = {"role": "system", "content": "s"}, {"role": "developer", "content": "d"}
    lists = ([], [system, developer], [system, developer, USER, system], [USER, system])
    assert [read_transcript(iter(each)).leading for each in lists] == [0, 2, 2, 0]
    assert read_transcript(iter(lists[2])).messages == tuple(lists[2])


# ---------------------------------------------------------------- results as messages


def test_a_missing_result_gets_a_stub_in_the_shape_of_its_call():
    """A missing result becomes a stub at the end of its step."""
    transcript = read_transcript([calling(call("a"), call("b"), call("c")), result("b"), USER])
    assert transcript.origins == (0, 1, None, None, 2)
    assert transcript.stub_count == 2
    assert transcript.messages[2] == result("a", MISSING_RESULT)
    assert transcript.steps == (range(4), range(4, 5))
    messages = [USER, asks(use("a"), use("b")), brings(native.result("b"), text("and?"))]
    got = read_transcript(messages)
    assert got.messages[2:] == (brings(native.result("a", MISSING_RESULT)), messages[2])
    assert got.steps == (range(1), range(1, 4))


def test_repeated_ids_become_distinct():
    """Each result keeps its call when repeated ids become distinct."""
    given = [calling(call("x"), call("x"), call("x"), call("y"))]
    given += [result("x", "first"), result("x", "second"), result("x", "third"), result("y", "own")]
    messages = read_transcript(given).messages
    ids = [made.id for made in tool_calls_of(messages[0])]
    assert (len(set(ids)), ids[0], ids[3]) == (4, "x", "y")
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) for id in ids)
    answers = {m["tool_call_id"]: m["content"] for m in messages[1:]}
    assert [answers[id] for id in ids] == ["first", "second", "third", "own"]
    assert given[0]["tool_calls"][1]["id"] == "x"


def test_results_find_their_calls_whatever_their_order_and_names():
    """Results are paired by id, else by name or order, each once."""
    calls = [call("a"), call("b", "bash"), {**call("c"), "id": None}]
    results = [
        result("b", "of b"),
        {"role": "tool", "name": "read_file", "content": "first without id"},
        {"role": "tool", "content": "second without id"},
        result("x", "of nobody"),
    ]
    got = read_transcript([USER, calling(*calls), *results]).messages
    said = [message["content"] for message in got if message["role"] == "tool"]
    assert said == ["of b", "first without id", "second without id"]
    assert got[-1]["content"] == f"{ORPHAN_OPENS}\nof nobody"


def test_an_orphan_says_whose_result_it_was():
    """A result without a call becomes text with the tool's name."""
    given = [result("x", name="grep"), result("y"), result("z", name=["grep"])]
    named, nameless, odd = read_transcript(given).messages
    assert named == {"role": "user", "content": f"{ORPHAN_OPENS} (grep)\ndone"}
    assert nameless == odd == {"role": "user", "content": f"{ORPHAN_OPENS}\ndone"}


# ---------------------------------------------------------------- results as blocks


def test_a_result_without_a_call_becomes_text_beside_the_users():
    """An orphan block becomes a tool's text beside its pictures."""
    lost = brings(native.result("gone", [text("42 rows"), PICTURE]), text("thanks"))
    view = read_transcript([USER, asks(text("Hm.")), lost]).messages
    assert view[2]["content"] == [text(f"{ORPHAN_OPENS}\n42 rows"), PICTURE, text("thanks")]
    assert has_tool_part(view[2])


@pytest.mark.parametrize(
    ("block", "mended"),
    [
        ({"type": "tool_use", "id": "a", "name": "f", "input": '{"x": 1}'}, use("a", "f", x=1)),
        ({"type": "tool_use", "id": "a", "name": "", "input": {}}, use("a", "unnamed")),
        ({"type": "tool_use", "id": "a", "name": "f"}, use("a", "f")),
    ],
)
def test_a_call_that_the_api_refuses_is_mended(block, mended):
    """A block with a text input, or without name or input, is repaired."""
    messages = [USER, asks(block), brings(native.result("a"))]
    assert find_repairs(messages) == ["messages[1]"]
    assert read_transcript(messages).messages[1] == asks(mended)


def test_only_what_the_user_says_makes_a_turn():
    """A message with results alone begins no turn."""
    results = brings(native.result("a")), brings(native.result("b"), text("use port 9090"))
    assert read_transcript(
        [USER, asks(use("a")), results[0], asks(use("b")), results[1]]
    ).users == (0, 4)


def test_a_clients_objects_are_blocks():
    """A client's objects are read as blocks."""
    said = Block(type="text", text="I look.", citations=None)
    called = Block(type="tool_use", id="a", name="read_file", input={"path": "x"})
    objects = {"role": "assistant", "content": [said, called]}
    got = read_transcript([USER, objects, brings(native.result("a"))])
    assert got.messages[1] == asks(text("I look."), use("a", path="x"))
    assert got.steps == (range(1), range(1, 3))
    marked = brings(native.result("a", cache_control={"type": "ephemeral"}))
    assert digest(marked) == digest(brings(native.result("a")))


def test_a_late_result_moves_no_words_of_the_user():
    """A result beside the user's words stays after the user's earlier words."""
    late = brings(native.result("a", "ok"), text("then"))
    whole = [USER, asks(use("a")), {"role": "user", "content": "first"}, late]
    said = "\n".join(map(text_of, read_transcript(whole).messages))
    assert said.index(MISSING_RESULT) < said.index("first") < said.index("ok") < said.index("then")
