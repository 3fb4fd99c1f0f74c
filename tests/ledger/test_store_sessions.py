"""Conversations over a database: forked, and served while the server is away."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, LedgerError
from praison_compressor.ledger.sql import database
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import check
from tests.helpers.stores import Postgres
from tests.helpers.talks import NAMESPACE
from tests.helpers.transcripts import session as coding_session

pytest_plugins = ["tests.helpers.stores"]

CONFIG = CompressorConfig(
    model="gpt-4o", context_window=5_000, protect_last_n_tokens=800, namespace=NAMESPACE
)


class Model:
    """A user's own summarizer that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, messages: Sequence[dict[str, Any]]) -> str:
        self.calls += 1
        return f"## Done\nThe modules up to here are in order (summary {self.calls})."


def grown(url: str, turns: Sequence[int], model: Model, **options: Any) -> Any:
    """The last result of a conversation that was sent after each of these turns."""
    subject = ContextCompressor(CONFIG, summarizer=model, store=open_store(url))
    return [subject.compress_sync(coding_session(count), **options) for count in turns][-1]


def test_a_fork_pays_only_for_what_is_its_own(store_url: str) -> None:
    """The common prefix is not summarized again, and the parent does not notice."""
    paid, model = Model(), Model()
    parent = grown(store_url, range(2, 13, 2), paid, session_id="s")
    fork = grown(store_url, [12], model, session_id="f", parent_session_id="s")
    assert json.dumps(fork.messages) == json.dumps(parent.messages)
    assert model.calls == 0
    grown(store_url, range(12, 17, 2), model, session_id="f")
    assert 0 < model.calls < paid.calls + 2
    assert open_store(store_url).open(NAMESPACE, "s").tip == parent.session_id


def test_an_agent_is_answered_while_the_server_is_away(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL stops, twice, and comes back: every turn has a view, nothing is doubled."""
    monkeypatch.setattr(database, "_REST", 0)
    store = open_store(postgres.empty())
    ours = ContextCompressor(CONFIG, store=store)
    ours.compress_sync(coding_session(6), session_id="s")
    for turns in (9, 14):
        before = store.open(NAMESPACE, "s")
        postgres.stop()
        try:
            with pytest.raises(LedgerError):
                ours.compress_sync(coding_session(turns), session_id="s")
            away = ours.best_view(coding_session(turns), session_id="s")
        finally:
            postgres.start()
        assert check(away) == []
        assert store.open(NAMESPACE, "s") == before
        done = ours.compress_sync(coding_session(turns), session_id="s")
        assert (done.summary_method, check(done.messages)) == ("static", [])
    runs = [entry.segment.run for entry in store.open(NAMESPACE, "s").entries]
    assert len(set(runs)) == len(runs) >= 3
    assert store.verify() == []
    store.close()
