"""A plan cuts between steps, stays within its budget and loses no message."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, Segment
from praison_compressor.messages import Message, digest, read_transcript, split_steps
from praison_compressor.view.budget import SMALLEST_SUMMARY_TOKENS, Budget, Plan
from praison_compressor.view.plan import is_due
from praison_compressor.view.splits import choose_cut
from praison_compressor.view.view import View
from tests.helpers.sketches import budget, laid, planned
from tests.helpers.transcripts import coding_turns, step, transcripts


def view_of(
    messages: list[Message], segments: Iterable[Segment] = (), head_tokens: int = 600
) -> View:
    """Return a view in which four characters of a message cost a token."""
    got = read_transcript(messages)
    tokens = [4 + len(str(message)) // 4 for message in got.messages]
    digests = [digest(message) for message in got.messages]
    return View(got, tuple(digests), tuple(tokens), tuple(segments), head_tokens)


def exactly(target: int, **options: Any) -> Budget:
    return Budget.exactly(CompressorConfig(**options), target)


def summary_of(messages: list[Message], start: int, end: int) -> Segment:
    """Return a segment that replaces messages[start:end]."""
    run = tuple(digest(message) for message in messages[start:end])
    rendered = {"role": "user", "content": f"summary of {start} to {end}"}
    return Segment("summary", run, rendered, 100, 1_000, "model")


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[Message], int, Plan]:
    """Generate messages, a target that they exceed, and the plan that reaches it."""
    messages = draw(transcripts())
    view = view_of(messages)
    least = view.fixed_tokens() + SMALLEST_SUMMARY_TOKENS
    assume(view.size() > least)
    target = least + int(draw(st.floats(0, 1)) * (view.size() - least))
    keep = draw(st.integers(0, 2_000))
    found = None
    with contextlib.suppress(BudgetTooSmall):
        found = planned(view, exactly(target, protect_last_n_tokens=keep))
    assume(found is not None)
    return messages, target, found


@given(plans())
def test_an_applied_plan_expands_to_the_messages(made):
    """Where a plan's summaries are replaced by their runs, the view is the messages."""
    messages, _, found = made
    runs = [(job.start, job.end) for job in found.jobs]
    summaries = [summary_of(messages, start, end) for start, end in runs]
    replaced = [(s.rendered, messages[a:b]) for s, (a, b) in zip(summaries, runs, strict=True)]
    shown = view_of(messages, summaries).messages()
    rejoined = [next((run for text, run in replaced if text == m), [m]) for m in shown]
    assert list(chain.from_iterable(rejoined)) == messages
    assert all(text in shown for text, _ in replaced)


@given(plans())
def test_a_summary_replaces_whole_steps(made):
    """A run begins at a step's start and ends at another's, or with the messages."""
    messages, _, found = made
    starts = {step.start for step in split_steps(messages)}
    assert {end for job in found.jobs for end in (job.start, job.end)} <= starts | {len(messages)}


@given(plans())
def test_the_newest_user_message_and_step_are_not_summarized(made):
    """No summary replaces the newest user message or the newest step."""
    messages, _, found = made
    newest = max(i for i, message in enumerate(messages) if message["role"] == "user")
    assert found.summarized.isdisjoint({newest, *split_steps(messages)[-1]})


@given(plans())
def test_a_plan_expects_at_most_its_target(made):
    """The view that a plan expects has at most the target's tokens."""
    _, target, found = made
    assert found.expected <= target


def test_the_marks_are_those_of_the_table():
    """Each mark follows its default ratio of the usable window."""
    budget = Budget.of(CompressorConfig(), window=100_000, overhead=2_000)
    usable = 100_000 - 8_000 - 2_000
    assert budget.limit == usable
    assert budget.trigger == int(usable * 0.8)
    assert budget.target == int(budget.trigger * 0.6)
    assert budget.head_tokens == usable // 10
    assert budget.quote_tokens == budget.target // 10
    assert budget.fold_tokens == int(budget.target * 0.28)
    assert (budget.tail_tokens, budget.prose_tokens) == (20_000, 750)


