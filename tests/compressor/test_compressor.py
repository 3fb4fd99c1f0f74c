"""A message is summarized once; its summary is reused until the message or window changes."""

import asyncio
import copy
import itertools
import logging
from typing import Any

import pytest

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    CompressResult,
    ContextCompressor,
    LedgerError,
    MemoryStore,
    Store,
    SummaryReply,
    Usage,
)
from praison_compressor.ledger.segments import Entry, Session
from praison_compressor.messages import text_of
from tests.helpers.compressing import SMALL, Model, compressor, paid, requests_of
from tests.helpers.transcripts import coding_turns, find_repairs

# ---------------------------------------------------------------- summarized once


@pytest.fixture(scope="module")
def grown():
    """Return the summarizer of a growing conversation, and each request's result."""
    model = Model()
    ours = compressor(model)
    return model, [ours.compress_sync(request) for request in requests_of(coding_turns(26))]


def test_each_message_is_summarized_once(grown):
    """A model summarizes each message once."""
    model, views = grown
    assert len(model.requests) == [view.summary_method for view in views].count("model") >= 3
    for end in ("END-3-1", "END-6-0", "END-12-2"):
        assert sum(end in shown for shown in model.shown) == 1


def test_between_compressions_the_prefix_stays(grown):
    """Each view begins as the one before, unless it has a new summary."""
    model, views = grown
    pairs = itertools.pairwise(views)
    kept = [b.messages[: len(a.messages)] == a.messages for a, b in pairs]
    assert kept.count(False) == len(model.requests)


def test_each_view_of_a_growing_conversation_fits(grown):
    """No view exceeds the window less the reserve."""
    assert max(view.tokens_after for view in grown[1]) <= 6_000 - 1_500


def test_a_result_reports_tokens_status_method_lineage_and_usage():
    """A result has tokens, status, method, lineage and usage by their documented names."""
    usage = Usage(prompt_tokens=900, completion_tokens=80, cost=0.001)

    async def model(messages, *, max_tokens, model):
        return SummaryReply(
            f"## Done\nModules, parts and ports are in order, {model}, {max_tokens}",
            usage,
            "m-1",
            "stop",
        )

    ours = compressor(model, auxiliary_model="gpt-4o-mini")
    messages = coding_turns(20)
    result = ours.compress_sync(messages, session_id="research-42")
    assert (result.context_status, result.summary_method) == ("summarized", "model")
    assert result.tokens_saved == result.tokens_before - result.tokens_after > 0
    assert result.usage == usage
    assert result.parent_session_id == "research-42" != result.session_id
    assert "gpt-4o-mini" in text_of(result.segments[0].rendered)


def test_a_summary_is_reused_under_each_id_of_its_session():
    """The session's id and its epoch's give the recorded view, at no cost."""
    ours, messages = compressor(paid), coding_turns(20)
    result = ours.compress_sync(messages, session_id="research-42")
    for name in ("research-42", result.session_id):
        again = ours.compress_sync(messages, session_id=name)
        assert (again.summary_method, again.usage) == ("reused", Usage())
        assert (again.messages, again.session_id) == (result.messages, result.session_id)


# ---------------------------------------------------------------- edits, forks, tenants


def test_an_edit_of_a_result_changes_no_ledger():
    """An application's edit of a result's texts and list changes no later view."""
    ours, messages = compressor(), coding_turns(26)
    for _ in range(3):  # new, found in the ledger, and remembered
        result = ours.compress_sync(messages)
        before = copy.deepcopy(result.messages)
        texts = [segment.rendered for segment in result.segments]
        for each in [*texts, *(message for message in result.messages if message in texts)]:
            each["content"] = "edited"
        result.messages.pop()
        assert texts
        assert ours.compress_sync(messages).messages == before


def test_an_edit_summarizes_again_only_what_it_touches():
    """After an edit only the segment with the edited message is written again."""
    model = Model()
    ours = compressor(model, context_window=24_000, quotes_budget_tokens=500, fold_ratio=1.0)
    messages = coding_turns(75)
    for request in requests_of(messages):
        result = ours.compress_sync(request)
    assert len(result.segments) >= 2
    calls = len(model.requests)
    edited = copy.deepcopy(messages)
    edited[13]["content"] = "an edited answer"
    after = ours.compress_sync(edited, force=True)
    assert all(segment in after.segments for segment in result.segments[1:])
    assert result.segments[0] not in after.segments
    assert len(model.requests) > calls
    assert not any("END-74-0" in request for request in model.requests[calls:])


