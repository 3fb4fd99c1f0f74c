"""One way to name archived text: printed and read alike everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.ledger.references import Reference, parse

numbers = st.integers(1, 999_999_999)


@st.composite
def references(draw: st.DrawFn) -> Reference:
    """Every form of one."""
    segment, message = draw(numbers), draw(st.none() | numbers)
    if message is None:
        return Reference(segment)
    if draw(st.booleans()):
        return Reference(segment, message, draw(numbers))
    line = draw(st.none() | numbers)
    if line is None or draw(st.booleans()):
        return Reference(segment, message, line=line, around=line is not None)
    return Reference(segment, message, line=line, last_line=draw(st.none() | numbers))


@given(references())
def test_what_is_printed_is_read(reference: Reference) -> None:
    """Whoever copies a reference, with its brackets or without, names the same place."""
    assert parse(str(reference)) == parse(f" [{reference}] ") == reference


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("S2.14", Reference(2, 14)),
        ("`s2.14`", Reference(2, 14)),
        ('"s2.14:900-940".', Reference(2, 14, line=900, last_line=940)),
        ("s2.14-s2.20", Reference(2, 14, 20)),
    ],
)
def test_models_write_them_in_other_ways(written: str, meant: Reference) -> None:
    """Quotes, capitals and a repeated segment are understood."""
    assert parse(written) == meant


@pytest.mark.parametrize("text", ["", "x", "s", "1", "s1..2", "s-1", "s1.2.3", "s1.2:x"])
def test_what_is_none_is_none(text: str) -> None:
    """No guessing."""
    assert parse(text) is None
