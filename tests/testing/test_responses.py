"""The responses API of the strict provider: refusals, reasoning items, streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import litellm
import openai
import pytest

from praison_compressor.testing import Call, LocalProvider, Reply, Rules, Worker

TOOL: Any = {
    "type": "function",
    "name": "read",
    "description": "Read a file.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}
CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
USER = {"role": "user", "content": "hi"}

REFUSED: dict[str, tuple[Any, str]] = {
    "no input": (None, "Missing required parameter: 'input'."),
    "empty text": ("", "empty string"),
    "no items": ([], "empty array"),
    "an item that is no object": (["hi"], "'input[0]': expected an object"),
    "an unknown item": ([{"type": "thought"}], "Invalid value: 'thought'."),
    "a private key": ([{**USER, "_summary": 1}], "Unknown parameter: 'input[0]._summary'."),
    "a chat tool result": (
        [{"role": "tool", "tool_call_id": "x", "content": "y"}],
        "Unknown parameter: 'input[0].tool_call_id'.",
    ),
    "an unknown role": ([{"role": "tool", "content": "y"}], "Invalid value: 'tool'."),
    "no content": ([{"role": "user"}], "Missing required parameter: 'input[0].content'."),
    "null content": ([{"role": "user", "content": None}], "array of objects or string"),
    "empty content": ([{"role": "user", "content": ""}], "empty string"),
    "a chat part": (
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "Invalid value: 'text'.",
    ),
    "an input part of the assistant": (
        [USER, {"role": "assistant", "content": [{"type": "input_text", "text": "hi"}]}],
        "Supported values are: 'output_text', and 'refusal'.",
    ),
    "an empty part": (
        [{"role": "user", "content": [{"type": "input_text", "text": ""}]}],
        "empty string",
    ),
    "a call without call_id": (
        [USER, {"type": "function_call", "name": "read", "arguments": "{}"}, OUTPUT],
        "Missing required parameter: 'input[1].call_id'.",
    ),
    "arguments as an object": (
        [USER, {**CALL, "arguments": {}}, OUTPUT],
        "expected a string, but got an object",
    ),
    "an orphan output": (
        [USER, OUTPUT],
        "No tool call found for function call output with call_id call_1.",
    ),
    "an unanswered call": ([USER, CALL], "No tool output found for function call call_1."),
    "a user before the output": ([USER, CALL, USER, OUTPUT], "No tool output found"),
    "an output twice": ([USER, CALL, OUTPUT, OUTPUT], "No tool call found"),
    "a call twice": ([USER, CALL, CALL, OUTPUT], "Duplicate function call"),
    "an output without output": (
        [USER, CALL, {"type": "function_call_output", "call_id": "call_1"}],
        "Missing required parameter: 'input[2].output'.",
    ),
    "reasoning without summary": (
        [USER, {"type": "reasoning", "id": "rs_1"}],
        "Missing required parameter: 'input[1].summary'.",
    ),
    "reasoning that lost what followed it": (
        [USER, {"type": "reasoning", "id": "rs_1", "summary": []}, USER],
        "'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "a reference to nothing": (
        [USER, {"type": "item_reference", "id": "msg_9"}],
        "Item with id 'msg_9' not found.",
    ),
}

REFUSED_BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "a chat parameter": ({"max_tokens": 3}, "Unknown parameter: 'max_tokens'."),
    "a chat tool": (
        {"tools": [{"type": "function", "function": {"name": "read"}}]},
        "Missing required parameter: 'tools[0].name'.",
    ),
    "instructions that are no text": ({"instructions": [USER]}, "expected a string"),
    "a response that never was": (
        {"previous_response_id": "resp_9"},
        "Previous response with id 'resp_9' not found.",
    ),
}


@pytest.fixture(scope="module")
def strict() -> Iterator[LocalProvider]:
    with LocalProvider() as running:
        yield running


@pytest.fixture
def client(provider: LocalProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="any", max_retries=0, timeout=20)


def post(provider: LocalProvider, **body: Any) -> httpx.Response:
    sent = {key: value for key, value in {"model": "gpt-5", **body}.items() if value is not None}
    return httpx.post(provider.base_url + "/responses", json=sent, timeout=20)


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_input_is_refused(strict: LocalProvider, name: str) -> None:
    """What the API refuses gets its error, in its words."""
    given, said = REFUSED[name]
    answer = post(strict, input=given)
    assert answer.status_code in (400, 404)
    assert said in answer.json()["error"]["message"]
    assert strict.requests[-1].refused


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_malformed_parameters_are_refused(strict: LocalProvider, name: str) -> None:
    """Chat completions' shapes are not taken for the responses API's."""
    changes, said = REFUSED_BODIES[name]
    answer = post(strict, input="hi", **changes)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_a_conversation_is_read_into_chat_messages(strict: LocalProvider) -> None:
    """Instructions, items and outputs are on record in one shape for all protocols."""
    second = {**CALL, "call_id": "call_2"}
    answer = post(
        strict,
        instructions="be good",
        input=[
            USER,
            {"type": "reasoning", "id": "rs_8", "summary": [{"type": "summary_text", "text": "m"}]},
            CALL,
            second,
            OUTPUT,
            {**OUTPUT, "call_id": "call_2", "output": [{"type": "input_text", "text": "two"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "fine"}]},
        ],
        tools=[TOOL],
    )
    assert answer.status_code == 200, answer.text
    messages = strict.requests[-1].messages
    roles = [message["role"] for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["call_1", "call_2"]
    assert messages[2]["reasoning_content"] == "m"
    assert strict.requests[-1].tools[0]["function"]["name"] == "read"
    assert strict.requests[-1].protocol == "responses"


def thoughtful(provider: LocalProvider, client: openai.OpenAI) -> tuple[list[Any], list[Any]]:
    """Return what the model issued with reasoning, and the outputs that answer it."""
    provider.answer_with(
        [Reply(calls=(Call("read", {"path": "a"}),), thinking="I should read."), "Done.", "Done."]
    )
    reply = client.responses.create(model="gpt-5", input="hi", tools=[TOOL])
    issued = [item.model_dump(exclude_none=True) for item in reply.output]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
        for item in issued
        if item["type"] == "function_call"
    ]
    return issued, outputs


def test_a_call_is_accepted_with_its_reasoning(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Sent back as they were issued, reasoning and call are fine."""
    issued, outputs = thoughtful(provider, client)
    reply = client.responses.create(model="gpt-5", input=[USER, *issued, *outputs], tools=[TOOL])
    assert [item["type"] for item in issued] == ["reasoning", "function_call"]
    assert reply.output_text == "Done."


