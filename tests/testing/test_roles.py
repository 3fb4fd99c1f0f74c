"""Ready-made models, and answers that fail or break on their way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from praison_compressor.testing import (
    Broken,
    Call,
    Failure,
    LocalProvider,
    Reply,
    Summarizer,
    Worker,
)

FACTS: Any = [{"role": "user", "content": "Keep FACT-17 and FACT-4, FACT-17 above all."}]
PROPERTIES = {"path": {"type": "string"}, "line": {"type": "integer"}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["path", "line"]}
TOOL: Any = {"type": "function", "function": {"name": "read", "parameters": PARAMETERS}}


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for what another thread does; fail rather than hang where it never does."""
    for _ in range(1_000):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


@pytest.fixture
def client(provider: LocalProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=provider.base_url, api_key="any", max_retries=0, timeout=20
    ) as running:
        yield running


def ask(client: openai.OpenAI, messages: Any = FACTS, **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=messages, **options)


def post(provider: LocalProvider, timeout: float = 20) -> httpx.Response:
    body = {"model": "m", "messages": FACTS}
    return httpx.post(provider.base_url + "/chat/completions", json=body, timeout=timeout)


# ---------------------------------------------------------------- a summarizer


def test_a_summarizer_repeats_each_fact_it_was_shown(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """In content parts, tool arguments and results; every distinct match once, in order."""
    provider.answer_with(Summarizer(r"FACT-\d+"))
    function = {"name": "read", "arguments": '{"path": "FACT-1"}'}
    calls = [{"id": "c", "type": "function", "function": function}]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "FACT-0, FACT-0"}]},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": "FACT-2"},
    ]
    text = ask(client, messages).choices[0].message.content
    assert text.splitlines()[1:] == ["FACT-0", "FACT-1", "FACT-2"]


# ---------------------------------------------------------------- answers that fail


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        (Reply("half", finish="length"), "length"),
        (Reply(refusal="I will not."), "stop"),
        (Reply(calls=(Call("read", '{"path": '),)), "tool_calls"),
    ],
)
def test_a_reply_arrives_as_it_was_scripted(
    provider: LocalProvider, client: openai.OpenAI, reply: Reply, finish: str, stream: bool
) -> None:
    """Whole and streamed: text, refusal, broken arguments, and what ended it."""
    provider.answer_with([reply])
    answer = ask(client, stream=stream)
    choices = [chunk.choices[0] for chunk in answer] if stream else answer.choices
    said = [choice.delta if stream else choice.message for choice in choices]
    assert "".join(part.content or "" for part in said) == (reply.text or "")
    assert "".join(part.refusal or "" for part in said) == (reply.refusal or "")
    calls = [call for part in said for call in part.tool_calls or ()]
    arguments = "".join(call.function.arguments for call in calls)
    assert arguments == "".join(call.encoded() for call in reply.calls)
    assert choices[-1].finish_reason == finish


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        (openai.AuthenticationError, Failure(401, "no", "authentication_error", "invalid_api_key")),
        (openai.RateLimitError, Failure(429, "slow down", "tokens", retry_after_seconds=0.02)),
        (openai.BadRequestError, Failure(400, "too long", code="context_length_exceeded")),
    ],
)
def test_a_failure_is_the_clients_own_exception(
    provider: LocalProvider,
    client: openai.OpenAI,
    kind: type[openai.APIStatusError],
    failure: Failure,
) -> None:
    """With its status, code and `retry-after`; a planned failure is no refusal."""
    provider.answer_with([failure])
    with pytest.raises(kind) as caught:
        ask(client, stream=True)
    retry = caught.value.response.headers.get("retry-after")
    assert (caught.value.status_code, caught.value.code) == (failure.status, failure.code)
    assert (retry and float(retry)) == failure.retry_after_seconds
    assert (provider.requests[-1].status, provider.refused) == (failure.status, [])


@pytest.mark.parametrize("stream", [False, True])
def test_answers_break(provider: LocalProvider, client: openai.OpenAI, stream: bool) -> None:
    """A connection is reset and no status was sent; bytes are no UTF-8; a proxy's page; silence."""
    body = {"model": "m", "messages": FACTS, "stream": stream}
    address = provider.base_url + "/chat/completions"
    broken: Any = [Broken("reset"), Broken("invalid_utf8"), Broken("not_json"), Broken("stall")]
    provider.answer_with(broken)
    with pytest.raises(openai.APIConnectionError):
        ask(client, stream=stream)
    with pytest.raises(UnicodeDecodeError):
        list(ask(client, stream=stream))
    page = httpx.post(address, json=body)
    assert (page.status_code, page.text) == (200, "<html>Bad gateway</html>")
    with httpx.stream("POST", address, json=body, timeout=0.3) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            answer.read()
    assert [record.status for record in provider.requests] == [None, 200, 200, 200]


def test_a_slow_summarizer_is_left_by_an_impatient_client(provider: LocalProvider) -> None:
    """The client's timeout ends it; the provider notices that it hung up and does not wait."""
    provider.answer_with(Summarizer(delay_seconds=600))
    with pytest.raises(httpx.ReadTimeout):
        post(provider, timeout=0.2)
    wait_until(lambda: provider.requests[-1].ended_at is not None)
    assert provider.requests[-1].cancelled
    assert provider.requests[-1].status is None


def test_a_provider_that_stops_hangs_up_on_who_still_waits() -> None:
    """Stopping neither waits for a slow role nor lets it answer early."""
    with ThreadPoolExecutor() as pool:
        with LocalProvider(Summarizer(delay_seconds=600)) as provider:
            waiting = pool.submit(post, provider, 60)
            wait_until(lambda: bool(provider.requests and provider.requests[0].answer))
        with pytest.raises(httpx.TransportError):
            waiting.result()
    assert provider.requests[0].cancelled


# ---------------------------------------------------------------- a worker


def play(client: openai.OpenAI, turns: int) -> list[Any]:
    """Hold a conversation as an agent would; return all messages."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        while messages[-1]["role"] != "assistant":
            message = ask(client, messages, tools=[TOOL]).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages.extend(
                {"role": "tool", "tool_call_id": call.id, "content": "ok"}
                for call in message.tool_calls or ()
            )
    return messages


def test_a_worker_makes_its_calls_in_every_turn_and_then_answers(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Three rounds of two parallel calls, the answer, and the same again next turn: no id comes
    twice, required parameters are filled by their type.
    """
    provider.answer_with(Worker(calls=3, parallel=2))
    messages = play(client, turns=2)
    step = ["assistant", "tool", "tool"]
    assert [m["role"] for m in messages] == ["user", *step * 3, "assistant"] * 2
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    assert len({call["id"] for call in calls}) == len(calls) == 12
    assert calls[1]["function"]["arguments"] == '{"path": "path-1", "line": 1}'
    assert provider.refused == []
    # It reads its place from the newest result alone, so compression cannot make it start anew.
    newest = [messages[0], *messages[7:10]]
    assert ask(client, newest, tools=[TOOL]).choices[0].message.content == "Done."
    assert ask(client, FACTS).choices[0].message.content == "Done."  # there is no tool to call
