"""The promises of every store, in memory, in SQLite and in PostgreSQL."""

import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from praison_compressor import LedgerConflict, MemoryStore, SessionNotFound, Store, open_store
from praison_compressor.ledger.segments import DROPPED
from praison_compressor.messages import content_digest
from tests.helpers.talks import NAMESPACE, archived, committed, segment, talk, verify


def test_originals_come_back_exactly(store):
    """Private keys, images, nulls, odd text, numbers and doubles survive in order."""
    odd = [
        {"role": "user", "content": "\ud800 lone, \x00 nul, 漢字", "_private": {"a": [1.5, None]}},
        {"content": [{"type": "image_url", "image_url": {"url": "data:x"}}], "role": "user"},
        {"role": "user", "content": "twice"},
        {"role": "user", "content": "twice"},
        {"role": "assistant", "content": None, "n": 10**30, "x": 0.1, "t": True},
    ]
    session = store.commit(store.open(NAMESPACE, "s"), [(segment(odd), odd)])
    assert store.originals(session, session.entries[0]) == odd
    assert store.originals(session, session.entries[0], slice(1, 2)) == [{}, odd[1], {}, {}, {}]


def test_the_caller_keeps_its_messages():
    """Later edits of messages, given or returned, do not change the archive."""
    store = MemoryStore()  # no other holds objects
    run = [{"role": "user", "content": [{"type": "text", "text": "before"}]}]
    session = store.commit(store.open(NAMESPACE, "s"), [(segment(run), run)])
    run[0]["content"][0]["text"] = "after"
    first = store.originals(session, session.entries[0])
    first[0]["content"] = "changed"
    again = store.originals(session, session.entries[0])
    assert again == [{"role": "user", "content": [{"type": "text", "text": "before"}]}]


def test_one_of_many_racing_commits_wins(store):
    """Of eight commits on one tip one succeeds and seven raise `LedgerConflict`."""
    run = talk(3)
    early = store.open(NAMESPACE, "s")

    def compete(_: int) -> str:
        try:
            store.commit(early, [(segment(run), run)])
            return "won"
        except LedgerConflict as error:
            return str(error)

    with ThreadPoolExecutor(8) as threads:
        outcomes = [*threads.map(compete, range(8))]
    assert outcomes.count("won") == 1
    assert len([said for said in outcomes if "session s has a newer entry" in said]) == 7
    assert len(store.open(NAMESPACE, "s").entries) == 1


def test_each_commit_opens_a_child_epoch(store):
    """The lineage is a chain of parent pointers, from the session to its newest epoch."""
    session = committed(store, "s", talk(3, "a"), talk(3, "b"))
    chain = store.lineage(NAMESPACE, "s")
    assert chain[0].id == "s"
    assert chain[-1].id == session.tip
    assert [epoch.parent_id for epoch in chain] == [None, *(e.id for e in chain[:-1])]
    assert session.parent == chain[-2].id
    assert store.lineage(NAMESPACE, chain[1].id) == chain[:2]


def test_the_id_of_any_epoch_opens_the_newest(store):
    """The id of any epoch of a lineage opens its newest epoch."""
    session = committed(store, "s", talk(3, "a"), talk(3, "b"))
    chain = store.lineage(NAMESPACE, "s")
    assert {store.open(NAMESPACE, e.id).tip for e in chain} == {session.tip}


def test_the_segments_of_a_commit_share_its_epoch(store):
    """All segments of one commit have its epoch, after the epochs before it."""
    session = committed(store, "s", talk(3, "a"), talk(3, "b"))
    chain = store.lineage(NAMESPACE, "s")
    runs = [talk(3, "c"), talk(3, "d"), talk(3, "e")]
    after = store.commit(session, [(segment(run), run) for run in runs])
    assert [entry.epoch for entry in after.entries[2:]] == [after.tip] * 3
    assert store.lineage(NAMESPACE, "s")[:-1] == chain
    verify(after.entries)


def test_a_fork_shares_its_parents_entries(store):
    """A fork shares just those entries of its parent that precede the fork."""
    parent = committed(store, "s", talk(3, "a"))
    fork = store.open(NAMESPACE, "f", "s")
    assert fork.entries == parent.entries
    assert fork.parent == "s"
    assert store.originals(fork, fork.entries[0]) == talk(3, "a")
    later = talk(3, "b")
    fork = store.commit(fork, [(segment(later), later)])
    verify(fork.entries)
    assert len(store.open(NAMESPACE, "s").entries) == 1
    assert [e.session_id for e in store.lineage(NAMESPACE, "f")] == ["s", "s", "f", "f"]


def test_a_fork_of_an_unknown_parent_is_empty(store):
    """A fork of an unknown parent is an empty session that names the parent."""
    fork = store.open(NAMESPACE, "f", "never-seen")
    assert (fork.parent, fork.entries) == ("never-seen", ())


def test_namespaces_share_nothing(store):
    """In another namespace a session id names nothing."""
    session = committed(store, "s", talk(3))
    other = store.open("another tenant", "s")
    assert other.entries == ()
    assert store.open("another tenant", "f", "s").entries == ()
    with pytest.raises(SessionNotFound):
        store.lineage("another tenant", session.tip)


