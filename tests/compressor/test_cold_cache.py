"""When the provider's cache is cold, compression begins at a lower mark."""

import threading
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, MemoryStore, open_store
from praison_compressor.compressor.decision import cache_seconds
from tests.helpers.compressing import SMALL, Clock, Model, compressor
from tests.helpers.transcripts import coding_turns, find_repairs, said, user

WAIT = 30.0
TRIGGER = 3_600
"""Tokens: of a window of 6,000 less the reserve, at a ratio of 0.8."""


def clocked(summarizer: Any = None, store: Any = None, **options: Any) -> Any:
    """Return a compressor and its clock."""
    clock = Clock()
    given = {**vars(SMALL), "model": "claude-sonnet-4-5", "token_floor": 0, **options}
    config = CompressorConfig(**given)
    return ContextCompressor(config, summarizer=summarizer, store=store, clock=clock), clock


def between(low: float, high: float) -> list[dict[str, Any]]:
    """Return a session whose size is between two shares of the trigger."""
    ours = compressor()
    sized = ((n, ours.tokens.messages(coding_turns(n))) for n in range(2, 60))
    return coding_turns(next(n for n, size in sized if low * TRIGGER < size < high * TRIGGER))


MIDDLE = between(0.6, 0.9)
LITTLE = between(0.2, 0.45)
MORE = [said("Done."), user("Go on.")]


@pytest.mark.parametrize(
    ("seconds", "messages", "compressed"),
    [(299, MIDDLE, False), (301, MIDDLE, True), (10**6, LITTLE, False)],
)
def test_a_cold_cache_lowers_the_trigger(seconds, messages, compressed):
    """After the cache's life a view above half of the trigger is compressed first."""
    ours, clock = clocked(Model())
    assert ours.compress_sync(messages, session_id="s").context_status == "full"
    clock.now += seconds
    later = ours.compress_sync([*messages, *MORE], session_id="s")
    assert (later.context_status != "full") == compressed
    assert find_repairs(later.messages) == []
    assert later.messages[-1] == MORE[-1]


@pytest.mark.parametrize(("ratio", "is_compressed"), [(0.3, True), (1.0, False)])
def test_the_lower_mark_and_the_life_are_options(ratio, is_compressed):
    """`idle_trigger_ratio` and `cache_ttl_seconds` set the mark and the life."""
    ours, clock = clocked(Model(), idle_trigger_ratio=ratio, cache_ttl_seconds=20)
    ours.compress_sync(MIDDLE, session_id="s")
    clock.now += 21
    result = ours.compress_sync([*MIDDLE, *MORE], session_id="s")
    assert (result.context_status != "full") is is_compressed
    assert (result.newly_summarized + result.newly_masked > 0) is is_compressed


def test_another_process_knows_the_time_of_the_last_write(tmp_path):
    """The ledger has the time of a session's newest commit or save."""
    first, _ = clocked(Model(), open_store(tmp_path / "ledger.db"))
    first.compress_sync(MIDDLE, session_id="s")
    first.close()
    for seconds, status in ((200, "full"), (400, "summarized")):
        ours, clock = clocked(
            Model(), open_store(tmp_path / "ledger.db"), tool_policies={"*": "summarize"}
        )
        clock.now += seconds
        result = ours.compress_sync([*MIDDLE, *MORE], session_id="s")
        assert result.context_status == status
        ours.store.close()


def test_another_process_knows_the_last_request(store):
    """A quiet request of another process keeps the cache warm."""
    first, clock = clocked(Model(), store)
    first.compress_sync(MIDDLE, session_id="s")
    second, theirs = clocked(Model(), store, tool_policies={"*": "summarize"})
    for _ in range(5):
        clock.now += 250
        assert first.compress_sync(MIDDLE, session_id="s").context_status == "full"
        theirs.now = clock.now + 40
        assert not second.summarize_if_cold(MIDDLE, session_id="s")
    theirs.now = clock.now + 301
    assert second.summarize_if_cold(MIDDLE, session_id="s")
    assert second.wait_for_summaries(WAIT)


def test_a_request_after_a_save_keeps_the_cache_warm():
    """A request counts from its own time, though the ledger was written earlier."""
    ours, clock = clocked(Model(), tool_policies={"*": "summarize"})
    ours.save(MIDDLE, session_id="s")
    clock.now += 250
    ours.compress_sync(MIDDLE, session_id="s")
    clock.now += 250
    assert not ours.summarize_if_cold(MIDDLE, session_id="s")
    clock.now += 51
    assert ours.summarize_if_cold(MIDDLE, session_id="s")
    assert ours.wait_for_summaries(WAIT)


