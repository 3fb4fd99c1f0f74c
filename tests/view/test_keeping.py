"""Where the window is full, the fewest and oldest outputs kept by a policy go."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from praison_compressor import BudgetTooSmall, CompressResult, ContextCompressor
from praison_compressor.messages import Message, text_of
from praison_compressor.view.budget import Plan
from praison_compressor.view.view import View
from tests.helpers.compressing import Model, compressor
from tests.helpers.sketches import budget, laid, planned
from tests.helpers.transcripts import find_repairs, outputs, transcripts

# Ten steps of 500 tokens with some talk between them; steps start at 2, 5, 8, ...
TALK = "s10 u20 " + "c50 r450 a100 " * 10 + "u30 a40"


def keeping(view: View, *starts: int) -> View:
    return replace(view, kept_out=frozenset(i for start in starts for i in (start, start + 1)))


def summarized(found: Plan | None) -> list[tuple[int, int]]:
    return [(job.start, job.end) for job in found.jobs]


def test_nothing_yields_while_the_window_takes_it():
    """Kept outputs stay while the window takes them."""
    view = keeping(laid(TALK), *range(2, 32, 3))
    assert planned(view, budget(limit=7_000, trigger=4_000, target=3_000)) is None
    some = keeping(laid(TALK), 2, 5)
    assert summarized(planned(some, budget(limit=7_000, trigger=4_000, target=3_000))) == [(7, 32)]


@pytest.mark.parametrize(("target", "yielded"), [(5_000, 2), (4_000, 4), (3_000, 6), (2_000, 7)])
def test_the_oldest_yield_and_as_few_as_the_target_asks(target, yielded):
    """The oldest kept outputs yield, as few as the target asks."""
    view = keeping(laid(TALK), *range(2, 32, 3))
    found = planned(view, budget(limit=6_000, trigger=5_900, target=target))
    assert summarized(found) == [(2, 2 + 3 * yielded)]


def test_all_kept_outputs_yield_where_no_number_is_enough():
    """Only the limit makes all kept outputs yield."""
    view = keeping(laid(TALK), *range(2, 32, 3))
    assert summarized(planned(view, budget(limit=400, trigger=300, target=100))) == [(2, 32)]
    with pytest.raises(BudgetTooSmall):
        planned(view, budget(limit=150))


# ---------------------------------------------------------------- a whole conversation


def test_the_newest_kept_outputs_stay_over_a_long_conversation():
    """The newest kept outputs fill the target after each of the rare compressions."""
    ours = compressor(Model(), context_window=32_000, tool_policies="keep_all")
    messages, after = outputs(120, name="ask_expert"), []
    for end in range(4, len(messages) + 1, 12):
        result = ours.compress_sync(messages[:end], session_id="s")
        whole = [m for m in messages[:end] if m["role"] == "tool"]
        shown = [m for m in result.messages if m["role"] == "tool"]
        newest = shown[1:] if shown[0] == whole[0] else shown  # the first may stand with the task
        assert newest == whole[len(whole) - len(newest) :]
        assert result.tokens_after <= 24_000
        if result.written:
            after.append((result.tokens_after, len(newest)))
    assert 2 <= len(after) <= 5
    assert [(size, count) for size, count in after if size < 10_000 or count < 25] == []


def compressed(
    ours: ContextCompressor, requests: list[list[Message]]
) -> Iterator[tuple[list[Message], CompressResult]]:
    """Yield each request that fits the window at all, and its result."""
    for request in requests:
        with suppress(BudgetTooSmall):
            yield request, ours.compress_sync(request, session_id="s")


@settings(max_examples=25)
@given(transcripts(), st.sampled_from(["bash", "read_file", "*"]))
def test_a_growing_conversation_stays_recoverable(messages, kept):
    """A growing conversation with kept tools stays recoverable within its window."""
    ours = compressor(
        Model(),
        context_window=1_200,
        token_floor=0,
        protect_last_n_tokens=200,
        summary_target_tokens=60,
        tool_policies={kept: "keep"},
    )
    ends = [n for n, m in enumerate(messages, 1) if m["role"] in ("user", "tool")]
    whole = [messages[:end] for end in ends if find_repairs(messages[:end]) == []]
    for request, result in compressed(ours, whole):
        assert find_repairs(result.messages) == []
        assert result.tokens_after <= 900
        assert ours.verbatim(result.messages, session_id="s") == request
        assert text_of(result.messages[-1]) == text_of(request[-1])
