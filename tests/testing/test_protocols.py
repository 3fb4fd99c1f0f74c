"""What the strict provider and its twins of two more APIs refuse, in each API's words."""

from typing import Any

import httpx
import pytest

from praison_compressor.testing import Call, LocalProvider, Refusal, Reply, Rules, check_messages
from tests.helpers.native import asks, brings
from tests.helpers.provider import strict_provider

USER: Any = {"role": "user", "content": "hi"}
ASSISTANT: Any = {"role": "assistant", "content": "yes"}
CALL: Any = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
STEP: Any = {"role": "assistant", "content": None, "tool_calls": [CALL]}
BOTH: Any = {**STEP, "tool_calls": [CALL, {**CALL, "id": "call_2"}]}
RESULT: Any = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
TOOL: Any = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


def with_call(**changes: Any) -> list[Any]:
    """Return a valid step with a changed call; None removes a key."""
    call = {key: value for key, value in {**CALL, **changes}.items() if value is not None}
    return [USER, {**STEP, "tool_calls": [call]}, RESULT]


def with_function(**changes: Any) -> list[Any]:
    return with_call(function={**CALL["function"], **changes})


MESSAGES = [
    ([], "empty array"),
    (["hi"], "'messages[0]': expected an object"),
    ([{**USER, "_summary": True}], "Unknown parameter: 'messages[0]._summary'."),
    ([USER, {**ASSISTANT, "reasoning_content": "so"}], "'messages[1].reasoning_content'."),
    ([{**USER, "role": "robot"}], "Invalid value: 'robot'. Supported values are: 'system',"),
    ([{"role": "user", "content": ""}], "empty string"),
    ([{"role": "user", "content": None}], "'content': expected a string, got null."),
    ([USER, {"role": "assistant", "content": None}], "got null"),
    ([brings({"type": "thinking", "thinking": "hm"})], "Invalid value: 'thinking'."),
    ([brings({"type": "text", "text": "a", "cache_control": {}})], "content[0].cache_control'."),
    ([USER, {**STEP, "tool_calls": []}], "empty array"),
    (with_call(id=None), "Missing required parameter: 'messages[1].tool_calls[0].id'."),
    (with_call(type="tool"), "Invalid value: 'tool'"),
    (with_call(index=0), "tool_calls[0].index"),
    (with_function(name="a b"), "does not match pattern"),
    (with_function(arguments={"path": "a"}), "expected a string, but got an object instead."),
    (with_function(arguments="{"), "not valid JSON"),
    ([USER, RESULT], "must be a response to a preceeding message"),
    ([USER, STEP, {**RESULT, "tool_call_id": "call_9"}], "must be a response to a preceeding"),
    ([USER, STEP, RESULT, USER, RESULT], "must be a response to a preceeding"),
    ([USER, STEP, RESULT, RESULT], "must be a response to a preceeding"),
    ([USER, STEP, USER], "The following tool_call_ids did not have response messages: call_1"),
    ([USER, STEP], "did not have response messages"),
    ([USER, BOTH, RESULT], "did not have response messages: call_2"),
    ([USER, {**STEP, "tool_calls": [CALL, CALL]}, RESULT], "Duplicate value"),
]
REFUSED = [
    *(({"messages": messages}, said) for messages, said in MESSAGES),
    ({"model": None}, "you must provide a model parameter"),
    ({"ttl": 3}, "Unrecognized request argument supplied: ttl"),
    ({"tools": []}, "empty array"),
    ({"tools": [{**TOOL, "type": "tool"}]}, "Invalid value"),
    ({"tools": [{**TOOL, "function": {}}]}, "'tools[0].function.name'."),
    (
        {"tools": [{**TOOL, "function": {"name": "a", "parameters": {"type": "string"}}}]},
        "schema must be a JSON Schema of 'type: \"object\"'",
    ),
    ({"tool_choice": "auto"}, "only allowed when 'tools'"),
]
ACCEPTED = [
    [{"role": "system", "content": "be good"}, USER, STEP, RESULT],  # a whole step
    [USER, {**STEP, "content": ""}, RESULT],  # a step with empty text
    [USER, STEP, {**RESULT, "content": ""}],  # a silent tool
    [USER, BOTH, {**RESULT, "tool_call_id": "call_2"}, RESULT],  # answers out of order
    [USER, STEP, RESULT, STEP, RESULT],  # an id used again in a later step
    [USER, {**ASSISTANT, "refusal": None, "annotations": []}, USER],  # a reply sent back
    [brings({"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "b"}})],
    [USER, {"role": "system", "content": "new date"}],  # a system message anywhere
    [USER, USER],  # two users in a row
]

# ---------------------------------------------------------------- the twins

THINKING = {"type": "enabled", "budget_tokens": 1024}
READS = (Call("read", {"path": "a"}),)

# Anthropic's.
USE: Any = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
ANSWER: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
MARK = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}

# Responses'.
ITEM = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "call_1", "output": "done"}


USES = asks(USE)


NATIVE = [
    ([], "at least one message is required"),
    ([{"role": "assistant", "content": "yes"}, USER], 'first message must use the "user" role'),
    ([USER, {"role": "tool", "content": "s"}], 'Unexpected role "tool"'),
    ([{**USER, "_summary": 1}], "messages.0._summary: Extra inputs are not permitted"),
    ([{"role": "user", "content": ""}], "must have non-empty content"),
    ([brings({"type": "text", "text": "a", "id": 1})], "text.id: Extra inputs are not permitted"),
    ([brings(USE)], "Input tag 'tool_use' found"),
    ([USER, asks({**USE, "id": "a.b"})], "should match pattern"),
    ([USER, asks({**USE, "input": "{}"})], "should be a valid dictionary"),
    ([USER, asks({"type": "text", "text": "well"}), brings(ANSWER)], "unexpected `tool_use_id`"),
    ([USER, USES, USER], "without `tool_result` blocks immediately after: toolu_1"),
    ([USER, USES], "without `tool_result` blocks"),
    ([USER, USES, brings(ANSWER, ANSWER)], "must have a single result"),
    ([USER, asks(USE, USE), brings(ANSWER)], "ids must be unique"),
    ([USER, USES, brings({"type": "text", "text": "w"}, ANSWER)], "must come before"),
    ([USER, asks({"type": "thinking", "thinking": "hm"}), USER], "thinking.signature"),
    (
        [USER, asks({"type": "thinking", "thinking": "hm", "signature": "x"}), USER],
        "Invalid `signature` in `thinking` block",
    ),
]
INPUTS = [
    ([], "empty array"),
    ([{"type": "thought"}], "Invalid value: 'thought'."),
    ([{**USER, "_summary": 1}], "Unknown parameter: 'input[0]._summary'."),
    ([{"role": "user", "content": None}], "array of objects or string"),
    ([brings({"type": "text", "text": "hi"})], "Invalid value: 'text'."),
    ([USER, {"type": "function_call", "name": "read", "arguments": "{}"}], "'input[1].call_id'."),
    ([USER, {**ITEM, "arguments": {}}, OUTPUT], "expected a string, but got an object"),
    ([USER, OUTPUT], "No tool call found for function call output with call_id call_1."),
    ([USER, ITEM], "No tool output found for function call call_1."),
    ([USER, ITEM, ITEM, OUTPUT], "Duplicate function call"),
    ([USER, {"type": "reasoning", "id": "r", "summary": []}, USER], "required following item"),
]
TWINS_REFUSE = [
    *(("messages", {"messages": messages}, said) for messages, said in NATIVE),
    ("messages", {"max_tokens": 0}, "greater than or equal to 1"),
    ("messages", {"n": 1}, "n: Extra inputs are not permitted"),
    ("messages", {"tools": [{"function": {}}]}, "tools.0.custom.name: String should match"),
    ("messages", {"system": [MARK] * 3, "messages": [brings(MARK, MARK)]}, "A maximum of 4 blocks"),
    *(("responses", {"input": given}, said) for given, said in INPUTS),
    ("responses", {"input": "hi", "max_tokens": 3}, "Unknown parameter: 'max_tokens'."),
    ("responses", {"input": "hi", "tools": [{"type": "function"}]}, "'tools[0].name'."),
]


TWINS_ACCEPT = [
    ("messages", {"messages": [USER, USER]}),
    ("messages", {"messages": [USER, USES, brings(ANSWER, {"type": "text", "text": "go on"})]}),
    ("messages", {"messages": [USER, {"role": "assistant", "content": "The answer is"}]}),
    ("responses", {"input": [USER, ITEM, {**OUTPUT, "output": ""}, USER]}),
]


@pytest.fixture(scope="module")
def strict():
    with strict_provider() as running:
        yield running


CHAT = "chat/completions"
EVERY_ONE = {CHAT: {"messages": [USER]}, "messages": {"max_tokens": 4_000, "messages": [USER]}}


def post(provider: LocalProvider, path: str = CHAT, **body: Any) -> httpx.Response:
    sent = {"model": "gpt-4o", **EVERY_ONE.get(path, {}), **body}
    return httpx.post(f"{provider.base_url}/{path}", json=sent, timeout=30)


@pytest.mark.parametrize(
    ("path", "body", "said"), [*((CHAT, *each) for each in REFUSED), *TWINS_REFUSE]
)
def test_a_request_that_the_api_refuses_is_refused(strict, path, body, said):
    """A refusal is recorded as a 400 with the API's words."""
    answer = post(strict, path, **body)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert said in error["message"]
    assert strict.refused[-1] is strict.requests[-1]
    assert strict.requests[-1].error == error["message"]
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type"} | (set() if path == "messages" else {"param", "code"})


@pytest.mark.parametrize(
    ("path", "body"), [*((CHAT, {"messages": each}) for each in ACCEPTED), *TWINS_ACCEPT]
)
def test_strict_is_not_stricter_than_the_api(strict, path, body):
    """The provider answers every request that the API accepts."""
    answer = post(strict, path, **body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"model": "\\ud800"}', b"\xff\xfe"])
def test_a_body_that_is_no_json_is_refused(strict, raw):
    """Broken JSON, lone surrogates and invalid UTF-8 are refused."""
    answer = httpx.post(strict.base_url + "/chat/completions", content=raw)
    assert answer.status_code == 400
    assert strict.requests[-1].refused


@pytest.mark.parametrize(
    "messages",
    [[USER, USER], [USER, ASSISTANT, ASSISTANT], [ASSISTANT, USER], [USER, STEP, RESULT, USER]],
)
def test_a_template_that_alternates_refuses_two_in_a_row(messages):
    """`alternate` refuses two messages of one role in a row."""
    with pytest.raises(Refusal, match="must alternate user and assistant"):
        check_messages(messages, Rules(alternate=True))
    check_messages([USER, STEP, RESULT, ASSISTANT], Rules(alternate=True))


def test_a_user_after_a_result_can_be_refused():
    """`answered_results` wants an assistant's words between, as Mistral does."""
    with pytest.raises(Refusal, match="Unexpected role 'user' after role 'tool'"):
        check_messages([USER, STEP, RESULT, USER], Rules(answered_results=True))
    check_messages([USER, USER, STEP, RESULT, ASSISTANT, USER], Rules(answered_results=True))


ABOVE = [{"role": "user", "content": "word " * 100}]


def test_the_window_counts_tools_and_completion():
    """Each model's window is enforced, tools and completion included."""
    with LocalProvider(window=9_000) as provider:
        provider.set_window(100, "gpt-4o")
        post(provider, messages=ABOVE)
        post(provider, max_tokens=99)
        post(provider, tools=[{**TOOL, "function": {"name": "a", "description": "word " * 120}}])
        assert post(provider).status_code == 200
        assert post(provider, model="other", max_tokens=99).status_code == 200
        provider.set_window(200, "gpt-4o")
        assert post(provider, max_tokens=99).status_code == 200
    assert provider.refused == provider.requests[:3]
    assert provider.over_window == [provider.requests[0], provider.requests[2]]


def test_the_window_is_enforced_in_the_words_of_the_api():
    """A refusal has the API's code, words and numbers."""
    with LocalProvider(window=100) as provider:
        error = post(provider, messages=ABOVE).json()["error"]
        capped = post(provider, max_tokens=99)
    tokens = provider.requests[0].prompt_tokens
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == (
        "This model's maximum context length is 100 tokens. However, your messages resulted in "
        f"{tokens} tokens. Please reduce the length of the messages."
    )
    assert 100 < tokens < 120
    assert "99 in the completion" in capped.json()["error"]["message"]


# ---------------------------------------------------------------- thinking
def test_signed_thinking_must_come_back_as_it_was_issued(strict):
    """Signed thinking that was changed, moved or dropped is refused."""
    strict.answer_with(lambda asked: Reply("Wait.", READS, thinking="I should read."))
    thought, text, use = post(strict, "messages", thinking=THINKING).json()["content"]
    result = {**ANSWER, "tool_use_id": use["id"]}
    cases = [
        ([thought, text, use], brings(result), None),
        ([{**thought, "thinking": "I"}, text, use], brings(result), "Invalid `signature`"),
        ([thought, text], USER, "cannot be modified"),
        ([text, use, thought], brings(result), "cannot be modified"),
        ([text, use], brings(result), "Expected `thinking` or `redacted_thinking`"),
    ]
    for blocks, last, said in cases:
        sent = [USER, asks(*blocks), last]
        reply = post(strict, "messages", messages=sent, thinking=THINKING)
        assert reply.status_code == (400 if said else 200)
        assert (said or "") in reply.text
    finished = [USER, asks(text, use), brings(result), asks(text), USER]
    assert post(strict, "messages", messages=finished, thinking=THINKING).status_code == 200


def test_a_call_and_its_reasoning_item_stay_together(strict):
    """Neither a call nor its reasoning item is accepted alone."""
    strict.answer_with(lambda asked: Reply(calls=READS, thinking="I should read."))
    reasoning, call = post(strict, "responses", input="hi").json()["output"]
    output = {**OUTPUT, "call_id": call["call_id"]}
    both = post(strict, "responses", input=[USER, reasoning, call, output])
    lost = post(strict, "responses", input=[USER, call, output])
    alone = post(strict, "responses", input=[USER, reasoning, USER])
    assert both.status_code == 200
    assert "without its required 'reasoning' item" in lost.text
    assert "without its required following item" in alone.text
