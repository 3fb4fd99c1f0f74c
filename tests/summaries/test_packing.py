"""Messages packed into the parts that a summarizer is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.summaries.drafting import Piece, abridged, packed


def lengths(texts: Sequence[str]) -> list[int]:
    return list(map(len, texts))


@given(
    groups=st.lists(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4), max_size=9),
    space=st.integers(8, 60),
)
def test_parts_hold_every_message_once_and_no_more_than_fits(
    groups: list[list[str]], space: int
) -> None:
    """In their order, whatever has to be split."""
    parts = packed([[Piece(text) for text in group] for group in groups], space, lengths)
    texts = [piece.text for part in parts for piece in part]
    assert "".join(texts) == "".join(text for group in groups for text in group)
    assert sum(piece.ends for part in parts for piece in part) == sum(map(len, groups))
    assert all(sum(len(piece.text) + 2 for piece in part) <= space + 2 for part in parts)


@given(
    groups=st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=4), min_size=1, max_size=20),
    space=st.integers(900, 2_000),
    longest=st.none() | st.integers(200, 800),
    most=st.none() | st.integers(3, 9),
)
def test_parts_are_no_more_than_they_must_be(
    groups: list[list[int]], space: int, longest: int | None, most: int | None
) -> None:
    """At most one more than what is shown fills, and never more than the calls that there are."""
    pieces = [[Piece("some words\n" * words) for words in group] for group in groups]
    parts = packed(pieces, space, lengths, longest=longest, most=most)
    shown = sum(len(piece.text) + 2 for part in parts for piece in part)
    assert len(parts) <= min(-(-shown // space) + 1, most or len(parts))
    assert sum(piece.ends for part in parts for piece in part) == sum(map(len, groups))
    assert all(sum(len(piece.text) + 2 for piece in part) <= space + 2 for part in parts)


def test_what_a_long_message_says_of_errors_and_names_is_shown() -> None:
    """Head and tail, the lines between that tell most, in their order, and how much is not."""
    lines = [f"compiling unit {n} of the second stage" for n in range(900)]
    lines[300] = "NameError: name 'retry_budget' is not defined"
    lines[600] = "see src/billing/refunds.py and ticket ACME-4471"
    text = "\n".join(lines)
    shown = abridged(text, 1_500)
    assert (shown[:300], shown[-300:]) == (text[:300], text[-300:])
    assert 0 < shown.find("NameError: name 'retry_budget'") < shown.find("refunds.py and ticket")
    left_out = int(re.findall(r"(\d+) characters left out", shown)[0])
    assert len(shown) < 1_700
    assert abs(len(text) - left_out - len(shown)) < 200
    assert abridged(shown, 2_000) == shown


def test_what_fits_is_counted_once() -> None:
    """All of it together: counting is what takes the time."""
    asked: list[list[str]] = []

    def count(texts: Sequence[str]) -> list[int]:
        asked.append(list(texts))
        return lengths(texts)

    packed([[Piece("one"), Piece("two")], [Piece("three")]], 9, count)
    assert asked == [["one", "two", "three"]]