def test_in_a_small_window_the_reserve_is_a_quarter():
    """The reserve for an answer is at most a quarter of the window."""
    assert Budget.of(CompressorConfig(), window=2_500).limit == 2_500 - 625


def test_the_floor_holds_the_trigger_up():
    """The trigger is at least `token_floor` if the usable window is that large."""
    triggers = [Budget.of(CompressorConfig(), window).trigger for window in (2_500, 3_000)]
    assert triggers == [2_500 - 625, 2_000]


@pytest.mark.parametrize(("window", "most"), [(100_000, 23_000), (10_000, 2_000), (4_000, 1_500)])
def test_one_result_takes_a_quarter_of_the_window(window, most):
    """One result may take a quarter less the reserve, and up to half of a small window."""
    assert Budget.of(CompressorConfig(), window).most_result_tokens == most


@pytest.mark.parametrize(
    ("fixed", "marks"), [(600, (800, 480)), (601, (800, 660)), (700, (850, 745)), (900, (950, 915))]
)
def test_fixed_messages_that_crowd_the_trigger_raise_the_marks(fixed, marks):
    """Above three quarters of the trigger, fixed messages raise trigger and target."""
    raised = budget(limit=1_000, trigger=800, target=480).raise_marks(fixed)
    assert (raised.trigger, raised.target) == marks


@pytest.mark.parametrize(("size", "marks"), [(1_500, (1_499, 900)), (2_500, (2_000, 1_000))])
def test_a_forced_compression_takes_masks_only_down_to_the_target(size, marks):
    """Masks of a forced compression must reach its target."""
    forced = budget(limit=5_000, trigger=2_000, target=1_000).force_below(size)
    assert (forced.trigger, forced.target, forced.mask_reach) == (*marks, 0.0)


def test_a_segment_never_hides_the_newest_words():
    """A recorded segment that reaches the newest words is not used."""
    messages = coding_turns(10)
    segment = summary_of(messages, 4, 20)
    cut_off = messages[:20]
    assert view_of(cut_off, [segment]).messages() == cut_off


def test_a_segment_is_found_where_its_whole_run_stands():
    """Two segments begin with equal messages: each is found where all of its run stands."""
    twice = {"role": "assistant", "content": "the same words " * 40}
    note = {"role": "system", "content": "a note of the host"}
    task = {"role": "user", "content": "the task"}
    messages = [twice, note, task, twice, {**task, "content": "newest"}]
    longer, shorter = summary_of(messages, 0, 2), summary_of(messages, 3, 4)
    for ledger in ([longer, shorter], [shorter, longer]):
        tiles = view_of(messages, ledger, head_tokens=50).tiles
        assert [tile.segment for tile in tiles if tile.segment] == [longer, shorter]


# ---------------------------------------------------------------- budgets


def test_prose_grows_with_the_segment():
    """Prose has 5 % of its segment's tokens, between 750 and 8,000."""
    free = Budget.exactly(CompressorConfig(summary_target_tokens=None), 50_000)
    asked = [free.prose_for(size) for size in (1_000, 15_020, 100_000, 159_999, 500_000)]
    assert asked == [750, 751, 5_000, 7_999, 8_000]
    assert Budget.exactly(CompressorConfig(summary_target_tokens=321), 9_000).prose_for(1) == 321


def test_a_window_that_is_exactly_taken_has_no_room():
    """A window without one token of room is an error with the sum that is needed."""
    config = CompressorConfig(output_reserve=600)
    assert Budget.of(config, 1_000, 399).limit == 1
    with pytest.raises(BudgetTooSmall) as caught:
        Budget.of(config, 1_000, 400)
    assert (caught.value.needed, caught.value.budget) == (1_000, 1_000)


def test_a_message_that_is_too_large_is_named():
    """A message that is too large is named by index, role or tool, and tokens."""
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


@pytest.mark.parametrize(
    ("turn", "newest", "is_above"),
    [(250, 400, False), (250, 401, True), (450, 64, False), (450, 65, True)],
)
def test_signed_thinking_lowers_the_trigger_at_a_turns_start(turn, newest, is_above):
    """The next turn fits below the trigger, which is not lowered by more than a limit."""
    view = replace(laid(f"s10 u20 a{turn} u{newest}"), signed_tokens={2: turn})
    assert is_due(view, budget(limit=1_000, trigger=800, target=480)) is is_above


