"""The plan: pure, between steps, within its budget; it loses no message. What a budget takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, Segment
from praison_compressor.messages import digest, read, steps
from praison_compressor.view.budget import Budget
from praison_compressor.view.jobs import SMALLEST_SUMMARY, Plan
from praison_compressor.view.view import View
from tests.helpers import sketches
from tests.helpers.sketches import budget, found, laid
from tests.helpers.transcripts import session, step, transcripts


def lay_out(messages, segments=(), head_tokens=600) -> View:
    """A layout in which a message costs a token for four characters."""
    got = read(messages)
    tokens = [4 + len(str(message)) // 4 for message in got.messages]
    digests = [digest(message) for message in got.messages]
    return View(got, tuple(digests), tuple(tokens), tuple(segments), head_tokens)


def exactly(target: int, **options) -> Budget:
    return Budget.exactly(CompressorConfig(**options), target)


def planned(view: View, budget: Budget) -> Plan | None:
    """The plan, or None also where no plan can be made."""
    try:
        return sketches.planned(view, budget)
    except BudgetTooSmall:
        return None


def summary_of(messages, start, end, tokens=100) -> Segment:
    """A segment that stands for messages[start:end]."""
    run = tuple(digest(message) for message in messages[start:end])
    rendered = {"role": "user", "content": f"summary of {start} to {end}"}
    return Segment("summary", run, rendered, tokens, 1_000, "model")


@given(transcripts(), st.integers(100, 4_000), st.integers(0, 2_000))
def test_head_segments_and_tail_rejoined_are_the_messages(messages, target, keep):
    """No message is lost or stands twice, and no step is split, at any budget."""
    layout = lay_out(messages)
    found = planned(layout, exactly(target, protect_last_n_tokens=keep))
    assume(found is not None)
    inside = [index for job in found.jobs for index in range(job.start, job.end)]
    outside = [index for index in range(len(messages)) if index not in set(inside)]
    starts = {atom.start for atom in steps(messages)} | {len(messages)}
    newest = max(i for i, message in enumerate(messages) if message["role"] == "user")
    assert sorted(inside + outside) == list(range(len(messages)))
    assert all(job.start in starts and job.end in starts for job in found.jobs)
    assert newest in outside
    assert set(steps(messages)[-1]) <= set(outside)
    assert found.expected <= target


def test_the_marks_are_those_of_the_table():
    """Reserve, trigger, target, head, facts and fold by their default ratios, in any window."""
    budget = Budget.of(CompressorConfig(), window=100_000, overhead=2_000)
    usable = 100_000 - 8_000 - 2_000
    assert budget.limit == usable
    assert budget.trigger == int(usable * 0.8)
    assert budget.target == int(budget.trigger * 0.6)
    assert budget.head == usable // 10
    assert budget.quotes == budget.target // 10
    assert budget.fold == int(budget.target * 0.28)
    assert (budget.tail, budget.prose) == (20_000, 750)
    # The reserve shrinks with the window; the floor holds the trigger up.
    small = Budget.of(CompressorConfig(), window=2_500)
    assert small.trigger == small.limit == 2_500 - 625


def test_a_segment_never_hides_the_task_or_the_newest_words():
    """After a truncation the recorded run may reach the end: then it is not used."""
    messages = session(10)
    segment = summary_of(messages, 4, 20)
    cut_off = messages[:20]
    assert lay_out(cut_off, [segment]).messages() == cut_off


def test_a_doubled_message_does_not_take_the_place_of_a_longer_segment():
    """Two segments begin with equal messages: each is found where all of its run stands."""
    twice = {"role": "assistant", "content": "the same words " * 40}
    note = {"role": "system", "content": "a note of the host"}
    task = {"role": "user", "content": "the task"}
    messages = [twice, note, task, twice, {**task, "content": "newest"}]
    longer, shorter = summary_of(messages, 0, 2), summary_of(messages, 3, 4)
    for ledger in ([longer, shorter], [shorter, longer]):
        tiles = lay_out(messages, ledger, head_tokens=50).tiles
        assert [tile.segment for tile in tiles if tile.segment] == [longer, shorter]


# ---------------------------------------------------------------- budgets


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
    whole = CompressorConfig(model="gpt-4o", context_window=8_000, tool_policies="keep_all")
    ours = ContextCompressor(whole)
    with pytest.raises(BudgetTooSmall, match=r"messages\[3\] with 9\d{3}, the result of read_log"):
        ours.compress_sync(messages)
    with pytest.raises(BudgetTooSmall, match=r"messages\[1\] with \d+, of the role user"):
        ours.compress_sync([messages[0], {"role": "user", "content": "Look. " * 9_000}])


# ---------------------------------------------------------------- when


MIDDLE = "s10 u20 a500 a500 a500 u30 a40"


def test_at_the_trigger_nothing_is_planned_and_one_token_above_it_is() -> None:
    """The trigger is the most that a view may have without a compression."""
    assert sketches.planned(laid(MIDDLE), budget(5_000, 1_600, 800)) is None
    assert sketches.planned(laid(MIDDLE), budget(5_000, 1_599, 800)) is not None


def test_the_marks_move_up_where_what_cannot_be_dropped_takes_most_of_the_trigger() -> None:
    """Room for a quarter of the trigger above it, or for half of what the limit leaves."""
    sketch = "u7501 a1000 a{} u10 a10"  # 7,521 cannot be dropped
    crowded = budget(14_000, 10_000, 6_000, most_quotes=5_000)
    assert (
        sketches.planned(laid(sketch.format(1_500)), crowded) is None
    )  # 10,021 = 7,521 + 10,000 / 4
    job = found(laid(sketch.format(1_501)), crowded).jobs[0]
    assert job.room == 2_500 * 3 // 10
    # At three quarters of the trigger nothing moves: the smallest summary is all there is room for.
    job = found(laid(sketch.format(1_508)), budget(14_000, 10_028, 6_000)).jobs[0]
    assert job.room == SMALLEST_SUMMARY
    # Half of what is left below the limit, where that is less.
    near = budget(8_321, 7_600, 6_000)
    assert (
        sketches.planned(laid("u7501 a100 a300 u10 a10"), near) is None
    )  # 7,921 = 7,521 + 800 / 2
    assert sketches.planned(laid("u7501 a100 a301 u10 a10"), near) is not None


def test_what_cannot_be_dropped_is_counted_whole() -> None:
    """System, task, newest user message, newest step: 10 + 20 + 30 + 40."""
    with pytest.raises(BudgetTooSmall) as caught:
        sketches.planned(laid(MIDDLE), budget(99, 99, 99))
    assert (caught.value.needed, caught.value.budget) == (100, 99)
    with pytest.raises(BudgetTooSmall) as caught:
        sketches.planned(laid(MIDDLE), budget(100, 100, 100))
    assert caught.value.needed > caught.value.budget
    assert found(laid(MIDDLE), budget(300, 300, 300)).expected <= 300


def test_a_compression_must_free_its_share_of_the_view() -> None:
    """Exactly the share is enough; a token less is not, while the provider takes the whole."""
    layout = laid(MIDDLE)
    gain = layout.size() - found(layout, budget(5_000, 1_599, 800)).expected
    enough = gain / layout.size()
    assert sketches.planned(layout, budget(5_000, 1_599, 800, min_gain=enough)) is not None
    for limit in (5_000, layout.size()):
        assert sketches.planned(layout, budget(limit, 1_599, 800, min_gain=enough + 0.001)) is None
    assert sketches.planned(layout, budget(1_599, 1_599, 800, min_gain=enough + 0.001)) is not None


def test_asked_for_it_is_done_below_the_trigger_too_and_frees_two_fifths() -> None:
    """`force` aims at three fifths of the view where the target is above it."""
    for trigger in (5_000, 1_600):
        made = found(laid(MIDDLE), budget(5_000, trigger, 1_500, most_quotes=5_000), force=True)
        assert made.expected <= 960
        assert made.jobs[0].room == 960 - 100


# ---------------------------------------------------------------- head


def test_a_greeting_before_the_task_stays_where_it_fits_and_goes_where_it_does_not() -> None:
    """It belongs to the first exchange, to the token."""
    sketch = "s10 a50 u20 a500 u30 a40"
    assert laid(sketch, head=50).allowed[1] is False
    assert laid(sketch, head=49).allowed[1] is True


def test_the_first_answer_stays_with_the_task_where_both_fit() -> None:
    """Task and answer together, to the token; system messages are not counted."""
    sketch = "s999 u20 a80 c5 r75 u30 a40"
    assert laid(sketch, head=100).head_end == 3
    assert laid(sketch, head=99).head_end == 2


def test_the_head_ends_before_a_call() -> None:
    """Some APIs refuse a user message, as a summary is one, right behind a result."""
    assert laid("s999 u20 c5 r75 a500 u30 a40", head=100).head_end == 2


# ---------------------------------------------------------------- tail


def test_the_tail_is_filled_to_the_token() -> None:
    """The newest steps that fit; one token less of room is one step less."""
    layout = laid("s10 u20 a500 a100 a100 a100")
    starts = [found(layout, budget(900, 800, 600, tail=n)).tail_start for n in (300, 299, 0)]
    assert starts == [3, 4, 5]


def test_recent_turns_widen_the_tail() -> None:
    """`keep_recent_turns` where the tail asked for is shorter."""
    layout = laid("s10 u20 a2000 u30 a200 u40 a300")
    wide = budget(5_000, 2_000, 1_500, tail=10, recent_turns=2)
    assert found(layout, wide).tail_start == 3
    assert found(layout, replace(wide, recent_turns=1)).tail_start == 5


def test_what_quotes_do_not_need_goes_to_the_tail() -> None:
    """They are measured before the cut is fixed; a model's prose keeps its room."""
    layout = laid("s10 u20 " + "a100 " * 40 + "u20 a30")
    wide = budget(3_000, 2_500, 2_000, tail=5_000, prose=200, quotes=800, most_quotes=800)
    tails = [
        sum(layout.tokens[found(layout, wide, quotes=n, by_model=by_model).tail_start :])
        for n, by_model in ((800, False), (300, False), (300, True))
    ]
    assert tails == [1_150, 1_650, 1_450]


