"""When a plan is made, and where head and tail end: borders by hand, to the token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from praison_compressor import BudgetTooSmall
from praison_compressor.view.plan import SMALLEST_SUMMARY, _cut, plan
from tests.helpers.sketches import budget, found, laid

# ---------------------------------------------------------------- when


MIDDLE = "s10 u20 a500 a500 a500 u30 a40"


def test_at_the_trigger_nothing_is_planned_and_one_token_above_it_is() -> None:
    """The trigger is the most that a view may have without a compression."""
    assert plan(laid(MIDDLE), budget(5_000, 1_600, 800)) is None
    assert plan(laid(MIDDLE), budget(5_000, 1_599, 800)) is not None


def test_the_marks_move_up_where_what_cannot_be_dropped_takes_most_of_the_trigger() -> None:
    """Room for a quarter of the trigger above it, or for half of what the limit leaves."""
    sketch = "u7501 a1000 a{} u10 a10"  # 7,521 cannot be dropped
    crowded = budget(14_000, 10_000, 6_000)
    assert plan(laid(sketch.format(1_500)), crowded) is None  # 10,021 = 7,521 + 10,000 / 4
    job = found(laid(sketch.format(1_501)), crowded).jobs[0]
    assert job.room == 2_500 * 3 // 10
    # At three quarters of the trigger nothing moves: the smallest summary is all there is room for.
    job = found(laid(sketch.format(1_508)), budget(14_000, 10_028, 6_000)).jobs[0]
    assert job.room == SMALLEST_SUMMARY
    # Half of what is left below the limit, where that is less.
    near = budget(8_321, 7_600, 6_000)
    assert plan(laid("u7501 a100 a300 u10 a10"), near) is None  # 7,921 = 7,521 + 800 / 2
    assert plan(laid("u7501 a100 a301 u10 a10"), near) is not None


def test_what_cannot_be_dropped_is_counted_whole() -> None:
    """System, task, newest user message, newest step: 10 + 20 + 30 + 40."""
    with pytest.raises(BudgetTooSmall) as caught:
        plan(laid(MIDDLE), budget(99, 99, 99))
    assert (caught.value.needed, caught.value.budget) == (100, 99)
    with pytest.raises(BudgetTooSmall) as caught:
        plan(laid(MIDDLE), budget(100, 100, 100))
    assert caught.value.needed > caught.value.budget
    assert found(laid(MIDDLE), budget(300, 300, 300)).expected <= 300


def test_a_view_that_cannot_be_made_smaller_is_sent_while_the_provider_takes_it() -> None:
    """At the limit it is no error; a token above it is."""
    layout = laid("s10 u20 a159 u30 a40")
    assert plan(layout, budget(259, 200, 100)) is None
    with pytest.raises(BudgetTooSmall):
        plan(layout, budget(258, 200, 100))


def test_a_compression_must_free_its_share_of_the_view() -> None:
    """Exactly the share is enough; a token less is not, while the provider takes the whole."""
    layout = laid(MIDDLE)
    gain = layout.size() - found(layout, budget(5_000, 1_599, 800)).expected
    enough = gain / layout.size()
    assert plan(layout, budget(5_000, 1_599, 800, min_gain=enough)) is not None
    for limit in (5_000, layout.size()):
        assert plan(layout, budget(limit, 1_599, 800, min_gain=enough + 0.001)) is None
    assert plan(layout, budget(1_599, 1_599, 800, min_gain=enough + 0.001)) is not None


def test_asked_for_it_is_done_below_the_trigger_too_and_frees_two_fifths() -> None:
    """`force` aims at three fifths of the view where the target is above it."""
    for trigger in (5_000, 1_600):
        made = found(laid(MIDDLE), budget(5_000, trigger, 1_500, prose=1), force=True)
        assert made.expected <= 960
        assert made.jobs[0].room == 960 - 100


# ---------------------------------------------------------------- head


def test_a_greeting_before_the_task_stays_where_it_fits_and_goes_where_it_does_not() -> None:
    """It belongs to the first exchange, to the token."""
    sketch = "s10 a50 u20 a500 u30 a40"
    assert laid(sketch, head=50).allowed[1] is False
    assert laid(sketch, head=49).allowed[1] is True


def test_the_first_step_stays_with_the_task_where_both_fit() -> None:
    """Task and step together, to the token; system messages are not counted."""
    sketch = "s999 u20 c5 r75 a500 u30 a40"
    assert laid(sketch, head=100).head_end == 4
    assert laid(sketch, head=99).head_end == 2


def test_the_head_ends_where_a_summary_begins() -> None:
    """A recorded summary behind the task is never cut in two by a head that grew."""
    layout = laid("s10 u20 a30 a500 a500 u30 a40", (2, 5, 90), head=1_000)
    assert layout.head_end == 2
    assert [tile.start for tile in layout.tiles if tile.segment] == [2]


def test_without_a_task_there_is_no_first_exchange() -> None:
    """A transcript that is not a user's has only its system messages for a head."""
    assert laid("s10 a30 a500 a500", head=1_000).head_end == 1


# ---------------------------------------------------------------- tail


def test_the_tail_is_filled_to_the_token() -> None:
    """The newest steps that fit; one token less of room is one step less."""
    layout = laid("s10 u20 a500 a100 a100 a100")
    assert _cut(layout, 300, 0) == 3
    assert _cut(layout, 299, 0) == 4
    assert _cut(layout, 0, 0) == 5


def test_a_turn_start_may_cost_a_fifth_of_the_tail() -> None:
    """800 of 1,000 tokens kept is little enough to begin with the user's words; 799 is not."""
    layout = laid("s10 u20 a500 a200 u100 a600 a100")
    assert _cut(layout, 1_000, 0) == 4
    dearer = laid("s10 u20 a500 a201 u100 a599 a100")
    assert _cut(dearer, 1_000, 0) == 3


def test_recent_turns_widen_the_tail() -> None:
    """`keep_recent_turns` where the tail asked for is shorter."""
    layout = laid("s10 u20 a2000 u30 a200 u40 a300")
    wide = budget(5_000, 2_000, 1_500, tail=10, recent_turns=2)
    assert found(layout, wide).tail_start == 3
    assert found(layout, replace(wide, recent_turns=1)).tail_start == 5


def test_under_a_tight_target_the_tail_takes_a_quarter_at_most() -> None:
    """What it leaves buys the summary depth."""
    layout = laid("s10 u20 " + "a500 " * 8 + "a100 " * 20)
    made = found(layout, budget(1_000, 1_000, 1_000, tail=20_000, exact=True))
    assert layout.span(made.tail_start, len(layout.tokens)) == 200  # the next step would be 300


def test_under_a_tight_target_a_turn_start_must_not_cost_the_tail_its_quarter() -> None:
    """10 tokens below it are too many already."""
    layout = laid("s10 u20 " + "a500 " * 8 + "a10 u40 a100 a100")
    made = found(layout, budget(1_000, 1_000, 1_000, tail=20_000, exact=True))
    assert layout.span(made.tail_start, len(layout.tokens)) == 250
    assert _cut(layout, 250, 0) == made.tail_start + 1
