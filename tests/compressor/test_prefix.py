"""A summary asked for on the live prefix: what the provider's cache serves, and when it cannot."""

from __future__ import annotations

import functools
import json
import urllib.request
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, SummaryReply
from praison_compressor.testing import Call, LocalProvider, Reply
from tests.helpers import compressing
from tests.helpers.hosting import ANTHROPIC, LITELLM, agent, at_home, chat, context, look_up, turn
from tests.helpers.provider import strict_provider
from tests.helpers.transcripts import session

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"To {name} a file of the project.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
    for name in ("read_file", "bash")
]
SUMMARY = "## Done\nThe modules so far are in order."
ON_PREFIX = "call no tool"


# The agent's own model writes the summaries.
at = functools.partial(
    compressing.at,
    context_window=26_000,
    auxiliary_model="openai/gpt-4o",
    summarize_on_prefix=True,
)


def request(provider: LocalProvider, messages: list[dict[str, Any]]) -> None:
    """The agent's own request."""
    body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-any"}
    asked = urllib.request.Request(f"{provider.base_url}/chat/completions", body, headers)
    urllib.request.urlopen(asked).read()


def answered(provider: LocalProvider, on_prefix: Any = SUMMARY) -> None:
    """Every request gets a summary; one on the prefix gets `on_prefix`."""

    def answer(asked: Any) -> Any:
        return on_prefix if ON_PREFIX in asked.last_user else SUMMARY

    provider.answer_with(answer)


def compressed(provider: LocalProvider, ours: ContextCompressor, **options: Any) -> Any:
    """The agent's request goes out, its conversation grows over the trigger, it is compressed."""
    turns = session(24)
    short = next(n for n in range(len(turns), 0, -1) if ours.tokens.messages(turns[:n]) < 15_000)
    while turns[short]["role"] != "user":
        short -= 1
    request(provider, turns[:short])
    return ours.compress_sync(turns, **{"tools": TOOLS, **options})


@pytest.mark.parametrize("prompt", [None, "{earlier} MINE: {transcript} {instructions} {words}"])
def test_the_provider_serves_all_but_the_end_from_its_cache(
    provider: LocalProvider, prompt: str | None
) -> None:
    """The summary's request begins with what the agent's last one began with, tools and all; with
    a prompt of the user's own too."""
    answered(provider)
    result = compressed(provider, at(provider, summary_prompt=prompt))
    _, asked = provider.requests
    assert not provider.refused
    assert asked.tools == TOOLS
    assert asked.body["tool_choice"] == "none"
    assert "temperature" not in asked.body
    assert ON_PREFIX in asked.messages[-1]["content"]
    assert ("MINE: the part of the" in asked.messages[-1]["content"]) == (prompt is not None)
    assert result.summary_method == "model"
    assert result.usage.cache_read_tokens == asked.cached_tokens > 0.6 * asked.prompt_tokens
    assert sum(result.written[0].parts) == len(result.segments[0].run)


@pytest.mark.parametrize(
    "refused",
    [Reply(calls=(Call("bash", {"path": "x"}),)), "", "I'm sorry, I can't do that."],
    ids=["a tool call", "nothing", "a refusal"],
)
def test_an_answer_that_is_no_summary_is_asked_for_in_the_ordinary_way(
    provider: LocalProvider, refused: Any
) -> None:
    """A model that goes on with the work is not believed; both requests are accounted for."""
    answered(provider, refused)
    ours = at(provider)
    result = compressed(provider, ours)
    _, first, second = provider.requests
    assert (first.tools, second.tools) == (TOOLS, [])
    assert result.summary_method == "model"
    assert result.usage.prompt_tokens == first.prompt_tokens + second.prompt_tokens
    assert ours._pipeline.writer.breaker.allows(ours.session_id, "openai/gpt-4o", 1)


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({"auxiliary_model": "openai/gpt-4o-mini"}, {}),
        ({}, {"tools": None}),
        ({"summarize_on_prefix": False}, {}),
    ],
    ids=["another model", "tools not told", "not asked for"],
)
def test_it_is_asked_only_of_the_agents_own_model_with_its_tools(
    provider: LocalProvider, options: dict[str, Any], call: dict[str, Any]
) -> None:
    """Another model has another cache, and another list of tools another beginning."""
    answered(provider)
    result = compressed(provider, at(provider, **options), **call)
    assert result.summary_method == "model"
    assert [recorded.tools for recorded in provider.requests[1:]] == [[]]


