"""Requests are read and written in each API's shape, and views made as each provider demands."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from praisonaiagents.llm.llm import LLM

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import digest, text_of
from praison_compressor.praisonai.request_shapes import (
    MOST_MARKS,
    RESPONSES,
    ROLE_ORDER,
    add_cache_marks,
    alternate_roles,
    refused_feature,
    takes_marks,
    without_model_keys,
)
from praison_compressor.summaries.litellm_client import route_of
from praison_compressor.testing import Reply, Rules, check_messages
from tests.helpers.compressing import Model
from tests.helpers.hosting import ANTHROPIC, agent, by_itself, context
from tests.helpers.native import post
from tests.helpers.transcripts import call, coding_turns, outputs, step, transcripts

CALLS = [call(id, "count", n=1) for id in ("call_1", "call_2")]
CONVERSATION = [
    {"role": "system", "content": "Keep the books."},
    {"role": "user", "content": "How many ledgers?"},
    {"role": "assistant", "content": "Let me see.", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "call_1", "content": "four"},
    {"role": "tool", "tool_call_id": "call_2", "content": "five"},
    {"role": "assistant", "content": "Nine."},
    {"role": "user", "content": [{"type": "text", "text": "And these?"}]},
]


def test_equal_words_have_equal_digests_on_both_apis():
    """Items and chat messages of equal words have equal digests."""
    params = LLM(model="openai/gpt-4o-mini", api_key="sk")._build_responses_params(CONVERSATION)
    read = RESPONSES.read(params)
    assert [*map(digest, read.messages)] == [*map(digest, CONVERSATION)]


def test_another_models_thinking_is_left_out():
    """Signed thinking and reasoning items are left out for another model."""
    thought = {"type": "thinking", "thinking": "x", "signature": "s"}
    left = {"role": "assistant", "content": [{"type": "text", "text": "t"}]}
    message = {
        **left,
        "content": [thought, *left["content"]],
        "thinking_blocks": [thought],
        "reasoning_content": "x",
        "response_items": [{"type": "reasoning", "id": "rs_1", "summary": []}],
        "tool_calls": [{**CALLS[0], "response_item": {"id": "fc_1", "status": "completed"}}],
    }
    assert without_model_keys(message) == {**left, "tool_calls": CALLS[:1]}


def test_an_item_of_a_newer_api_goes_out_as_it_is():
    """A request with an unknown item is not read."""
    items = [{"role": "user", "content": "go"}, {"type": "telepathy", "id": "t"}]
    assert RESPONSES.read({"model": "m", "input": items}) is None


USER = {"role": "user", "content": "Ask."}
SAYS = {"role": "assistant", "content": "So."}
SYSTEM = {"role": "system", "content": "Be brief."}

REFUSALS = (
    "Unexpected role 'user' after role 'tool'",
    "Unexpected role RoleEnum.user after RoleEnum.tool",
    "After the optional system message, conversation roles must alternate user and assistant roles "
    "except for tool calls and results.",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    'messages: roles must alternate between "user" and "assistant"',
    "After the (optional) system message(s), user or tool message(s) should alternate with "
    "assistant message(s).",
)


@pytest.mark.parametrize("words", REFUSALS)
def test_a_refused_order_is_recognized(words):
    """Refused role orders of Mistral, chat templates, Anthropic and Perplexity are recognized."""
    assert refused_feature(ValueError(words)) == ROLE_ORDER


CASES: list[list[dict[str, Any]]] = [
    [USER, *step("a", "x"), USER],
    [SYSTEM, USER, USER, *step("a", "x"), *step("b", "y"), USER, SAYS, USER],
    [SYSTEM, SAYS, USER, SAYS, *step("a", "x"), SAYS, SAYS],
    [USER, SAYS, *step("a", "x"), USER],
    [USER, *step("a", "x"), SAYS, *step("b", "x"), USER],
]


@pytest.mark.parametrize("messages", CASES)
@pytest.mark.parametrize("rules", [Rules(alternate=True), Rules(answered_results=True)])
def test_the_view_is_as_each_strict_provider_wants_it(messages, rules):
    """One view satisfies the rules of every strict provider."""
    check_messages(alternate_roles(messages), rules)


@given(transcripts(max_turns=4))
def test_alternation_keeps_every_result(messages):
    """Alternation keeps all results, in order."""
    view = alternate_roles(messages)
    check_messages(view, Rules(alternate=True, answered_results=True))
    results = [m for m in messages if m["role"] == "tool"]
    assert [m for m in view if m["role"] == "tool"] == results


@given(transcripts(max_turns=4))
def test_a_second_alternation_changes_nothing(messages):
    """Alternating roles are left as they are."""
    view = alternate_roles(messages)
    assert alternate_roles(view) == view


def test_thinking_that_a_provider_refuses_is_left_out():
    """A history with thinking of another prompt costs one refusal, not the agent."""
    thinks = Reply("Yes.", thinking="Hm, why not?")
    with by_itself(lambda asked: thinks, rules=Rules(bound_thinking=True)) as host:
        thinking = {"type": "enabled", "budget_tokens": 1_024}
        content = post(host, [USER], thinking=thinking).json()["content"]
        made = agent(host, ANTHROPIC, context(host))
        thought = {"role": "assistant", "content": "Yes.", "thinking_blocks": content[:1]}
        made.chat_history = [USER, thought]
        answers = [made.chat(f"Question {n}?") for n in range(3)]
    assert answers == ["Yes."] * 3
    assert len(host.refused) == 1
    assert "bound to a different conversation" in str(host.refused[0].error)


TOOL = {"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}


def marks(messages: list[Any]) -> list[int]:
    return [i for i, message in enumerate(messages) if '"cache_control"' in json.dumps(message)]


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("model", "provider", "takes"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", True),
        ("anthropic/another-name", "anthropic", True),
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "bedrock", True),
        ("bedrock/meta.llama3-70b-instruct-v1:0", "bedrock", False),
        ("vertex_ai/claude-opus-4@20250514", "vertex_ai", True),
        ("vertex_ai/gemini-2.5-pro", "vertex_ai", False),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter", True),
        ("openai/claude-local", "openai", False),
        ("hosted_vllm/claude-local", "hosted_vllm", False),
        ("claude-local", None, False),
    ],
)
def test_marks_are_set_where_the_provider_takes_them(model, provider, takes):
    """The provider that litellm sends to decides about marks, not the model's name."""
    assert route_of({"model": model}).provider == provider
    assert takes_marks(provider, model) is takes


