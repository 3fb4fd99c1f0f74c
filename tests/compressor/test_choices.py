"""A user sees a compression before it happens and changes it: previews, kept messages, ranges."""

import json
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from praison_compressor import (
    BudgetTooSmall,
    ConfigError,
    ContextCompressor,
    Usage,
    open_store,
)
from praison_compressor.messages import text_of
from tests.helpers.compressing import PAID, Model, compressor, paid
from tests.helpers.stores import bytes_of
from tests.helpers.transcripts import coding_turns, find_repairs, said, transcripts, user

NO_MASKS = {"tool_policies": {"*": "summarize"}}
LONG = coding_turns(30)


def ours_of(model: Any = None, **options: Any) -> ContextCompressor:
    return compressor(model, **{**NO_MASKS, "recall": True, **options})


def words(messages: list[dict[str, Any]]) -> str:
    return "\n".join(map(text_of, messages))


def words_in(message: dict[str, Any]) -> str:
    """Return a message's text, or the path that its call reads."""
    calls = [call["function"]["arguments"] for call in message.get("tool_calls", ())]
    return text_of(message) or str(json.loads(calls[0])["path"])


# ---------------------------------------------------------------- a preview


@pytest.mark.parametrize("model", [None, Model()])
@pytest.mark.parametrize("options", [NO_MASKS, {}])
def test_the_text_that_was_shown_is_committed_and_paid_once(model, options):
    """`compress` commits the texts of the preview without asking a model again."""
    ours = ours_of(model, **options)
    shown = ours.preview(LONG, write=True, session_id="s", force=True)
    asked = len(model.requests) if model else 0
    assert ours.store.open("default", "s").entries == ()
    result = ours.compress_sync(LONG, session_id="s", force=True)
    assert (len(model.requests) if model else 0) == asked
    assert (len(result.written), result.masked) == (1, 0)
    assert [part.text for part in shown.parts if part.to_write] == [
        text_of(segment.rendered) for segment in result.segments
    ]
    shown_results = shown.replaced_results.values()
    assert all(text_of(each.rendered) in words(result.messages) for each in shown_results)
    assert len(shown_results) == result.masked
    assert shown.tokens_after == result.tokens_after


def test_a_second_preview_of_a_plan_is_not_paid_again():
    """Previews of one plan ask the model once."""
    model = Model()
    ours = ours_of(model)
    shown = [ours.preview(LONG, write=write, force=True) for write in (True, True, False)]
    texts = {part.text for each in shown for part in each.parts if part.to_write}
    assert (len(texts), "" in texts, len(model.requests)) == (1, False, 1)


def test_a_preview_for_another_size_is_written_again():
    """The model is asked once for each size that is previewed."""
    model = Model()
    ours = ours_of(model)
    ours.preview(LONG, write=True, force=True)
    ours.preview(LONG, write=True, force=True, summary_target_tokens=300)
    assert len(model.requests) == 2
    result = ours.compress_sync(LONG, force=True, summary_target_tokens=300)
    assert (result.summary_method, len(model.requests)) == ("model", 2)


def test_a_kept_message_alone_is_a_compression_without_summaries():
    """In a view that cannot be compressed `keep` is recorded, and only once."""
    ours, short = ours_of(), coding_turns(3)
    seen = ours.preview(short, session_id="s", keep=(3,))
    assert (seen.would_compress, seen.reason, seen.new_masks) == (True, "asked", 0)
    result = ours.compress_sync(short, session_id="s", keep=(3,))
    assert (result.messages, result.segments) == (short, ())
    again = ours.preview(short, session_id="s")
    assert (again.would_compress, again.reason) == (False, "fits")
    assert again.user_kept


def test_a_preview_gives_the_reason_of_its_decision():
    """`reason` says why a compression is due, or is not."""
    ours = ours_of(context_window=40_000)
    assert [ours.preview(LONG, force=force).reason for force in (False, True)] == ["fits", "asked"]
    assert ours_of().preview(LONG).reason == "due"
    assert ours_of(min_gain_ratio=0.9).preview(coding_turns(5)).reason == "no gain"


