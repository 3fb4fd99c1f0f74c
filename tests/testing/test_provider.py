"""The strict provider with real clients and agents; scripted, failing and broken answers."""

import re
from typing import Any

import httpx
import openai
import pytest

import praison_compressor.testing as testing
from praison_compressor import TokenCounter, uninstall
from praison_compressor.testing import Broken, Call, Failure, LocalProvider, Reply, Worker

HI: Any = [{"role": "user", "content": "hi"}]
PROPERTIES = {"path": {"type": "string"}, "line": {"type": "integer"}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["path", "line"]}
TOOL: Any = {"type": "function", "function": {"name": "read", "parameters": PARAMETERS}}
CALLS = (Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"}))


def ask(provider: LocalProvider, messages: Any = HI, model: str = "gpt-4o", **options: Any) -> Any:
    client = openai.OpenAI(base_url=provider.base_url, api_key="secret", max_retries=0, timeout=20)
    return client.chat.completions.create(model=model, messages=messages, **options)


# ---------------------------------------------------------------- the record


def test_usage_is_the_exact_count(provider):
    """Record, reply and stream have the counter's usage."""
    provider.answer_with(lambda asked: "four words, no more")
    usage = ask(provider, tools=[TOOL]).usage
    counter, record = TokenCounter("gpt-4o"), provider.requests[0]
    assert usage.prompt_tokens == counter.messages(HI) + counter.tools([TOOL])
    assert usage.completion_tokens == counter.text("four words, no more")
    assert record.prompt_tokens == usage.prompt_tokens
    assert record.completion_tokens == usage.completion_tokens
    asked = ask(provider, tools=[TOOL], stream=True, stream_options={"include_usage": True})
    assert [chunk.usage for chunk in asked][-1] == usage
    assert {chunk.usage for chunk in ask(provider, stream=True)} == {None}


def test_a_repeated_prefix_is_reported_as_cached(provider):
    """A prefix of an earlier request is reported as cached."""
    long: Any = [{"role": "system", "content": "word " * 2000}]
    for messages in (long + HI, long + HI + HI, [{"role": "system", "content": "x"}, *long, *HI]):
        ask(provider, messages)
    cached = [record.cached_tokens for record in provider.requests]
    assert cached[0] == cached[2] == 0
    assert 2000 < cached[1] < provider.requests[1].prompt_tokens


def test_a_changed_tool_choice_keeps_the_cache(provider):
    """OpenAI's cache does not depend on the tool choice."""
    named = {"type": "function", "function": {"name": "read"}}
    for choice in ("auto", named):
        ask(
            provider,
            [{"role": "system", "content": "word " * 2000}, *HI],
            tools=[TOOL],
            tool_choice=choice,
        )
    assert provider.requests[1].cached_tokens > 2000


# ---------------------------------------------------------------- who answers


def test_a_list_is_answered_in_order(provider):
    """The items of a list are the answers, in order."""
    provider.answer_with(["one", Failure(503, "busy"), Reply("two", finish="content_filter")])
    assert ask(provider).choices[0].message.content == "one"
    with pytest.raises(openai.InternalServerError, match="busy"):
        ask(provider)
    assert ask(provider).choices[0].finish_reason == "content_filter"


def test_the_end_of_a_list_is_loud(provider):
    """A request after the end of a list is answered with 500."""
    provider.answer_with(["one"])
    ask(provider)
    with pytest.raises(openai.InternalServerError, match="no answer left for request 2"):
        ask(provider)


def test_a_fault_in_a_model_is_loud(provider):
    """An exception of the answering model is a 500 with its words."""
    provider.answer_with(lambda asked: {}["my mistake"])
    with pytest.raises(openai.InternalServerError, match="my mistake"):
        ask(provider)


# ---------------------------------------------------------------- answers that fail


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        (Reply("half", finish="length"), "length"),
        (Reply("A long answer, " * 50, CALLS), "tool_calls"),
        (Reply(refusal="I will not."), "stop"),
        (Reply(calls=(Call("read", '{"path": '),)), "tool_calls"),
    ],
)
def test_a_reply_arrives_as_it_was_scripted(provider, reply, finish, stream):
    """Whole and streamed replies have the scripted text, calls and finish reason."""
    provider.answer_with([reply])
    answer = ask(provider, stream=stream)
    choices = [chunk.choices[0] for chunk in answer] if stream else answer.choices
    said = [choice.delta if stream else choice.message for choice in choices]
    assert "".join(part.content or "" for part in said) == (reply.text or "")
    assert "".join(part.refusal or "" for part in said) == (reply.refusal or "")
    calls = [call for part in said for call in part.tool_calls or ()]
    arguments = "".join(call.function.arguments for call in calls)
    assert arguments == "".join(call.arguments_text() for call in reply.calls)
    assert choices[-1].finish_reason == finish