def noise(number: int) -> str:
    """Return words that compress badly, `needle` and the number among them."""
    chance = random.Random(number)
    return f"needle{number} " + " ".join(f"{chance.getrandbits(64):x}" for _ in range(500))


LARGE = [{"role": "tool", "tool_call_id": f"c{n}", "content": noise(n)} for n in range(12)]
SMALL = talk(12)
RUNS = [[*pair] for pair in zip(LARGE, SMALL, strict=True)]


@pytest.fixture
def full():
    """Return a store that dropped originals for room, its session before, and their digests."""
    store = MemoryStore()
    session = store.open(NAMESPACE, "s")
    for run in RUNS:
        session = store.commit(session, [(segment(run), run)], (*range(len(session.entries) + 1),))
    store.commit(store.open("other", "s"), [(segment(RUNS[0]), RUNS[0])])
    store.open(NAMESPACE, "f", "s")
    sizes = {content_digest(message): len(message["content"]) for message in LARGE}
    assert store.would_drop(NAMESPACE, sizes) == frozenset()
    size_mb = len(LARGE[0]["content"]) / 1_000_000
    store.limit_mb = 3 * size_mb
    gone = store.would_drop(NAMESPACE, sizes)
    assert store.would_drop(NAMESPACE, sizes) == gone
    committed(store, "t", SMALL)
    store.limit_mb = 5 * size_mb
    return store, session, gone


def test_an_archive_above_its_limit_drops_what_is_large_and_old(full):
    """The oldest large originals are dropped, for forks and older snapshots too."""
    store, session, gone = full
    assert 3 <= len(gone) <= 11
    assert gone == {content_digest(message) for message in LARGE[: len(gone)]}
    for seen in (session, store.open(NAMESPACE, "s"), store.open(NAMESPACE, "f")):
        kept = [store.originals(seen, entry) for entry in seen.entries]
        assert [each[0] == DROPPED for each in kept] == [n < len(gone) for n in range(12)]
        assert [each[1] for each in kept] == SMALL


def test_a_full_archive_keeps_its_entries(full):
    """A full archive changes no entry of the ledger."""
    store, session, _ = full
    after = store.open(NAMESPACE, "s")
    assert [e.segment for e in after.entries] == [e.segment for e in session.entries]
    verify(after.entries)


def test_a_full_archive_drops_nothing_of_another_tenant(full):
    """A full archive drops no original of another tenant."""
    store, _, _ = full
    other = store.open("other", "s")
    assert store.originals(other, other.entries[0]) == RUNS[0]


def test_a_dropped_original_is_not_found(full):
    """A search finds no dropped original."""
    store, _, _ = full
    assert store.search(NAMESPACE, "needle0", "s") == []
    assert store.search(NAMESPACE, "needle11", "s")[0].message == LARGE[11]


def test_a_summary_replaces_dropped_originals_in_the_transcript(full):
    """In the transcript a summary takes the place of its dropped originals."""
    store, session, _ = full
    transcript = store.transcript(store.open(NAMESPACE, "s"))
    assert transcript[:2] == [e.segment.rendered for e in session.entries[:2]]
    assert transcript[-2:] == RUNS[11]


def test_a_dropped_original_can_be_archived_again(full):
    """A dropped original that is committed again is read and found again."""
    store, _, _ = full
    again = committed(store, "s", RUNS[0])
    assert store.originals(again, again.entries[-1]) == RUNS[0]
    assert store.search(NAMESPACE, "needle0", "s")[0].message == LARGE[0]


# ---------------------------------------------------------------- any history
NAMES = ["a", "b", "c", "d"]
commits = st.tuples(st.just("commit"), st.sampled_from(NAMES), st.integers(1, 5))
forks = st.tuples(st.just("fork"), st.sampled_from(NAMES), st.sampled_from(NAMES))
histories = st.lists(st.one_of(commits, forks), max_size=12)


def play(store: Store, history: list[tuple[str, str, int | str]]) -> None:
    """Carry out a history."""
    for number, (what, name, other) in enumerate(history):
        if what == "fork":
            with suppress(SessionNotFound):
                chain = store.lineage(NAMESPACE, name)
                store.open(NAMESPACE, other, chain[number % len(chain)].id)
        else:
            run = talk(int(other), f"topic{number % 3}")
            session = store.open(NAMESPACE, name)
            store.commit(session, [(segment(run, f"summary {number}"), run)])


def contents(store: Store) -> dict[str, object]:
    """Return what a store holds of every session, without ids and hashes."""
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
@given(histories, st.integers(0, 7))
def test_a_database_is_a_memory_that_lasts(history, lost):
    """A database holds what memory holds after any history, and verifies after a `forget`."""
    memory = MemoryStore()
    play(memory, history)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.db"
        play(open_store(path), history)
        store = open_store(path)
        assert contents(store) == contents(memory)
        assert store.verify() == []
        known = [m for name in NAMES for m in archived(store, name)]
        gone = known[lost % len(known) :][:1] if known else []
        for message in gone:
            store.forget(NAMESPACE, content_digest(message))
        assert [m for name in NAMES for m in archived(store, name) if m in gone] == []
        assert store.verify() == []
        for name in NAMES:
            verify(store.open(NAMESPACE, name).entries)
        store.close()