@pytest.mark.parametrize(("trigger", "is_planned"), [(1_600, False), (1_599, True)])
def test_a_plan_begins_one_token_above_the_trigger(trigger, is_planned):
    """A plan begins exactly one token above the trigger."""
    made = planned(laid(MIDDLE), budget(limit=5_000, trigger=trigger, target=800))
    assert (made is not None) is is_planned


LEAST = 10 + 20 + 30 + 40 + SMALLEST_SUMMARY_TOKENS
"""Tokens of `MIDDLE`'s system, task, newest user message, newest step and the least summary."""


@pytest.mark.parametrize("room", [5, 99, 100, LEAST - 1])
def test_a_limit_without_room_for_a_summary_is_an_error(room):
    """The error counts whole what cannot be dropped, with the smallest summary."""
    with pytest.raises(BudgetTooSmall) as caught:
        planned(laid(MIDDLE), budget(limit=room))
    assert (caught.value.needed, caught.value.budget) == (LEAST, room)


@pytest.mark.parametrize("room", [LEAST, 300])
def test_the_needed_limit_is_enough(room):
    """A plan fits the limit that the error needs, and any above it."""
    assert planned(laid(MIDDLE), budget(limit=room)).expected <= room


@pytest.mark.parametrize(
    ("limit", "more", "is_planned"),
    [(5_000, 0, True), (5_000, 0.001, False), (1_600, 0.001, False), (1_599, 0.001, True)],
)
def test_a_compression_must_free_its_share_of_the_view(limit, more, is_planned):
    """A plan frees its share of the view, unless the view exceeds the limit."""
    view, marks = laid(MIDDLE), {"trigger": 1_599, "target": 800}
    assert view.size() == 1_600
    gain = view.size() - planned(view, budget(limit=5_000, **marks)).expected
    made = planned(view, budget(limit=limit, min_gain=gain / view.size() + more, **marks))
    assert (made is not None) is is_planned


# ---------------------------------------------------------------- head


def test_the_first_answer_stays_with_the_task_where_both_fit():
    """The head has task and first answer where both fit, to the token."""
    sketch = "s999 u20 a80 c5 r75 u30 a40"
    assert laid(sketch, head=100).head_end == 3
    assert laid(sketch, head=99).head_end == 2


# ---------------------------------------------------------------- tail


def test_recent_turns_widen_the_tail():
    """`keep_recent_turns` widens a tail that is shorter."""
    view = laid("s10 u20 a2000 u30 a200 u40 a300")
    wide = budget(limit=5_000, trigger=2_000, target=1_500, tail_tokens=10, recent_turns=2)
    assert planned(view, wide).tail_start == 3
    assert planned(view, replace(wide, recent_turns=1)).tail_start == 5


@pytest.mark.parametrize(("answer", "newest", "start"), [(50, 920, 4), (51, 919, 3)])
def test_a_turn_start_costs_the_tail_at_most_a_twentieth(answer, newest, start):
    """A cut is on a turn start that leaves 95 % of the tail."""
    view = laid(f"s10 u20 a500 a{answer} u30 a{newest}")
    assert choose_cut(view, 1_000) == start


# ---------------------------------------------------------------- jobs


@pytest.mark.parametrize(
    ("sizes", "by_model"),
    [((2000, 1000), [True, False]), ((1000, 2000), [False, True]), ((999, 999), [False, True])],
)
def test_a_model_writes_the_largest_then_newest_run(sizes, by_model):
    """A model writes for the largest run, and of equal ones the newest."""
    view = laid("s10 u20 a{} u30 a{} a40".format(*sizes))
    made = planned(view, budget(limit=9_000, trigger=1_900, target=1_500), has_model=True)
    assert [job.asks_model for job in made.jobs] == by_model