@pytest.mark.parametrize("recall", [False, True])
def test_equal_summaries_expand_to_their_own_originals(recall):
    """Each epoch's view expands to its own originals, also where summaries are equal."""
    says = "the modules go on in order " * 40
    # Quotes of the user's words would make each summary another one.
    whole = [
        {"role": role, "content": content}
        for n in range(80)
        for role, content in (("user", "Go on."), ("assistant", f"turn {n:03}: {says * 2}"))
    ]
    options = {"context_window": 12_000, "fold_ratio": 1.0, "quotes_budget_tokens": 0}
    said = Model("## Done\nEvery turn goes on and on so it goes on and on.")
    ours = compressor(said, recall=recall, **options, protect_last_n_tokens=500)
    ends = range(21, 160, 20)
    views = {end: ours.compress_sync(whole[:end], session_id="s", force=True) for end in ends}
    fork = {"session_id": "fork", "parent_session_id": views[81].session_id}
    forked = ours.compress_sync([*whole[:81], *whole[:40]], **fork, force=True)
    texts = [text_of(segment.rendered) for segment in views[141].segments]
    assert len(texts) == len(set(texts)) == 7
    assert len({text.partition("\n")[2] for text in texts}) == 1
    for end, view in views.items():
        assert ours.verbatim(view.messages, session_id="s") == whole[:end]
    assert len(forked.segments) == 5
    for end in (21, 81):
        assert ours.verbatim(views[end].messages, session_id="fork") == whole[:end]
    assert ours.verbatim(forked.messages, session_id="fork") == [*whole[:81], *whole[:40]]


def test_no_segment_of_another_session_is_used():
    """No segment of another session or namespace is used, however equal the words."""
    store = MemoryStore()
    messages = coding_turns(20)
    model = Model()
    first = ContextCompressor(SMALL, summarizer=model, store=store)
    view = first.compress_sync(messages, session_id="a").messages
    first.compress_sync(messages, session_id="b")
    assert len(model.requests) == 2
    config = CompressorConfig(**{**vars(SMALL), "namespace": "other"})
    said = Model("## Done\nOther modules, in order.")
    other = ContextCompressor(config, summarizer=said, store=store)
    assert other.compress_sync(messages, session_id="a").summary_method == "model"
    assert other.verbatim(view, session_id="a") == view


# ---------------------------------------------------------------- threads, tasks, cancelled turns


async def test_a_cancelled_turn_cancels_its_summary():
    """A cancelled turn's summary is cancelled, so that the next turn does not wait."""
    started = asyncio.Event()

    async def slow(messages):
        if not started.is_set():
            started.set()
            await asyncio.sleep(3_600)
        return "## Done\nThe modules so far are in order."

    ours = compressor(slow)
    turn = asyncio.create_task(ours.compress(coding_turns(20)))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert (await asyncio.wait_for(ours.compress(coding_turns(20)), 10)).summary_method == "model"


# ---------------------------------------------------------------- a turn that must go on


class Breakable(MemoryStore):
    """A store that another has taken away, and may bring back."""

    is_gone = False
    damaged = ""
    """The session whose originals cannot be read."""

    def originals(self, session: Session, entry: Entry) -> Any:
        if session.id == self.damaged:
            raise LedgerError("a digest disagrees")
        return super().originals(session, entry)

    def open(self, *names: Any, **options: Any) -> Any:
        if self.is_gone:
            raise LedgerError("the disk is gone")
        return super().open(*names, **options)


BOUNDS = [
    ({"target_tokens": 300}, 300, "; raise target_tokens$"),
    (
        {"target_tokens": 300, "keep": (5, 6, 7)},
        300,
        "head, kept messages, newest .*; keep fewer messages, or raise target_tokens$",
    ),
    ({"target_tokens": 300, "pinned": ["word " * 400]}, 300, "summary, beside pinned texts, need"),
    (
        {"overhead_tokens": 4_400},
        6_000,
        "beside the reserve for the answer, tool .*, raise context_window or lower output_reserve$",
    ),
    ({"overhead_tokens": 9_000}, 6_000, "lower output_reserve, or send fewer tools$"),
]


@pytest.mark.parametrize(("options", "size", "said"), BOUNDS)
def test_a_budget_that_is_too_small_is_named_with_what_helps(options, size, said):
    """The error has the call's own number, what overflows, and the option that helps."""
    ours = ContextCompressor(SMALL)
    with pytest.raises(BudgetTooSmall, match=said) as caught:
        ours.compress_sync(coding_turns(40), **options)
    assert (caught.value.budget, f"the budget is {size};" in str(caught.value)) == (size, True)
    bound = "target_tokens" if "target_tokens" in options else "context_window"
    assert ("context_window" in str(caught.value)) == (bound == "context_window")


