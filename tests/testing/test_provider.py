"""The strict provider with real clients: openai, litellm, and unpatched agents of the host."""

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
from praisonaiagents import Agent

import praison_compressor.testing as testing
from praison_compressor import TokenCounter, uninstall
from praison_compressor.testing import Asked, Call, Failure, LocalProvider, Reply, Worker
from tests.helpers.provider import strict_provider

HI: Any = [{"role": "user", "content": "hi"}]
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL: Any = {"type": "function", "function": {"name": "read", "parameters": PARAMETERS}}
CALLS = (Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"}))


def client_of(provider: LocalProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="secret", max_retries=0, timeout=20)


def ask(provider: LocalProvider, messages: Any = HI, model: str = "gpt-4o", **options: Any) -> Any:
    return client_of(provider).chat.completions.create(model=model, messages=messages, **options)


# ---------------------------------------------------------------- clients


def test_openai_client_holds_a_tool_loop(provider: LocalProvider) -> None:
    """A reply of the official client, sent back with its results, is accepted."""
    provider.answer_with([Reply(calls=CALLS), "It works."])
    first = ask(provider, tools=[TOOL]).choices[0]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "ok"}
        for call in first.message.tool_calls
    ]
    said = first.message.model_dump(exclude_none=True)
    last = ask(provider, [*HI, said, *results], tools=[TOOL])
    assert first.finish_reason == "tool_calls"
    assert last.choices[0].message.content == "It works."
    assert provider.refused == []


def test_openai_client_streams(provider: LocalProvider) -> None:
    """The client's own accumulator rebuilds text and parallel calls from many small deltas; usage
    comes last and only where it was asked for.
    """
    text = "A long answer, " * 50
    provider.answer_with(lambda asked: Reply(text, calls=CALLS))
    stream = client_of(provider).chat.completions.stream(
        model="gpt-4o", messages=HI, tools=[TOOL], stream_options={"include_usage": True}
    )
    with stream as running:
        whole = running.get_final_completion()
    message = whole.choices[0].message
    assert message.content == text
    assert message.tool_calls is not None
    arguments = [call.function.arguments for call in message.tool_calls]
    assert arguments == ['{"path": "a.py"}', '{"path": "b.py"}']
    assert len({call.id for call in message.tool_calls}) == 2
    assert whole.usage is not None
    assert whole.usage.completion_tokens == provider.requests[0].completion_tokens
    plain = list(ask(provider, stream=True))
    assert len(plain) > 20
    assert [chunk.usage for chunk in plain] == [None] * len(plain)


def test_litellm_knows_the_overflow_by_its_words() -> None:
    """litellm maps the refusal to its ContextWindowExceededError: the words are the API's."""
    with LocalProvider(window=3) as provider, pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(
            model="openai/gpt-4o-mini", api_base=provider.base_url, api_key="any", messages=HI
        )


