"""What a compressor does with what models answer, and with those that do not."""

from __future__ import annotations

import asyncio

import pytest

from praison_compressor import (
    CompressorConfig,
    ContextCompressor,
    SummarizerUnavailable,
    TokenCounter,
)
from praison_compressor.messages import check, text_of
from tests.helpers.compressing import SMALL, Model, compressor
from tests.helpers.transcripts import session


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   ",
        "I'm sorry, but I can't help with that.",
        "Error: rate limit exceeded",
        '{"error": {"message": "boom"}}',
        "<think>only thoughts</think>",
        "word " * 5_000,
    ],
)
def test_a_useless_answer_is_never_stored(answer):
    """Empty, refused, an error text, only reasoning, or far too long: static instead."""
    result = compressor(Model(answer)).compress_sync(session(20))
    assert result.summary_method == "static"
    assert check(result.messages) == []
    assert "rate limit exceeded" not in text_of(result.segments[0].rendered)


def test_a_model_that_is_down_costs_the_turn_nothing():
    """Errors of a known kind and of no kind: the static summary, and the cause in the event."""
    for error in (SummarizerUnavailable("401", kind="auth"), RuntimeError("boom")):
        events = []

        async def down(messages, error=error):
            raise error

        config = CompressorConfig(**{**vars(SMALL), "summary_max_retries": 0})
        ours = ContextCompressor(config, summarizer=down, on_event=events.append)
        assert ours.compress_sync(session(20)).summary_method == "static"
        names = [event.name for event in events]
        assert names == ["started", "model_called", "model_answered", "fell_back", "committed"]


def test_a_model_that_hangs_is_left_after_its_time():
    """`timeout_seconds` bounds one call, whoever makes it."""

    async def hangs(messages):
        await asyncio.sleep(3_600)

    result = compressor(hangs, timeout_seconds=0.05).compress_sync(session(20))
    assert result.summary_method == "static"


def test_the_next_model_is_tried_before_the_static_summary():
    """`fallback_models` in their order."""
    tried = []

    async def by_name(messages, *, model):
        tried.append(model)
        return "" if model == "first" else "## Done\nevery module"

    ours = compressor(by_name, auxiliary_model="first", fallback_models=("second",))
    assert ours.compress_sync(session(20)).summary_method == "model"
    assert tried == ["first", "first", "second"]


class Quoting(Model):
    """Answers with the beginning of what it is shown: a part may be nothing but values."""

    async def __call__(self, messages):
        await super().__call__(messages)
        return text_of(messages[-1]).partition(">\n")[2][:150]


def test_one_message_larger_than_the_window_is_shown_by_its_ends():
    """Whatever the options say, in one request of its size."""
    model = Quoting()
    model.window = 2_500
    messages = session(3)
    messages[3] = {**messages[3], "content": " ".join(f"w{n}" for n in range(2_000))}
    messages = [*messages[:2], *messages[2:4], *session(8)[2:]]
    ours = compressor(model, head_tokens=0, shown_message_tokens=50_000)
    result = ours.compress_sync(messages, target_tokens=2_500)
    assert result.summary_method == "model"
    shown = "\n".join(model.requests)
    assert "w0 w1 w2" in shown
    assert "w1998 w1999" in shown
    assert "characters left out" in shown
    counter = TokenCounter("gpt-4o")
    assert max(map(counter.text, model.requests)) < model.window


def test_domain_instructions_reach_the_model_and_tools_do_not():
    """`summary_instructions` are added; the request is two plain messages."""
    seen = []

    async def model(messages, **keywords):
        seen.append((messages, keywords))
        return "## Done\nyes"

    compressor(model, summary_instructions="Keep every IATA code.").compress_sync(session(20))
    messages, keywords = seen[0]
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "Keep every IATA code." in messages[0]["content"]
    assert set(keywords) == {"max_tokens", "model", "timeout_seconds"}
