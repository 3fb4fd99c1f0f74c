"""Conversations over a database: resumed, forked, restored, served through outages."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, LedgerError
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import check
from tests.helpers.stores import Postgres
from tests.helpers.talks import NAMESPACE
from tests.helpers.transcripts import session as coding_session

pytest_plugins = ["tests.helpers.stores"]

CONFIG = CompressorConfig(
    model="gpt-4o", context_window=5_000, protect_last_n_tokens=800, namespace=NAMESPACE
)
Message = dict[str, Any]


class Model:
    """A user's own summarizer that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, messages: Sequence[Message]) -> str:
        self.calls += 1
        return f"## Done\nThe modules up to here are in order (summary {self.calls})."


def compressor(url: str, model: Model | None = None) -> ContextCompressor:
    return ContextCompressor(CONFIG, summarizer=model, store=open_store(url))


def grown(url: str, turns: int, model: Model | None = None, **options: Any) -> Any:
    """The last result of a conversation that was sent after every second turn."""
    subject = compressor(url, model)
    options.setdefault("session_id", "s")
    results = [
        subject.compress_sync(coding_session(count), **options) for count in range(2, turns + 1, 2)
    ]
    return results[-1]


def test_a_fork_pays_only_for_what_is_its_own(store_url: str) -> None:
    """The common prefix is not summarized again, and the parent does not notice."""
    paid = Model()
    parent = grown(store_url, 12, paid)
    model = Model()
    fork = compressor(store_url, model).compress_sync(
        coding_session(12), session_id="f", parent_session_id="s"
    )
    assert json.dumps(fork.messages) == json.dumps(parent.messages)
    assert model.calls == 0
    grown(store_url, 16, model, session_id="f")
    assert 0 < model.calls < paid.calls + 2
    assert open_store(store_url).open(NAMESPACE, "s").tip == parent.session_id


def test_agents_are_answered_while_the_server_is_away(postgres: Postgres) -> None:
    """PostgreSQL stops and comes back under load: every turn has a view, nothing is doubled."""
    url = postgres.empty()
    open_store(url).check()
    agents = [_Agent(url, f"agent{n}") for n in range(3)]
    for agent in agents:
        agent.start()
    _until(lambda: all(agent.committed >= 1 for agent in agents), agents)
    postgres.stop()
    try:
        seen = [agent.without_store for agent in agents]
        _until(lambda: all(a.without_store > n for a, n in zip(agents, seen, strict=True)), agents)
    finally:
        postgres.start()
    seen = [agent.committed for agent in agents]
    _until(lambda: all(a.committed > n for a, n in zip(agents, seen, strict=True)), agents)
    for agent in agents:
        agent.stop()
    store = open_store(url)
    assert [agent.failure for agent in agents] == [None] * 3
    assert [agent.invalid for agent in agents] == [0] * 3
    assert store.verify() == []
    for agent in agents:
        runs = [e.segment.run for e in store.open(NAMESPACE, agent.name).entries]
        assert len(set(runs)) == len(runs)


def _until(reached: Callable[[], bool], agents: Sequence[_Agent]) -> None:
    """Wait; an agent that failed, or two minutes, end the waiting."""
    clock = threading.Event()
    for _ in range(2_400):
        if reached() or any(agent.failure for agent in agents):
            return
        clock.wait(0.05)
    raise AssertionError("the agents did not get there in two minutes")


class _Agent(threading.Thread):
    """Sends a growing conversation turn by turn; without the store, the best view it can get."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.compressor = compressor(url)
        self.committed = self.without_store = self.invalid = 0
        self.failure: BaseException | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            turns = 2
            while not self._ended.wait(0.02):
                turns += 1
                self._turn(coding_session(turns, steps=1, words=40))
        except BaseException as error:
            self.failure = error

    def _turn(self, messages: list[Message]) -> None:
        try:
            done = self.compressor.compress_sync(messages, session_id=self.name)
            view = done.messages
            self.committed += done.summary_method == "static"
        except LedgerError:
            view = self.compressor.best_view(messages, session_id=self.name)
            self.without_store += 1
        self.invalid += bool(check(view))

    def stop(self) -> None:
        self._ended.set()
        self.join()
