"""The messages API of the strict provider: refusals, signed thinking, streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import litellm
import pytest

from praison_compressor.testing import Call, LocalProvider, Reply, Worker

TOOL: Any = {
    "name": "read",
    "description": "Read a file.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}
USER = {"role": "user", "content": "hi"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
STEP = {"role": "assistant", "content": [USE]}
OUTPUT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
RESULT = {"role": "user", "content": [OUTPUT]}
ANSWER = {"role": "assistant", "content": "yes"}
THINKING = {"type": "enabled", "budget_tokens": 1024}


def say(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


REFUSED: dict[str, tuple[Any, str]] = {
    "no messages": ([], "at least one message is required"),
    "not a list": ({}, "Input should be a valid list"),
    "not an object": (["hi"], "messages.0: Input should be a valid dictionary"),
    "an assistant first": ([ANSWER, USER], 'first message must use the "user" role'),
    "a system message": ([{"role": "system", "content": "s"}, USER], 'Unexpected role "system"'),
    "a tool message": ([USER, {"role": "tool", "content": "s"}], 'Unexpected role "tool"'),
    "a private key": ([{**USER, "_summary": 1}], "messages.0._summary: Extra inputs are not"),
    "no content": ([{"role": "user"}], "messages.0.content: Field required"),
    "empty content": ([{"role": "user", "content": ""}], "must have non-empty content"),
    "no blocks": ([say()], "must have non-empty content"),
    "an empty assistant": ([USER, answer(), USER], "must have non-empty content"),
    "blank content": ([{"role": "user", "content": " \n"}], "non-whitespace text"),
    "an empty block": ([say({"type": "text", "text": ""})], "must be non-empty"),
    "a block without type": ([say({"text": "hi"})], "messages.0.content.0.type: Field required"),
    "an unknown block": ([say({"type": "image_url"})], "Input tag 'image_url' found"),
    "an unknown key in a block": (
        [say({"type": "text", "text": "a", "id": 1})],
        "messages.0.content.0.text.id: Extra inputs are not permitted",
    ),
    "an image without source": ([say({"type": "image"})], "image.source: Field required"),
    "a call by the user": ([say(USE)], "Input tag 'tool_use' found"),
    "a result by the assistant": ([USER, answer(OUTPUT)], "Input tag 'tool_result' found"),
    "a call without id": (
        [USER, answer({"type": "tool_use", "name": "a", "input": {}})],
        "tool_use.id: Field required",
    ),
    "an id with dots": ([USER, answer({**USE, "id": "a.b"})], "should match pattern"),
    "input as text": ([USER, answer({**USE, "input": "{}"})], "should be a valid dictionary"),
    "a result without id": ([say({"type": "tool_result"})], "tool_use_id: Field required"),
    "a number as result": (
        [USER, STEP, say({**OUTPUT, "content": 3})],
        "Input should be a valid string or list",
    ),
    "an orphan result": (
        [USER, ANSWER, RESULT],
        "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    "a result much later": (
        [USER, STEP, RESULT, ANSWER, RESULT],
        "unexpected `tool_use_id` found",
    ),
    "an unanswered call": (
        [USER, STEP, USER],
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "an unanswered call at the end": ([USER, STEP], "without `tool_result` blocks"),
    "a result twice": ([USER, STEP, say(OUTPUT, OUTPUT)], "must have a single result"),
    "an id twice": ([USER, answer(USE, USE), RESULT], "ids must be unique"),
    "text before the result": (
        [USER, STEP, say({"type": "text", "text": "well"}, OUTPUT)],
        "`tool_result` blocks must come before",
    ),
    "a final assistant with white space": (
        [USER, {"role": "assistant", "content": [{"type": "text", "text": "so "}]}],
        "cannot end with trailing whitespace",
    ),
    "unsigned thinking": (
        [USER, answer({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}), USER],
        "thinking.signature: Field required",
    ),
    "forged thinking": (
        [USER, answer({"type": "thinking", "thinking": "hm", "signature": "x"}), USER],
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
}

MARK = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
REFUSED_BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "no max_tokens": ({"max_tokens": None}, "max_tokens: Field required"),
    "no tokens at all": ({"max_tokens": 0}, "greater than or equal to 1"),
    "a chat parameter": ({"n": 1}, "n: Extra inputs are not permitted"),
    "an empty system block": (
        {"system": [{"type": "text", "text": ""}]},
        "system: text content blocks must be non-empty",
    ),
    "a chat tool": ({"tools": [{"function": {}}]}, "tools.0.custom.name: Field required"),
    "a tool without schema": ({"tools": [{"name": "a"}]}, "input_schema: Field required"),
    "a schema that is no object": (
        {"tools": [{"name": "a", "input_schema": {"type": "array"}}]},
        "Input should be 'object'",
    ),
    "five cache marks": (
        {"system": [MARK, MARK, MARK], "messages": [say(MARK, MARK)]},
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "a thinking budget above the cap": (
        {"thinking": THINKING, "max_tokens": 1000},
        "must be greater than `thinking.budget_tokens`",
    ),
}


@pytest.fixture(scope="module")
def strict() -> Iterator[LocalProvider]:
    with LocalProvider() as running:
        yield running


def post(provider: LocalProvider, path: str = "/v1/messages", **changes: Any) -> httpx.Response:
    body = {"model": "claude", "max_tokens": 4000, "messages": [USER], **changes}
    sent = {key: value for key, value in body.items() if value is not None}
    return httpx.post(provider.url + path, json=sent, timeout=20)


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_messages_are_refused(strict: LocalProvider, name: str) -> None:
    """What the API refuses gets a 400 in its own shape of an error."""
    messages, said = REFUSED[name]
    reply = post(strict, messages=messages)
    assert (reply.status_code, reply.json()["type"]) == (400, "error")
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert said in reply.json()["error"]["message"]
    assert strict.requests[-1].refused


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_malformed_parameters_are_refused(strict: LocalProvider, name: str) -> None:
    """What a chat completion would have is not taken for the messages API's."""
    changes, said = REFUSED_BODIES[name]
    reply = post(strict, **changes)
    assert reply.status_code == 400
    assert said in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "messages",
    [
        [USER, USER],
        [USER, STEP, RESULT],
        [USER, STEP, say(OUTPUT, {"type": "text", "text": "go on"})],
        [USER, STEP, RESULT, USER],
        [USER, STEP, say({"type": "tool_result", "tool_use_id": "toolu_1"})],
        [USER, {"role": "assistant", "content": "The answer is"}],
    ],
)
def test_well_formed_messages_are_answered(strict: LocalProvider, messages: list[Any]) -> None:
    """Strict is not stricter than the API: neighbours of one role are merged."""
    reply = post(strict, messages=messages)
    assert reply.status_code == 200, reply.text


