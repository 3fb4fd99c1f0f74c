"""What a plan summarizes, folds and masks, and in which room: by hand, to the token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from praison_compressor import BudgetTooSmall
from praison_compressor.view.jobs import SMALLEST_SUMMARY, view_tokens
from praison_compressor.view.plan import plan
from tests.helpers.sketches import budget, found, laid

FRAME = 400
"""Five of the smallest summaries: below it a stretch beside a larger one stays as it is."""


# ---------------------------------------------------------------- what a stretch takes


# ---------------------------------------------------------------- jobs


def test_a_summary_may_take_what_the_target_leaves_it() -> None:
    """Room up to the target, most up to half way to the trigger, prose and facts expected."""
    layout = laid("s10 u20 a2000 a2000 a2000 u30 a40")
    made = found(layout, budget(9_000, 6_000, 1_000, facts=50))
    (job,) = made.jobs
    assert (job.start, job.end, job.source_tokens) == (2, 5, 6_000)
    assert (job.room, job.most, job.facts) == (900, (1_000 + 6_000) // 2 - 100, 50)
    assert made.expected == 100 + 100 + 50


def test_two_stretches_share_room_and_facts_by_their_sizes() -> None:
    """The newest question parts the middle: 3,000 before it and 2,000 after it."""
    layout = laid("s10 u20 a3000 u30 a2000 a40")
    made = found(layout, budget(9_000, 5_000, 1_260, facts=100))
    spare = 1_260 - 100 - 2 * SMALLEST_SUMMARY
    assert [job.room for job in made.jobs] == [80 + spare * 3 // 5, 80 + spare * 2 // 5]
    assert [job.facts for job in made.jobs] == [60, 40]


def test_a_summary_is_never_larger_than_what_it_replaces() -> None:
    """A stretch that is small in the view but large in the archive gets no more than it has."""
    layout = laid("s10 u20 a4000 a4000 a100 a900 u30 a40", (2, 4, 100))
    made = found(layout, budget(9_000, 1_000, 1_000, fold=1, exact=True))
    for job in made.jobs:
        present = view_tokens(layout, job.start, job.end)
        assert job.room < present
        assert job.most < present
    assert made.expected <= 1_000


@pytest.mark.parametrize(
    ("sizes", "by_model"),
    [((2000, 1000), [True, False]), ((1000, 2000), [False, True]), ((999, 999), [False, True])],
)
def test_a_model_is_asked_for_the_largest_stretch_and_of_equal_ones_for_the_newest(
    sizes: tuple[int, int], by_model: list[bool]
) -> None:
    """A compression is one call: what else is replaced is told without a model."""
    layout = laid("s10 u20 a{} u30 a{} a40".format(*sizes))
    made = found(layout, budget(9_000, 1_900, 1_500))
    assert [job.by_model for job in made.jobs] == by_model


def test_a_small_stretch_beside_a_large_one_stays_while_there_is_room() -> None:
    """It says more by itself than in a frame; under a tight target it goes from a size on."""
    layout = laid(f"s10 u20 a9000 u30 a{FRAME} a40")
    roomy = found(layout, budget(20_000, 9_000, 2_000))
    assert [(job.start, job.end) for job in roomy.jobs] == [(2, 3)]
    tight = found(layout, budget(400, 400, 400, exact=True))
    assert [(job.start, job.end) for job in tight.jobs] == [(2, 3), (4, 5)]


def test_a_stretch_of_less_than_two_frames_is_not_worth_replacing() -> None:
    """160 tokens are the least that a summary of 80 makes smaller by half."""
    assert found(laid("s10 u20 a160 u30 a40"), budget(200, 200, 200, exact=True)).jobs
    with pytest.raises(BudgetTooSmall):
        plan(laid("s10 u20 a159 u30 a40"), budget(200, 200, 200, exact=True))


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


def test_a_fold_is_expected_to_take_what_summaries_may() -> None:
    """The prose as ever; its facts may fill the share of all summaries."""
    layout = laid(GROWN, (2, 4, 150), (4, 6, 150))
    made = found(layout, budget(9_000, 3_000, 2_000, fold=99, facts=50))
    assert made.expected == 70 + 100 + 99
    assert made.jobs[0].facts == 99


def test_a_summary_stands_beside_a_fold_under_a_tight_tail_too() -> None:
    """The newest tokens give way before what is summarized already is written again."""
    layout = laid(GROWN + " a600 a200", (2, 6, 300))
    made = found(layout, budget(9_000, 3_000, 1_000, tail=2_000, fold=250))
    assert [(job.start, job.end, job.folds) for job in made.jobs] == [(6, 9, ())]


def test_one_summary_alone_is_not_written_again_while_there_is_room() -> None:
    """Only under a tight target is it made smaller."""
    sketch = "s10 u20 a5000 a5000 u30 a3000 a40"
    layout = laid(sketch, (2, 4, 2_000))
    roomy = found(layout, budget(9_000, 3_000, 2_500, fold=1))
    assert [(job.start, job.end, job.folds) for job in roomy.jobs] == [(5, 6, ())]
    tight = found(layout, budget(600, 600, 600, fold=1, exact=True))
    assert [(job.start, len(job.folds)) for job in tight.jobs] == [(2, 1), (5, 0)]


def test_a_tight_target_folds_what_it_has() -> None:
    """Two summaries that no longer fit beside each other become one."""
    layout = laid("s10 u20 a5000 a5000 a5000 a5000 u30 a40", (2, 4, 400), (4, 6, 400))
    made = found(layout, budget(300, 300, 300, exact=True))
    assert [(job.start, job.end, len(job.folds)) for job in made.jobs] == [(2, 6, 2)]


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


def test_a_line_as_long_as_its_output_is_no_mask() -> None:
    """It must be shorter, by a token at least."""
    made = found(laid(OUTPUTS), budget(9_000, 3_000, 2_500), masks={3: 1_000, 5: 999, 7: 50})
    assert made.masks == (5, 7)


def test_without_room_under_the_target_the_limit_is_what_counts() -> None:
    """A view that cannot come down to the target still has to come under the limit."""
    layout = laid("s10 u20 a150 u30 a1000 a40", (2, 3, 140))
    made = found(layout, budget(500, 300, 180))
    assert 180 < made.expected <= 500
