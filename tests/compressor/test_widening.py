"""A size that was asked for is spent: what a static summary does not need goes to the tail."""

from __future__ import annotations

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import check
from tests.helpers.transcripts import session

TOKENS = TokenCounter("gpt-4o")


def compressed(messages, share, **options):
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", head_tokens=0), tokens=TOKENS)
    target = int(TOKENS.messages(messages) * share)
    return ours.compress_sync(messages, target_tokens=target, **options), target


def newest(result, messages):
    """How many of the newest messages the view has verbatim."""
    pairs = zip(reversed(result.messages), reversed(messages), strict=False)
    return next(n for n, (ours, theirs) in enumerate(pairs) if ours != theirs)


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_what_the_summary_leaves_is_spent_on_the_newest_steps(share):
    """A talkative session of few facts: the view is as large as was asked, and valid."""
    messages = session(30, words=120)
    result, target = compressed(messages, share)
    assert 0.85 * target <= result.tokens_after <= target
    assert check(result.messages) == []
    assert TOKENS.messages(messages[-newest(result, messages) :]) > 0.5 * target


def test_the_same_view_comes_again():
    """What was committed is the widened plan: asked once more, nothing is written anew."""
    messages = session(30, words=120)
    ours = ContextCompressor(CompressorConfig(model="gpt-4o"), tokens=TOKENS)
    target = TOKENS.messages(messages) // 2
    first = ours.compress_sync(messages, target_tokens=target)
    again = ours.compress_sync(messages, target_tokens=target)
    assert again.messages == first.messages
    assert again.summary_method == "reused"
    # Recorded nowhere it has no references, and the tail what they would take.
    best = ours.best_view(messages, target_tokens=target, session_id="other")
    assert 0.95 * target < TOKENS.messages(best) <= target