def test_alternation_may_be_demanded() -> None:
    """Older models and some gateways refuse two messages of one role in a row."""
    with LocalProvider(alternate=True) as provider:
        reply = post(provider, messages=[USER, USER])
    assert 'found multiple "user" roles in a row' in reply.json()["error"]["message"]


def test_a_conversation_is_read_into_chat_messages(strict: LocalProvider) -> None:
    """System, blocks, calls and results are on record in one shape for all protocols."""
    post(
        strict,
        system=[{"type": "text", "text": "be good"}],
        messages=[USER, STEP, say(OUTPUT, {"type": "text", "text": "go on"})],
        tools=[TOOL],
    )
    record = strict.requests[-1]
    roles = [message["role"] for message in record.messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    function = record.messages[2]["tool_calls"][0]["function"]
    assert function == {"name": "read", "arguments": '{"path": "a"}'}
    assert (record.protocol, record.tools[0]["function"]["name"]) == ("anthropic", "read")
    assert "go on" in record.text


def thoughtful(provider: LocalProvider) -> list[Any]:
    """Return the blocks that the model issued with thinking."""
    provider.answer_with(
        [Reply("Wait.", (Call("read", {"path": "a"}),), thinking="I should read."), "Done."]
    )
    reply = post(provider, thinking=THINKING, tools=[TOOL])
    return list(reply.json()["content"])


def finish(provider: LocalProvider, blocks: list[Any], **changes: Any) -> httpx.Response:
    """Send the blocks back with the results of their calls."""
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    told = say(*results, {"type": "text", "text": "go on"})
    messages = [USER, answer(*blocks), told]
    return post(provider, **{"messages": messages, "thinking": THINKING, **changes})


def test_thinking_is_accepted_as_it_was_issued(provider: LocalProvider) -> None:
    """Signed thinking with its calls, sent back unchanged, is fine; a cache mark may be added."""
    thought, text, use = thoughtful(provider)
    marked = {**use, "cache_control": {"type": "ephemeral"}}
    assert finish(provider, [thought, text, marked]).status_code == 200


def test_changed_thinking_is_refused(provider: LocalProvider) -> None:
    """A shortened thought no longer fits its signature."""
    thought, text, use = thoughtful(provider)
    reply = finish(provider, [{**thought, "thinking": "I should"}, text, use])
    assert "Invalid `signature`" in reply.json()["error"]["message"]


def test_moved_thinking_is_refused(provider: LocalProvider) -> None:
    """A thought in a message without the calls that it led to was moved."""
    thought, text, _ = thoughtful(provider)
    reply = finish(provider, [thought, text])
    assert "cannot be modified" in reply.json()["error"]["message"]


def test_thinking_after_its_call_is_refused(provider: LocalProvider) -> None:
    """A thought behind the call that it led to was moved too."""
    thought, text, use = thoughtful(provider)
    reply = finish(provider, [text, use, thought])
    assert "cannot be modified" in reply.json()["error"]["message"]


def test_dropped_thinking_of_the_running_step_is_refused(provider: LocalProvider) -> None:
    """While a step waits for its results, its thinking may not be dropped."""
    _, text, use = thoughtful(provider)
    reply = finish(provider, [text, use])
    assert "Expected `thinking` or `redacted_thinking`" in reply.json()["error"]["message"]


def test_thinking_of_finished_steps_may_be_dropped(provider: LocalProvider) -> None:
    """Older steps may lose their thinking; and without `thinking` in the request all may."""
    _, text, use = thoughtful(provider)
    result = say({"type": "tool_result", "tool_use_id": use["id"], "content": "ok"})
    finished = [USER, answer(text, use), result, ANSWER, USER]
    assert finish(provider, [], messages=finished).status_code == 200
    provider.answer_with(["Done."])
    assert finish(provider, [text, use], thinking=None).status_code == 200


def test_without_thinking_in_the_request_none_is_issued(provider: LocalProvider) -> None:
    """The API thinks only where it is asked to."""
    provider.answer_with([Reply("Done.", thinking="hm")])
    assert [block["type"] for block in post(provider).json()["content"]] == ["text"]


def test_the_window_is_enforced() -> None:
    """Over the window: the API's words, with the numbers; the system prompt counts."""
    with LocalProvider(window=100) as provider:
        long = post(provider, system="word " * 200)
        capped = post(provider, max_tokens=99)
    tokens = provider.requests[0].prompt_tokens
    assert long.json()["error"]["message"] == f"prompt is too long: {tokens} tokens > 100 maximum"
    assert "exceed context limit" in capped.json()["error"]["message"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Reply("done"), "end_turn"),
        (Reply(calls=(Call("read"),)), "tool_use"),
        (Reply("word " * 5000), "max_tokens"),
        (Reply(refusal="no"), "refusal"),
    ],
)
def test_stop_reasons_are_the_apis(provider: LocalProvider, given: Reply, reason: str) -> None:
    """Each way to end has its own word."""
    provider.answer_with([given])
    assert post(provider).json()["stop_reason"] == reason


