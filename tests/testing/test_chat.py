"""Chat completions: what the strict provider refuses, each in the API's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from praison_compressor.testing import LocalProvider, Refusal, Rules, check_messages

USER = {"role": "user", "content": "hi"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
STEP = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
TOOL = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {}}},
}


def with_call(**changes: Any) -> list[dict[str, Any]]:
    """A valid step whose call is changed; None removes a key."""
    call = {key: value for key, value in {**CALL, **changes}.items() if value is not None}
    return [USER, {**STEP, "tool_calls": [call]}, RESULT]


def with_function(**changes: Any) -> list[dict[str, Any]]:
    return with_call(function={**CALL["function"], **changes})


REFUSED_MESSAGES = {
    "no messages": ([], "empty array", "empty_array"),
    "not a list": ({"role": "user"}, "expected an array of objects", "invalid_type"),
    "not an object": (["hi"], "'messages[0]': expected an object", "invalid_type"),
    "a private key": (
        [{**USER, "_summary": True}],
        "Unknown parameter: 'messages[0]._summary'.",
        "unknown_parameter",
    ),
    "reasoning that no reply had": (
        [USER, {"role": "assistant", "content": "hm", "reasoning_content": "so"}],
        "Unknown parameter: 'messages[1].reasoning_content'.",
        "unknown_parameter",
    ),
    "an unknown role": (
        [{"role": "robot", "content": "hi"}],
        "Invalid value: 'robot'. Supported values are: 'system',",
        "invalid_value",
    ),
    "an empty string": ([{"role": "user", "content": ""}], "empty string", "empty_string"),
    "null content": (
        [{"role": "user", "content": None}],
        "Invalid value for 'content': expected a string, got null.",
        None,
    ),
    "a silent assistant": ([USER, {"role": "assistant", "content": None}], "got null", None),
    "an unknown part": (
        [{"role": "user", "content": [{"type": "thinking", "thinking": "hm"}]}],
        "Invalid value: 'thinking'.",
        "invalid_value",
    ),
    "a cache mark": (
        [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}],
        "Unknown parameter: 'messages[0].content[0].cache_control'.",
        "unknown_parameter",
    ),
    "an image without url": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
        "Missing required parameter: 'messages[0].content[0].image_url.url'.",
        "missing_required_parameter",
    ),
    "a name with spaces": ([{**USER, "name": "a b"}], "does not match pattern", "invalid_value"),
    "no tool calls": ([USER, {**STEP, "tool_calls": []}], "empty array", "empty_array"),
    "a call without id": (
        with_call(id=None),
        "Missing required parameter: 'messages[1].tool_calls[0].id'.",
        "missing_required_parameter",
    ),
    "an id too long": (with_call(id="x" * 41), "string too long", "string_above_max_length"),
    "a call of unknown type": (with_call(type="tool"), "Invalid value: 'tool'", "invalid_value"),
    "an unknown key in a call": (with_call(index=0), "tool_calls[0].index", "unknown_parameter"),
    "a name that is no name": (with_function(name="a b"), "does not match", "invalid_value"),
    "arguments as an object": (
        with_function(arguments={"path": "a"}),
        "function.arguments': expected a string, but got an object instead.",
        "invalid_type",
    ),
    "arguments that are no JSON": (with_function(arguments="{"), "not valid JSON", None),
    "an orphan result": ([USER, RESULT], "must be a response to a preceeding", None),
    "a result of another call": (
        [USER, STEP, {**RESULT, "tool_call_id": "call_9"}],
        "'tool_call_id' of 'call_9' not found in 'tool_calls' of previous message.",
        None,
    ),
    "a result after other messages": (
        [USER, STEP, RESULT, USER, RESULT],
        "must be a response to a preceeding",
        None,
    ),
    "an unanswered call": (
        [USER, STEP, USER],
        "The following tool_call_ids did not have response messages: call_1",
        None,
    ),
    "an unanswered call at the end": ([USER, STEP], "did not have response messages", None),
    "a half answered step": (
        [USER, {**STEP, "tool_calls": [CALL, {**CALL, "id": "call_2"}]}, RESULT],
        "did not have response messages: call_2",
        None,
    ),
    "a result twice": ([USER, STEP, RESULT, RESULT], "Duplicate value for 'tool_call_id'", None),
    "an id twice in a step": (
        [USER, {**STEP, "tool_calls": [CALL, CALL]}, RESULT],
        "Duplicate value",
        None,
    ),
}

REFUSED_BODIES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "no model": ({"model": None}, "you must provide a model parameter", None),
    "an unknown parameter": ({"ttl": 3}, "Unrecognized request argument supplied: ttl", None),
    "no tools": ({"tools": []}, "empty array", "empty_array"),
    "a tool of unknown type": ({"tools": [{**TOOL, "type": "tool"}]}, "Invalid value", None),
    "a tool without name": (
        {"tools": [{**TOOL, "function": {}}]},
        "Missing required parameter: 'tools[0].function.name'.",
        "missing_required_parameter",
    ),
    "a schema that is no object": (
        {"tools": [{**TOOL, "function": {"name": "a", "parameters": {"type": "string"}}}]},
        "schema must be a JSON Schema of 'type: \"object\"'",
        "invalid_function_parameters",
    ),
    "a choice without tools": ({"tool_choice": "auto"}, "only allowed when 'tools'", None),
}

ACCEPTED = {
    "a whole step": [{"role": "system", "content": "be good"}, USER, STEP, RESULT],
    "a step with empty text": [USER, {**STEP, "content": ""}, RESULT],
    "a silent tool": [USER, STEP, {**RESULT, "content": ""}],
    "parallel calls answered out of order": [
        USER,
        {**STEP, "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {**RESULT, "tool_call_id": "call_2"},
        RESULT,
    ],
    "an id used again in a later step": [USER, STEP, RESULT, STEP, RESULT],
    "a reply sent back as it came": [
        USER,
        {"role": "assistant", "content": "yes", "refusal": None, "annotations": []},
        USER,
    ],
    "parts": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            ],
        }
    ],
    "system and developer messages anywhere": [
        USER,
        {"role": "system", "content": "new date"},
        {"role": "developer", "content": "be brief"},
    ],
    "a legacy call": [
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
    ],
    "two users in a row": [USER, USER],
}


@pytest.fixture(scope="module")
def strict() -> Iterator[LocalProvider]:
    with LocalProvider() as running:
        yield running


def post(provider: LocalProvider, body: Any, path: str = "/v1/chat/completions") -> httpx.Response:
    return httpx.post(provider.url + path, json=body, timeout=30)


@pytest.mark.parametrize("name", REFUSED_MESSAGES)
def test_malformed_messages_are_refused(strict: LocalProvider, name: str) -> None:
    """What the API refuses gets a 400 with its error body, and is on record as refused."""
    messages, said, code = REFUSED_MESSAGES[name]
    answer = post(strict, {"model": "gpt-4o", "messages": messages})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert said in error["message"]
    assert code in (None, error["code"])
    assert set(error) == {"message", "type", "param", "code"}
    assert strict.refused[-1] is strict.requests[-1]
    assert strict.requests[-1].error == error["message"]


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_malformed_parameters_are_refused(strict: LocalProvider, name: str) -> None:
    """Tools of the wrong shape and parameters that the API does not know get a 400."""
    changes, said, code = REFUSED_BODIES[name]
    answer = post(strict, {"model": "gpt-4o", "messages": [USER], **changes})
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]
    assert code in (None, answer.json()["error"]["code"])


@pytest.mark.parametrize("name", ACCEPTED)
def test_well_formed_messages_are_answered(strict: LocalProvider, name: str) -> None:
    """Strict is not stricter than the API."""
    answer = post(strict, {"model": "gpt-4o", "messages": ACCEPTED[name]})
    assert answer.status_code == 200, answer.text
    assert not strict.requests[-1].refused


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b'{"model": NaN}', b'{"model": "\\ud800"}', b"\xff\xfe"]
)
def test_a_body_that_is_no_json_is_refused(strict: LocalProvider, raw: bytes) -> None:
    """Broken JSON, half surrogates and invalid UTF-8 never reach a model."""
    answer = httpx.post(strict.base_url + "/chat/completions", content=raw)
    assert answer.status_code == 400
    assert strict.requests[-1].refused


ALTERNATE = Rules(alternate=True)
ASSISTANT = {"role": "assistant", "content": "yes"}


@pytest.mark.parametrize(
    "messages",
    [[USER, USER], [USER, ASSISTANT, ASSISTANT], [ASSISTANT, USER], [USER, STEP, RESULT, USER]],
)
def test_a_template_that_alternates_refuses_two_in_a_row(messages: list[dict[str, Any]]) -> None:
    """With `alternate`, roles go user, assistant, user …; tool traffic does not count."""
    with pytest.raises(Refusal, match="must alternate user and assistant"):
        check_messages(messages, ALTERNATE)


def test_a_template_that_alternates_takes_steps() -> None:
    """A step with its results, then the assistant's answer, then the user: that alternates."""
    check_messages([{"role": "system", "content": "s"}, USER, STEP, RESULT, ASSISTANT], ALTERNATE)


