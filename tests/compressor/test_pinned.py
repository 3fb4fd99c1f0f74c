"""Every compressed view has each pinned text once, word for word, outside summaries."""

from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor
from praison_compressor.messages import text_of
from tests.helpers.compressing import Model, compressor, requests_of
from tests.helpers.transcripts import coding_turns, find_repairs, transcripts

RULE = "Never push to main without asking me;\nkeep the port <8443>."
OTHER = "Answer in Python."


def places(view: list[dict[str, Any]], words: str = RULE) -> list[int]:
    """Return the places of the words in the view."""
    return [n for n, message in enumerate(view) if words in text_of(message)]


def pinning(**options: Any) -> ContextCompressor:
    return compressor(Model(), pinned=(RULE,), **options)


@pytest.mark.parametrize(
    "options", [{}, {"tool_policies": {"*": "summarize"}}, {"background": True}]
)
def test_pinned_texts_stand_once_at_the_end_of_the_head(options):
    """Pinned texts stand once, at the end of the head, in every kind of view."""
    ours, starts = pinning(**options), set()
    for request in requests_of(coding_turns(14)):
        result = ours.compress_sync(request)
        changed = [n for n, m in enumerate(result.messages) if m not in request]
        assert places(result.messages) == changed[:1]
        starts.update(changed[:1])
        assert find_repairs(result.messages) == []
        assert result.tokens_after == ours.tokens.messages(result.messages) <= 4_500
    assert (result.context_status, starts) == ("summarized", {2})
    assert ours.wait_for_summaries(30)


def test_pinned_texts_survive_folds_edits_and_undo():
    """Pinned texts belong to each compressed view, not to a segment."""
    ours = pinning(tool_policies={"*": "summarize"})
    for request in requests_of(coding_turns(40)):
        result = ours.compress_sync(request, session_id="s")
    edited = [dict(message) for message in coding_turns(40)]
    edited[9]["content"] = "edited"
    assert len(places(ours.compress_sync(edited, session_id="s").messages)) == 1
    assert len(places(result.messages)) == 1
    entries = ours.store.open("default", "s").entries
    assert all(RULE not in text_of(entry.segment.rendered) for entry in entries)
    ours.undo("s")
    again = ours.compress_sync(coding_turns(3), session_id="s")
    assert places(again.messages) == []


def test_a_call_pins_more_and_the_next_call_need_not():
    """A call's pinned texts are added to the configured ones for that call."""
    ours, messages = pinning(), coding_turns(14)
    both = ours.compress_sync(messages, pinned=[OTHER, RULE])
    at = places(both.messages)
    assert places(both.messages, OTHER) == at
    assert text_of(both.messages[at[0]]).index(RULE) < text_of(both.messages[at[0]]).index(OTHER)
    one = ours.compress_sync(messages)
    assert (len(places(one.messages)), places(one.messages, OTHER)) == (1, [])


@pytest.mark.parametrize("pinned", [(RULE,), (RULE, OTHER), ()])
def test_a_view_compressed_again_has_the_texts_of_now(pinned):
    """A view compressed again has the new call's pinned texts."""
    ours, messages = pinning(), coding_turns(14)
    view = ours.compress_sync(messages, session_id="s").messages
    later = compressor(Model(), store=ours.store, pinned=pinned)
    again = later.compress_sync(view, session_id="s").messages
    assert [len(places(again, text)) for text in (RULE, OTHER)] == [
        int(text in pinned) for text in (RULE, OTHER)
    ]
    assert later.verbatim(view, session_id="s") == messages
    assert [m for m in again if m in messages] == [m for m in view if m in messages]


def test_pinned_texts_count_against_the_window():
    """Pinned texts count as tokens of the view."""
    assert pinning().compress_sync(coding_turns(14), target_tokens=1_500).tokens_after <= 1_500
    used = pinning().context_use(coding_turns(14))
    assert (sum(used.parts.values()), used.parts["reserve"]) == (used.window, 1_500)


def test_pinned_texts_without_room_are_an_error():
    """Pinned texts above the window are an error."""
    with pytest.raises(BudgetTooSmall, match="pinned texts"):
        compressor(pinned=["word " * 9_000]).compress_sync(coding_turns(14))


@settings(max_examples=25)
@given(transcripts(), st.integers(300, 3_000))
def test_any_view_has_them_and_is_itself_again(messages, target):
    """Any view with pinned texts keeps the promises of a view without them."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", pinned=(RULE,)))
    try:
        result = ours.compress_sync(messages, target_tokens=target)
    except BudgetTooSmall:
        reject()
    assert find_repairs(result.messages) == []
    assert result.tokens_after == ours.tokens.messages(result.messages) <= target
    assert len(places(result.messages)) == (result.context_status != "full")
    assert ours.verbatim(result.messages) == messages
    assert ours.compress_sync(result.messages, target_tokens=target).messages == result.messages