def test_a_cold_cache_begins_the_summary_in_the_background():
    """In background mode the summary after the cache's life is in the next request."""
    ours, clock = clocked(Model(), background=True, tool_policies={"*": "summarize"})
    ours.compress_sync(MIDDLE, session_id="s")
    clock.now += 301
    assert ours.compress_sync([*MIDDLE, *MORE], session_id="s").context_status == "full"
    assert ours.wait_for_summaries(WAIT)
    assert ours.compress_sync([*MIDDLE, *MORE], session_id="s").summary_method == "reused"


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("store", [None, MemoryStore()])
def test_idle_prepares_the_text_before_the_user_is_back(given, store):
    """`summarize_if_cold` begins one summary in each silence, once the cache is cold."""
    model = Model()
    ours, clock = clocked(model, store, tool_policies={"*": "summarize"})
    name = f"s{given}"
    ours.compress_sync(MIDDLE, session_id=name)
    ours.save(MIDDLE, session_id=name)
    messages = MIDDLE if given else None
    assert not ours.summarize_if_cold(messages, session_id=name)
    clock.now += 301
    assert ours.summarize_if_cold(messages, session_id=name)
    assert not ours.summarize_if_cold(messages, session_id=name)
    assert ours.wait_for_summaries(WAIT)
    assert len(model.requests) == 1
    result = ours.compress_sync([*MIDDLE, *MORE], session_id=name)
    assert (result.summary_method, len(model.requests)) == ("reused", 1)
    assert not ours.summarize_if_cold(messages, session_id=name)


def test_idle_begins_nothing_for_a_small_session():
    """Nothing is begun below the lower mark."""
    ours, clock = clocked(Model())
    ours.compress_sync(LITTLE, session_id="s")
    clock.now += 10**6
    assert not ours.summarize_if_cold(session_id="s")


@pytest.mark.parametrize("messages", [(), (MIDDLE,)])
def test_idle_begins_nothing_for_an_unknown_session(messages):
    """Nothing is begun for a session without a request."""
    ours, clock = clocked(Model())
    ours.compress_sync(MIDDLE, session_id="s")
    clock.now += 10**6
    assert not ours.summarize_if_cold(*messages, session_id="unknown")


def test_no_thread_waits_for_the_clock():
    """A compressor with a warm or cold cache runs no thread."""
    before = set(threading.enumerate())
    ours, clock = clocked()
    ours.compress_sync(LITTLE, session_id="s")
    clock.now += 10**6
    ours.compress_sync(LITTLE, session_id="s")
    assert set(threading.enumerate()) <= before


def test_after_an_undo_a_cold_cache_compresses_nothing():
    """An undo holds until the window is full, however long the user is away."""
    ours, clock = clocked(Model())
    ours.compress_sync(MIDDLE, session_id="s", force=True)
    assert ours.undo("s")
    ours.compress_sync(MIDDLE, session_id="s")
    clock.now += 10**6
    assert ours.compress_sync(MIDDLE, session_id="s").context_status == "full"


@pytest.mark.parametrize(
    ("model", "seconds"),
    [
        *(("claude-sonnet-4-5", 300), ("bedrock/us.anthropic.claude-haiku-4-5", 300)),
        *(("openai/gpt-4o", 600), ("o3", 600), ("deepseek/deepseek-chat", 7_200), (None, 300)),
    ],
)
def test_the_caches_life_is_the_providers_documented_one(model, seconds):
    """The life is `cache_ttl_seconds`, else what the provider documents, else 300 seconds."""
    assert cache_seconds(CompressorConfig(model=model)) == seconds
    assert cache_seconds(CompressorConfig(model=model, cache_ttl_seconds=3_600)) == 3_600


def test_marks_for_an_hour_keep_the_cache_for_an_hour():
    """Cache marks with ttl 1h in the messages hold the cold trigger back for an hour."""
    marked = [dict(m) for m in MIDDLE]
    mark = {"type": "ephemeral", "ttl": "1h"}
    marked[0]["content"] = [{"type": "text", "text": "Be exact.", "cache_control": mark}]
    ours, clock = clocked(Model())
    ours.compress_sync(marked, session_id="s")
    clock.now += 3_500
    assert ours.compress_sync(marked, session_id="s").context_status == "full"
    clock.now += 3_700
    assert ours.compress_sync(marked, session_id="s").context_status != "full"
