"""A hit shows the lines that match, not the beginning of the message they stand in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.ledger.passages import lines_of, passages, terms


def found(query: str, text: str, most: int = 3) -> list[str]:
    """The passages' texts, best first."""
    lines = lines_of(text)
    return [
        "\n".join(lines[each.first - 1 : each.last]) for each in passages(lines, terms(query), most)
    ]


LOG = "\n".join(
    [f"line {n}: nothing to see" for n in range(1, 900)]
    + [
        "FAIL tests/test_cart.py::test_total",
        "E  assert 41 == 42",
        "src/cart.py:118: AssertionError",
    ]
    + [f"line {n}: nothing to see" for n in range(903, 1_200)]
)


@pytest.mark.parametrize("query", ["src/cart.py:118", "test_total", "assert 41 == 42", "cart.py"])
def test_the_match_is_shown_with_the_lines_round_it(query: str) -> None:
    """Line 900 of 1,200 is found by a path, a part of an identifier, a phrase."""
    assert "E  assert 41 == 42" in found(query, LOG)[0]
    assert len(found(query, LOG)[0].split("\n")) <= 8


def test_several_places_of_one_message_are_shown() -> None:
    """Three mentions far apart are three passages, the later first among equals."""
    text = "\n".join(f"x{n}" if n % 40 else f"needle at {n}" for n in range(1, 130))
    assert ["needle at 120" in found("needle", text)[0], len(found("needle", text))] == [True, 3]


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("max_retries", "max_retries = 7", "the max of retries is 7"),
        ("connection refused", "connection refused", "refused; the connection was closed"),
        ("parseConfig", "parseConfig(path)", "parse the config"),
        ("10.4.2", "version 10.4.2", "version 10.4.1 and 2"),
    ],
)
def test_the_exact_comes_before_its_words(query: str, better: str, worse: str) -> None:
    """An identifier or a phrase as it is written ranks above its parts."""
    gap = "\n" * 20
    assert better in found(query, f"{better}{gap}{worse}")[0]
    assert better in found(query, f"{worse}{gap}{better}")[0]


def test_a_number_is_found_whole() -> None:
    """Part 1 is not part 10."""
    assert found("part-1", "part-10\n\n\n\n\n\npart-1\n\n\n\n\n\npart-12") == ["\npart-1\n\n\n"]


def test_the_parts_of_a_name_are_found() -> None:
    """Somebody who half remembers a name finds it."""
    assert found("retryPolicy", "the retry_policy of the client") == [
        "the retry_policy of the client"
    ]


def test_a_line_of_json_is_read_in_pieces() -> None:
    """All on one line: the piece that matches is shown, not a page."""
    text = "{" + ", ".join(f'"item{n}": {{"price": {n}.50}}' for n in range(2_000)) + "}"
    [piece] = found("item1234", text)
    assert '"item1234": {"price": 1234.50}' in piece
    assert len(piece) < 1_500


@given(st.text())
def test_wrapped_lines_lose_nothing(text: str) -> None:
    """Put together again they are the text."""
    assert "".join(lines_of(text)) == text.replace("\n", "")
