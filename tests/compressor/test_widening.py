"""A size that was asked for is spent: what a static summary does not need goes to the tail."""

from __future__ import annotations

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import check, text_of
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


def bookkeeping(turns: int) -> list[dict[str, str]]:
    """Much that may not be dropped, and little room beside it."""
    messages = [
        {"role": "system", "content": "You keep the books of a shop. " * 30},
        {"role": "user", "content": "Look after every module. " * 20},
    ]
    for t in range(turns):
        asked = f"Now module {t}, its port stays V-{t:04d}."
        told = f"Module {t} is read (src/mod_{t}/part_0.py); its port stays V-{t:04d}. "
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": told + "All parts are in order. " * 12})
    return [*messages, {"role": "user", "content": "And what next?"}]


def test_the_tail_gives_way_to_a_text_that_was_paid_for():
    """A text of 459 tokens where 430 were free: it stays whole, in a view of the same size."""
    told = " ".join(
        f"Module {n} was read in three of its parts by now (src/mod_{n}/part_0.py and on) and its "
        f"port stays V-{n:04d}, as the user said."
        for n in range(12)
    )

    async def model(messages):
        return f"## Done\n{told}"

    ours = ContextCompressor(CompressorConfig(model="gpt-4o"), summarizer=model, tokens=TOKENS)
    messages = bookkeeping(14)
    result = ours.compress_sync(messages, target_tokens=1_100)
    assert result.summary_method == "model"
    assert told in text_of(result.messages[2])
    assert result.tokens_after <= 1_100
    assert check(result.messages) == []
    assert result.messages[-1] == messages[-1]
    assert ours.verbatim(result.messages) == messages