@pytest.mark.parametrize("stream", [False, True])
def test_answers_break(provider, stream):
    """A broken answer is reset, no UTF-8, a proxy's page or silence."""
    body = {"model": "m", "messages": HI, "stream": stream}
    address = provider.base_url + "/chat/completions"
    broken: Any = [Broken("reset"), Broken("invalid_utf8"), Broken("not_json"), Broken("stall")]
    provider.answer_with(broken)
    with pytest.raises(openai.APIConnectionError):
        ask(provider, stream=stream)
    with pytest.raises(UnicodeDecodeError):
        list(ask(provider, stream=stream))
    page = httpx.post(address, json=body)
    assert (page.status_code, page.text) == (200, "<html>Bad gateway</html>")
    with httpx.stream("POST", address, json=body, timeout=0.3) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            answer.read()
    assert [record.status for record in provider.requests] == [None, 200, 200, 200]


# ---------------------------------------------------------------- a worker


def play(provider: LocalProvider, turns: int) -> list[Any]:
    """Hold a conversation as an agent would; return all messages."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        while messages[-1]["role"] != "assistant":
            message = ask(provider, messages, tools=[TOOL]).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages.extend(
                {"role": "tool", "tool_call_id": call.id, "content": "ok"}
                for call in message.tool_calls or ()
            )
    return messages


def test_a_worker_makes_its_calls_in_every_turn_and_then_answers(provider):
    """A worker makes its rounds of calls in each turn, with fresh ids and filled parameters."""
    provider.answer_with(Worker(calls=3, parallel=2))
    messages = play(provider, turns=2)
    step = ["assistant", "tool", "tool"]
    assert [m["role"] for m in messages] == ["user", *step * 3, "assistant"] * 2
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    assert len({call["id"] for call in calls}) == len(calls) == 12
    assert calls[1]["function"]["arguments"] == '{"path": "path-1", "line": 1}'
    assert provider.refused == []
    # It reads its round from the newest result alone, so compression cannot restart it.
    newest = [messages[0], *messages[7:10]]
    assert ask(provider, newest, tools=[TOOL]).choices[0].message.content == "Done."
    assert ask(provider, HI).choices[0].message.content == "Done."  # there is no tool to call


# ---------------------------------------------------------------- its life


def documented_example() -> str:
    """Return the code of the package's documentation."""
    (example,) = re.findall(r"```python\n(.*?)```", testing.__doc__ or "", re.S)
    return str(example)


def run_example(code: str) -> None:
    """Run the code, and uninstall what it installed."""
    try:
        exec(compile(code, "praison_compressor.testing", "exec"), {})
    finally:
        uninstall()


def test_the_documented_example_runs():
    """The documented example passes."""
    run_example(documented_example())


def test_the_documented_example_can_fail():
    """Without compression the documented example fails."""
    ours = "context=CompressorContext(context_window=8_000)"
    with pytest.raises(AssertionError):
        run_example(documented_example().replace(ours, "context=False"))
