"""The ready-made models: an agent's, and a summarizer that keeps, fails or lies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import httpx
import openai
import pytest

from praison_compressor.testing import (
    Asked,
    Behaviour,
    Broken,
    Call,
    Failure,
    LocalProvider,
    Reply,
    Summarizer,
    Worker,
    echo,
)

FACTS = [{"role": "user", "content": "Keep FACT-17 and FACT-4, FACT-17 above all."}]
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


def summary(
    provider: LocalProvider, client: openai.OpenAI, behaviour: Behaviour, **options: Any
) -> Any:
    provider.route("summarizer", Summarizer(r"FACT-\d+", behaviour))
    return client.chat.completions.create(model="summarizer", messages=FACTS, **options)


def test_a_faithful_summarizer_repeats_each_fact_it_was_shown(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Every distinct match in the request comes back, in order, and nothing else does."""
    reply = summary(provider, client, "faithful")
    lines = reply.choices[0].message.content.splitlines()
    assert lines[1:] == ["FACT-17", "FACT-4"]
    assert reply.choices[0].finish_reason == "stop"


def test_a_summarizer_sees_tool_results_and_arguments(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Facts in tool arguments, tool results and content parts count as shown."""
    provider.route("summarizer", Summarizer(r"FACT-\d+"))
    function = {"name": "read", "arguments": '{"path": "FACT-1"}'}
    messages: Any = [
        {"role": "user", "content": [{"type": "text", "text": "FACT-0"}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "FACT-2"},
    ]
    reply = client.chat.completions.create(model="summarizer", messages=messages)
    text = reply.choices[0].message.content or ""
    assert text.splitlines()[1:] == ["FACT-0", "FACT-1", "FACT-2"]


TEXTS: dict[Behaviour, tuple[str | None, str]] = {
    "lie": ("The pull request was merged, all tests pass and nothing is left to do.", "stop"),
    "empty": ("", "stop"),
    "whitespace": (" \n\t\n ", "stop"),
    "refusal": ("I'm sorry, but I can't assist with that request.", "stop"),
    "refusal_field": (None, "stop"),
    "echo_prompt": (FACTS[0]["content"], "stop"),
    "thinking_only": ("", "stop"),
    "tool_call": (None, "tool_calls"),
    "cut_off": ("The earlier work went on ", "length"),
    "reasoning_tags": (
        "<think>\nLet me see what matters.\n</think>\nThe earlier work went on as planned.\n"
        "FACT-17\nFACT-4",
        "stop",
    ),
    "unclosed_reasoning": (
        "<think>\nLet me see what matters. The earlier work went on as planned.\nFACT-17\nFACT-4",
        "stop",
    ),
}


@pytest.mark.parametrize("behaviour", TEXTS)
def test_a_summarizer_that_misbehaves_in_its_text(
    provider: LocalProvider, client: openai.OpenAI, behaviour: Behaviour
) -> None:
    """Each misbehaviour arrives as a 200 whose text or finish reason is wrong."""
    text, finish = TEXTS[behaviour]
    choice = summary(provider, client, behaviour).choices[0]
    assert (choice.message.content, choice.finish_reason) == (text, finish)
    assert provider.requests[-1].status == 200


@pytest.mark.parametrize("behaviour", TEXTS)
def test_a_summarizer_misbehaves_in_a_stream_too(
    provider: LocalProvider, client: openai.OpenAI, behaviour: Behaviour
) -> None:
    """A stream carries the same text and ends with the same finish reason."""
    text, finish = TEXTS[behaviour]
    chunks = list(summary(provider, client, behaviour, stream=True))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert (streamed, chunks[-1].choices[0].finish_reason) == (text or "", finish)


def test_a_refusal_may_come_in_its_own_field(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """The API's `refusal` field is filled and the content is null."""
    message = summary(provider, client, "refusal_field").choices[0].message
    assert message.refusal == "I'm sorry, but I can't assist with that request."


def test_a_summarizer_may_call_a_tool_instead(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """A tool call comes although no tool was offered."""
    message = summary(provider, client, "tool_call").choices[0].message
    assert message.tool_calls[0].function.name == "read_file"


def test_a_verbose_summarizer_ignores_the_cap(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Ten times the cap comes back, finished as if nothing were wrong."""
    reply = summary(provider, client, "verbose", max_tokens=50)
    assert reply.usage.completion_tokens > 450
    assert reply.choices[0].finish_reason == "stop"


ERRORS: dict[Behaviour, tuple[type[openai.APIStatusError], int, str | None]] = {
    "unauthorized": (openai.AuthenticationError, 401, "invalid_api_key"),
    "rate_limited": (openai.RateLimitError, 429, "rate_limit_exceeded"),
    "rate_limited_bare": (openai.RateLimitError, 429, "rate_limit_exceeded"),
    "quota": (openai.RateLimitError, 429, "insufficient_quota"),
    "server_error": (openai.InternalServerError, 500, None),
    "overloaded": (openai.InternalServerError, 503, None),
    "context": (openai.BadRequestError, 400, "context_length_exceeded"),
}


@pytest.mark.parametrize("behaviour", ERRORS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_summarizer_that_fails(
    provider: LocalProvider, client: openai.OpenAI, behaviour: Behaviour, stream: bool
) -> None:
    """Each failure is the client's own exception, and a planned failure is no refusal."""
    kind, status, code = ERRORS[behaviour]
    with pytest.raises(kind) as caught:
        summary(provider, client, behaviour, stream=stream)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert provider.requests[-1].status == status
    assert provider.refused == []


def test_retry_after_is_sent_or_not(provider: LocalProvider) -> None:
    """Rate limits come with `retry-after` and without."""
    provider.route("summarizer", Summarizer(None, "rate_limited", "rate_limited_bare"))
    body = {"model": "summarizer", "messages": FACTS}
    first, second = (
        httpx.post(provider.base_url + "/chat/completions", json=body) for _ in range(2)
    )
    assert first.headers["retry-after"] == "0.02"
    assert "retry-after" not in second.headers


@pytest.mark.parametrize(
    ("behaviour", "stream"), [("reset", False), ("reset", True), ("reset_mid_stream", False)]
)
def test_a_connection_is_reset_before_the_answer(
    provider: LocalProvider, client: openai.OpenAI, behaviour: Behaviour, stream: bool
) -> None:
    """Nothing but a connection error reaches the client, and no status was sent."""
    with pytest.raises(openai.APIConnectionError):
        summary(provider, client, behaviour, stream=stream)
    assert provider.requests[-1].status is None


def test_a_stream_is_reset_in_its_middle(provider: LocalProvider, client: openai.OpenAI) -> None:
    """Some events arrive, then the connection breaks."""
    stream = summary(provider, client, "reset_mid_stream", stream=True)
    assert next(iter(stream)).choices[0].delta.role == "assistant"
    with pytest.raises(httpx.TransportError):
        list(stream)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_stall(provider: LocalProvider, stream: bool) -> None:
    """The head arrives, the rest never does: only a client's own timeout ends it."""
    provider.route("summarizer", Summarizer(None, "stall"))
    body = {"model": "summarizer", "messages": FACTS, "stream": stream}
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
    with pytest.raises(UnicodeDecodeError):
        list(summary(provider, client, "invalid_utf8", stream=stream))


def test_an_answer_may_be_a_page_of_a_proxy(provider: LocalProvider) -> None:
    """HTML under status 200, as some proxies answer."""
    provider.route("summarizer", Summarizer(None, "not_json"))
    body = {"model": "summarizer", "messages": FACTS}
    answer = httpx.post(provider.base_url + "/chat/completions", json=body)
    assert (answer.status_code, answer.text) == (200, "<html>Bad gateway</html>")


def test_behaviours_follow_one_another_and_the_last_one_stays(
    provider: LocalProvider, client: openai.OpenAI
) -> None:
    """Fail once, then be empty, then be faithful for ever."""
    provider.route("summarizer", Summarizer(r"FACT-\d+", "server_error", "empty", "faithful"))
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="summarizer", messages=FACTS)
    texts = [
        client.chat.completions.create(model="summarizer", messages=FACTS).choices[0]
        for _ in range(3)
    ]
    assert [bool(choice.message.content) for choice in texts] == [False, True, True]


def test_every_behaviour_can_be_chosen() -> None:
    """No name in the type lacks its behaviour, and no other name is taken."""
    asked = Asked("m", list(FACTS), [], False, None, {})
    answers = [Summarizer(None, name)(asked) for name in get_args(Behaviour)]
    assert {type(answer) for answer in answers} == {Reply, Failure, Broken}
    with pytest.raises(ValueError, match="no such behaviour: kind"):
        Summarizer(None, "kind")  # type: ignore[arg-type]


def test_a_slow_summarizer_is_left_by_an_impatient_client(provider: LocalProvider) -> None:
    """The client's timeout ends it; the provider notices that it hung up and does not wait."""
    provider.route("summarizer", Summarizer(delay_seconds=600))
    body = {"model": "summarizer", "messages": FACTS}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(provider.base_url + "/chat/completions", json=body, timeout=0.2)
    wait_until(lambda: provider.requests[-1].ended_at is not None)
    assert provider.requests[-1].cancelled
    assert provider.requests[-1].status is None


def test_a_provider_that_stops_hangs_up_on_who_still_waits() -> None:
    """Stopping neither waits for a slow role nor lets it answer early."""
    with ThreadPoolExecutor() as pool, LocalProvider(Summarizer(delay_seconds=600)) as provider:
        body = {"model": "summarizer", "messages": FACTS}
        url = provider.base_url + "/chat/completions"
        waiting = pool.submit(httpx.post, url, json=body, timeout=60)
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


def test_a_call_may_carry_broken_arguments(provider: LocalProvider, client: openai.OpenAI) -> None:
    """Arguments given as a string go over the wire as they are."""
    provider.answer_with([Reply(calls=(Call("read", '{"path": '),))])
    reply = client.chat.completions.create(model="m", messages=FACTS, tools=[TOOL])
    assert reply.choices[0].message.tool_calls[0].function.arguments == '{"path": '
