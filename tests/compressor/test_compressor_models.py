"""What a compressor does with what models answer, and with those that do not."""

from __future__ import annotations

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, SummarizerUnavailable
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


def test_the_next_model_is_tried_before_the_static_summary():
    """`fallback_models` in their order."""
    tried = []

    async def by_name(messages, *, model):
        tried.append(model)
        return "" if model == "first" else "## Done\nevery module"

    ours = compressor(by_name, auxiliary_model="first", fallback_models=("second",))
    assert ours.compress_sync(session(20)).summary_method == "model"
    assert tried == ["first", "first", "second"]
