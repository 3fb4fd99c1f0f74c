"""A request of the host is read and written in each API's shape, and its conversation known."""

from __future__ import annotations

import copy

from praisonaiagents.llm.llm import LLM

from praison_compressor.messages import digest
from praison_compressor.praisonai.requests import CHAT, RESPONSES

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