def test_a_template_may_demand_the_system_message_first() -> None:
    """With `system_first`, a system message anywhere else is refused."""
    with pytest.raises(Refusal, match="at the beginning"):
        check_messages([USER, {"role": "system", "content": "s"}], Rules(system_first=True))


def test_templates_are_an_option_of_the_provider() -> None:
    """The provider's rules reach every request."""
    with LocalProvider(rules=Rules(alternate=True, system_first=True)) as provider:
        twice = post(provider, {"model": "m", "messages": [USER, USER]})
        late = post(
            provider, {"model": "m", "messages": [USER, {"role": "system", "content": "s"}]}
        )
    assert "must alternate" in twice.json()["error"]["message"]
    assert "at the beginning" in late.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions"])
def test_the_version_prefix_may_be_left_out(strict: LocalProvider, path: str) -> None:
    """Both spellings of the address work: clients differ in what they append."""
    assert post(strict, {"model": "m", "messages": [USER]}, path).status_code == 200
    assert strict.requests[-1].path == path


def test_the_window_is_enforced_in_the_words_of_the_api() -> None:
    """Over the window: 400, `context_length_exceeded`, with the exact numbers."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 300}]}
    with LocalProvider(window=200) as provider:
        error = post(provider, body).json()["error"]
        tokens = provider.requests[0].prompt_tokens
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == (
        "This model's maximum context length is 200 tokens. However, your messages resulted in "
        f"{tokens} tokens. Please reduce the length of the messages."
    )
    assert 300 < tokens < 320
    assert provider.over_window == provider.refused == provider.requests


def test_tools_and_the_requested_completion_count_too() -> None:
    """What the tools take and what the answer may take is part of the window."""
    body = {"model": "gpt-4o", "messages": [USER]}
    with LocalProvider(window=100) as provider:
        fits = post(provider, body)
        capped = post(provider, {**body, "max_tokens": 99})
        tools = [{**TOOL, "function": {"name": "a", "description": "word " * 120}}]
        tooled = post(provider, {**body, "tools": tools})
    assert fits.status_code == 200
    assert "99 in the completion" in capped.json()["error"]["message"]
    assert "in the functions" in tooled.json()["error"]["message"]
    assert [record.over_window for record in provider.requests] == [False, False, True]


def test_each_model_has_a_window_of_its_own() -> None:
    """`windows` names models; all others have `window`; both can change while it runs."""
    messages = [{"role": "user", "content": "word " * 50}]
    with LocalProvider(window=1000, windows={"small": 20}) as provider:
        small = post(provider, {"model": "small", "messages": messages})
        large = post(provider, {"model": "large", "messages": messages})
        provider.set_window(1000, "small")
        grown = post(provider, {"model": "small", "messages": messages})
    assert [r.status_code for r in (small, large, grown)] == [400, 200, 200]
    assert [record.window for record in provider.requests] == [20, 1000, 1000]


def test_keys_that_a_provider_knows_are_accepted() -> None:
    """Further message keys are accepted where the rules say so."""
    rules = Rules(extra_message_keys=frozenset({"reasoning_content"}))
    body = {"model": "m", "messages": [{**ASSISTANT, "reasoning_content": "so"}]}
    with LocalProvider(rules=rules) as provider:
        assert post(provider, body).status_code == 200
