"""The bill of a session: what was paid, and what the same requests had cost without us."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, SummaryReply, Usage
from praison_compressor.compressor.bills import RequestUsage, reported, uncompressed
from tests.helpers.compressing import SMALL
from tests.helpers.transcripts import session

PAID = Usage(prompt_tokens=900, completion_tokens=80, cost=0.5)


async def model(messages: list[Any]) -> SummaryReply:
    return SummaryReply("## Done\nThe modules so far are in order.", PAID, "aux", "stop")


def usage(prompt: int, cached: int = 0, output: int = 100) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": output,
                      "prompt_tokens_details": details}}  # fmt: skip


def test_a_sessions_bill_has_requests_summaries_and_the_sum_without_compression() -> None:
    """Input, cached input, output, summaries and money, beside the whole transcript's."""
    ours = ContextCompressor(
        CompressorConfig(**{**vars(SMALL), "model": "gpt-4o", "tool_policies": {"*": "summarize"}}),
        summarizer=model,
    )
    first = ours.compress_sync(session(4), session_id="s")
    ours.record_usage(usage(first.tokens_after), session_id="s")
    result = ours.compress_sync(session(20), session_id="s")
    bill = ours.record_usage(usage(result.tokens_after, 1_000), session_id="s")
    assert (bill.requests, bill.summaries) == (2, PAID)
    assert bill.usage == RequestUsage(first.tokens_after + result.tokens_after, 1_000, 0, 0, 200)
    assert bill.without.input == first.tokens_before + result.tokens_before
    assert bill.without.cached == first.tokens_before
    plain = bill.usage.input - 1_000
    assert bill.cost == pytest.approx(plain * 2.5e-6 + 1_000 * 1.25e-6 + 200 * 1e-5)
    assert bill.total == pytest.approx(bill.cost + 0.5)
    assert "Without compression: " in str(bill)
    later = ours.compress_sync(session(20), session_id="s")
    assert later.bill == bill
    assert ours.compress_sync(session(4), session_id="other").bill.requests == 0


def test_a_model_without_a_price_has_a_bill_in_tokens() -> None:
    """Where litellm's table has no price there is no money, and the tokens are there."""
    ours = ContextCompressor(CompressorConfig(model="unlisted-1", context_window=6_000))
    ours.compress_sync(session(2), session_id="s")
    bill = ours.record_usage(usage(900), session_id="s")
    assert (bill.usage.input, bill.cost, bill.total) == (900, None, None)
    assert ours.record_usage(None, session_id="s") == bill


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, RequestUsage(9, 0, 0, 0, 2)),
        (
            SimpleNamespace(usage=SimpleNamespace(prompt_tokens=9, completion_tokens=2)),
            RequestUsage(9, 0, 0, 0, 2),
        ),
        (
            {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
            RequestUsage(9, 4, 0, 0, 2),
        ),
        (
            {
                "usage": {
                    "input_tokens": 9,
                    "cache_read_input_tokens": 40,
                    "cache_creation_input_tokens": 30,
                    "cache_creation": {"ephemeral_1h_input_tokens": 10},
                    "output_tokens": 2,
                }
            },
            RequestUsage(79, 40, 20, 10, 2),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            RequestUsage(9, 4, 0, 0, 2),
        ),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cache_write_tokens": 3}},
            RequestUsage(9, 0, 3, 0, 0),
        ),
        ({"usage": None}, None),
        ("no usage", None),
    ],
)
def test_each_clients_usage_is_read(answer: Any, found: RequestUsage | None) -> None:
    """Responses and usages of OpenAI's and Anthropic's clients give the whole input."""
    assert reported(answer) == found


def test_without_compression_the_cache_has_all_but_the_new_tokens() -> None:
    """A warm cache would have had the whole transcript before; a cold one has nothing."""
    paid = RequestUsage(4_000, 1_000, 3_000, 0, 50)
    warm = uncompressed(paid, 10_000, 500, is_warm=True)
    assert warm == RequestUsage(14_000, 13_500, 500, 0, 50)
    assert uncompressed(paid, 10_000, 500, is_warm=False) == RequestUsage(14_000, 0, 14_000, 0, 50)
