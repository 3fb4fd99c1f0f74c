"""A request of the host is read and written in each API's shape, and its conversation known."""

from __future__ import annotations

import copy

from praisonaiagents.llm.llm import LLM

from praison_compressor.messages import digest
from praison_compressor.praisonai.requests import CHAT, RESPONSES, unbound, without_calls

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


def test_another_models_thinking_is_left_out() -> None:
    """Signed thinking, reasoning and the items that name it are only their own model's."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "x", "signature": "s"},
            {"type": "text", "text": "t"},
        ],
        "thinking_blocks": [{"type": "thinking", "thinking": "x", "signature": "s"}],
        "reasoning_content": "x",
        "response_items": [{"type": "reasoning", "id": "rs_1", "summary": []}],
        "tool_calls": [{**call, "response_item": {"id": "fc_1", "status": "completed"}}],
    }
    assert unbound(message) == {
        "role": "assistant",
        "content": [{"type": "text", "text": "t"}],
        "tool_calls": [call],
    }


def test_calls_and_results_as_text() -> None:
    """A provider that refuses calls without tools gets both in words."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "found"},
    ]
    assert without_calls(messages) == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": 'Looking.\n-> look({"at": 1})'},
        {"role": "user", "content": "[tool result of look]\nfound"},
    ]


def test_an_item_of_a_newer_api_goes_out_as_it_is() -> None:
    """A request with an unknown item is not read, so it is sent untouched."""
    items = [{"role": "user", "content": "go"}, {"type": "telepathy", "id": "t"}]
    assert RESPONSES.read({"model": "m", "input": items}) is None
