"""The chain's format and the rules by which segments are laid, on examples written by hand."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import pytest

from praison_compressor import (
    LedgerConflict,
    LedgerCorrupt,
    MemoryStore,
    Segment,
    SessionNotFound,
    Usage,
)
from praison_compressor.ledger import memory
from praison_compressor.ledger.segments import (
    FORGOTTEN,
    GENESIS,
    Entry,
    archive_digest,
    commitment,
    earlier_outline,
    link,
    seal,
    verify,
)
from praison_compressor.view.layout import lay
from tests.helpers.talks import NAMESPACE, segment, talk


def standing_for(*run: str, kind: str = "summary", text: str = "") -> Segment:
    """A segment for messages that are named by a letter each."""
    rendered = {"role": "user", "content": text or "for " + "".join(run)}
    return Segment(kind, run, rendered, 7, 70, "model")


def tiles(digests: str, segments: list[Segment], forbidden: str = "") -> list[tuple[int, int, str]]:
    """How segments lie along messages of one letter each; a gap is ""."""
    allowed = [letter not in forbidden for letter in digests]
    return [
        (tile.start, tile.end, str(tile.segment.rendered["content"]) if tile.segment else "")
        for tile in lay(list(digests), segments, allowed)
    ]


# ---------------------------------------------------------------- the format on disk


def test_a_chain_that_was_stored_verifies_for_ever() -> None:
    """The hashes of a known chain, worked out once: others would make old ledgers corrupt."""
    first = standing_for("sha256:a", "sha256:b", text="summary “one”")
    one = seal(first, GENESIS, "s.c1", salt="5a17", archive="sha256:cc")
    two = seal(replace(first, usage=Usage(1, 2, 3, 4, 0.5)), one.hash, "s.c2", salt="0", archive="")
    assert GENESIS == "sha256:0000000000000000000000000000000000000000000000000000000000000000"
    assert one.commitment == ONE
    assert (one.hash, two.hash) == CHAIN
    verify([one, two], GENESIS)


ONE = "sha256:1cd172b82d2f981d4263909589e6a7fe184d7fdf3a56d2194a62ae3cba51a1e0"
CHAIN = (
    "sha256:903781aed015278703728dc83033ee8950913296a8c9e067b7abf0bdd755b83a",
    "sha256:49bbcf7e2fc3e7485c769bb4208415fcfd3e41c539af63c322bde65a27536923",
)


def test_the_payload_is_the_segment_as_json() -> None:
    """Keys in order, no spaces: read by another program it gives every field back."""
    text = standing_for("x").payload()
    assert text.startswith('{"archived_as":[],"created":0.0,"kind":"summary","method":"model",')
    assert set(json.loads(text)) == {field.name for field in dataclasses.fields(Segment)}


def test_what_is_archived_masked_is_known_by_both_digests() -> None:
    """The digest of the masked message leads to that of the message it stands for."""
    masked = replace(standing_for("a", "b", "c"), archived_as=((0, "A"), (2, "C")), secrets=3)
    assert masked.aliases() == {"A": "a", "C": "c"}
    assert standing_for("a").aliases() == {}
    known = {"archived_as": [[0, "A"], [2, "C"]], "secrets": 3}
    assert {key: json.loads(masked.payload())[key] for key in known} == known


def test_a_salt_is_random_and_long() -> None:
    """Two entries of one segment have nothing in common: a tombstone can be compared to nothing."""
    one, two = (seal(standing_for("x"), GENESIS, "e") for _ in range(2))
    assert len(one.salt) >= 32
    assert {one.salt, one.commitment, one.hash}.isdisjoint({two.salt, two.commitment, two.hash})


def test_a_tombstone_verifies_and_stands_for_nothing() -> None:
    """Without segment and salt the link still holds; no message is found by it."""
    entry = seal(standing_for("x", "y"), GENESIS, "e1")
    later = seal(standing_for("z"), entry.hash, "e2")
    grave = Entry(FORGOTTEN, entry.epoch, entry.parent, "", entry.commitment, entry.hash)
    assert (grave.forgotten, entry.forgotten) == (True, False)
    verify([grave, later], GENESIS)
    assert tiles("xyz", [FORGOTTEN, later.segment]) == [(0, 2, ""), (2, 3, "for z")]
    assert FORGOTTEN.kind not in ("summary", "mask")
    assert FORGOTTEN.rendered == {"role": "user", "content": "[forgotten]"}
    assert (FORGOTTEN.run, FORGOTTEN.method) == (("forgotten",), "forgotten")
    assert (FORGOTTEN.tokens, FORGOTTEN.source_tokens) == (0, 0)


def test_each_part_of_an_entry_is_under_a_hash() -> None:
    """Salt, payload, archive, parent and epoch: whichever is changed, the check tells where."""
    entry = seal(standing_for("x"), GENESIS, "e1", archive="sha256:aa")
    verify([entry])
    for changed, words in (
        (replace(entry, salt="other"), "the segment was changed"),
        (replace(entry, archive="sha256:bb"), "the segment was changed"),
        (replace(entry, segment=standing_for("y")), "the segment was changed"),
        (replace(entry, epoch="e2"), "its hash disagrees"),
        (replace(entry, parent="sha256:bb"), "its hash disagrees"),
    ):
        with pytest.raises(LedgerCorrupt, match=rf"entry 0 \(e[12]\): {words}"):
            verify([changed])
    with pytest.raises(LedgerCorrupt, match=r"entry 0 .*not the one before"):
        verify([entry], "sha256:" + "1" * 64)


def test_parts_of_a_hash_are_told_apart() -> None:
    """Moving a border between two parts gives another hash."""
    assert commitment("ab", "c", "d") != commitment("a", "bc", "d") != commitment("abc", "d", "")
    assert link("a", "bc", "d") != link("ab", "c", "d")
    assert archive_digest(talk(2)) != archive_digest(talk(2)[::-1])
    assert archive_digest([]) != archive_digest(talk(1))


# ---------------------------------------------------------------- laying


def test_summaries_side_by_side_leave_no_gap_between_them() -> None:
    """Nor before the first and after the last where they reach both ends."""
    a, b = standing_for("a", "b"), standing_for("c", "d")
    assert tiles("abcd", [a, b]) == [(0, 2, "for ab"), (2, 4, "for cd")]
    assert tiles("xabcdy", [a, b]) == [
        (0, 1, ""),
        (1, 3, "for ab"),
        (3, 5, "for cd"),
        (5, 6, ""),
    ]
    assert tiles("", [a]) == []
    assert tiles("xy", [a]) == [(0, 2, "")]


def test_the_longest_is_taken_and_of_equally_long_ones_the_newest() -> None:
    """However they are ordered in the ledger."""
    short, long = standing_for("a", "b"), standing_for("a", "b", "c")
    for ledger in ([short, long], [long, short]):
        assert tiles("abcd", ledger) == [(0, 3, "for abc"), (3, 4, "")]
    old, new = standing_for("a", "b", text="old"), standing_for("a", "b", text="new")
    assert tiles("ab", [old, new]) == [(0, 2, "new")]


def test_a_summary_is_used_once_and_an_equal_one_for_the_next_time() -> None:
    """A run that comes twice is represented twice only where two summaries were written."""
    old, new = standing_for("a", "b", text="old"), standing_for("a", "b", text="new")
    assert tiles("abab", [old]) == [(0, 2, "old"), (2, 4, "")]
    assert tiles("abab", [old, new]) == [(0, 2, "new"), (2, 4, "old")]


def test_a_run_must_match_to_its_end_and_be_allowed_whole() -> None:
    """Cut off by the end of the transcript, changed inside, or partly to be kept: no match."""
    run = standing_for("a", "b", "c")
    assert tiles("ab", [run]) == [(0, 2, "")]
    assert tiles("abx", [run]) == [(0, 3, "")]
    for kept in "abc":
        assert tiles("abc", [run], forbidden=kept) == [(0, 3, "")]
    assert tiles("xabc", [run], forbidden="x") == [(0, 1, ""), (1, 4, "for abc")]


def test_only_summaries_that_stand_for_something_are_laid() -> None:
    """Masks are laid elsewhere; a summary of nothing is nowhere."""
    assert tiles("ab", [standing_for("a", kind="mask"), standing_for()]) == [(0, 2, "")]


# ---------------------------------------------------------------- in memory


def test_epochs_are_numbered_and_named_after_their_session() -> None:
    """`s.c1-…`, `s.c2-…`: a person reads the order off the names."""
    store = MemoryStore()
    run = talk(2)
    for number in (1, 2):
        session = store.commit(store.open(NAMESPACE, "s"), [(segment(run), run)])
        name, _, tail = session.tip.partition("-")
        assert name == f"s.c{number}"
        assert len(tail) == 8
    root, first, second = store.lineage(NAMESPACE, "s")
    assert (root.parent_id, first.parent_id, second.parent_id) == (None, "s", first.id)
    assert root.created <= first.created <= second.created
    assert {epoch.session_id for epoch in (root, first, second)} == {"s"}


def test_memory_holds_the_sessions_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least used one goes, with all its epochs; whoever still writes to it reads it again."""
    monkeypatch.setattr(memory, "MOST_SESSIONS", 2)
    store = MemoryStore()
    run = talk(2)
    first, second = (
        store.commit(store.open(NAMESPACE, name), [(segment(run), run)]) for name in "ab"
    )
    assert store.open(NAMESPACE, "a") == first
    third = store.commit(store.open(NAMESPACE, "c"), [(segment(run), run)])
    assert [store.open(NAMESPACE, name) for name in "ac"] == [first, third]
    for name in ("b", second.tip):
        assert store.open(NAMESPACE, name).entries == ()
        with pytest.raises(SessionNotFound):
            store.lineage(NAMESPACE, name)
    with pytest.raises(LedgerConflict, match="gone"):
        store.commit(second, [(segment(run), run)])


# ---------------------------------------------------------------- as it was in an earlier epoch


SYSTEM, A, B, TASK, C, D, LAST = ({"role": "user", "content": name} for name in "sabtcdl")
OUTLINE = (SYSTEM, 0, TASK, 1, LAST)
RUNS = ((A, B), (C, D))


@pytest.mark.parametrize(
    ("length", "found"),
    [
        (0, None),  # not recorded
        (2, None),  # ends within a segment that stood then
        (3, (SYSTEM, 0)),
        (4, (SYSTEM, 0, TASK)),
        (5, (SYSTEM, 0, TASK, C)),
        (6, (SYSTEM, 0, TASK, C, D)),
        (7, (SYSTEM, 0, TASK, C, D, LAST)),
        (8, None),  # the transcript is shorter now
    ],
)
def test_as_many_messages_as_there_were(length: int, found: object) -> None:
    """The segment of that time stands, the later one gives way to its originals."""
    assert earlier_outline(OUTLINE, 1, length, RUNS.__getitem__) == found


def test_without_a_segment_all_stands_word_for_word() -> None:
    """Before the first compression."""
    assert earlier_outline(OUTLINE, 0, 4, RUNS.__getitem__) == (SYSTEM, A, B, TASK)
