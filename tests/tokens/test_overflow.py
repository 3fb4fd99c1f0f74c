"""What providers say of a request that is too long is read: the window and the count."""

from __future__ import annotations

import pytest

from praison_compressor.tokens.models import Overflow, overflow_of

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
    """OpenAI, Anthropic, Gemini, llama.cpp, Bedrock: the window and the count, where they stand."""
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
    """A smaller view would not help."""
    assert overflow_of(RuntimeError(words)) is None