def test_secrets_are_never_asked_for_on_the_prefix(provider: LocalProvider) -> None:
    """Where a summary is to be written without them, it is written from masked texts."""
    answered(provider)
    ours = at(provider, redact_secrets=True)
    turns = session(24)
    turns[5] = {**turns[5], "content": f"{turns[5]['content']} ghp_{'a1B2' * 9}"}
    assert ours.compress_sync(turns, tools=TOOLS).summary_method == "model"
    assert [recorded.tools for recorded in provider.requests] == [[]]


def test_outputs_that_a_policy_masks_are_not_read_on_the_prefix(provider: LocalProvider) -> None:
    """Where the view still has them whole, the summary is written from their lines."""
    answered(provider)
    turns = session(24, steps=2, words=90)
    for message in turns:
        if message["role"] == "assistant" and message["content"]:
            message["content"] *= 10
    ours = at(provider, tool_policies={"read_*": "mask"})
    assert ours.compress_sync(turns, tools=TOOLS).summary_method == "model"
    (asked,) = provider.requests
    assert asked.tools == []
    text = asked.messages[-1]["content"]
    assert ("[masked] read_file" in text, "lorem ipsum dolor " * 90 in text) == (True, False)


class Named:
    """A user's function that says by its keyword that it can send tools."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    async def __call__(self, messages: list[Any], tools: Any = None) -> SummaryReply:
        self.given.append((messages, tools))
        return SummaryReply(SUMMARY)


def test_every_summary_of_a_session_is_asked_on_the_view_before_it() -> None:
    """By a user's own function that names tools. Folds too, which say that they replace summaries:
    each request begins as the view did."""
    asked = Named()
    config = CompressorConfig(
        model="gpt-4o",
        context_window=6_000,
        protect_last_n_tokens=1_000,
        auxiliary_model="gpt-4o",
        summarize_on_prefix=True,
        tool_policies={"*": "summarize"},
    )
    ours = ContextCompressor(config, summarizer=asked)
    messages = session(40)
    view: list[Any] = []
    for end in (n for n, message in enumerate(messages, 1) if message["role"] == "user"):
        before, known = len(asked.given), view
        view = ours.compress_sync(messages[:end], session_id="s", tools=TOOLS).messages
        for request, tools in asked.given[before:]:
            assert tools == tuple(TOOLS)
            assert request[:-1][: len(known)] == known[: len(request) - 1]
    rolled = [
        "replaces the earlier summaries" in request[-1]["content"] for request, _ in asked.given
    ]
    assert any(rolled)
    assert not rolled[0]


@pytest.mark.parametrize("path", [LITELLM, ANTHROPIC])
def test_an_agent_asks_on_its_own_prefix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, path: str
) -> None:
    """Through the host: its own model, its own tools, and the cache of the provider.

    Claude's caches no messages under another choice of tools than that of the agent.
    """
    provider = strict_provider()
    answered(provider)
    with provider, at_home(monkeypatch, tmp_path, provider):
        made = agent(
            provider,
            path,
            context(provider, auxiliary_model=None, summarize_on_prefix=True),
            tools=[look_up],
        )
        chat(made, [turn(number) for number in range(24)])
        asked = [r for r in provider.requests if ON_PREFIX in str(r.messages[-1]["content"])]
        assert not provider.refused
        assert asked
        assert all(recorded.tools for recorded in asked)
        assert max(r.cached_tokens / r.prompt_tokens for r in asked) > 0.8