# ---------------------------------------------------------------- jobs


@pytest.mark.parametrize(
    ("sizes", "by_model"),
    [((2000, 1000), [True, False]), ((1000, 2000), [False, True]), ((999, 999), [False, True])],
)
def test_a_model_is_asked_for_the_largest_stretch_and_of_equal_ones_for_the_newest(
    sizes: tuple[int, int], by_model: list[bool]
) -> None:
    """A compression is one call: what else is replaced is told without a model."""
    layout = laid("s10 u20 a{} u30 a{} a40".format(*sizes))
    made = found(layout, budget(9_000, 1_900, 1_500), by_model=True)
    assert [job.by_model for job in made.jobs] == by_model


# ---------------------------------------------------------------- folds


GROWN = "s10 u20 a5000 a5000 a5000 a5000 a3000 a40"


def test_summaries_are_folded_from_their_share_on() -> None:
    """Those that are there: one new summary, at its longest, above the share beside each other,
    above that in one."""
    layout = laid(GROWN, (2, 4, 150), (4, 6, 150))
    at = found(layout, budget(9_000, 3_000, 2_000, fold=300 - 200))
    above = found(layout, budget(9_000, 3_000, 2_000, fold=300 - 201))
    assert [(job.start, len(job.folds)) for job in at.jobs] == [(6, 0)]
    assert [(job.start, len(job.folds)) for job in above.jobs] == [(2, 2)]