async def test_a_cancelled_caller_is_noticed(provider: LocalProvider) -> None:
    """Who cancels its task hangs up, and the record says so: no answer is made for nobody."""

    async def until(happened: Callable[[], bool]) -> None:
        while not happened():
            await asyncio.sleep(0.01)

    provider.answer_with([Reply("too late", delay_seconds=600)])
    async with openai.AsyncOpenAI(base_url=provider.base_url, api_key="any") as client:
        task = asyncio.create_task(client.chat.completions.create(model="m", messages=HI))
        await asyncio.wait_for(until(lambda: bool(provider.requests)), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await asyncio.wait_for(until(lambda: provider.requests[0].ended_at is not None), 20)
    assert provider.requests[0].cancelled
    assert provider.requests[0].status is None


# ---------------------------------------------------------------- agents


def read_file(path: str) -> str:
    """Read a file."""
    return f"contents of {path}"


# The model, which address the agent is given, and the path that its requests then take. Without
# an address of its own the agent uses the host's OpenAI client and the environment.
PATHS: dict[str, tuple[str, str | None, str]] = {
    "openai client": ("gpt-4o-mini", None, "/v1/chat/completions"),
    "litellm chat": ("openai/local", "base_url", "/v1/chat/completions"),
    "litellm responses": ("openai/gpt-4o-mini", "base_url", "/v1/responses"),
    "litellm anthropic": ("anthropic/claude-sonnet-4-5", "url", "/v1/messages"),
}


@pytest.mark.parametrize("name", PATHS)
def test_an_agent_finishes_its_tool_loop(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Chatting, async and streamed: every request is accepted, on the path it should take."""
    # The responses path reads the environment alone.
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(variable, provider.base_url)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "any")
    provider.answer_with(Worker(calls=3, answer="All done."))
    model, address, path = PATHS[name]
    where: dict[str, Any] = {"base_url": getattr(provider, address)} if address else {}

    def agent() -> Agent:
        return Agent(instructions="You read files.", llm=model, tools=[read_file], **where)

    assert agent().chat("read three files") == "All done."
    assert {record.path for record in provider.requests} == {path}
    results = [m for m in provider.requests[3].messages if m["role"] == "tool"]
    assert [str(m["content"]).count("contents of path-") for m in results] == [1, 1, 1]
    assert asyncio.run(agent().achat("read three files")) == "All done."
    assert "".join(agent().start("read three files", stream=True)) == "All done."
    assert provider.refused == []


# ---------------------------------------------------------------- the record


def test_usage_is_the_exact_count(provider: LocalProvider) -> None:
    """Prompt tokens are the counter's, messages and tools; the record and the reply agree."""
    provider.answer_with(["four words, no more"])
    usage = ask(provider, tools=[TOOL]).usage
    counter, record = TokenCounter("gpt-4o"), provider.requests[0]
    assert usage.prompt_tokens == counter.messages(HI) + counter.tools([TOOL])
    assert usage.completion_tokens == counter.text("four words, no more")
    assert record.prompt_tokens == usage.prompt_tokens
    assert record.completion_tokens == usage.completion_tokens


def test_a_repeated_prefix_is_reported_as_cached(provider: LocalProvider) -> None:
    """What begins an earlier request is cached; a changed first message empties the cache."""
    long: Any = [{"role": "system", "content": "word " * 2000}]
    for messages in (long + HI, long + HI + HI, [{"role": "system", "content": "x"}, *long, *HI]):
        ask(provider, messages)
    cached = [record.cached_tokens for record in provider.requests]
    assert cached[0] == cached[2] == 0
    assert 2000 < cached[1] < provider.requests[1].prompt_tokens


def test_every_request_is_on_record(provider: LocalProvider) -> None:
    """Path, headers, body, messages, tools, model: all of it as it was sent."""
    ask(provider, tools=[TOOL], temperature=0.5)
    ask(provider, model="other")
    first, second = provider.requests
    assert (first.number, first.path, first.protocol) == (1, "/v1/chat/completions", "chat")
    assert (first.model, first.messages, first.tools) == ("gpt-4o", HI, [TOOL])
    assert first.body["temperature"] == 0.5
    assert first.headers["Authorization"] == "Bearer secret"
    assert (first.status, first.error, first.cancelled, first.text) == (200, None, False, "hi")
    assert provider.for_model("other") == [second]
    provider.forget()
    assert provider.requests == []


# ---------------------------------------------------------------- who answers


def test_a_list_is_answered_in_order_and_its_end_is_loud(provider: LocalProvider) -> None:
    """Replies, texts and failures in turn; one too many, or a mistake in a role, is a loud 500."""
    provider.answer_with(["one", Failure(503, "busy"), Reply("two", finish="content_filter")])
    assert ask(provider).choices[0].message.content == "one"
    with pytest.raises(openai.InternalServerError, match="busy"):
        ask(provider)
    assert ask(provider).choices[0].finish_reason == "content_filter"
    with pytest.raises(openai.InternalServerError, match="no answer left for request 4"):
        ask(provider)
    provider.answer_with(lambda asked: {}["my mistake"])
    with pytest.raises(openai.InternalServerError, match="my mistake"):
        ask(provider)


def test_routes_go_by_name_or_by_request_and_the_newest_wins(provider: LocalProvider) -> None:
    """A model's name, a predicate, and the rest; an answer may be awaited."""

    async def awaited(asked: Asked) -> str:
        await asyncio.sleep(0)
        return f"default for {asked.model}"

    provider.route("named", lambda asked: "named")
    provider.route(lambda asked: "secret" in asked.text, lambda asked: Reply("by its text"))
    provider.answer_with(awaited)
    secret: Any = [{"role": "user", "content": "a secret"}]
    asked = (("named", HI), ("named", secret), ("other", HI))
    replies = [
        ask(provider, messages, model).choices[0].message.content for model, messages in asked
    ]
    assert replies == ["named", "by its text", "default for other"]


# ---------------------------------------------------------------- its life


def test_a_provider_starts_on_a_free_port_and_leaves_nothing_behind() -> None:
    """Two at once do not meet; after the end the port is closed, the thread is gone, and it can be
    started again.
    """
    before = threading.active_count()
    with LocalProvider() as one, LocalProvider() as two:
        assert one.base_url != two.base_url
        address = one.base_url
    assert threading.active_count() == before
    with pytest.raises(httpx.ConnectError):
        httpx.get(address + "/models")
    with pytest.raises(RuntimeError, match="not running"):
        _ = one.base_url
    with one:
        assert ask(one).choices[0].message.content == "Done."


def test_the_documented_example_runs_and_can_fail() -> None:
    """As it stands in the package's docstring; and not without what it tests."""
    (example,) = re.findall(r"```python\n(.*?)```", testing.__doc__ or "", re.S)
    without = example.replace("context=CompressorContext(context_window=8_000)", "context=False")
    try:
        exec(compile(example, "praison_compressor.testing", "exec"), {})
        with pytest.raises(AssertionError):
            exec(compile(without, "praison_compressor.testing", "exec"), {})
    finally:
        uninstall()


def test_another_protocol_may_be_spoken_beside_chat_completions() -> None:
    """`protocols` are served at their own paths; without them there is nothing there."""
    with LocalProvider() as plain, strict_provider(["hello"]) as provider:
        missing = httpx.post(plain.base_url + "/responses", json={"model": "m", "input": "hi"})
        spoken = client_of(provider).responses.create(model="m", input="hi")
    assert missing.status_code == 404
    assert spoken.output_text == "hello"
