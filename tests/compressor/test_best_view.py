"""The view for a turn that must go on, whatever fails."""

from __future__ import annotations

import copy
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor import (
    BudgetTooSmall,
    CompressorConfig,
    ContextCompressor,
    LedgerError,
    MemoryStore,
)
from praison_compressor.messages import check, text_of
from tests.helpers.transcripts import broken_transcripts, session

SMALL = CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)


class Breakable(MemoryStore):
    """A store that another has taken away, and may bring back."""

    is_gone = False

    def open(self, *names, **options):
        if self.is_gone:
            raise LedgerError("the disk is gone")
        return super().open(*names, **options)


@given(broken_transcripts(), st.integers(20, 2_000))
def test_the_best_view_is_always_there_and_valid(messages, target):
    """Inside a turn nothing is raised, whatever the host made of the transcript."""
    before = copy.deepcopy(messages)
    assert check(ContextCompressor(SMALL).best_view(messages, target_tokens=target)) == []
    assert messages == before


def test_a_window_that_takes_nothing_is_survived_inside_a_turn():
    """One huge message of the user: the best view shortens it and says so."""
    messages = [*session(4), {"role": "user", "content": "x y z " * 40_000}]
    ours = ContextCompressor(SMALL)
    with pytest.raises(BudgetTooSmall):
        ours.compress_sync(messages)
    view = ours.best_view(messages)
    assert check(view) == []
    assert ours.tokens.messages(view) <= 6_000 - 1_500
    assert "characters left out" in text_of(view[-1])
    assert view[:2] == messages[:2]


@pytest.mark.parametrize("told", [None, LedgerError("the disk is gone")])
def test_a_ledger_that_is_gone_is_told_once_until_it_is_back(caplog, told):
    """A turn comes every few seconds; who has told of it already is not repeated."""
    store = Breakable()
    ours = ContextCompressor(SMALL, store=store)
    messages = session(30)
    caplog.set_level(logging.WARNING)
    for times in (1, 2):
        store.is_gone = True
        for _ in range(3):
            view = ours.best_view(messages, told=told)
            assert check(view) == []
            assert ours.tokens.messages(view) < ours.tokens.messages(messages)
        said = [record for record in caplog.records if "without the ledger" in record.message]
        assert len(said) == (0 if told else times)
        store.is_gone = False
        ours.best_view(messages)