@pytest.mark.parametrize("options", [options for options, *_ in BOUNDS[:3]])
@pytest.mark.parametrize("target", [1, 20, 300])
def test_the_tokens_that_an_error_asks_for_are_enough(options, target):
    """A call with the tokens that the error names fits."""
    ours = ContextCompressor(SMALL)
    with pytest.raises(BudgetTooSmall) as caught:
        ours.compress_sync(coding_turns(40), **{**options, "target_tokens": target})
    needed = caught.value.needed
    result = ours.compress_sync(coding_turns(40), **{**options, "target_tokens": needed})
    assert result.tokens_after <= needed


def test_a_window_that_takes_nothing_is_survived_inside_a_turn():
    """The best view has a mark for the middle of a message larger than the window."""
    messages = [*coding_turns(4), {"role": "user", "content": "x y z " * 40_000}]
    ours = ContextCompressor(SMALL)
    with pytest.raises(BudgetTooSmall):
        ours.compress_sync(messages)
    view = ours.fallback_view(messages).messages
    assert find_repairs(view) == []
    assert ours.tokens.messages(view) <= 6_000 - 1_500
    assert "characters left out" in text_of(view[-1])
    assert view[:2] == messages[:2]


@pytest.mark.parametrize("session_id", [7, "", None])
def test_a_fallback_view_has_a_session_id_that_is_a_text(session_id):
    """A result has the compressor's own session id in place of a refused one."""
    ours = ContextCompressor(SMALL)
    asked: Any = {"session_id": session_id}
    nothing: Any = None
    assert ours.fallback_view(nothing, **asked).session_id == ours.session_id


@pytest.mark.parametrize("logged", [None, LedgerError("the disk is gone")])
def test_a_ledger_that_is_gone_is_logged_once_until_it_is_back(caplog, logged):
    """A ledger that cannot be read is logged once until it can be read again."""
    store = Breakable()
    ours = ContextCompressor(SMALL, store=store)
    messages = coding_turns(10)
    caplog.set_level(logging.WARNING)
    for times in (1, 2):
        store.is_gone = True
        for _ in range(2):
            view = ours.fallback_view(messages, logged=logged).messages
            assert find_repairs(view) == []
            assert ours.tokens.messages(view) < ours.tokens.messages(messages)
        said = [record for record in caplog.records if "without the ledger" in record.message]
        assert len(said) == (0 if logged else times)
        store.is_gone = False
        ours.fallback_view(messages)


def test_a_damaged_session_is_logged_once_beside_sound_ones(caplog):
    """A session that cannot be read is logged once, however often another one is read."""
    store = Breakable()
    ours = ContextCompressor(SMALL, store=store)
    messages = coding_turns(20)
    view = ours.compress_sync(messages, session_id="damaged").messages
    store.damaged = "damaged"
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        ours.fallback_view(view, session_id="damaged")
        ours.fallback_view(messages, session_id="sound")
    assert len([r for r in caplog.records if "without the ledger" in r.message]) == 1


# ---------------------------------------------------------------- windows of different sizes


def in_window(window: int, store: Store, policies: Any = (), **asked: Any) -> CompressResult:
    """Return the result of a session for a model with that window."""
    config = CompressorConfig(model="gpt-4o", context_window=window, tool_policies=dict(policies))
    ours = ContextCompressor(config, store=store)
    return ours.compress_sync(coding_turns(120, words=60), session_id="s", **asked)


@pytest.mark.parametrize("policy", ["mask", "summarize"])
def test_a_larger_window_finds_its_larger_view_again(policy):
    """A larger window finds its larger view again after a small model's turn."""
    store, windows = MemoryStore(), (40_000, 8_000, 40_000, 8_000)
    large, small, *again = (in_window(window, store, {"*": policy}) for window in windows)
    assert small.tokens_after < 8_000 < large.tokens_after
    assert [each.messages for each in again] == [large.messages, small.messages]


def test_a_larger_window_summarizes_the_originals_again():
    """A larger window summarizes the originals again after a small window's summary."""
    store = MemoryStore()
    small, large, again = (in_window(window, store) for window in (8_000, 40_000, 40_000))
    assert large.tokens_after > 2 * small.tokens_after
    assert again.messages == large.messages


def test_a_size_that_was_asked_for_holds():
    """A view made for `target_tokens` stays in later calls without it."""
    store = MemoryStore()
    asked = in_window(40_000, store, target_tokens=4_000)
    assert in_window(40_000, store).messages == asked.messages
