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
    echo,
)
from tests.helpers.misbehaving import Misbehaving

FACTS: Any = [{"role": "user", "content": "Keep FACT-17 and FACT-4, FACT-17 above all."}]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path", "line"],
        },
    },
}


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


def ask(client: openai.OpenAI, **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=FACTS, **options)


def post(provider: LocalProvider, timeout: float = 20, **options: Any) -> httpx.Response:
    body = {"model": "m", "messages": FACTS, **options}
    return httpx.post(provider.base_url + "/chat/completions", json=body, timeout=timeout)


# ---------------------------------------------------------------- a summarizer


def test_a_summarizer_repeats_each_fact_it_was_shown(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """In content parts, tool arguments and results; every distinct match once, in order."""
    provider.answer_with(Summarizer(r"FACT-\d+"))
    function = {"name": "read", "arguments": '{"path": "FACT-1"}'}
    calls = [{"id": "c", "type": "function", "function": function}]
    messages: Any = [
        {"role": "user", "content": [{"type": "text", "text": "FACT-0, FACT-0"}]},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": "FACT-2"},
    ]
    reply = client.chat.completions.create(model="m", messages=messages)
    text = reply.choices[0].message.content or ""
    assert text.splitlines()[1:] == ["FACT-0", "FACT-1", "FACT-2"]


def test_misbehaviours_follow_one_another_and_the_last_one_stays(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Fail once, then be empty, then be faithful for ever; a planned failure is no refusal."""
    provider.answer_with(Misbehaving("server_error", "empty", "faithful", facts=r"FACT-\d+"))
    with pytest.raises(openai.InternalServerError):
        ask(client)
    texts = [ask(client).choices[0].message.content for _ in range(3)]
    assert [text.count("FACT") for text in texts] == [0, 2, 2]
    assert provider.refused == []


# ---------------------------------------------------------------- answers that fail


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "content", "refusal", "finish"),
    [
        (Reply("half", finish="length"), "half", None, "length"),
        (Reply(refusal="I will not."), None, "I will not.", "stop"),
        (Reply(calls=(Call("read", '{"path": '),)), None, None, "tool_calls"),
        (Reply("", thinking="hm"), "", None, "stop"),
    ],
)
def test_a_reply_arrives_as_it_was_scripted(
    provider: LocalProvider,
    client: openai.OpenAI,
    reply: Reply,
    content: str | None,
    refusal: str | None,
    finish: str,
    stream: bool,
) -> None:
    """Whole and streamed: text, refusal, broken arguments, and what ended it."""
    provider.answer_with([reply])
    if stream:
        chunks = [chunk.choices[0] for chunk in ask(client, stream=True)]
        said = "".join(chunk.delta.content or "" for chunk in chunks)
        refused = "".join(chunk.delta.refusal or "" for chunk in chunks)
        assert (said, refused, chunks[-1].finish_reason) == (content or "", refusal or "", finish)
    else:
        choice = ask(client).choices[0]
        got = (choice.message.content, choice.message.refusal, choice.finish_reason)
        assert got == (content, refusal, finish)
        assert [c.function.arguments for c in choice.message.tool_calls or ()] == [
            call.arguments for call in reply.calls
        ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        (openai.AuthenticationError, Failure(401, "no", "authentication_error", "invalid_api_key")),
        (openai.RateLimitError, Failure(429, "slow down", "tokens", retry_after_seconds=0.02)),
        (openai.BadRequestError, Failure(400, "too long", code="context_length_exceeded")),
        (openai.InternalServerError, Failure(503, "busy")),
    ],
)
def test_a_failure_is_the_clients_own_exception(
    provider: LocalProvider,
    client: openai.OpenAI,
    kind: type[openai.APIStatusError],
    failure: Failure,
    stream: bool,
) -> None:
    """With its status, code and `retry-after`; a planned failure is no refusal."""
    provider.answer_with([failure])
    with pytest.raises(kind) as caught:
        ask(client, stream=stream)
    retry = None if failure.retry_after_seconds is None else f"{failure.retry_after_seconds:g}"
    assert (caught.value.status_code, caught.value.code) == (failure.status, failure.code)
    assert caught.value.response.headers.get("retry-after") == retry
    assert (provider.requests[-1].status, provider.refused) == (failure.status, [])


@pytest.mark.parametrize(("after", "stream"), [(0, False), (0, True), (2, False)])
def test_a_connection_is_reset_before_the_answer(
    provider: LocalProvider, client: openai.OpenAI, after: int, stream: bool
) -> None:
    """Nothing but a connection error reaches the client, and no status was sent."""
    provider.answer_with([Broken("reset", after=after)])
    with pytest.raises(openai.APIConnectionError):
        ask(client, stream=stream)
    assert provider.requests[-1].status is None


def test_a_stream_is_reset_in_its_middle(provider: LocalProvider, client: openai.OpenAI) -> None:
    """Some events arrive, then the connection breaks."""
    provider.answer_with([Broken("reset", after=2)])
    stream = ask(client, stream=True)
    assert next(iter(stream)).choices[0].delta.role == "assistant"
    with pytest.raises(httpx.TransportError):
        list(stream)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_stall(provider: LocalProvider, stream: bool) -> None:
    """The head arrives, the rest never does: only a client's own timeout ends it."""
    provider.answer_with([Broken("stall")])
    body = {"model": "m", "messages": FACTS, "stream": stream}
    request = httpx.stream("POST", provider.base_url + "/chat/completions", json=body, timeout=0.3)
    with request as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            answer.read()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_be_invalid_utf8(
    provider: LocalProvider, client: openai.OpenAI, stream: bool
) -> None:
    """Bytes that no decoder takes arrive under status 200."""
    provider.answer_with([Broken("invalid_utf8")])
    with pytest.raises(UnicodeDecodeError):
        list(ask(client, stream=stream))


def test_an_answer_may_be_a_page_of_a_proxy(provider: LocalProvider) -> None:
    """HTML under status 200, as some proxies answer."""
    provider.answer_with([Broken("not_json")])
    answer = post(provider)
    assert (answer.status_code, answer.text) == (200, "<html>Bad gateway</html>")


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
    with ThreadPoolExecutor() as pool, LocalProvider(Summarizer(delay_seconds=600)) as provider:
        waiting = pool.submit(post, provider, 60)
        wait_until(lambda: bool(provider.requests and provider.requests[0].answer))
        provider.stop()
        with pytest.raises(httpx.TransportError):
            waiting.result()
    assert provider.requests[0].cancelled


def play(client: openai.OpenAI, turns: int, **options: Any) -> list[Any]:
    """Hold a conversation as an agent would; return all messages."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        while messages[-1]["role"] != "assistant":
            reply = client.chat.completions.create(
                model="m", messages=messages, tools=[TOOL], **options
            )
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages.extend(
                {"role": "tool", "tool_call_id": call.id, "content": "ok"}
                for call in message.tool_calls or ()
            )
    return messages


def test_a_worker_makes_its_calls_in_every_turn_and_then_answers(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Three rounds of two parallel calls, the answer, and the same again next turn."""
    provider.answer_with(Worker(calls=3, parallel=2))
    roles = [message["role"] for message in play(client, turns=2)]
    step = ["assistant", "tool", "tool"]
    assert roles == ["user", *step * 3, "assistant"] * 2
    assert provider.refused == []


def test_a_workers_call_ids_are_unique_and_its_arguments_fit_the_schema(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """No id comes twice in a provider's life; required parameters are filled by their type."""
    provider.answer_with(Worker(calls=2, parallel=2))
    messages = play(client, turns=3)
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    assert len({call["id"] for call in calls}) == len(calls) == 12
    assert [call["function"]["arguments"] for call in calls[:2]] == [
        '{"path": "path-0", "line": 0}',
        '{"path": "path-1", "line": 1}',
    ]


def test_a_worker_finishes_its_turn_when_older_steps_are_gone(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """It reads its place from the newest result alone, so compression cannot make it start anew."""
    provider.answer_with(Worker(calls=3))
    whole = play(client, turns=1)
    newest = [whole[0], *whole[-3:-1]]
    reply = client.chat.completions.create(model="m", messages=newest, tools=[TOOL])
    assert reply.choices[0].message.content == "Done."


def test_a_worker_can_be_told_what_to_do(provider: LocalProvider, client: openai.OpenAI) -> None:
    """Rounds, tool, arguments and answer may depend on the request."""
    provider.answer_with(
        Worker(
            calls=lambda asked: 1 if asked.last_user.endswith("0") else 0,
            tool="read",
            arguments=lambda tool, nth: {"tool": tool, "nth": nth},
            answer=lambda asked: f"to {asked.last_user}",
        )
    )
    messages = play(client, turns=2)
    assert [message["role"] for message in messages].count("tool") == 1
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"tool": "read", "nth": 0}'
    assert messages[-1]["content"] == "to question 1"


def test_a_worker_without_tools_answers_at_once(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """A request without tools, such as a summary, is never answered with a call."""
    provider.answer_with(Worker(calls=3))
    reply = client.chat.completions.create(model="m", messages=FACTS)
    assert reply.choices[0].message.content == "Done."


def test_echo_answers_with_the_newest_user_message(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """The simplest model there is."""
    provider.answer_with(echo)
    reply = client.chat.completions.create(model="m", messages=FACTS)
    assert reply.choices[0].message.content == FACTS[0]["content"]
