"""A model's limits by litellm's table, and the numbers in a provider's refusal."""

from __future__ import annotations

import logging

import pytest

from praison_compressor.tokens import Overflow, model_limits, overflow_of


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("openrouter/openai/gpt-4o-mini", 128_000, 16_384),
        ("gpt-4o-2099-01-01", 128_000, 16_384),
        ("ft:gpt-4o-2024-08-06:org::id", 128_000, 16_384),
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("openrouter/anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("openrouter/anthropic/claude-sonnet-4.5:beta", 200_000, 64_000),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000),
        ("gemini/gemini-2.5-pro", 1_048_576, 65_536),
        ("ollama/llama3", 8_192, 8_192),
    ],
)
def test_known_models_have_their_limits(model: str, window: int, output: int) -> None:
    """Any route to a known model has the table's figures."""
    limits = model_limits(model)
    assert (limits.window, limits.output, limits.guessed) == (window, output, False)


def test_an_explicit_window_counts_before_all(caplog: pytest.LogCaptureFixture) -> None:
    """The option comes first, for known and unknown models, without a warning."""
    assert model_limits("gpt-4o", 5_000).window == 5_000
    assert model_limits("gpt-4o", 5_000).output == 16_384
    assert not model_limits("nobody-knows-this-one", 5_000).guessed
    assert caplog.records == []


def test_a_guess_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """An unknown model's window is guessed, with one warning that names the remedies."""
    with caplog.at_level(logging.WARNING):
        limits = [model_limits("azure/nobody-knows-this-deployment") for _ in range(3)]
    assert {(one.window, one.guessed) for one in limits} == {(128_000, True)}
    assert len(caplog.records) == 1
    assert "set context_window for the agent's model" in caplog.text
    assert "litellm.register_model" in caplog.text


def test_what_is_registered_at_run_time_counts_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models registered at run time come before the table's."""
    import litellm

    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": 7_000})
    monkeypatch.setitem(litellm.model_cost, "gpt-4o", {"max_input_tokens": 6_000})
    assert model_limits("azure/my-deployment").window == 7_000
    assert model_limits("openai/gpt-4o").window == 6_000
    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": "many"})
    assert model_limits("my-deployment").guessed


SAYINGS = {
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9120 tokens. Please reduce the length of the messages.": (8192, 9120),
    "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens "
    "(5804 in the messages, 100 in the functions, and 4096 in the completion).": (8192, 5904, 4096),
    "This model's maximum context length is 4096 tokens. However, you requested 1024 output tokens "
    "and your prompt contains at least 3073 input tokens": (4096, None, 1024),
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
    "length is 8192 tokens and your request has 5904 input tokens": (8192, 5904, 4096),
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input "
    "length or `max_tokens` and try again": (200000, 188240, 21333),
    "You requested a total of 140000 tokens: 130000 tokens from the input messages and 10000 "
    "tokens for the completion. That exceeds the maximum context length of 131072.": (
        131072,
        130000,
        10000,
    ),
    "prompt is too long: 215000 tokens > 200000 maximum": (200000, 215000),
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": (
        1048576,
        1200000,
    ),
    "the request exceeds the available context size. try increasing the context size or enable "
    "context shift; n_ctx: 16384": (16384, None),
    "ContextWindowExceededError: Input is too long for requested model.": (None, None),
    "Your input exceeds the context window of this model. Please adjust your input": (None, None),
}


@pytest.mark.parametrize("words", SAYINGS)
def test_what_providers_say(words: str) -> None:
    """Window and count are read from the refusals of each provider."""
    assert overflow_of(RuntimeError(words)) == Overflow(*SAYINGS[words])


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
        "You exceeded your current quota, please check your plan and billing details.",
        "max_tokens is too large: 100000.",
        "Invalid 'messages[3].tool_call_id'",
    ],
)
def test_what_is_something_else(words: str) -> None:
    """Other errors, as rate limits, are no overflow."""
    assert overflow_of(RuntimeError(words)) is None