# ---------------------------------------------------------------- masks


OUTPUTS = "s10 u20 c10 r1000 c10 r1000 c10 r1000 u30 a40"


def test_masks_are_taken_where_they_are_enough_and_nothing_is_summarized() -> None:
    """Every old output at once; the view afterwards is what the lines leave."""
    made = found(laid(OUTPUTS), budget(9_000, 3_000, 1_000), masks={3: 50, 5: 60, 7: 70})
    assert (made.jobs, made.masks) == ((), (3, 5, 7))
    assert made.expected == 10 + 20 + 3 * 10 + 50 + 60 + 70 + 30 + 40


def test_masks_that_are_not_enough_give_way_to_a_summary() -> None:
    """Half way between target and trigger is enough; a token more is not."""
    masks = {3: 1_000 - 600, 5: 1_000 - 600, 7: 1_000 - 600}
    after = 130 + 3 * 400
    assert found(laid(OUTPUTS), budget(9_000, 2 * after - 1_000, 1_000), masks=masks).masks
    assert found(laid(OUTPUTS), budget(9_000, 2 * after - 1_002, 1_000), masks=masks).jobs


def test_masks_must_free_three_quarters_of_what_is_read_anew_for_them() -> None:
    """The provider's cache ends at the first mask; what stands before it costs nothing again."""
    sketch = "u20 a2000 a10 c10 r{0} a40 u30 a40"
    enough, masks = budget(9_000, 2_200, 2_150, mask_recent=100), {4: 20}
    # Read anew: the masked result and what follows it, 20 + 40 + 30 + 40.
    assert found(laid(sketch.format(118)), enough, masks=masks).masks == (4,)
    assert found(laid(sketch.format(117)), enough, masks=masks).jobs
    # Asked for, it is done whatever it costs.
    # Down to the target they suffice, whatever is read anew: no model is asked.
    reached = replace(enough, target=2_170)
    assert found(laid(sketch.format(117)), reached, masks=masks).masks == (4,)
    assert found(laid(sketch.format(117)), replace(reached, target=2_169), masks=masks).jobs