@settings(deadline=None, max_examples=40)
@given(transcripts(), st.integers(0, 5))
def test_marks_change_nothing_but_themselves(messages, given_marks):
    """Adding marks changes nothing of a request but its marks, at most four."""
    for message in messages[:given_marks]:
        message["cache_control"] = {"type": "ephemeral"}
    before = copy.deepcopy(messages)
    result = add_cache_marks(messages)
    assert messages == before
    assert unmarked(result) == unmarked(messages)
    assert list(map(digest, result)) == list(map(digest, messages))
    assert len(marks(result)) <= max(MOST_MARKS, given_marks)
    assert set(marks(messages)) <= set(marks(result))


def test_the_places_are_system_summary_mask_and_end():
    """Marks are at the system prompt, the newest summary or mask, and the end."""
    small = {"model": "gpt-4o", "protect_last_n_tokens": 1_000}
    for window, messages, opens in (
        (6_000, coding_turns(20), "<conversation-summary>"),
        (8_000, outputs(20), "[masked]"),
    ):
        config = CompressorConfig(context_window=window, **small)
        view = ContextCompressor(config, summarizer=Model()).compress_sync(messages).messages
        stays = max(i for i, message in enumerate(view) if text_of(message).startswith(opens))
        assert marks(add_cache_marks(view)) == [0, stays, len(view) - 1]


def test_the_hosts_marks_count():
    """The marks of the host and ours together are at most four."""
    messages = coding_turns(3)
    assert marks(add_cache_marks(messages, tools=[TOOL] * 3)) == [len(messages) - 1]
    for tools in (4, 5):
        assert add_cache_marks(messages, tools=[TOOL] * tools) == messages


def test_a_message_that_cannot_carry_a_mark_gets_none():
    """An empty message or an assistant's gets no mark."""
    thought = {"role": "assistant", "content": "Let me think."}
    empty = {"role": "system", "content": ""}
    for said in ([thought], []):
        assert add_cache_marks(said, tools=[]) == said
    assert marks(add_cache_marks([empty, {"role": "user", "content": "look"}, thought])) == [1]
