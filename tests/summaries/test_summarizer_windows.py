"""A refusal teaches, once, that the auxiliary model's window is smaller."""

from typing import Any

import pytest

from praison_compressor import (
    CompressorConfig,
    ContextCompressor,
    Event,
    SummarizerUnavailable,
    TokenCounter,
)
from praison_compressor.testing import Asked, Failure, LocalProvider, Reply
from praison_compressor.tokens.learned import taught_window
from praison_compressor.tokens.refusals import SMALLEST_WINDOW, overflow_of
from tests.helpers.compressing import at
from tests.helpers.transcripts import coding_turns, rambling

SUMMARY = "## Done\nThe modules so far are in order."
REAL = 6_000


@pytest.fixture
def small():
    """Return a provider whose `gpt-4o-mini` reads 6,000 tokens; the table says 128,000."""
    with LocalProvider(lambda asked: Reply(SUMMARY)) as running:
        running.set_window(REAL, "gpt-4o-mini")
        yield running


def test_the_window_that_a_refusal_names_is_learned(small):
    """After one refusal every request fits the window."""
    ours = at(small)
    result = ours.compress_sync(coding_turns(40))
    assert result.summary_method == "model"
    assert len(small.refused) == 1
    assert len(small.requests) > 3
    assert max(r.prompt_tokens for r in small.requests if not r.refused) > 0.5 * REAL
    ours.compress_sync(coding_turns(80), force=True)
    assert len(small.refused) == 1


def storms(window: int | None, answers: str, **options: Any) -> tuple[Any, list[Any], list[Event]]:
    """Compress a long segment by a function of that window; return its requests and events."""
    asked: list[Any] = []
    events: list[Event] = []

    async def model(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        return answers

    model.window = window
    given = {"model": "gpt-4o", "context_window": 30_000, "tool_policies": {"*": "summarize"}}
    config = CompressorConfig(**{**given, "summary_max_retries": 0, **options})
    ours = ContextCompressor(config, summarizer=model, on_event=events.append)
    return ours.compress_sync(coding_turns(40, words=100)), asked, events


@pytest.mark.parametrize(
    ("window", "answers", "options", "method"),
    [
        (4_096, SUMMARY, {"summary_target_tokens": 2_000}, "model"),
        (4_096, "", {"fallback_models": ("a", "b", "c", "d", "e", "f", "g", "h")}, "static"),
        (4_096, f"{SUMMARY} {rambling(900)}", {}, "model"),
        (1_000, SUMMARY, {}, "static"),
        (300, SUMMARY, {}, "static"),
    ],
    ids=["long prose", "refused texts", "long texts", "1k", "no room"],
)
def test_one_compression_makes_no_storm_of_calls(window, answers, options, method):
    """One compression keeps within 16 calls, the window and the budget."""
    result, asked, events = storms(window, answers, **options)
    sizes = [TokenCounter("gpt-4o").messages(messages) for messages in asked]
    assert len(asked) <= 16
    assert max(sizes, default=0) <= window
    assert result.summary_method == method
    failed = [event.data["model"] for event in events if event.name == "fell_back"]
    assert len(failed) == len(set(failed))
    assert bool(failed) == (method == "static")
    assert result.tokens_after < 17_000


@pytest.mark.parametrize(("reads", "method"), [(4_096, "model"), (0, "static")])
def test_a_refusal_without_a_number_makes_no_storm_of_calls(reads, method):
    """A window that no refusal names costs at most 16 calls."""
    tokens = TokenCounter("gpt-4o")

    def answer(asked: Asked) -> Reply | Failure:
        if tokens.text(asked.text) > reads:
            return Failure(400, "Input is too long for requested model.", "invalid_request_error")
        return Reply(SUMMARY)

    with LocalProvider(answer) as provider:
        result = at(provider).compress_sync(coding_turns(40, words=100))
        assert 0 < len(provider.requests) <= 16
        assert result.summary_method == method


def test_a_huge_message_is_shown_in_one_request_of_bounded_size():
    """One request shows the ends and the failed line of a huge message."""
    messages = coding_turns(6)
    lines = ["compiling the next unit of the second stage, nothing to tell"] * 8_000
    lines[4_000] = "NameError: name 'retry_budget' is not defined in billing/refunds.py"
    messages[8] = {"role": "assistant", "content": "\n".join(lines)}
    with LocalProvider(lambda asked: Reply(SUMMARY)) as provider:
        assert at(provider).compress_sync(messages).summary_method == "model"
        (request,) = provider.requests
        assert request.prompt_tokens < 10_000
        assert "NameError: name 'retry_budget'" in request.text
        assert "characters left out" in request.text


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("This model's maximum context length is 8000 tokens.", 8_000),
        ("Requested tokens (9100) exceed context window of 4096", 4_051),  # by our count
        ("This model's maximum context length is 64000 tokens.", 5_500),  # it would have fit
        ("This model's maximum context length is 300 tokens.", 5_500),  # nobody has that
        ("Input is too long for requested model.", 5_500),
    ],
)
def test_a_refusal_teaches_its_window_or_half_of_the_request(words, window):
    """A window that the request allows is learned, else half of the request."""
    error = SummarizerUnavailable(words, kind="context")
    assert taught_window(overflow_of(error, 9_000), 9_000, 1_000) == window
    assert taught_window(overflow_of(error, 1_500), 1_500, 500) < SMALLEST_WINDOW
