"""Items of OpenAI's Responses API as messages, and back."""

import copy
import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor import InvalidMessages, TokenCounter, to_items, to_messages
from praison_compressor.messages import read_transcript, text_of
from tests.helpers.compressing import compressor
from tests.helpers.native import Block
from tests.helpers.transcripts import Message

texts = st.text(min_size=1, max_size=20).filter(str.strip)
ids = st.integers(0, 10_000).map(lambda n: f"call_{n}")


@st.composite
def tool_steps(draw: st.DrawFn) -> list[Message]:
    """Generate an answer of reasoning, words and calls, with outputs."""
    names = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    items = draw(st.lists(st.just({"type": "reasoning", "id": "rs_1", "summary": []}), max_size=1))
    items += [{"role": "assistant", "content": draw(texts)}] * draw(st.integers(0, 1))
    items += [
        {"type": "function_call", "call_id": i, "name": draw(texts), "arguments": "{}"}
        for i in names
    ]
    return items + [
        {"type": "function_call_output", "call_id": i, "output": draw(texts)} for i in names
    ]


@st.composite
def requests(draw: st.DrawFn) -> list[Message]:
    """Generate items as the host builds them."""
    items: list[Message] = []
    for _ in range(draw(st.integers(1, 5))):
        items.append({"role": "user", "content": draw(texts)})
        for step in draw(st.lists(tool_steps(), max_size=2)):
            items += step
        items.append({"role": "assistant", "content": draw(texts)})
    return [*items, {"role": "user", "content": draw(texts)}]


@given(requests(), st.none() | texts)
def test_items_come_back_as_they_were(items, words):
    """Converted items, converted back, are the same."""
    before = copy.deepcopy(items)
    assert to_items(to_messages(words, items)) == (words, items)
    assert items == before


def test_images_are_translated_both_ways():
    """`input_image` becomes `image_url`, and back."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Look."}, image]}]
    (message,) = to_messages(None, items)
    assert message["content"][1]["image_url"] == {"url": image["image_url"], "detail": "low"}
    assert to_items([message]) == (None, items)


def items(turns: int) -> list[Message]:
    """Return a session of a reasoning model that reads a file a turn."""
    found: list[Message] = []
    for t in range(turns):
        asks = {"call_id": f"c{t}", "name": "read_file", "arguments": f'{{"path": "src/{t}.py"}}'}
        sealed = {"id": f"rs_c{t}", "summary": [], "encrypted_content": "x" * 40}
        output = {"call_id": f"c{t}", "output": "lorem ipsum dolor " * 150}
        found += [
            {"role": "user", "content": f"Look at part {t}."},
            {"type": "reasoning", **sealed},
            {"type": "function_call", **asks},
            {"type": "function_call_output", **output},
        ]
    return found


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_item_is_no_message_and_the_refusal_says_what_to_do(at):
    """The refusal names the item, its place and the converter."""
    before = items(1)
    with pytest.raises(InvalidMessages) as caught:
        read_transcript([before[0], before[at]])
    assert caught.value.index == 1
    assert before[at]["type"] in str(caught.value)
    assert "praison_compressor: to_messages" in str(caught.value)


def test_items_are_compressed_by_way_of_messages():
    """Compressed items keep each call with its reasoning and output."""
    before = items(14)
    objects = [item if "role" in item else Block(**item, status=None) for item in before]
    assert to_messages(None, objects) == to_messages(None, before)
    ours = compressor()
    messages = to_messages("Be brief.", objects)
    view = ours.compress_sync(messages).messages
    instructions, sent = to_items(view)
    assert instructions == "Be brief."
    assert len(sent) < len(before)
    kinds = [item.get("type") for item in sent]
    calls = [at for at, kind in enumerate(kinds) if kind == "function_call"]
    around = {(kinds[at - 1], kinds[at + 1]) for at in calls}
    assert around == {("reasoning", "function_call_output")}
    assert to_items(ours.verbatim(view)) == ("Be brief.", before)


def answered_call(kind: str, given: Message, output: object, **more: object) -> list[Message]:
    call = {"type": f"{kind}_call", "call_id": "c", "status": "completed", **given}
    return [call, {"type": f"{kind}_call_output", "call_id": "c", "output": output, **more}]


LONG = "found a line of it " * 500
SHELL = [{"stdout": LONG, "stderr": "w", "outcome": {"type": "exit", "exit_code": 2}}]
OF_EACH_KIND = [
    answered_call("custom_tool", {"name": "grep", "input": "a b", "id": "ct_1"}, LONG),
    answered_call("local_shell", {"action": {"type": "exec", "command": ["ls"]}}, LONG),
    answered_call("shell", {"action": {"commands": ["ls"]}}, SHELL, max_output_length=9),
    answered_call("apply_patch", {"operation": {"type": "delete_file", "path": "a"}}, LONG),
    [{"type": "web_search_call", "id": "w", "action": {"type": "search", "query": LONG}}],
    [{"type": "file_search_call", "id": "f", "queries": [], "results": [{"text": LONG}]}],
    [{"type": "code_interpreter_call", "id": "i", "outputs": [{"type": "logs", "logs": LONG}]}],
    [{"type": "mcp_call", "id": "m", "name": "t", "arguments": "{}", "output": LONG}],
]


@pytest.mark.parametrize("made", OF_EACH_KIND, ids=lambda made: made[0]["type"])
def test_every_item_is_counted_read_and_comes_back(made):
    """An item of any kind is converted without loss."""
    before = [{"role": "user", "content": "go"}, *made]
    messages = to_messages(None, before)
    counter = TokenCounter("gpt-4o")
    assert counter.messages(messages) > counter.text(LONG)
    assert LONG.strip() in "".join(map(text_of, messages))
    transcript = read_transcript(messages)
    assert transcript.stub_count == 0
    assert to_items(transcript.messages) == (None, before)


@pytest.mark.parametrize("made", OF_EACH_KIND[:4], ids=lambda made: made[0]["type"])
def test_a_shortened_output_keeps_the_shape_of_its_item(made):
    """A masked output is sent back as an output of the same kind."""
    _, call, result = to_messages(None, [{"role": "user", "content": "go"}, *made])
    _, (back, output) = to_items([call, {**result, "content": "[masked]"}])
    assert back == made[0]
    assert (output["type"], output["call_id"]) == (made[1]["type"], "c")
    assert "[masked]" in str(output["output"])


@pytest.mark.parametrize("odd", [{"type": "telepathy"}, {"a": 1}, 3, "x", None, {"type": ["x"]}])
def test_an_unknown_item_is_refused_with_its_index(odd):
    """The error names the unknown item and its index."""
    with pytest.raises(InvalidMessages) as caught:
        to_messages(None, [{"role": "user", "content": "go"}, odd])
    assert caught.value.index == 1


@pytest.mark.parametrize("wrong", [5, {"role": "user"}, object(), [None], [5]])
def test_what_is_no_list_is_refused_either_way(wrong):
    """Both converters refuse what is no list of mappings, as `compress` does."""
    for convert in (functools.partial(to_messages, None), to_items):
        with pytest.raises(InvalidMessages, match="expected a"):
            convert(wrong)
