"""What a view may weigh: window, reserve, trigger and target, by hand."""

from __future__ import annotations

import pytest

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor
from praison_compressor.view.budget import Budget
from tests.helpers.transcripts import step


def test_facts_have_three_thousand_tokens_where_an_eighth_of_the_target_allows_them() -> None:
    """A tenth of the target in large windows, an eighth in small ones, 3,000 in between."""
    config = CompressorConfig()
    assert [Budget.exactly(config, t).facts for t in (8_000, 24_000, 26_000, 30_000, 40_000)] == [
        1_000,
        3_000,
        3_000,
        3_000,
        4_000,
    ]


def test_prose_grows_with_the_segment_where_no_length_is_asked_for() -> None:
    """5 %, between 750 and 8,000 tokens."""
    free = Budget.exactly(CompressorConfig(summary_target_tokens=None), 50_000)
    asked = [free.prose_for(size) for size in (1_000, 15_020, 100_000, 159_999, 500_000)]
    assert asked == [750, 751, 5_000, 7_999, 8_000]
    assert Budget.exactly(CompressorConfig(summary_target_tokens=321), 9_000).prose_for(1) == 321


def test_a_window_that_is_exactly_taken_has_no_room() -> None:
    """One token of room is a budget, none is an error with the sum that was needed."""
    config = CompressorConfig(output_reserve=600)
    assert Budget.of(config, 1_000, 399).limit == 1
    with pytest.raises(BudgetTooSmall) as caught:
        Budget.of(config, 1_000, 400)
    assert (caught.value.needed, caught.value.budget) == (1_000, 1_000)


def test_what_is_too_large_is_named() -> None:
    """Which message, whose it is, what it takes: nobody has to look for it."""
    messages = [
        {"role": "system", "content": "You look after logs."},
        {"role": "user", "content": "Look."},
        *step("a", "word " * 9_000, "read_log", path="x.log"),
    ]
    whole = CompressorConfig(model="gpt-4o", context_window=8_000, large_result_share=None)
    ours = ContextCompressor(whole)
    with pytest.raises(BudgetTooSmall, match=r"messages\[3\] with 9\d{3}, the result of read_log"):
        ours.compress_sync(messages)
    with pytest.raises(BudgetTooSmall, match=r"messages\[1\] with \d+, of the role user"):
        ours.compress_sync([messages[0], {"role": "user", "content": "Look. " * 9_000}])
