"""A reference leads to the message that it stands beside: later, in forks, after folds."""

from __future__ import annotations

import re

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, Store
from praison_compressor.messages import text_of
from tests.benchmarks.references import cited, compressed, leads_back
from tests.helpers.transcripts import session

pytest_plugins = ["tests.helpers.stores"]


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_every_reference_leads_to_its_words(share: float) -> None:
    """After four compressions of a growing session; another message would not do."""
    ours, view = compressed(session(30), 4, share)
    found = list(cited(view))
    assert len(found) > 30
    assert [pair for pair in found if not leads_back(ours, *pair)] == []
    assert sum(leads_back(ours, *pair, away=7) for pair in found) < len(found) / 10


def test_a_reference_stays_through_folds_forks_and_restarts(store: Store) -> None:
    """What a first view named is read in the same words by who comes later."""
    config = CompressorConfig(model="gpt-4o", recall=True, namespace="n")
    first = ContextCompressor(config, store=store)
    messages = session(40)
    view = first.compress_sync(messages[:60], session_id="s", target_tokens=2_500, force=True)
    (reference, words), *_ = cited(view.messages)
    _, read = first.recall_tools("s")
    told = read(reference)
    assert words.strip() in told
    for length in (90, 120, 150):
        first.compress_sync(messages[:length], session_id="s", target_tokens=2_500, force=True)
    later = ContextCompressor(config, store=store)
    later.compress_sync(messages, session_id="f", parent_session_id="s", target_tokens=3_000)
    for name in ("s", "f"):
        assert later.recall_tools(name)[1](reference) == told


def test_a_view_that_is_recorded_nowhere_names_no_place() -> None:
    """There is nothing to read yet: a reference would lead to other words once there is."""
    ours = ContextCompressor(CompressorConfig(model="gpt-4o", recall=True))
    view = ours.best_view(session(30), target_tokens=3_000)
    assert "conversation-summary" in str(view)
    assert re.findall(r"\bs\d+\.\d+", "\n".join(map(text_of, view))) == []
