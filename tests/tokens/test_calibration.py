"""Counts corrected by what the provider reports."""

from __future__ import annotations

import pytest

from praison_compressor.tokens.counter import TokenCounter
from tests.helpers.texts import prose
from tests.tokens.test_tokens import EXAMPLE


def test_an_unknown_tokenizer_converges_in_three_turns() -> None:
    """Three reports of a provider whose tokens are 30 % more make the count right."""
    counter = TokenCounter("some-model")
    truth = TokenCounter("some-model")
    turns = [{"role": "user", "content": prose(200, seed)} for seed in range(6)]
    for turn in range(1, 4):
        counter.calibrate(turns[:turn], round(truth.messages(turns[:turn]) * 1.3))
    assert counter.messages(turns) == pytest.approx(truth.messages(turns) * 1.3, rel=0.01)
    assert "corrected by 1.30" in counter.source


def test_an_exact_counter_stays_exact() -> None:
    """A report within two percent changes nothing; a lasting difference is believed."""
    counter = TokenCounter("gpt-4o")
    messages = [{"role": "user", "content": prose(500)}]
    exact = counter.messages(messages)
    counter.calibrate(messages, round(exact * 1.01))
    assert counter.messages(messages) == exact
    counter.calibrate(messages, round(exact * 1.2))
    assert counter.messages(messages) > exact


@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.8, 1.3, 2.0, 3.5])
def test_short_messages_are_not_counted_for_more_than_they_are(ratio: float) -> None:
    """What is corrected message by message adds up to what the provider reports."""
    counter = TokenCounter("acme/unknown")
    talk = [{"role": "user", "content": f"and {n}? " + "so " * (n % 9)} for n in range(200)]
    reported = round(counter.messages(talk) * ratio)
    counter.calibrate(talk, reported)
    assert abs(counter.messages(talk) / reported - 1) < 0.03


@pytest.mark.parametrize("reported", [0, -5, 1, 10**9])
def test_an_unbelievable_report_is_not_learned(reported: int) -> None:
    """A proxy's zero, or another request's usage, changes no count."""
    counter = TokenCounter("some-model")
    before = counter.messages(EXAMPLE)
    counter.calibrate(EXAMPLE, reported)
    assert counter.messages(EXAMPLE) == before


def test_a_report_of_five_times_the_count_is_believed_when_the_next_one_says_it_again() -> None:
    """A tokenizer that far from ours must not overflow its window for ever; once is a mistake."""
    counter = TokenCounter("some-model")
    counted = counter.messages(EXAMPLE)
    ratios = []
    for times in (1, 5, 1, 5, 5, 5):
        counter.calibrate(EXAMPLE, counted * times)
        ratios.append(round(counter.messages(EXAMPLE) / counted))
    assert ratios == [1, 1, 1, 1, 5, 5]
