"""The strict twins of Anthropic's messages API and OpenAI's responses API."""

from typing import Any

import httpx
import pytest

from praison_compressor.testing import Call, LocalProvider, Reply

USER: Any = {"role": "user", "content": "hi"}
PARAMETERS: Any = {"type": "object", "properties": {"path": {"type": "string"}}}
THINKING = {"type": "enabled", "budget_tokens": 1024}
CALLS = (Call("read", {"path": "a"}),)

# Anthropic's.
USE: Any = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
TOOL: Any = {"name": "read", "input_schema": PARAMETERS}
MARK = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}

# Responses'.
CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "call_1", "output": "done"}


def say(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def does(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


STEP = does(USE)


def post(provider: LocalProvider, path: str, **body: Any) -> httpx.Response:
    sent = {"model": "any", **body}
    if path == "messages":
        sent = {"max_tokens": 4_000, "messages": [USER], **sent}
    return httpx.post(f"{provider.base_url}/{path}", json=sent, timeout=20)


MESSAGES = [
    ([], "at least one message is required"),
    ([{"role": "assistant", "content": "yes"}, USER], 'first message must use the "user" role'),
    ([USER, {"role": "tool", "content": "s"}], 'Unexpected role "tool"'),
    ([{**USER, "_summary": 1}], "messages.0._summary: Extra inputs are not permitted"),
    ([{"role": "user", "content": ""}], "must have non-empty content"),
    ([say({"type": "text", "text": "a", "id": 1})], "text.id: Extra inputs are not permitted"),
    ([say(USE)], "Input tag 'tool_use' found"),
    ([USER, does({**USE, "id": "a.b"})], "should match pattern"),
    ([USER, does({**USE, "input": "{}"})], "should be a valid dictionary"),
    ([USER, does({"type": "text", "text": "well"}), say(RESULT)], "unexpected `tool_use_id`"),
    ([USER, STEP, USER], "without `tool_result` blocks immediately after: toolu_1"),
    ([USER, STEP], "without `tool_result` blocks"),
    ([USER, STEP, say(RESULT, RESULT)], "must have a single result"),
    ([USER, does(USE, USE), say(RESULT)], "ids must be unique"),
    ([USER, STEP, say({"type": "text", "text": "w"}, RESULT)], "must come before"),
    ([USER, does({"type": "thinking", "thinking": "hm"}), USER], "thinking.signature"),
    (
        [USER, does({"type": "thinking", "thinking": "hm", "signature": "x"}), USER],
        "Invalid `signature` in `thinking` block",
    ),
]
INPUTS = [
    ([], "empty array"),
    ([{"type": "thought"}], "Invalid value: 'thought'."),
    ([{**USER, "_summary": 1}], "Unknown parameter: 'input[0]._summary'."),
    ([{"role": "user", "content": None}], "array of objects or string"),
    ([say({"type": "text", "text": "hi"})], "Invalid value: 'text'."),
    ([USER, {"type": "function_call", "name": "read", "arguments": "{}"}], "'input[1].call_id'."),
    ([USER, {**CALL, "arguments": {}}, OUTPUT], "expected a string, but got an object"),
    ([USER, OUTPUT], "No tool call found for function call output with call_id call_1."),
    ([USER, CALL], "No tool output found for function call call_1."),
    ([USER, CALL, CALL, OUTPUT], "Duplicate function call"),
    ([USER, {"type": "reasoning", "id": "r", "summary": []}, USER], "required following item"),
]
REFUSED = [
    *(("messages", {"messages": messages}, said) for messages, said in MESSAGES),
    ("messages", {"max_tokens": 0}, "greater than or equal to 1"),
    ("messages", {"n": 1}, "n: Extra inputs are not permitted"),
    ("messages", {"tools": [{"function": {}}]}, "tools.0.custom.name: String should match"),
    ("messages", {"system": [MARK] * 3, "messages": [say(MARK, MARK)]}, "A maximum of 4 blocks"),
    *(("responses", {"input": given}, said) for given, said in INPUTS),
    ("responses", {"input": "hi", "max_tokens": 3}, "Unknown parameter: 'max_tokens'."),
    ("responses", {"input": "hi", "tools": [{"type": "function"}]}, "'tools[0].name'."),
]


@pytest.mark.parametrize(("path", "body", "said"), REFUSED)
def test_a_request_that_the_api_refuses_is_refused(provider, path, body, said):
    """A refusal has the API's words and is recorded."""
    reply = post(provider, path, **body)
    assert reply.status_code == 400
    assert said in reply.json()["error"]["message"]
    assert provider.refused == provider.requests


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("messages", {"messages": [USER, USER]}),
        ("messages", {"messages": [USER, STEP, say(RESULT, {"type": "text", "text": "go on"})]}),
        ("messages", {"messages": [USER, {"role": "assistant", "content": "The answer is"}]}),
        ("responses", {"input": [USER, CALL, {**OUTPUT, "output": ""}, USER]}),
    ],
)
def test_strict_is_not_stricter_than_the_api(provider, path, body):
    """Each provider answers every request that its API accepts."""
    assert post(provider, path, **body).status_code == 200


# ---------------------------------------------------------------- thinking
def test_signed_thinking_must_come_back_as_it_was_issued(provider):
    """Signed thinking that was changed, moved or dropped is refused."""
    provider.answer_with(lambda asked: Reply("Wait.", CALLS, thinking="I should read."))
    thought, text, use = post(provider, "messages", thinking=THINKING).json()["content"]
    result = {**RESULT, "tool_use_id": use["id"]}
    cases = [
        ([thought, text, use], say(result), None),
        ([{**thought, "thinking": "I"}, text, use], say(result), "Invalid `signature`"),
        ([thought, text], USER, "cannot be modified"),
        ([text, use, thought], say(result), "cannot be modified"),
        ([text, use], say(result), "Expected `thinking` or `redacted_thinking`"),
    ]
    for blocks, last, said in cases:
        sent = [USER, does(*blocks), last]
        reply = post(provider, "messages", messages=sent, thinking=THINKING)
        assert reply.status_code == (400 if said else 200)
        assert (said or "") in reply.text
    finished = [USER, does(text, use), say(result), does(text), USER]
    assert post(provider, "messages", messages=finished, thinking=THINKING).status_code == 200


def test_a_call_and_its_reasoning_item_stay_together(provider):
    """A call without its reasoning item is refused, and the reverse."""
    provider.answer_with(lambda asked: Reply(calls=CALLS, thinking="I should read."))
    reasoning, call = post(provider, "responses", input="hi").json()["output"]
    output = {**OUTPUT, "call_id": call["call_id"]}
    both = post(provider, "responses", input=[USER, reasoning, call, output])
    lost = post(provider, "responses", input=[USER, call, output])
    alone = post(provider, "responses", input=[USER, reasoning, USER])
    assert both.status_code == 200
    assert "without its required 'reasoning' item" in lost.text
    assert "without its required following item" in alone.text
