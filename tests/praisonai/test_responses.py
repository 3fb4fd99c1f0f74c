"""The Responses API's items and chat messages say the same, in both directions."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from praisonaiagents.llm.llm import LLM

from praison_compressor.messages import check, digest, steps
from praison_compressor.messages.responses import to_items, to_messages
from praison_compressor.praisonai.requests import CHAT, RESPONSES

texts = st.text(min_size=1, max_size=20).filter(str.strip)
ids = st.integers(0, 10_000).map(lambda n: f"call_{n}")


def said(role: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"role": st.just(role), "content": texts})


@st.composite
def tool_steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An answer with calls, and their outputs."""
    names = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    items = draw(st.lists(said("assistant"), max_size=1))
    items += [
        {"type": "function_call", "call_id": i, "name": draw(texts), "arguments": "{}"}
        for i in names
    ]
    return items + [
        {"type": "function_call_output", "call_id": i, "output": draw(texts)} for i in names
    ]


@st.composite
def requests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Items as the host builds them from a conversation."""
    items: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        items.append(draw(said("user")))
        for step in draw(st.lists(tool_steps(), max_size=2)):
            items += step
        items.append(draw(said("assistant")))
    return [*items, draw(said("user"))]


@given(requests(), st.none() | texts)
def test_items_come_back_as_they_were(items: list[dict[str, Any]], words: str | None) -> None:
    """What nobody changed is sent byte for byte as the host built it."""
    before = copy.deepcopy(items)
    assert to_items(to_messages(words, items)) == (words, items)
    assert items == before


@given(requests())
def test_items_are_a_valid_conversation(items: list[dict[str, Any]]) -> None:
    """Every call is followed by its results within one step."""
    messages = to_messages("Keep the books.", items)
    assert check(messages) == []
    calls = [m for m in messages if m.get("tool_calls")]
    assert sum(len(s) > 1 for s in map(list, steps(messages))) == len(calls)


CONVERSATION = [
    {"role": "system", "content": "Keep the books."},
    {"role": "user", "content": "How many ledgers?"},
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": "count", "arguments": '{"n": 1}'}}
            for i in ("call_1", "call_2")
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "four"},
    {"role": "tool", "tool_call_id": "call_2", "content": "five"},
    {"role": "assistant", "content": "Nine."},
    {"role": "user", "content": [{"type": "text", "text": "And these?"}]},
]


def test_equal_words_have_equal_digests_on_both_apis() -> None:
    """`iter_stream` sends chat messages where `chat` sends items: one ledger serves both."""
    params = LLM(model="openai/gpt-4o-mini", api_key="sk")._build_responses_params(CONVERSATION)
    read = RESPONSES.read(params)
    assert read is not None
    assert [*map(digest, read.messages)] == [*map(digest, CONVERSATION)]


def test_a_summary_is_sent_as_the_hosts_builder_would(  # the view, not the conversation
) -> None:
    """Our items for a view are those that the host's own builder makes of the same messages."""
    llm = LLM(model="openai/gpt-4o-mini", api_key="sk")
    view = [CONVERSATION[0], {"role": "user", "content": "[summary]"}, *CONVERSATION[2:]]
    built = llm._build_responses_params(view)
    written = RESPONSES.write(llm._build_responses_params(CONVERSATION), view)
    assert written["input"] == built["input"]
    assert written["instructions"] == built["instructions"]


def test_reasoning_stays_with_its_calls() -> None:
    """The API refuses a call without its reasoning item: both are one message, so one step."""
    items = [
        {"role": "user", "content": "Go."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": "2"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        },
        {"role": "user", "content": "Thanks."},
    ]
    messages = to_messages(None, items)
    assert [m["role"] for m in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert to_items(messages) == (None, items)


def test_images_are_translated_both_ways() -> None:
    """`input_image` and `image_url` are one thing."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Look."}, image]}]
    (message,) = to_messages(None, items)
    assert message["content"][1]["image_url"] == {"url": image["image_url"], "detail": "low"}
    assert to_items([message]) == (None, items)


def test_what_goes_on_from_a_stored_response_is_left_alone() -> None:
    """It carries only what is new: there is no conversation in it to compress."""
    assert RESPONSES.read({"model": "m", "input": "x", "previous_response_id": "r"}) is None
    assert RESPONSES.read({"model": "m", "input": "x", "conversation": "c"}) is None
    assert RESPONSES.read({"model": "m", "input": [object()]}) is None
    assert CHAT.read({"model": "m", "prompt": "x"}) is None


def test_parameters_are_not_touched() -> None:
    """Writing makes new parameters; tools, schema and the caller's own dictionary stay.

    A stream is asked for its usage beside what else the caller wants; a refusal takes that back.
    """
    params = {"model": "m", "messages": CONVERSATION, "tools": [{"name": "t"}], "stream": True}
    params["extra_body"] = {"top_k": 1}
    before = copy.deepcopy(params)
    written = CHAT.write(params, CONVERSATION[-1:])
    assert params == before
    body = {"top_k": 1, "stream_options": {"include_usage": True}}
    assert written == {**before, "messages": CONVERSATION[-1:], "extra_body": body}
    written = CHAT.write(params, CONVERSATION[-1:], ("stream_options",))
    assert written == {**before, "messages": CONVERSATION[-1:]}


def test_what_else_a_request_needs_is_read() -> None:
    """Tools, the answer's length and its schema, in both APIs' words."""
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    tools = [{"type": "function", "function": {"name": "f"}}]
    chat = CHAT.read(
        {"model": "m", "messages": [], "tools": tools, "max_tokens": 5, "response_format": form}
    )
    assert chat is not None
    assert (chat.model, chat.tools, chat.output_tokens) == ("m", tools, 5)
    assert "json_schema" in chat.schema
    words = RESPONSES.read({"model": "m", "input": "Hi", "max_output_tokens": 7, "text": form})
    assert words is not None
    assert (words.messages, words.output_tokens) == ([{"role": "user", "content": "Hi"}], 7)
    assert "json_schema" in words.schema
