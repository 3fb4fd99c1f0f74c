"""Cache marks: at the places that stay, at most four, and no part of what a message says."""

from __future__ import annotations

import copy
import json

import litellm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import digest, text_of
from praison_compressor.praisonai.provider_rules import LARGEST, marked, takes_marks
from praison_compressor.summaries.litellm_client import provider_of
from tests.helpers.transcripts import session, transcripts
from tests.view.test_masks import Model, outputs

TOOL = {"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}


def marks(messages) -> list[int]:
    return [i for i, message in enumerate(messages) if '"cache_control"' in json.dumps(message)]


def unmarked(value):
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
    """Where litellm sends the request decides, not what the model is called."""
    assert provider_of(litellm, {"model": model}) == provider
    assert takes_marks(provider, model) is takes


@settings(deadline=None, max_examples=40)
@given(transcripts(), st.integers(0, 5))
def test_marks_change_nothing_but_themselves(messages, given_marks):
    """Digests, order, form and the caller's own list stay; four at most, the host's among them."""
    for message in messages[:given_marks]:
        message["cache_control"] = {"type": "ephemeral"}
    before = copy.deepcopy(messages)
    result = marked(messages)
    assert messages == before
    assert unmarked(result) == unmarked(messages)
    assert list(map(digest, result)) == list(map(digest, messages))
    assert len(marks(result)) <= max(LARGEST, given_marks)
    assert set(marks(messages)) <= set(marks(result))


def test_the_places_are_system_summary_mask_and_end():
    """What stays longest, and what the next request is found by."""
    small = {"model": "gpt-4o", "protect_last_n_tokens": 1_000}
    for window, messages, opens in (
        (6_000, session(20), "<conversation-summary>"),
        (8_000, outputs(20), "[masked]"),
    ):
        config = CompressorConfig(context_window=window, **small)
        view = ContextCompressor(config, summarizer=Model()).compress_sync(messages).messages
        stays = max(i for i, message in enumerate(view) if text_of(message).startswith(opens))
        assert marks(marked(view)) == [0, stays, len(view) - 1]


def test_the_hosts_marks_count_and_what_cannot_carry_one_gets_none():
    """Those on tools too: with three of them the end gets ours, with four nothing is added; none
    is set where a provider refuses it, on an assistant's blocks and on empty texts."""
    messages, thought = session(3), {"role": "assistant", "content": "Let me think."}
    empty = {"role": "system", "content": ""}
    assert marks(marked(messages, tools=[TOOL] * 3)) == [len(messages) - 1]
    for said, tools in ((messages, [TOOL] * 4), (messages, [TOOL] * 5), ([thought], []), ([], [])):
        assert marked(said, tools=tools) == said
    assert marks(marked([empty, {"role": "user", "content": "look"}, thought])) == [1]
