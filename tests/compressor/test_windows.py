"""One session under windows of different sizes, as fallback models have them."""

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, MemoryStore, Store
from tests.helpers.transcripts import session


def at(window: int, store: Store, **options: object) -> ContextCompressor:
    """Return a compressor of a model with that window."""
    config = CompressorConfig(model="gpt-4o", context_window=window, **options)
    return ContextCompressor(config, store=store)


@pytest.mark.parametrize("policy", ["mask", "summarize"])
def test_a_larger_window_finds_its_larger_view_again(policy):
    """A larger window finds its larger view again after a small model's turn."""
    store, messages = MemoryStore(), session(120, words=60)
    options = {"tool_policies": {"*": policy}}
    large = at(40_000, store, **options).compress_sync(messages, session_id="s")
    small = at(8_000, store, **options).compress_sync(messages, session_id="s")
    again = at(40_000, store, **options).compress_sync(messages, session_id="s")
    assert small.tokens_after < 8_000 < large.tokens_after
    assert again.messages == large.messages
    assert at(8_000, store, **options).compress_sync(messages, session_id="s").messages == (
        small.messages
    )


def test_a_larger_window_compresses_afresh_what_only_a_small_one_had():
    """A larger window summarizes the originals again after a small window's summary."""
    store, messages = MemoryStore(), session(120, words=60)
    small = at(8_000, store).compress_sync(messages, session_id="s")
    large = at(40_000, store).compress_sync(messages, session_id="s")
    assert large.tokens_after > 2 * small.tokens_after
    assert at(40_000, store).compress_sync(messages, session_id="s").messages == large.messages


def test_a_size_that_was_asked_for_holds():
    """A view made for `target_tokens` stays in later calls without it."""
    store, messages = MemoryStore(), session(120, words=60)
    ours = at(40_000, store)
    asked = ours.compress_sync(messages, session_id="s", target_tokens=4_000)
    assert ours.compress_sync(messages, session_id="s").messages == asked.messages
