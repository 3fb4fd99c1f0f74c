"""The plan on layouts whose every number is written down: borders, shares and rooms."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.budget import Budget
from praison_compressor.config import CompressorConfig
from praison_compressor.errors import BudgetTooSmall
from praison_compressor.layout import Layout, arrange
from praison_compressor.ledger import Segment
from praison_compressor.messages import Message, digest, read
from praison_compressor.plan import (
    SMALLEST_SUMMARY,
    Job,
    Plan,
    _cut,
    _turn_tokens,
    plan,
    view_tokens,
)

FRAME = 400
"""Five of the smallest summaries: below it a stretch beside a larger one stays as it is."""


def written(sketch: str) -> tuple[list[Message], list[int]]:
    """Messages and their tokens: `s10 u20 a30 c5 r100` is system, user, assistant, call, result."""
    messages: list[Message] = []
    for number, word in enumerate(sketch.split()):
        kind = word[0]
        if kind == "c":
            function = {"name": "run", "arguments": "{}"}
            calls = [{"id": f"c{number}", "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        elif kind == "r":
            messages.append({"role": "tool", "tool_call_id": f"c{number - 1}", "content": "done"})
        else:
            role = {"s": "system", "u": "user", "a": "assistant"}[kind]
            messages.append({"role": role, "content": f"message {number}"})
    return messages, [int(word[1:]) for word in sketch.split()]


def laid(sketch: str, *segments: tuple[int, int, int], head: int = 0) -> Layout:
    """The layout of a sketch; a segment is (start, end, tokens), of one message it is a mask."""
    messages, tokens = written(sketch)
    digests = [digest(message) for message in messages]
    recorded = [
        Segment(
            "summary" if end - start > 1 else "mask",
            tuple(digests[start:end]),
            {"role": "user", "content": f"for {start} to {end}"},
            size,
            sum(tokens[start:end]),
            "model",
        )
        for start, end, size in segments
    ]
    return arrange(read(messages), digests, tokens, recorded, head)


def budget(limit: int, trigger: int, target: int, **numbers: object) -> Budget:
    """A budget in which only what is named is more than nothing."""
    nothing = {"tail": 0, "head": 0, "prose": 100, "facts": 0, "fold": 1_000_000, "min_gain": 0.0}
    return Budget(limit, trigger, target, **{**nothing, **numbers})  # type: ignore[arg-type]


def found(layout: Layout, given_budget: Budget, **options: object) -> Plan:
    """The plan, which must be one."""
    made = plan(layout, given_budget, **options)  # type: ignore[arg-type]
    assert made is not None
    return made


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


def test_a_target_below_what_must_stay_leaves_the_smallest_summary() -> None:
    """80 tokens above what cannot be dropped, however little was asked for."""
    made = found(laid(MIDDLE), budget(5_000, 1_000, 50))
    assert (made.expected, made.jobs[0].room) == (180, 80)


def test_a_plan_is_a_value() -> None:
    """Neither it nor its jobs can be changed."""
    made = found(laid(MIDDLE), budget(5_000, 1_000, 800))
    for thing in (made, made.jobs[0], budget(1, 1, 1), laid(MIDDLE)):
        with pytest.raises(FrozenInstanceError):
            thing.start = 1  # type: ignore[misc]


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


def test_a_greeting_that_opens_a_transcript_can_be_summarized() -> None:
    """Without a system prompt it is the first message of all."""
    layout = laid("a500 u20 a500 u30 a40", head=100)
    assert layout.head_end == 0
    assert found(layout, budget(900, 900, 400)).jobs[0].start == 0


def test_words_in_the_users_role_that_are_a_tools_are_no_turn() -> None:
    """A result without a call is plain text in the view, and nobody's question."""
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "result"}
    messages = read([{"role": "user", "content": "task"}, orphan]).messages
    assert messages[1]["role"] == "user"
    assert read(messages).users == (0,)


# ---------------------------------------------------------------- tail


def test_the_tail_is_filled_to_the_token() -> None:
    """The newest steps that fit; one token less of room is one step less."""
    layout = laid("s10 u20 a500 a100 a100 a100")
    assert _cut(layout, 300, 0) == 3
    assert _cut(layout, 299, 0) == 4
    assert _cut(layout, 0, 0) == 5


def test_a_step_is_kept_whole_or_not_at_all() -> None:
    """A call and its result fit together or stay out together."""
    layout = laid("s10 u20 a500 c50 r100 a10")
    assert _cut(layout, 160, 0) == 3
    assert _cut(layout, 159, 0) == 5


def test_a_turn_start_may_cost_a_fifth_of_the_tail() -> None:
    """800 of 1,000 tokens kept is little enough to begin with the user's words; 799 is not."""
    layout = laid("s10 u20 a500 a200 u100 a600 a100")
    assert _cut(layout, 1_000, 0) == 4
    dearer = laid("s10 u20 a500 a201 u100 a599 a100")
    assert _cut(dearer, 1_000, 0) == 3


