"""Quiet turns: a turn costs its new messages, and nothing is assumed about the old ones."""

import copy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, MemoryStore
from praison_compressor.compressor.decision import decide
from praison_compressor.compressor.projection import Projector
from tests.helpers.compressing import SMALL, requests_of
from tests.helpers.transcripts import session, transcripts


class Watched:
    """Counts what a compressor reads in full, and what it takes the quiet way."""

    def __init__(self, ours: ContextCompressor) -> None:
        self.ours = ours
        steps = ours._pipeline
        self._in_full, self._start = steps.start_in_full, steps.start
        steps.start_in_full, steps.start = self.start_in_full, self.start
        self.full = self.quiet = 0
        self.differences = []

    def start_in_full(self, request, session):
        self.full += 1
        return self._in_full(request, session)

    def start(self, request):
        before = self.full
        found = self._start(request)
        if self.full == before:
            self.quiet += 1
            self.differences += self._compared(found, request)
        return found

    def _compared(self, found, request):
        """Return what the full way, with nothing remembered, sees otherwise."""
        projector = Projector(self.ours.config, self.ours.store, self.ours.tokens)
        view = projector.look(request, projector.open(request))
        count = self.ours.tokens.messages
        pairs = [
            (found.messages, view.messages()),
            (found.tokens_before, count(request.messages)),
            (found.tokens_after, count(view.messages())),
            (found.segments, view.summaries()),
            (found.masked, len(view.all_tiles) - len(found.segments)),
            (False, decide(request, view, projector.texts).compresses),
        ]
        return [pair for pair in pairs if pair[0] != pair[1]]


def watched(config=SMALL, **options) -> tuple[ContextCompressor, Watched]:
    ours = ContextCompressor(config, **options)
    return ours, Watched(ours)


# ---------------------------------------------------------------- like anybody else's view


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(transcripts(max_turns=5), st.integers(1_000, 6_000), st.booleans())
def test_a_growing_transcript_is_seen_as_a_fresh_compressor_sees_it(messages, window, rebuilt):
    """A quiet turn has the view, numbers and status of a full read."""
    ours, projector = watched(CompressorConfig(context_window=window, token_floor=0))
    for request in requests_of(messages):
        _or_none(ours, copy.deepcopy(request) if rebuilt else request)
    assert projector.differences == []


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(transcripts(max_turns=4), st.data())
def test_any_edit_of_the_transcript_is_noticed(messages, data):
    """After any edit the view is that of a fresh compressor."""
    ours, projector = watched(CompressorConfig(context_window=1_500, token_floor=0))
    live = copy.deepcopy(messages)
    for _ in range(6):
        change = data.draw(st.sampled_from(["edit", "delete", "cut", "back", "grow"]))
        index = data.draw(st.integers(0, len(live) - 1))
        if change == "edit":
            live[index]["content"] = data.draw(st.sampled_from(["changed", "again", "third"]))
        elif change == "delete" and len(live) > 1:
            del live[index]
        elif change == "cut":
            del live[index + 1 :]
        elif change == "back":
            live = copy.deepcopy(messages)
        else:
            live = [*live, *copy.deepcopy(messages[len(live) : len(live) + 3])]
        _or_none(ours, live)
    assert projector.differences == []


def _or_none(ours, messages):
    try:
        return ours.compress_sync(messages, session_id="s")
    except BudgetTooSmall:
        return None


# ---------------------------------------------------------------- it is used


def test_a_turn_between_two_compressions_is_quiet():
    """Between two compressions only the first turn is read in full."""
    ours, projector = watched(CompressorConfig(model="gpt-4o", context_window=100_000))
    requests = requests_of(session(10))
    for request in requests:
        ours.compress_sync(request)
    assert (projector.full, projector.quiet) == (1, len(requests) - 1)
    assert projector.differences == []


def test_1_and_1_0_and_true_are_different_values_in_a_message():
    """1, 1.0 and True are different values in a message."""
    ours, projector = watched(CompressorConfig(model="gpt-4o", context_window=100_000))
    messages = session(3)
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "size": 1}}
    messages[1]["content"] = [{"type": "text", "text": "look"}, part]
    ours.compress_sync(messages)
    for value in (1.0, True):
        part["image_url"]["size"] = value
        assert ours.compress_sync(messages).messages[1]["content"][1]["image_url"]["size"] is value
    assert projector.full == 3
    assert projector.quiet == 0


# ---------------------------------------------------------------- it is not trusted too far


def test_a_ledger_changed_by_another_process_is_noticed():
    """Another process's commit is noticed at the next turn."""
    store = MemoryStore()
    here, there = (ContextCompressor(SMALL, store=store) for _ in range(2))
    messages = session(4)
    here.compress_sync(messages, session_id="s")
    assert here.compress_sync(messages, session_id="s").context_status == "full"
    there.compress_sync(messages, session_id="s", force=True)
    result = here.compress_sync(messages, session_id="s")
    assert result.context_status == "summarized"
    assert result.session_id == store.open("default", "s").tip


def test_a_smaller_budget_and_counts_corrected_by_the_provider_are_noticed():
    """A new overhead or a learned ratio ends the quiet turns."""
    ours, messages = ContextCompressor(SMALL), session(4)
    before = ours.compress_sync(messages, session_id="s")
    assert before.context_status == "full"
    aside = ours.compress_sync(messages, session_id="s", overhead_tokens=2_500, extends=False)
    assert (aside.context_status, aside.tokens_after <= 2_000) == ("summarized", True)
    ours.tokens.calibrate(messages, before.tokens_before * 2)
    after = ours.compress_sync(messages, session_id="s")
    assert after.tokens_before > before.tokens_before * 1.5
    assert after.context_status == "summarized"


def test_a_request_that_only_reads_leaves_the_memory_alone():
    """A request with `extends=False` does not make the next turn slow."""
    ours, projector = watched(CompressorConfig(model="gpt-4o", context_window=100_000))
    messages = session(6)
    ours.compress_sync(messages)
    aside = [*messages, {"role": "user", "content": "Name this conversation."}]
    assert ours.compress_sync(aside, extends=False).messages == aside
    before = projector.full
    grown = [*messages, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "on"}]
    assert ours.compress_sync(grown).messages == grown
    assert projector.full == before
