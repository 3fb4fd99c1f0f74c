"""A preview says what a compression would do, does not do it, and is right."""

from typing import Any

import pytest

from praison_compressor import BudgetTooSmall, ConfigError, ContextCompressor, Event
from praison_compressor.messages import text_of
from tests.helpers import compressing
from tests.helpers.compressing import Model
from tests.helpers.transcripts import audit, step

SESSION = "audit-9"
BALANCE = "## Done\nLedgers were read and balance."


def compressor(summarizer: Any = None, **options: Any) -> tuple[ContextCompressor, list[Event]]:
    events: list[Event] = []
    given = {"context_window": 8_000, **options}
    return compressing.compressor(summarizer, events.append, **given), events


@pytest.fixture(params=[{}, {"tool_policies": {"*": "summarize"}}])
def made(request):
    """Return a compressor whose model summarizes, of masks or of everything."""
    return compressor(Model(BALANCE), **request.param)


def test_context_use_adds_up_to_the_request(made):
    """`context_use` has the tokens of the request, part by part."""
    ours, events = made
    messages = audit(40)
    result = ours.compress_sync(messages, session_id=SESSION)
    heard = len(events)
    use = ours.context_use(messages, session_id=SESSION, overhead_tokens=300)
    assert len(events) == heard
    assert sum(use.parts.values()) == use.window == 8_000
    assert use.used == result.tokens_after + 300
    assert use.parts["summaries"] == sum(segment.tokens for segment in result.segments)
    assert use.messages["masked outputs"] == result.masked
    assert sum(use.messages.values()) == len(result.messages)
    assert use.parts["reserve"] == 2_000


def test_context_use_has_the_largest_messages(made):
    """`context_use` has the largest messages of the view."""
    ours, _ = made
    messages = audit(40)
    result = ours.compress_sync(messages, session_id=SESSION)
    use = ours.context_use(messages, session_id=SESSION)
    for large in use.largest:
        assert messages[large.index]["role"] == large.role
        assert messages[large.index] in result.messages
    assert [large.tokens for large in use.largest] == sorted(
        (ours.tokens.message(m) for m in result.messages[1:] if m in messages), reverse=True
    )[: len(use.largest)]


TURNS = pytest.mark.parametrize("turns", [2, 30, 60])


@TURNS
def test_preview_asks_and_writes_nothing(made, turns):
    """`preview` leaves model, ledger and messages alone."""
    ours, events = made
    messages = audit(turns)
    ours.preview(messages, session_id=SESSION)
    assert (events, ours.store.open("default", SESSION).entries) == ([], ())
    assert messages == audit(turns)


@TURNS
def test_compress_does_what_preview_showed(made, turns):
    """`compress` does what `preview` showed."""
    (ours, _), messages = made, audit(turns)
    seen = ours.preview(messages, session_id=SESSION)
    result = ours.compress_sync(messages, session_id=SESSION)
    assert seen.would_compress == bool(result.written or result.masked)
    assert seen.tokens == result.tokens_before
    assert seen.would_write == len(result.written)
    assert seen.new_masks == result.masked
    previewed = [part.messages for part in seen.parts if part.to_write]
    assert previewed == [len(segment.run) for segment in result.segments]
    kept = [index for index, fate in seen.fates() if fate == "keep"]
    assert [m for m in messages if m in result.messages] == [messages[i] for i in kept]


@TURNS
def test_a_preview_after_a_compression_has_nothing_to_do(made, turns):
    """A preview after a compression reuses what the compression wrote."""
    (ours, _), messages = made, audit(turns)
    result = ours.compress_sync(messages, session_id=SESSION)
    after = ours.preview(messages, session_id=SESSION)
    assert (after.would_compress, after.tokens) == (False, result.tokens_after)
    found = [part.why for part in after.parts if part.segment is not None]
    assert len(found) == len(result.segments)
    assert all("not paid for again" in why for why in found)


def test_every_message_has_one_fate_and_every_part_a_reason():
    """The parts cover the transcript and its tokens once, each with a reason."""
    made, _ = compressor()
    seen = made.preview(audit(60))
    fates = list(seen.fates())
    assert [index for index, _ in fates] == list(range(len(seen.messages)))
    assert sum(part.tokens_before for part in seen.parts) == sum(seen.message_tokens)
    assert [part.name for part in seen.parts] == ["head", "summary", "tail"]
    assert {fate for _, fate in fates} == {"keep", "s1"}
    assert all(part.why for part in seen.parts)


def test_an_excerpt_is_no_mask_in_a_preview():
    """The fate of an output larger than the window is "excerpt"."""
    made, _ = compressor()
    messages = [*audit(2), *step("call_big", "a row of the table\n" * 3_500)]
    seen = made.preview(messages)
    (index, excerpt), *others = seen.replaced_results.items()
    assert (index, others, dict(seen.fates())[index]) == (len(messages) - 1, [], "excerpt")
    assert text_of(excerpt.rendered) == text_of(made.compress_sync(messages).messages[-1])


def test_a_preview_refuses_what_a_compression_refuses():
    """`preview` raises the errors of `compress`."""
    made, _ = compressor()
    with pytest.raises(BudgetTooSmall):
        made.preview(audit(), target_tokens=20)
    with pytest.raises(ConfigError, match=r"'target_token' \(did you mean 'target_tokens'"):
        made.preview(audit(), target_token=3)