@pytest.mark.parametrize(("small", "runs"), [(1_000, [(2, 3), (4, 5)]), (999, [(2, 3)])])
def test_a_run_below_half_of_the_largest_stays(small, runs):
    """A run below half of the largest stays while there is room."""
    view = laid(f"s10 u20 a2000 u30 a{small} a40")
    made = planned(view, budget(limit=9_000, trigger=1_900, target=1_500))
    assert [(job.start, job.end) for job in made.jobs] == runs


@pytest.mark.parametrize(("free", "runs"), [(225, [(2, 3)]), (224, [(2, 3), (4, 5)])])
def test_a_text_below_225_tokens_replaces_small_runs_too(free, runs):
    """A small run stays while the large run's text has 225 tokens."""
    view = laid("s10 u20 a2000 u30 a999 a40")
    kept = view.size() - 2_000
    made = planned(view, budget(limit=9_000, trigger=1_900, target=kept + free))
    assert [(job.start, job.end) for job in made.jobs] == runs


@pytest.mark.parametrize(("free", "runs"), [(274, [(2, 3)]), (273, [(2, 3), (4, 5)])])
def test_texts_below_a_tenth_of_the_goal_replace_small_runs_too(free, runs):
    """A small run stays while the texts have a tenth of the goal less the head."""
    view = laid("s10 u20 a5000 u30 a2400 a40")
    kept = view.size() - 5_000
    made = planned(view, budget(limit=20_000, trigger=7_400, target=kept + free))
    assert [(job.start, job.end) for job in made.jobs] == runs


def test_a_text_may_exceed_its_room_by_half_of_the_room_to_the_trigger():
    """A long prose may take half of the free tokens below the trigger."""
    made = planned(laid(MIDDLE), budget(limit=5_000, trigger=1_598, target=800))
    assert [job.spare_tokens for job in made.jobs] == [(1_598 - 800) // 2]


@pytest.mark.parametrize(("share", "prose"), [(1_000_000, 100), (0, 200)])
def test_a_fold_has_twice_the_prose(share, prose):
    """A fold of models' summaries asks for twice the prose of a new summary."""
    view = laid("s10 u20 a5000 a5000 a5000 a5000 a3000 a40", (2, 4, 600), (4, 6, 600))
    quotes = {"quote_tokens": 900, "most_quote_tokens": 900}
    given = budget(limit=9_000, trigger=4_000, target=3_500, fold_tokens=share, **quotes)
    made = planned(view, given, has_model=True)
    assert [job.prose_tokens for job in made.jobs] == [prose]


@pytest.mark.parametrize(("share", "jobs"), [(300 - 200, [(6, 0)]), (300 - 201, [(2, 2)])])
def test_summaries_are_folded_from_their_share_on(share, jobs):
    """Summaries are folded once they exceed their share by the room of the next one."""
    view = laid("s10 u20 a5000 a5000 a5000 a5000 a3000 a40", (2, 4, 150), (4, 6, 150))
    given = budget(limit=9_000, trigger=3_000, target=2_000, fold_tokens=share)
    assert [(job.start, len(job.folds)) for job in planned(view, given).jobs] == jobs


def test_masks_free_three_quarters_of_what_is_read_again():
    """Masks that miss the target free three quarters of what is then read again."""
    enough = budget(limit=9_000, trigger=2_200, target=2_150, mask_recent_tokens=100)
    masks = {4: 20}
    # Read again: the masked result and what follows it, 20 + 40 + 30 + 40.
    views = [laid(f"u20 a2000 a10 c10 r{size} a40 u30 a40") for size in (118, 117)]
    assert planned(views[0], enough, masks=masks).masks == (4,)
    assert planned(views[1], enough, masks=masks).jobs
    assert planned(views[1], replace(enough, target=2_170), masks=masks).masks == (4,)


@pytest.mark.parametrize(("kept", "masks"), [((), (2, 4)), ((1, 2), (4,))])
def test_a_kept_output_is_never_masked(kept, masks):
    """An output that is kept out of a compression has no mask."""
    view = replace(laid("u20 c10 r1000 c10 r1000 u30 a40"), kept_out=frozenset(kept))
    given = budget(limit=9_000, trigger=2_000, target=1_200)
    assert planned(view, given, masks={2: 20, 4: 20}).masks == masks
