"""A due compression that is skipped emits one event with its reason."""

import itertools

import pytest

from praison_compressor import Event
from praison_compressor.messages import Message
from tests.helpers.compressing import Model, compressor
from tests.helpers.transcripts import coding_turns, step


def skipped(events: list[Event]) -> list[str]:
    return [event.data["reason"] for event in events if event.name == "skipped"]


def stuck(turns: int) -> list[Message]:
    """Return messages above the trigger of 3,600 tokens, whose newest alone is large."""
    messages = coding_turns(2)
    messages[-1]["content"] = "x y z " * 900
    for n in range(turns):
        messages += [{"role": "assistant", "content": f"Yes, {n}."}]
        messages += [{"role": "user", "content": f"And {n}?"}]
    return messages


def large_task() -> list[Message]:
    """Return messages whose first alone exceeds the trigger of 3,600 tokens."""
    messages = coding_turns(2)
    messages[0]["content"] = "rule " * 3_700
    return messages


@pytest.mark.parametrize("background", [False, True])
def test_a_compression_without_gain_is_reported_once(background):
    """A compression without gain is skipped with one event, with size and trigger."""
    events: list[Event] = []
    options = {"min_gain_ratio": 0.9, "tool_policies": "keep_all"}
    ours = compressor(Model(), events.append, background=background, **options)
    for turns in range(4):
        result = ours.compress_sync(stuck(turns), session_id="s")
        assert result.context_status == "full"
    assert ours.wait_for_summaries(10)
    ours.close()
    [skip] = [event.data for event in events if event.name == "skipped"]
    assert skip["reason"] == "no gain"
    assert skip["tokens"] > skip["trigger"] == 3_597


@pytest.mark.parametrize(
    ("length", "expected"),
    [(2, [["fixed part"], [], []]), (15, [["started"], ["fixed part"], []])],
)
def test_a_fixed_part_is_a_skip_only_of_requests_not_compressed(length, expected):
    """A request with too large a fixed part is either compressed or skipped."""
    events: list[Event] = []
    ours = compressor(model := Model(), events.append)
    outcomes = []
    for _ in range(3):
        events.clear()
        ours.compress_sync(large_task()[:length], session_id="s")
        outcomes.append(["started" for event in events if event.name == "started"])
        outcomes[-1] += skipped(events)
    assert outcomes == expected
    assert len(model.requests) <= 1


def test_a_fixed_part_above_the_trigger_is_warned_of_once(caplog):
    """A fixed part above the trigger gives one warning in a session."""
    ours = compressor(Model())
    for _ in range(3):
        ours.compress_sync(large_task(), session_id="s")
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


# ---------------------------------------------------------------- the hook before it


async def refuses_later(event: Event) -> bool:
    return False


def refuses(event: Event) -> bool:
    return False


OUTGROWING = [coding_turns(count) for count in range(4, 9)]


@pytest.fixture(params=itertools.product((refuses, refuses_later), (False, True)))
def outgrown(request):
    """Return a compressor, its events, and results of views that outgrow the trigger, vetoed."""
    hook, background = request.param
    events: list[Event] = []
    ours = compressor(Model(), events.append, before_compression=hook, background=background)
    results = [ours.compress_sync(each, session_id="s") for each in OUTGROWING]
    assert ours.wait_for_summaries(10)
    return ours, events, results


def test_after_a_veto_each_view_fits(outgrown):
    """After a veto each view fits the window."""
    *_, results = outgrown
    statuses = [result.context_status for result in results]
    assert statuses == sorted(statuses)  # "full", then "summarized"
    assert len(set(statuses)) == 2
    assert max(result.tokens_after for result in results) <= 4_500


def test_vetoes_of_a_session_are_one_event(outgrown):
    """The vetoes of a session, also of a forced compression, are one event."""
    ours, events, _ = outgrown
    ours.compress_sync(OUTGROWING[0], session_id="s", force=True)
    ours.compress_sync(OUTGROWING[0], session_id="s")
    assert [(event.name, event.data["reason"]) for event in events] == [("skipped", "veto")]


def test_a_veto_records_nothing(outgrown):
    """A veto records nothing in the ledger."""
    ours, _, results = outgrown
    assert results[-1].context_status == "summarized"
    ours.compress_sync(OUTGROWING[0], session_id="s", force=True)
    assert ours.store.open("default", "s").entries == ()


def test_a_veto_of_a_forced_compression_leaves_the_messages(outgrown):
    """A vetoed forced compression returns the messages as given."""
    ours, *_ = outgrown
    forced = ours.compress_sync(OUTGROWING[0], session_id="s", force=True)
    assert (forced.vetoed, forced.messages) == (True, OUTGROWING[0])
    assert not ours.compress_sync(OUTGROWING[0], session_id="s").vetoed


@pytest.mark.parametrize("background", [False, True])
def test_a_veto_meets_a_result_larger_than_the_window(background):
    """After a veto a result larger than the window is sent as its ends."""
    events: list[Event] = []
    ours = compressor(Model(), events.append, before_compression=refuses, background=background)
    messages = [*coding_turns(2), *step("call_big", "a row of the table\n" * 2_500)]
    result = ours.compress_sync(messages, session_id="s")
    assert (result.vetoed, result.context_status) == (True, "masked")
    assert result.messages[:-1] == messages[:-1]
    assert ours.store.open("default", "s").entries == ()


def fails(event: Event) -> None:
    raise SystemExit(3)


async def fails_later(event: Event) -> None:
    raise RuntimeError("no")


@pytest.mark.parametrize("hook", [fails, fails_later, lambda event: 7, lambda event: None])
def test_a_hook_that_fails_has_refused_nothing(hook):
    """A hook that fails or returns another type refuses nothing."""
    events: list[Event] = []
    ours = compressor(Model(), events.append, before_compression=hook)
    assert ours.compress_sync(coding_turns(8)).summary_method == "model"
    assert [event.name for event in events if event.name == "started"] == ["started"]
