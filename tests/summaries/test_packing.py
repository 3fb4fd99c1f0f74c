"""Messages packed into the parts that a summarizer is shown."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.summaries.drafting import Piece, packed


def lengths(texts: Sequence[str]) -> list[int]:
    return list(map(len, texts))


@given(
    groups=st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=4), min_size=1, max_size=20),
    space=st.none() | st.integers(900, 2_000),
    longest=st.integers(200, 5_000),
    most=st.integers(3, 16),
)
def test_parts_hold_every_message_once_and_are_no_more_than_they_must_be(
    groups: list[list[int]], space: int | None, longest: int, most: int
) -> None:
    """In their order; at most one part more than what is shown fills, and never more than the
    calls that there are."""
    pieces = [
        [Piece(f"{n} " + "words\n" * words) for words in group] for n, group in enumerate(groups)
    ]
    parts = packed(pieces, lengths, longest=longest, space=space, most=most)
    texts = [piece.text for part in parts for piece in part]
    assert [text.split(" ")[0] for text in texts] == [
        p.text.split(" ")[0] for g in pieces for p in g
    ]
    sizes = [sum(len(piece.text) + 2 for piece in part) for part in parts]
    room = space or sum(sizes)
    assert len(parts) <= min(-(-sum(sizes) // room) + 1, most)
    assert max(sizes) <= room
    assert max(map(len, texts)) <= longest
