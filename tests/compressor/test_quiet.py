"""A quiet turn costs only its new messages, and still checks the old ones."""

import copy
from collections.abc import Iterable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    CompressResult,
    ContextCompressor,
    MemoryStore,
    TokenCounter,
)
from praison_compressor.messages import Message, read_transcript
from tests.helpers.compressing import SMALL, Model, requests_of
from tests.helpers.transcripts import coding_turns, said, transcripts, user


class CountedReads(TokenCounter):
    """Notes the most messages that it was asked to count together."""

    most = 0

    def begin_count(self, messages: Iterable[Message]) -> Any:
        messages = list(messages)
        self.most = max(self.most, len(messages))
        return super().begin_count(messages)


class Watched(ContextCompressor):
    """Counts full reads, and compares each quiet turn with a fresh compressor's."""

    def __init__(self, config: CompressorConfig = SMALL, **options: Any) -> None:
        super().__init__(config, tokens=CountedReads(config.model), **options)
        self.full = self.quiet = 0
        self.differences: list[tuple[Any, Any]] = []

    def compress_sync(self, messages: Any, **options: Any) -> CompressResult:
        self.tokens.most = 0
        try:
            found = super().compress_sync(messages, **options)
        finally:
            is_full = self.tokens.most >= len(read_transcript(messages).messages)
            self.full += is_full
        if not is_full:
            self.quiet += 1
            self.differences += self._differences(found, messages, options)
        return found

    def _differences(self, found: Any, messages: Any, options: Any) -> list[tuple[Any, Any]]:
        """Return what a compressor that remembers nothing sees otherwise."""
        options = {"session_id": self.session_id, **options, "extends": False}
        fresh = ContextCompressor(self.config, store=self.store).compress_sync(messages, **options)
        names = "messages tokens_before tokens_after segments masked context_status".split()
        pairs = [(getattr(found, name), getattr(fresh, name)) for name in names]
        return [pair for pair in pairs if pair[0] != pair[1]]


# ---------------------------------------------------------------- like anybody else's view


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(transcripts(max_turns=5), st.integers(1_000, 6_000), st.booleans())
def test_a_quiet_turn_equals_a_full_read(messages, window, rebuilt):
    """A quiet turn has the view, numbers and status of a full read."""
    ours = Watched(CompressorConfig(context_window=window, token_floor=0))
    for request in requests_of(messages):
        _or_none(ours, copy.deepcopy(request) if rebuilt else request)
    assert ours.differences == []


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(transcripts(max_turns=4), st.data())
def test_any_edit_of_the_transcript_is_noticed(messages, data):
    """After any edit the view is that of a fresh compressor."""
    ours = Watched(CompressorConfig(context_window=1_500, token_floor=0))
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
    assert ours.differences == []


def _or_none(ours: Watched, messages: list[Message]) -> CompressResult | None:
    try:
        return ours.compress_sync(messages, session_id="s")
    except BudgetTooSmall:
        return None


# ---------------------------------------------------------------- it is used


def test_a_turn_between_two_compressions_is_quiet():
    """Between two compressions only the first turn is read in full."""
    ours = Watched(CompressorConfig(model="gpt-4o", context_window=100_000))
    requests = requests_of(coding_turns(10))
    for request in requests:
        ours.compress_sync(request)
    assert (ours.full, ours.quiet) == (1, len(requests) - 1)
    assert ours.differences == []


def test_1_and_1_0_and_true_are_different_values_in_a_message():
    """1, 1.0 and True are different values in a message."""
    ours = Watched(CompressorConfig(model="gpt-4o", context_window=100_000))
    messages = coding_turns(3)
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "size": 1}}
    messages[1]["content"] = [{"type": "text", "text": "look"}, part]
    ours.compress_sync(messages)
    for value in (1.0, True):
        part["image_url"]["size"] = value
        assert ours.compress_sync(messages).messages[1]["content"][1]["image_url"]["size"] is value
    assert ours.full == 3
    assert ours.quiet == 0


# ---------------------------------------------------------------- it is not trusted too far


def test_a_ledger_changed_by_another_process_is_noticed():
    """Another process's commit is noticed at the next turn."""
    store = MemoryStore()
    here, there = (ContextCompressor(SMALL, store=store) for _ in range(2))
    messages = coding_turns(4)
    here.compress_sync(messages, session_id="s")
    assert here.compress_sync(messages, session_id="s").context_status == "full"
    there.compress_sync(messages, session_id="s", force=True)
    result = here.compress_sync(messages, session_id="s")
    assert result.context_status == "summarized"
    assert result.session_id == store.open("default", "s").tip


def test_a_new_overhead_or_ratio_ends_the_quiet_turns():
    """A new overhead or a learned ratio ends the quiet turns."""
    ours, messages = ContextCompressor(SMALL), coding_turns(4)
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
    ours = Watched(CompressorConfig(model="gpt-4o", context_window=100_000))
    messages = coding_turns(6)
    ours.compress_sync(messages)
    aside = [*messages, user("Name this conversation.")]
    assert ours.compress_sync(aside, extends=False).messages == aside
    before = ours.full
    grown = [*messages, said("ok"), user("on")]
    assert ours.compress_sync(grown).messages == grown
    assert ours.full == before


PREVIEWED = coding_turns(30)
GROWN = [*PREVIEWED, said("Done."), user("On.")]


def previewed(model: Model) -> Watched:
    """Return a compressor that showed a forced preview with a text by the model."""
    wide = CompressorConfig(model="gpt-4o", context_window=40_000, recall=True)
    ours = Watched(wide, summarizer=model)
    ours.compress_sync(PREVIEWED, session_id="s")
    ours.preview(PREVIEWED, write=True, session_id="s", force=True)
    return ours


def test_turns_after_a_preview_stay_quiet():
    """A forced preview that nobody commits slows no turn."""
    ours = previewed(Model())
    before = ours.full
    assert ours.compress_sync(GROWN, session_id="s").context_status == "full"
    assert ours.full == before


def test_a_forced_compress_takes_an_older_preview():
    """After more turns a forced `compress` uses the previewed text without another request."""
    model = Model()
    ours = previewed(model)
    ours.compress_sync(GROWN, session_id="s")
    assert ours.compress_sync(GROWN, session_id="s", force=True).summary_method == "model"
    assert len(model.requests) == 1