def test_a_call_without_its_reasoning_is_refused(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Who drops the reasoning item and keeps the call is told so."""
    issued, outputs = thoughtful(provider, client)
    with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
        client.responses.create(model="gpt-5", input=[USER, issued[1], *outputs], tools=[TOOL])


def test_a_call_without_item_id_is_known_only_where_the_rules_say_so() -> None:
    """The API cannot connect a bare call to its reasoning; a rule can make the provider do it."""
    for strictly, expected in ((False, 200), (True, 400)):
        rules = Rules(reasoning_by_call_id=strictly)
        with (
            LocalProvider(rules=rules) as provider,
            openai.OpenAI(base_url=provider.base_url, api_key="any") as client,
        ):
            issued, outputs = thoughtful(provider, client)
            bare = {key: value for key, value in issued[1].items() if key != "id"}
            answer = post(provider, input=[USER, bare, *outputs], tools=[TOOL])
        assert answer.status_code == expected


def test_reasoning_without_its_call_is_refused(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Who keeps the reasoning item and drops the call is told so."""
    issued, _ = thoughtful(provider, client)
    with pytest.raises(openai.BadRequestError, match="without its required following item"):
        client.responses.create(model="gpt-5", input=[USER, issued[0], USER], tools=[TOOL])


def test_a_previous_response_stands_for_its_conversation(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """`previous_response_id` brings back input and output, and counts them."""
    provider.answer_with(["blue", "still blue"])
    first = client.responses.create(model="gpt-5", input="my colour?")
    client.responses.create(model="gpt-5", input="sure?", previous_response_id=first.id)
    assert provider.requests[1].text == "my colour?\nblue\nsure?"
    assert provider.requests[1].prompt_tokens > provider.requests[0].prompt_tokens


def test_a_stream_holds_text_reasoning_and_calls(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """The official client rebuilds the same response from the events."""
    text = "Let me look at it. " * 20
    provider.answer_with([Reply(text, calls=(Call("read", {"path": "a"}),), thinking="Hm. So.")])
    with client.responses.stream(model="gpt-5", input="hi", tools=[TOOL]) as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == text
    assert len(deltas) > 10
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert final.output[2].arguments == '{"path": "a"}'
    assert final.usage is not None
    assert final.usage.input_tokens == provider.requests[0].prompt_tokens
    numbers = [event.sequence_number for event in events if hasattr(event, "sequence_number")]
    assert numbers == sorted(numbers)


def test_a_capped_answer_is_incomplete(provider: LocalProvider, client: openai.OpenAI) -> None:
    """Cut at the cap, the status and its details say so."""
    provider.answer_with(["word " * 100])
    reply = client.responses.create(model="gpt-5", input="hi", max_output_tokens=16)
    assert reply.status == "incomplete"
    assert reply.incomplete_details is not None
    assert reply.incomplete_details.reason == "max_output_tokens"


def test_the_window_is_enforced() -> None:
    """Over the window: 400 with the API's words and code; instructions count."""
    with LocalProvider(window=100) as provider:
        answer = post(provider, instructions="word " * 200, input="hi")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "exceeds the context window" in error["message"]


def test_alternation_may_be_demanded() -> None:
    """Strict chat templates sit behind this API too."""
    with LocalProvider(alternate=True) as provider:
        answer = post(provider, input=[USER, USER])
    assert "must alternate" in answer.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_litellm_bridges_chat_to_responses(provider: LocalProvider, stream: bool) -> None:
    """litellm's bridge, which the host uses for some models, gets through with tools."""
    provider.answer_with(Worker(calls=1, answer="It works."))
    chat_tool = {"type": "function", "function": {k: TOOL[k] for k in TOOL if k != "type"}}

    def ask(messages: list[Any]) -> Any:
        reply = litellm.completion(
            model="openai/responses/gpt-5",
            api_base=provider.base_url,
            api_key="any",
            messages=messages,
            tools=[chat_tool],
            stream=stream,
        )
        whole = litellm.stream_chunk_builder(list(reply)) if stream else reply
        return whole.choices[0].message

    first = ask([USER])
    call = first.tool_calls[0]
    function = {"name": call.function.name, "arguments": call.function.arguments}
    step = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call.id, "type": "function", "function": function}],
    }
    result = {"role": "tool", "tool_call_id": call.id, "content": "ok"}
    assert ask([USER, step, result]).content == "It works."
    assert {record.path for record in provider.requests} == {"/v1/responses"}