def test_a_stream_carries_thinking_text_and_calls(provider: LocalProvider) -> None:
    """The events, put together again, are the reply in one piece."""
    text, thought = "A long answer, " * 20, "A long thought, " * 20
    provider.answer_with([Reply(text, (Call("read", {"path": "a"}),), thinking=thought)])
    raw = post(provider, stream=True, thinking=THINKING).text
    events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: ")]
    names = [line[7:] for line in raw.splitlines() if line.startswith("event: ")]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    joined = {
        key: "".join(delta[key] for delta in deltas if key in delta)
        for key in ("thinking", "text", "partial_json")
    }
    assert names == [event["type"] for event in events]
    assert (names[0], names[-1]) == ("message_start", "message_stop")
    assert joined == {"thinking": thought, "text": text, "partial_json": '{"path": "a"}'}
    assert len([delta for delta in deltas if delta["type"] == "signature_delta"]) == 1
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("path", ["/messages", "/v1/messages"])
def test_the_version_prefix_may_be_left_out(strict: LocalProvider, path: str) -> None:
    """Both spellings of the address work."""
    assert post(strict, path).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_litellm_holds_a_tool_loop(provider: LocalProvider, stream: bool) -> None:
    """litellm's Anthropic path: system, parallel calls, results, the answer."""
    provider.answer_with(Worker(calls=1, parallel=2, answer="It works."))
    function = {
        "name": TOOL["name"],
        "description": TOOL["description"],
        "parameters": TOOL["input_schema"],
    }

    def ask(messages: list[Any]) -> Any:
        reply = litellm.completion(
            model="anthropic/claude-sonnet-4-5",
            api_base=provider.url,
            api_key="any",
            messages=[{"role": "system", "content": "be good"}, *messages],
            tools=[{"type": "function", "function": function}],
            stream=stream,
        )
        whole = litellm.stream_chunk_builder(list(reply)) if stream else reply
        return whole.choices[0].message

    first = ask([USER])
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in first.tool_calls
    ]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
    step = {"role": "assistant", "content": None, "tool_calls": calls}
    assert ask([USER, step, *results]).content == "It works."
    assert [record.path for record in provider.requests] == ["/v1/messages"] * 2


def test_litellm_sends_signed_thinking_back(provider: LocalProvider) -> None:
    """Thinking blocks survive litellm's own messages, and are refused once they are changed."""
    provider.answer_with(Worker(calls=1, answer="It works.", thinking="I should read this."))
    function = {"name": "read", "parameters": TOOL["input_schema"]}

    def ask(messages: list[Any]) -> Any:
        reply = litellm.completion(
            model="anthropic/claude-sonnet-4-5",
            api_base=provider.url,
            api_key="any",
            messages=messages,
            tools=[{"type": "function", "function": function}],
            thinking=THINKING,
            max_tokens=4000,
        )
        return reply.choices[0].message

    first = ask([USER])
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "ok"}
    step = first.model_dump()
    assert ask([USER, step, result]).content == "It works."
    step["thinking_blocks"][0]["thinking"] = "I should"
    with pytest.raises(litellm.BadRequestError, match="Invalid `signature`"):
        ask([USER, step, result])


def test_litellm_knows_the_overflow_by_its_words() -> None:
    """litellm maps the refusal to its ContextWindowExceededError: the words are the API's."""
    with (
        LocalProvider(window=3) as provider,
        pytest.raises(litellm.ContextWindowExceededError),
    ):
        litellm.completion(
            model="anthropic/claude-sonnet-4-5",
            api_base=provider.url,
            api_key="any",
            messages=[USER],
        )
