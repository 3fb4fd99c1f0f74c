"""Whatever is done to it in whatever order, a database holds what memory would hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praison_compressor import MemoryStore, Store
from praison_compressor.ledger.sql.store import open_store
from praison_compressor.messages import content_digest
from tests.helpers.talks import NAMESPACE, segment, talk, verify

NAMES = ["a", "b", "c", "d"]
commits = st.tuples(st.just("commit"), st.sampled_from(NAMES), st.integers(1, 5))
forks = st.tuples(st.just("fork"), st.sampled_from(NAMES), st.sampled_from(NAMES))
histories = st.lists(st.one_of(commits, forks), max_size=12)


def play(store: Store, history: list[tuple[str, str, int | str]]) -> None:
    """Carry a history out."""
    for number, (what, name, other) in enumerate(history):
        if what == "fork":
            chain = [name] if name == other else [e.id for e in store.lineage(NAMESPACE, name)]
            store.open(NAMESPACE, other, chain[number % len(chain)])
        else:
            run = talk(int(other), f"topic{number % 3}")
            session = store.open(NAMESPACE, name)
            store.commit(session, [(segment(run, f"summary {number}"), run)])


def possible(history: list[tuple[str, str, int | str]]) -> list[tuple[str, str, int | str]]:
    """The history without forks of what was not there yet."""
    there: set[str] = set()
    kept = []
    for step in history:
        if step[0] == "commit":
            there.add(step[1])
        elif step[1] not in there:
            continue
        kept.append(step)
        there.add(str(step[2]) if step[0] == "fork" else step[1])
    return kept


def told(store: Store) -> dict[str, object]:
    """What a store says of every session, ids and hashes aside."""
    answers: dict[str, object] = {}
    for name in NAMES:
        session = store.open(NAMESPACE, name)
        verify(session.entries)
        answers[name] = (
            [entry.segment for entry in session.entries],
            [store.originals(session, entry) for entry in session.entries],
        )
    return answers


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories.map(possible), st.integers(0, 7))
def test_a_database_is_a_memory_that_lasts(
    history: list[tuple[str, str, int | str]], lost: int
) -> None:
    """After any commits and forks both tell the same, the chain verifies, and so it does after
    a message was forgotten, which then is in no session."""
    memory = MemoryStore()
    play(memory, history)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.db"
        play(open_store(path), history)
        store = open_store(path)
        assert told(store) == told(memory)
        assert store.verify() == []
        known = [m for name in NAMES for m in _archived(store, name)]
        if known:
            store.forget(NAMESPACE, content_digest(known[lost % len(known)]))
        left = [m for name in NAMES for m in _archived(store, name)]
        assert [m for m in left if known and m == known[lost % len(known)]] == []
        assert store.verify() == []
        for name in NAMES:
            verify(store.open(NAMESPACE, name).entries)
        store.close()


def _archived(store: Store, name: str) -> list[object]:
    session = store.open(NAMESPACE, name)
    return [m for entry in session.entries for m in store.originals(session, entry) or ()]
