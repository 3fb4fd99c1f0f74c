"""The plan: pure, between steps, within its budget, and it loses no message."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from praison_compressor import BudgetTooSmall, CompressorConfig, Segment
from praison_compressor.messages import digest, read, steps
from praison_compressor.view.budget import Budget
from praison_compressor.view.layout import Layout, arrange
from praison_compressor.view.plan import Plan, plan
from tests.helpers.transcripts import session, transcripts


def lay_out(messages, segments=(), head_tokens=600) -> Layout:
    """A layout in which a message costs a token for four characters."""
    got = read(messages)
    tokens = [4 + len(str(message)) // 4 for message in got.messages]
    digests = [digest(message) for message in got.messages]
    return arrange(got, digests, tokens, list(segments), head_tokens)


def exactly(target: int, **options) -> Budget:
    return Budget.exactly(CompressorConfig(**options), target)


def planned(layout: Layout, budget: Budget) -> Plan | None:
    """The plan, or None also where no plan can be made."""
    try:
        return plan(layout, budget)
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
    assert budget.facts == budget.target // 10
    assert budget.fold == int(budget.target * 0.28)
    assert (budget.tail, budget.prose) == (20_000, 750)
    # The reserve shrinks with the window; the floor holds the trigger up.
    small = Budget.of(CompressorConfig(), window=2_500)
    assert small.trigger == small.limit == 2_500 - 625


def test_the_newest_fold_is_found_first_and_each_segment_once():
    """A fold stands for the segments it replaced; an equal run further on is not covered twice."""
    messages = session(10)
    old, fold = summary_of(messages, 4, 20), summary_of(messages, 4, 40)
    layout = lay_out(messages, [old, fold])
    assert [tile.segment for tile in layout.tiles if tile.segment] == [fold]
    twice = [*messages, *messages[4:]]
    found = [tile.segment for tile in lay_out(twice, [fold]).tiles if tile.segment]
    assert found == [fold]


def test_a_segment_never_hides_the_task_or_the_newest_words():
    """After a truncation the recorded run may reach the end: then it is not used."""
    messages = session(10)
    segment = summary_of(messages, 4, 20)
    cut_off = messages[:20]
    assert lay_out(cut_off, [segment]).view() == cut_off


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