def test_the_earliest_of_several_turn_starts_is_taken() -> None:
    """As much stays verbatim as may."""
    assert _cut(laid("s10 u20 a500 a50 u50 a50 u50 a850"), 1_050, 0) == 4


def test_no_turn_start_is_worth_a_tail_below_the_floor() -> None:
    """The floor of a tight target is kept, to the token."""
    layout = laid("s10 u20 a500 a100 u100 a700 a100")
    assert _cut(layout, 1_000, 900) == 4
    assert _cut(layout, 1_000, 901) == 3


def test_the_tail_begins_after_the_last_summary_and_after_the_head() -> None:
    """What is represented already is not shown twice, and the head is not a tail."""
    layout = laid("s10 u20 a100 a100 a100 a100 a100", (2, 5, 80))
    assert _cut(layout, 1_000_000, 0) == 5
    assert _cut(laid("s10 u20 a100 a100"), 1_000_000, 0) == 2
    assert _cut(laid("a500 u20 a30"), 1_000_000, 0) == 0
    assert _cut(laid("s10 u20", head=30), 1_000_000, 0) == 2


def test_recent_turns_are_counted_from_the_newest() -> None:
    """Their tokens as they stand in the view; more turns than there are: all of them."""
    layout = laid("s10 u20 a100 u30 a200 u40 a300", (4, 5, 50))
    assert _turn_tokens(layout, 0) == 0
    assert _turn_tokens(layout, 1) == 340
    assert _turn_tokens(layout, 2) == 340 + 30 + 50
    assert _turn_tokens(layout, 9) == 340 + 80 + 120
    assert _turn_tokens(laid("s10 a100"), 1) == 0


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


# ---------------------------------------------------------------- what a stretch takes


sketches = st.lists(st.integers(1, 900), min_size=4, max_size=12).map(
    lambda sizes: "s10 u20 " + " ".join(f"a{size}" for size in sizes)
)


@given(sketches, st.data())
def test_stretches_take_together_what_the_view_has(sketch: str, data: st.DataObject) -> None:
    """Cut at any places that split no summary, the pieces add up to the view."""
    count = len(sketch.split())
    start = data.draw(st.integers(2, count - 2))
    end = data.draw(st.integers(start + 2, count))
    masked = data.draw(st.integers(2, count - 1))
    layout = laid(sketch, (start, end, 33), (masked, masked + 1, 1))
    represented = {i for t in layout.tiles if t.segment for i in range(t.start + 1, t.end)}
    places = sorted({0, count, *data.draw(st.lists(st.integers(0, count)))} - represented)
    pieces = [view_tokens(layout, a, b) for a, b in itertools.pairwise(places)]
    assert sum(pieces) == layout.size()


def test_what_is_replaced_tells_the_secrets_behind_it() -> None:
    """Summaries and masks that stand in the view, not a mask within a summary."""
    layout = laid("s10 u20 a100 a100 a100 c5 r90 c5 r90 a40", (2, 5, 60), (6, 7, 9), (8, 9, 9))
    secret = {6: 1, 8: 10, 2: 100}
    tiles = tuple(
        replace(t, segment=replace(t.segment, secrets=secret[t.start])) if t.segment else t
        for t in layout.tiles
    )
    masks = {i: replace(s, secrets=secret[i]) for i, s in layout.replaced.items()}
    assert layout.secrets() == 0
    assert layout.masked() == 2
    assert replace(layout, tiles=tiles, replaced=masks).secrets() == 111
    covered = replace(layout, tiles=tiles, replaced={**masks, 3: masks[6], 4: masks[8]})
    assert (covered.secrets(), covered.masked()) == (111, 2)


def test_half_a_summary_takes_nothing() -> None:
    """A stretch that covers a summary in part could not replace it."""
    layout = laid("s10 u20 a100 a100 a100 a7 a8", (2, 5, 60))
    assert view_tokens(layout, 2, 5) == 60
    assert view_tokens(layout, 3, 6) == view_tokens(layout, 5, 6) == 7
    assert view_tokens(layout, 2, 4) == view_tokens(layout, 3, 5) == 0


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


def test_room_for_more_than_there_is_is_cut_to_one_token_less() -> None:
    """Sizes are shared by what is in the archive, and an old summary has little of it in view."""
    layout = laid("s10 u20 a8000 a8000 a100 u30 a300 a40", (2, 4, 100))
    made = found(layout, budget(5_000, 550, 540, fold=1, prose=49))
    first = made.jobs[0]
    assert (first.start, first.end) == (2, 5)
    assert (first.room, first.most) == (199, 199)


