"""The strict provider with real clients: openai and litellm, sync, async, streamed."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import httpx
import litellm
import openai
import pytest

import praison_compressor.testing as testing
from praison_compressor import TokenCounter
from praison_compressor.testing import Asked, Call, Failure, LocalProvider, Reply, Script, Worker
from tests.helpers.provider import strict_provider

HI: Any = [{"role": "user", "content": "hi"}]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}
CALLS = (Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"}))


def client_of(provider: LocalProvider, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=provider.base_url, api_key="secret", max_retries=0, timeout=20, **options
    )


def answer_calls(message: Any) -> list[Any]:
    """The assistant's message as a client sends it back, and a result for each of its calls."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls
    ]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
    return [{"role": "assistant", "content": message.content, "tool_calls": calls}, *results]


def test_openai_client_holds_a_tool_loop(provider: LocalProvider) -> None:
    """A reply of the official client, sent back with its results, is accepted."""
    provider.answer_with([Reply(calls=CALLS), "It works."])
    client = client_of(provider)
    first = client.chat.completions.create(model="gpt-4o", messages=HI, tools=[TOOL])
    messages = HI + answer_calls(first.choices[0].message)
    last = client.chat.completions.create(model="gpt-4o", messages=messages, tools=[TOOL])
    assert first.choices[0].finish_reason == "tool_calls"
    assert last.choices[0].message.content == "It works."
    assert provider.refused == []


def test_openai_client_streams_text_and_usage(provider: LocalProvider) -> None:
    """Deltas join to the text; usage comes last and only where it was asked for."""
    text = "A long answer, " * 50
    provider.answer_with([text, text])
    client = client_of(provider)
    options: Any = {"stream_options": {"include_usage": True}}
    chunks = list(
        client.chat.completions.create(model="gpt-4o", messages=HI, stream=True, **options)
    )
    plain = list(client.chat.completions.create(model="gpt-4o", messages=HI, stream=True))
    spoken = [chunk for chunk in chunks if chunk.choices]
    assert len(spoken) > 20
    assert "".join(chunk.choices[0].delta.content or "" for chunk in spoken) == text
    assert spoken[-1].choices[0].finish_reason == "stop"
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == TokenCounter("gpt-4o").text(text)
    assert [chunk.usage for chunk in plain] == [None] * len(plain)
    assert provider.requests[0].stream