def test_each_reference_of_a_preview_reads_back_its_message(store):
    """After the commit `read` returns each message by the reference that the preview showed."""
    ours = ours_of(store=store)
    for turns in (20, 34):
        shown = ours.preview(coding_turns(turns), session_id="s", force=True)
        ours.compress_sync(coding_turns(turns), session_id="s", force=True)
        named = [(n, reference) for n, reference in enumerate(shown.references) if reference]
        assert len(named) > 10
        for index, reference in named[:: len(named) // 5]:
            said = words_in(coding_turns(turns)[index])
            assert said[:40] in ours.read(reference, session_id="s", tokens=4_000)


@pytest.mark.parametrize(
    ("messages", "times"),
    [([*LONG, said("Done."), user("/compact")], 1), ([*LONG[:6], *LONG[10:]], 2)],
    ids=["grown", "edited"],
)
def test_an_edited_transcript_is_planned_again(messages, times):
    """A preview is planned again if its transcript was edited, not if it only grew."""
    model = Model()
    ours = ours_of(model)
    ours.preview(LONG, write=True, force=True)
    result = ours.compress_sync(messages, force=True)
    assert len(model.requests) == times
    assert find_repairs(result.messages) == []


def test_a_discarded_preview_is_on_the_next_bill():
    """The next result has the usage of its own text and of a discarded one."""
    ours = ours_of(paid)
    first = ours.preview(LONG, write=True, session_id="s", force=True)
    second = ours.preview(LONG, write=True, session_id="s", force=True, keep=(20,))
    assert first.parts != second.parts
    assert ours.compress_sync(LONG, session_id="s", force=True).usage.prompt_tokens == 2_000
    assert ours.bill("s").summaries.prompt_tokens == 2_000


def test_each_text_of_previews_is_on_one_bill():
    """Previews and calls that name the session by an epoch's id are on the session's one bill."""
    ours = ours_of(paid)
    ours.record_usage({"usage": {"prompt_tokens": 9}}, session_id="s")
    epoch = ours.compress_sync(coding_turns(20), session_id="s", force=True).session_id
    assert epoch != "s"
    for write in (True, False, True):
        ours.preview(LONG, write=write, session_id=epoch, force=True)
    assert ours.compress_sync(LONG, session_id=epoch, force=True).usage == PAID
    ours.preview(LONG, session_id=epoch)
    assert ours.compress_sync(LONG, session_id=epoch).usage == Usage()
    bill = ours.record_usage({"usage": {"prompt_tokens": 9}}, session_id=epoch)
    assert (bill.requests, bill.summaries) == (2, PAID + PAID)
    assert ours.bill("s") == bill


# ---------------------------------------------------------------- kept messages


def place_of(messages: list[dict[str, Any]], reference: str, ours: ContextCompressor) -> int:
    shown = ours.preview(messages, session_id="s", force=True)
    return shown.references.index(reference)


@pytest.mark.parametrize("model", [None, Model()])
def test_a_message_that_the_user_keeps_is_never_replaced(store, model):
    """No later compression, restart or fold replaces a kept step."""
    ours = ours_of(model, store=store)
    index = place_of(LONG, "s1.7", ours)
    ours.preview(LONG, session_id="s", force=True, keep=("s1.7",))
    result = ours.compress_sync(LONG, session_id="s", force=True)
    assert LONG[index] in result.messages
    assert result.segments
    for turns in range(34, 80, 12):
        later = ours_of(model, store=store)
        view = later.compress_sync(coding_turns(turns), session_id="s")
        assert LONG[index] in view.messages
        assert find_repairs(view.messages) == []
        assert later.verbatim(view.messages, session_id="s") == coding_turns(turns)
    assert len(view.messages) < 200
    assert later.fallback_view(coding_turns(80), session_id="s").messages.count(LONG[index]) == 1


def test_model_and_static_summaries_are_counted_apart():
    """Results count messages summarized by the model and statically separately."""
    result = ours_of(Model()).compress_sync(LONG, session_id="s", keep=(45,))
    by = {segment.method: len(segment.run) for segment in result.segments}
    assert by.keys() == {"model", "static"}
    assert result.summarized_by_model == by["model"]
    assert result.newly_summarized == by["model"] + by["static"]


def test_a_kept_output_is_not_masked():
    """A mask of a kept output is replaced by the output."""
    ours = ours_of(Model(), tool_policies={})
    messages = coding_turns(8, steps=1, words=250)
    assert ours.compress_sync(messages, session_id="s").context_status == "masked"
    place = min(ours.preview(messages, session_id="s").replaced_results)
    assert messages[place] in ours.compress_sync(messages, session_id="s", keep=(place,)).messages


def test_a_message_of_a_summary_comes_back_when_it_is_kept(store):
    """A summarized message that the user keeps stands in the view again."""
    ours = ours_of(store=store)
    index = place_of(LONG, "s1.9", ours)
    assert LONG[index] not in ours.compress_sync(LONG, session_id="s").messages
    result = ours.compress_sync(LONG, session_id="s", keep=["s1.9"])
    assert LONG[index] in result.messages
    assert result.tokens_after <= 4_500
    assert LONG[index] in ours.compress_sync(LONG, session_id="s").messages


def test_a_kept_message_can_be_forgotten(tmp_path):
    """Forgetting the session leaves no word of a kept message in the database's files."""
    kept = {"role": "user", "content": f"Look after module 1, {'xyzzyplugh ' * 20}"}
    store = open_store(tmp_path / "ledger.db")
    ours = ours_of(store=store)
    messages = [*LONG[:9], kept, *LONG[10:]]
    assert kept in ours.compress_sync(messages, session_id="s", force=True, keep=(9,)).messages
    assert b"xyzzyplugh" in bytes_of(tmp_path)
    store.forget("default", "s")
    assert b"xyzzyplugh" not in bytes_of(tmp_path)
    assert store.verify() == []
    store.close()


# ---------------------------------------------------------------- a range


@pytest.mark.parametrize("model", [None, Model()])
@pytest.mark.parametrize(("since", "until"), [(20, 50), (None, 40), (60, None)])
def test_a_range_is_summarized_and_nothing_else(model, since, until):
    """The messages inside a range are summarized, and no others."""
    ours = ours_of(model)
    result = ours.compress_sync(LONG, session_id="s", since=since, until=until)
    assert find_repairs(result.messages) == []
    outside = [*LONG[: since or 2], *(LONG[until:] if until else LONG[-1:])]
    assert [m for m in outside if m not in result.messages] == []
    inside = LONG[(since or 6) + 4 : (until or 90) - 4]
    assert inside
    assert [m for m in inside if m in result.messages] == []
    assert ours.verbatim(result.messages, session_id="s") == LONG


def test_references_of_a_preview_name_a_range():
    """A range by a preview's references is the segment that `compress` commits."""
    ours = ours_of()
    first, last = (place_of(LONG, name, ours) for name in ("s1.9", "s1.61"))
    shown = ours.preview(LONG, session_id="s", since="s1.9", until="s1.61")
    (part,) = [part for part in shown.parts if part.to_write]
    assert first - 3 <= part.start <= first
    assert last - 3 <= part.start + part.messages <= last
    for choices in ({}, {"since": "s1.9", "until": "s1.61"}):
        ours.preview(LONG, session_id="s", force=True)
        ours.preview(LONG, session_id="s", since="s1.9", until="s1.61")
        result = ours.compress_sync(LONG, session_id="s", **choices)
        assert [text_of(s.rendered) for s in result.segments] == [part.text]
        ours = ours_of()


@settings(max_examples=40, deadline=None)
@given(transcripts(), st.data())
def test_any_choice_gives_a_valid_view(messages, data):
    """Any kept message and range give a valid view that expands again."""
    places = st.integers(0, len(messages) - 1)
    kept = data.draw(places)
    since, until = sorted((data.draw(places), data.draw(places)))
    ours = ours_of(context_window=2_000, output_reserve=0, token_floor=0)
    try:
        shown = ours.preview(messages, keep=(kept,), since=since, until=until)
        result = ours.compress_sync(messages, keep=(kept,), since=since, until=until)
    except BudgetTooSmall:
        reject()
    assert find_repairs(result.messages) == []
    assert kept in shown.user_kept
    assert ours.verbatim(result.messages) == messages


@pytest.mark.parametrize(
    "wrong",
    [
        *({"keep": ("s9.9",)}, {"keep": (10**6,)}, {"keep": "s1.1"}, {"keep": (True,)}),
        *({"since": "first"}, {"until": "s1"}, {"until": 5.0}, {"keep": ("s1.1-3",)}),
    ],
)
def test_a_place_that_does_not_exist_is_refused(wrong):
    """A reference or index without a message is an error with the option's name."""
    (name,) = wrong
    for call in (ours_of().compress_sync, ours_of().preview):
        with pytest.raises(ConfigError, match=f"^{name}="):
            call(LONG, session_id="s", **wrong)


def test_a_range_that_ends_before_it_begins_is_refused():
    """A range whose end is before its beginning is an error, an empty range is not."""
    ours = ours_of()
    ours.preview(LONG, session_id="s", force=True)
    for since, until in ((100, 50), (1, 0), ("s1.61", "s1.9")):
        for call in (ours.preview, ours.compress_sync):
            with pytest.raises(ConfigError, match=f"^since={since!r}: is after until={until!r};"):
                call(LONG, session_id="s", since=since, until=until)
    for empty in ({"until": 0}, {"since": 7, "until": 7}):
        assert not ours_of().preview(LONG, session_id="s", **empty).would_compress