def test_a_stretch_of_half_the_largest_deserves_a_model_of_its_own() -> None:
    """Below that it is written without one, where it is replaced at all."""
    half = laid("s10 u20 a2000 u30 a1000 a40")
    made = found(half, budget(9_000, 3_000, 1_500))
    assert [job.by_model for job in made.jobs] == [True, True]
    less = laid("s10 u20 a2002 u30 a1000 a40")
    made = found(less, budget(1_000, 1_000, 1_000, exact=True))
    assert [job.by_model for job in made.jobs] == [True, False]


def test_a_small_stretch_beside_a_large_one_stays_while_there_is_room() -> None:
    """It says more by itself than in a frame; under a tight target it goes from a size on."""
    layout = laid(f"s10 u20 a9000 u30 a{FRAME} a40")
    roomy = found(layout, budget(20_000, 9_000, 2_000))
    assert [(job.start, job.end) for job in roomy.jobs] == [(2, 3)]
    tight = found(layout, budget(400, 400, 400, exact=True))
    assert [(job.start, job.end) for job in tight.jobs] == [(2, 3), (4, 5)]


def test_a_stretch_below_five_frames_stays_where_what_is_left_is_enough() -> None:
    """399 tokens are left as they are where 400 would be summarized."""
    numbers = budget(700, 700, 700, exact=True, prose=10_000)
    smaller = found(laid(f"s10 u20 a9000 u30 a{FRAME - 1} a40"), numbers)
    assert [(job.start, job.end) for job in smaller.jobs] == [(2, 3)]
    larger = found(laid(f"s10 u20 a9000 u30 a{FRAME} a40"), numbers)
    assert [(job.start, job.end) for job in larger.jobs] == [(2, 3), (4, 5)]


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


def test_the_newest_outputs_are_not_masked() -> None:
    """`mask_recent` newest tokens keep theirs, and so does what stands in a summary or a mask."""
    recent = budget(9_000, 3_000, 2_500, mask_recent=30 + 40 + 1_010)
    assert found(laid(OUTPUTS), recent, masks={3: 50, 5: 60, 7: 70}).masks == (3, 5)
    layout = laid(OUTPUTS, (2, 4, 90), (5, 6, 60))
    made = found(layout, budget(9_000, 1_000, 1_000), masks={3: 50, 5: 60, 7: 70})
    assert made.masks == (7,)


def test_what_stays_whole_is_not_masked() -> None:
    """The newest step, and the first one where it belongs to the head."""
    layout = laid("s10 u20 c10 r1000 c10 r1000 u30 c10 r1000", head=1_030)
    made = found(layout, budget(9_000, 3_000, 2_500), masks={3: 50, 5: 60, 8: 70})
    assert made.masks == (5,)


def test_without_room_under_the_target_the_limit_is_what_counts() -> None:
    """A view that cannot come down to the target still has to come under the limit."""
    layout = laid("s10 u20 a150 u30 a1000 a40", (2, 3, 140))
    made = found(layout, budget(500, 300, 180))
    assert 180 < made.expected <= 500


# ---------------------------------------------------------------- budgets


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


def test_outputs_are_kept_for_half_the_target_or_the_tail_whichever_is_less() -> None:
    """`mask_keep_recent_tokens` names another size."""
    assert Budget.exactly(CompressorConfig(protect_last_n_tokens=700), 1_000).mask_recent == 500
    assert Budget.exactly(CompressorConfig(protect_last_n_tokens=300), 1_000).mask_recent == 300
    named = CompressorConfig(mask_keep_recent_tokens=0)
    assert Budget.exactly(named, 1_000).mask_recent == 0


def test_a_size_that_is_asked_for_is_window_trigger_and_target() -> None:
    """And says that it was asked for."""
    exact = Budget.exactly(CompressorConfig(head_tokens=5, keep_recent_turns=4), 1_000)
    assert (exact.limit, exact.trigger, exact.target) == (1_000, 1_000, 1_000)
    assert (exact.head, exact.recent_turns, exact.exact) == (5, 4, True)
    assert not Budget.of(CompressorConfig(), 9_000).exact
    assert Budget.of(CompressorConfig(), 9_000).recent_turns == 0


def test_a_window_that_is_exactly_taken_has_no_room() -> None:
    """One token of room is a budget, none is an error with the sum that was needed."""
    config = CompressorConfig(output_reserve=600)
    assert Budget.of(config, 1_000, 399).limit == 1
    with pytest.raises(BudgetTooSmall) as caught:
        Budget.of(config, 1_000, 400)
    assert (caught.value.needed, caught.value.budget) == (1_000, 1_000)


def test_a_budget_by_hand_has_the_defaults_of_the_configuration() -> None:
    """Who makes one himself gets what the table of options says, and jobs are for a model."""
    bare = Budget(1, 1, 1, 1, 1, None, 1, 1)
    assert bare.min_gain == CompressorConfig().min_gain_ratio
    assert (bare.recent_turns, bare.mask_recent, bare.exact) == (0, 0, False)
    assert Job(0, 1, 1, 1, 1, 1).by_model
    assert Job(0, 1, 1, 1, 1, 1).folds == ()
