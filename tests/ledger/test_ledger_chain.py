"""The chain's format, and the rules by which segments are laid along a transcript."""

from dataclasses import replace

import pytest

from praison_compressor import LedgerConflict, MemoryStore, Segment, SessionNotFound, Usage
from praison_compressor.ledger.segments import BLANK, GENESIS, Entry, chain_faults, seal
from praison_compressor.view.view import lay_summaries
from tests.helpers.talks import NAMESPACE, segment, talk, verify


def replacing(*run: str, text: str = "") -> Segment:
    """Return a segment that replaces messages of one letter each."""
    rendered = {"role": "user", "content": text or "for " + "".join(run)}
    return Segment("summary", run, rendered, 7, 70, "model")


def tiles(digests: str, segments: list[Segment], forbidden: str = "") -> list[tuple[int, int, str]]:
    """Return how segments lie along messages of one letter each; a gap is ""."""
    allowed = [letter not in forbidden for letter in digests]
    found, at = [], 0
    for start, end, laid in lay_summaries(list(digests), segments, allowed):
        found += [(at, start, "")] if at < start else []
        found.append((start, end, str(laid.rendered["content"])))
        at = end
    return [*found, (at, len(digests), "")] if at < len(digests) else found


# ---------------------------------------------------------------- the format on disk


def test_a_chain_that_was_stored_verifies_for_ever():
    """The hashes of a known chain never change: old ledgers would be corrupt."""
    first = replacing("sha256:a", "sha256:b", text="summary “one”")
    one = seal(first, GENESIS, "s.c1", salt="5a17", archive="sha256:cc")
    two = seal(replace(first, usage=Usage(1, 2, 3, 4, 0.5)), one.hash, "s.c2", salt="0", archive="")
    assert two.hash == LAST_HASH
    verify([one, two])


LAST_HASH = "sha256:2e70e0ab01caa11106db41cbeba3ac6653494fde0c66670586f720fde2467103"


def test_a_tombstone_keeps_the_chain_valid():
    """A chain verifies with a tombstone in an entry's place."""
    entry = seal(replacing("x", "y"), GENESIS, "e1")
    later = seal(replacing("z"), entry.hash, "e2")
    grave = Entry(BLANK, entry.epoch, entry.parent, "", entry.commitment, entry.hash)
    assert (grave.is_forgotten, entry.is_forgotten) == (True, False)
    verify([grave, later])


def test_a_tombstone_matches_nothing():
    """The segment of a tombstone matches no message."""
    found = tiles("xyz", [BLANK, replacing("z")])
    assert found == [(0, 2, ""), (2, 3, "for z")]


def test_each_part_of_an_entry_is_under_a_hash():
    """A change of salt, payload, archive, parent or epoch is found and named."""
    entry = seal(replacing("x"), GENESIS, "e1", archive="sha256:aa")
    verify([entry])
    for changed, fault in (
        (replace(entry, salt="other"), "the segment was changed"),
        (replace(entry, archive="sha256:bb"), "the segment was changed"),
        (replace(entry, segment=replacing("y")), "the segment was changed"),
        (replace(entry, epoch="e2"), "its hash disagrees"),
        (replace(entry, parent="sha256:bb"), "its hash disagrees"),
    ):
        assert fault in chain_faults(changed, None)
    other = "sha256:" + "1" * 64
    assert [*chain_faults(entry, other)] == ["its parent is not the entry before"]


# ---------------------------------------------------------------- laying


@pytest.mark.parametrize(
    ("digests", "ledger", "laid"),
    [
        ("xabcdy", ["ab", "cd"], ["x", "for ab", "for cd", "y"]),
        ("abcd", ["ab", "abc"], ["for abc", "d"]),  # the longest, in whatever order
        ("abcd", ["abc", "ab"], ["for abc", "d"]),
        ("abab", ["ab"], ["for ab", "ab"]),  # each is used once
        ("abab", ["ab", "ab"], ["for ab", "for ab"]),
        ("ab", ["abc"], ["ab"]),  # to its end
        ("abX", ["abX"], ["abX"]),  # a capital letter is to be kept
    ],
)
def test_segments_are_laid_along_a_transcript(digests, ledger, laid):
    """Each segment is laid once, the longest first, where its whole run matches."""
    found = tiles(digests, [replacing(*run) for run in ledger], forbidden="X")
    assert [text or digests[start:end] for start, end, text in found] == laid


# ---------------------------------------------------------------- in memory


def test_memory_holds_the_sessions_used_last():
    """Of 1,025 sessions the least recently used is dropped whole."""
    store = MemoryStore()
    run = talk(2)
    first, second = (
        store.commit(store.open(NAMESPACE, name), [(segment(run), run)]) for name in "ab"
    )
    assert store.open(NAMESPACE, "a") == first
    names = [f"later {number}" for number in range(1_023)]
    later = [store.commit(store.open(NAMESPACE, name), [(segment(run), run)]) for name in names]
    assert [store.open(NAMESPACE, name) for name in ("a", *names)] == [first, *later]
    for name in ("b", second.tip):
        assert store.open(NAMESPACE, name).entries == ()
        with pytest.raises(SessionNotFound):
            store.lineage(NAMESPACE, name)
    with pytest.raises(LedgerConflict, match="gone"):
        store.commit(second, [(segment(run), run)])


def test_a_fork_that_memory_dropped_takes_no_commit():
    """A fork that was dropped with its parent conflicts with a commit of its old snapshot."""
    store, run = MemoryStore(), talk(2)
    store.commit(store.open(NAMESPACE, "s"), [(segment(run), run)])
    fork = store.open(NAMESPACE, "f", "s")
    for number in range(1_024):
        store.record_transcript(store.open(NAMESPACE, f"later {number}"), ())
    with pytest.raises(LedgerConflict, match="read it again"):
        store.commit(fork, [(segment(run), run)])


def test_memory_holds_the_notes_changed_last():
    """Of 1,025 notes the one changed first is dropped."""
    store = MemoryStore()
    sessions = [store.open(NAMESPACE, f"s{number}") for number in range(1_025)]
    for session in sessions:
        store.change_note(session, lambda note: f"{note}noted")
    assert [store.note(sessions[n]) for n in (0, 1, -1)] == ["", "noted", "noted"]