def test_openai_client_streams_parallel_tool_calls(provider: LocalProvider) -> None:
    """The client's own accumulator rebuilds each call from its deltas."""
    provider.answer_with([Reply("Let me look.", calls=CALLS)])
    with client_of(provider).chat.completions.stream(
        model="gpt-4o", messages=HI, tools=[TOOL]
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.content == "Let me look."
    assert message.tool_calls is not None
    assert [call.function.arguments for call in message.tool_calls] == [
        '{"path": "a.py"}',
        '{"path": "b.py"}',
    ]
    assert len({call.id for call in message.tool_calls}) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_litellm_holds_a_tool_loop(provider: LocalProvider, stream: bool) -> None:
    """litellm's chat path, streamed or not: a call, its results, the answer."""
    provider.answer_with(Worker(calls=1, parallel=2, answer="It works."))

    def ask(messages: list[Any]) -> Any:
        reply = litellm.completion(
            model="openai/gpt-4o-mini",
            api_base=provider.base_url,
            api_key="any",
            messages=messages,
            tools=[TOOL],
            stream=stream,
        )
        whole = litellm.stream_chunk_builder(list(reply)) if stream else reply
        return whole.choices[0].message

    first = ask(HI)
    assert len(first.tool_calls) == 2
    assert ask(HI + answer_calls(first)).content == "It works."
    assert [record.status for record in provider.requests] == [200, 200]


async def test_litellm_async(provider: LocalProvider) -> None:
    """litellm's async path reaches it too."""
    provider.answer_with(["hello"])
    reply = await litellm.acompletion(
        model="openai/gpt-4o-mini", api_base=provider.base_url, api_key="any", messages=HI
    )
    assert reply.choices[0].message.content == "hello"
    assert reply.usage.prompt_tokens == provider.requests[0].prompt_tokens


def test_litellm_knows_the_overflow_by_its_words() -> None:
    """litellm maps the refusal to its ContextWindowExceededError: the words are the API's."""
    with (
        LocalProvider(window=3) as provider,
        pytest.raises(litellm.ContextWindowExceededError),
    ):
        litellm.completion(
            model="openai/gpt-4o-mini", api_base=provider.base_url, api_key="any", messages=HI
        )


async def until(happened: Callable[[], bool]) -> None:
    """Wait for what the provider's thread does; fail rather than hang where it never does."""
    for _ in range(1_000):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


async def test_a_cancelled_caller_is_noticed(provider: LocalProvider) -> None:
    """Who cancels its task hangs up, and the record says so: no answer is made for nobody."""
    provider.answer_with([Reply("too late", delay_seconds=600)])
    async with openai.AsyncOpenAI(base_url=provider.base_url, api_key="any") as client:
        task = asyncio.create_task(client.chat.completions.create(model="m", messages=HI))
        await until(lambda: bool(provider.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until(lambda: provider.requests[0].ended_at is not None)
    assert provider.requests[0].cancelled
    assert provider.requests[0].status is None


def test_usage_is_the_exact_count(provider: LocalProvider) -> None:
    """Prompt tokens are the counter's, messages and tools; the record and the reply agree."""
    provider.answer_with(["four words, no more"])
    reply = client_of(provider).chat.completions.create(model="gpt-4o", messages=HI, tools=[TOOL])
    counter = TokenCounter("gpt-4o")
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == counter.messages(HI) + counter.tools([TOOL])
    assert reply.usage.completion_tokens == counter.text("four words, no more")
    assert provider.requests[0].prompt_tokens == reply.usage.prompt_tokens
    assert provider.requests[0].completion_tokens == reply.usage.completion_tokens


def test_a_repeated_prefix_is_reported_as_cached(provider: LocalProvider) -> None:
    """What begins an earlier request is cached; a changed first message empties the cache."""
    provider.answer_with(["a", "b", "c"])
    client = client_of(provider)
    long: Any = [{"role": "system", "content": "word " * 2000}]
    for messages in (long + HI, long + HI + HI, [{"role": "system", "content": "x"}, *long, *HI]):
        reply = client.chat.completions.create(model="gpt-4o", messages=messages)
    cached = [record.cached_tokens for record in provider.requests]
    assert cached[0] == cached[2] == 0
    assert 2000 < cached[1] < provider.requests[1].prompt_tokens
    assert reply.usage is not None


def test_every_request_is_on_record(provider: LocalProvider) -> None:
    """Path, headers, body, messages, tools, model, time: all of it as it was sent."""
    client_of(provider).chat.completions.create(
        model="gpt-4o", messages=HI, tools=[TOOL], temperature=0.5
    )
    client_of(provider).chat.completions.create(model="other", messages=HI)
    first, second = provider.requests
    assert (first.number, first.path, first.protocol) == (1, "/v1/chat/completions", "chat")
    assert (first.model, first.messages, first.tools) == ("gpt-4o", HI, [TOOL])
    assert first.body["temperature"] == 0.5
    assert first.headers["Authorization"] == "Bearer secret"
    assert (first.status, first.error, first.cancelled) == (200, None, False)
    assert first.at < (first.ended_at or 0.0) < second.at
    assert first.text == "hi"
    assert provider.for_model("other") == [second]
    provider.forget()
    assert provider.requests == []


def test_a_script_is_consumed_in_order_and_its_end_is_loud(provider: LocalProvider) -> None:
    """Replies, texts and failures in turn; a request too many is a 500 that says why."""
    script = Script(["one", Failure(503, "busy"), Reply("two", finish="content_filter")])
    provider.answer_with(script)
    client = client_of(provider)
    ask = client.chat.completions.create
    assert ask(model="m", messages=HI).choices[0].message.content == "one"
    with pytest.raises(openai.InternalServerError, match="busy"):
        ask(model="m", messages=HI)
    assert ask(model="m", messages=HI).choices[0].finish_reason == "content_filter"
    assert script.left == 0
    with pytest.raises(openai.InternalServerError, match="no answer left for request 4"):
        ask(model="m", messages=HI)


def test_routes_go_by_name_or_by_request_and_the_newest_wins(provider: LocalProvider) -> None:
    """A model's name, a predicate, and the rest."""
    provider.answer_with(lambda asked: f"default for {asked.model}")
    provider.route("named", lambda asked: "named")
    provider.route(lambda asked: "secret" in asked.text, lambda asked: Reply("by its text"))
    ask = client_of(provider).chat.completions.create
    secret: Any = [{"role": "user", "content": "a secret"}]
    replies = [
        ask(model=model, messages=messages).choices[0].message.content
        for model, messages in (("named", HI), ("named", secret), ("other", HI))
    ]
    assert replies == ["named", "by its text", "default for other"]


def test_an_answer_may_be_awaited(provider: LocalProvider) -> None:
    """A role may be a coroutine function."""

    async def slow(asked: Asked) -> str:
        await asyncio.sleep(0)
        return "awaited"

    provider.answer_with(slow)
    reply = client_of(provider).chat.completions.create(model="m", messages=HI)
    assert reply.choices[0].message.content == "awaited"


def test_a_mistake_in_a_role_is_seen(provider: LocalProvider) -> None:
    """An exception in a test's own role comes back as a 500 with its traceback."""

    def wrong(asked: Asked) -> str:
        raise KeyError("my mistake")

    provider.answer_with(wrong)
    with pytest.raises(openai.InternalServerError, match="my mistake"):
        client_of(provider).chat.completions.create(model="m", messages=HI)
    assert "KeyError" in (provider.requests[0].error or "")


def test_a_provider_starts_on_a_free_port_and_leaves_nothing_behind() -> None:
    """Two at once do not meet; after the end the port is closed and the thread is gone."""
    before = threading.active_count()
    with LocalProvider() as one, LocalProvider() as two:
        addresses = {one.base_url, two.base_url}
        assert len(addresses) == 2
        address = one.base_url
    assert threading.active_count() == before
    with pytest.raises(httpx.ConnectError):
        httpx.get(address + "/models")
    with pytest.raises(RuntimeError, match="not running"):
        _ = one.base_url


def test_a_provider_can_be_stopped_twice_and_started_again() -> None:
    """Stop is idempotent; the record outlives it; a second start serves again."""
    provider = LocalProvider(["one", "two"])
    for answers in (1, 2):
        with provider:
            client_of(provider).chat.completions.create(model="m", messages=HI)
            with pytest.raises(RuntimeError, match="running already"):
                provider.start()
        provider.stop()
        assert len(provider.requests) == answers


def test_long_bodies_are_not_refused_for_their_size() -> None:
    """A transcript of several megabytes reaches the count, not a limit of the web server."""
    messages = [{"role": "user", "content": "word " * 1_000}] * 600
    with LocalProvider(window=10_000_000) as provider:
        body = {"model": "gpt-4o", "messages": messages}
        answer = httpx.post(provider.base_url + "/chat/completions", json=body, timeout=60)
    assert answer.status_code == 200
    assert provider.requests[0].prompt_tokens > 600_000


@pytest.mark.parametrize(("capped", "finish"), [(True, "length"), (False, "stop")])
def test_a_reply_is_cut_at_the_requested_cap(
    provider: LocalProvider, capped: bool, finish: str
) -> None:
    """As real providers do, and the finish reason says so; a reply may play one that does not."""
    provider.answer_with([Reply("word " * 100, capped=capped)])
    reply = client_of(provider).chat.completions.create(
        model="gpt-4o", messages=HI, max_completion_tokens=20
    )
    assert reply.choices[0].finish_reason == finish
    assert reply.usage is not None
    assert (reply.usage.completion_tokens <= 20) is capped


def test_the_documented_example_runs() -> None:
    """What stands in the package's docstring is asserted as it stands there."""
    (example,) = re.findall(r"```python\n(.*?)```", testing.__doc__ or "", re.S)
    exec(compile(example, "praison_compressor.testing", "exec"), {})


def test_another_protocol_may_be_spoken_beside_chat_completions() -> None:
    """`protocols` are served at their own paths; without them there is nothing there."""
    with LocalProvider() as plain, strict_provider(["hello"]) as provider:
        missing = httpx.post(plain.base_url + "/responses", json={"model": "m", "input": "hi"})
        spoken = client_of(provider).responses.create(model="m", input="hi")
    assert missing.status_code == 404
    assert spoken.output_text == "hello"
