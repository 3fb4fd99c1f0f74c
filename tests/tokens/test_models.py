"""A model's limits by litellm's table."""

import logging

import pytest

from praison_compressor.tokens import model_limits


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
def test_known_models_have_their_limits(model, window, output):
    """Any route to a known model has the table's figures."""
    limits = model_limits(model)
    assert (limits.window, limits.output, limits.guessed) == (window, output, False)


def test_an_explicit_window_counts_before_all(caplog):
    """The option comes first, for known and unknown models, without a warning."""
    assert model_limits("gpt-4o", 5_000).window == 5_000
    assert model_limits("gpt-4o", 5_000).output == 16_384
    assert not model_limits("nobody-knows-this-one", 5_000).guessed
    assert caplog.records == []


def test_a_guess_is_logged_once(caplog):
    """An unknown model's window is guessed, with one warning that names the remedies."""
    with caplog.at_level(logging.WARNING):
        limits = [model_limits("azure/nobody-knows-this-deployment") for _ in range(3)]
    assert {(one.window, one.guessed) for one in limits} == {(128_000, True)}
    assert len(caplog.records) == 1
    assert "set context_window for the agent's model" in caplog.text
    assert "litellm.register_model" in caplog.text


def test_limits_registered_at_run_time_count_first(monkeypatch):
    """Models registered at run time come before the table's."""
    import litellm

    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": 7_000})
    monkeypatch.setitem(litellm.model_cost, "gpt-4o", {"max_input_tokens": 6_000})
    assert model_limits("azure/my-deployment").window == 7_000
    assert model_limits("openai/gpt-4o").window == 6_000
    monkeypatch.setitem(litellm.model_cost, "my-deployment", {"max_input_tokens": "many"})
    assert model_limits("my-deployment").guessed
