"""Chat completions: what the strict provider refuses, in the API's words."""

from typing import Any

import httpx
import pytest

from praison_compressor.testing import LocalProvider, Refusal, Rules, check_messages

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


def says(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


MESSAGES = [
    ([], "empty array"),
    (["hi"], "'messages[0]': expected an object"),
    ([{**USER, "_summary": True}], "Unknown parameter: 'messages[0]._summary'."),
    ([USER, {**ASSISTANT, "reasoning_content": "so"}], "'messages[1].reasoning_content'."),
    ([{**USER, "role": "robot"}], "Invalid value: 'robot'. Supported values are: 'system',"),
    ([{"role": "user", "content": ""}], "empty string"),
    ([{"role": "user", "content": None}], "'content': expected a string, got null."),
    ([USER, {"role": "assistant", "content": None}], "got null"),
    (says({"type": "thinking", "thinking": "hm"}), "Invalid value: 'thinking'."),
    (says({"type": "text", "text": "a", "cache_control": {}}), "content[0].cache_control'."),
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
ACCEPTED = {
    "a whole step": [{"role": "system", "content": "be good"}, USER, STEP, RESULT],
    "a step with empty text": [USER, {**STEP, "content": ""}, RESULT],
    "a silent tool": [USER, STEP, {**RESULT, "content": ""}],
    "answers out of order": [USER, BOTH, {**RESULT, "tool_call_id": "call_2"}, RESULT],
    "an id used again in a later step": [USER, STEP, RESULT, STEP, RESULT],
    "a reply sent back": [USER, {**ASSISTANT, "refusal": None, "annotations": []}, USER],
    "parts": says({"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "b"}}),
    "a system message anywhere": [USER, {"role": "system", "content": "new date"}],
    "two users in a row": [USER, USER],
}


@pytest.fixture(scope="module")
def strict():
    with LocalProvider() as running:
        yield running


def post(provider: LocalProvider, **body: Any) -> httpx.Response:
    sent = {"model": "gpt-4o", "messages": [USER], **body}
    return httpx.post(provider.base_url + "/chat/completions", json=sent, timeout=30)


@pytest.mark.parametrize(("body", "said"), REFUSED)
def test_a_request_that_the_api_refuses_is_refused(strict, body, said):
    """A refusal is a 400 with the API's error body, and is recorded."""
    answer = post(strict, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert said in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert strict.refused[-1] is strict.requests[-1]
    assert strict.requests[-1].error == error["message"]


@pytest.mark.parametrize("name", ACCEPTED)
def test_strict_is_not_stricter_than_the_api(strict, name):
    """The provider answers every request that the API accepts."""
    answer = post(strict, messages=ACCEPTED[name])
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


def test_the_window_is_enforced_in_the_words_of_the_api():
    """Each model's window is enforced with exact numbers, tools and completion included."""
    with LocalProvider(window=9_000) as provider:
        provider.set_window(100, "gpt-4o")
        long = post(provider, messages=[{"role": "user", "content": "word " * 100}])
        capped = post(provider, max_tokens=99)
        post(provider, tools=[{**TOOL, "function": {"name": "a", "description": "word " * 120}}])
        assert post(provider).status_code == 200
        assert post(provider, model="other", max_tokens=99).status_code == 200
        provider.set_window(200, "gpt-4o")
        assert post(provider, max_tokens=99).status_code == 200
    error, tokens = long.json()["error"], provider.requests[0].prompt_tokens
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == (
        "This model's maximum context length is 100 tokens. However, your messages resulted in "
        f"{tokens} tokens. Please reduce the length of the messages."
    )
    assert 100 < tokens < 120
    assert "99 in the completion" in capped.json()["error"]["message"]
    assert provider.refused == provider.requests[:3]
    assert provider.over_window == [provider.requests[0], provider.requests[2]]
