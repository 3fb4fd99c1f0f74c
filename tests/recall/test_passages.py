"""References to archived text, outlines, and passages that match a query."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.recall import Reference, parse_reference
from praison_compressor.recall.layout import split_lines
from praison_compressor.recall.outlines import join_in_pairs, outline_rows, references_in_order
from praison_compressor.recall.passages import (
    find_passages,
    query_terms,
    terms_by_line,
    weigh_terms,
)
from tests.helpers.transcripts import step

# ---------------------------------------------------------------- references

numbers = st.integers(1, 999_999_999)


@st.composite
def references(draw: st.DrawFn) -> Reference:
    """Generate references of every form."""
    segment, message = draw(numbers), draw(st.none() | numbers)
    if message is None:
        return Reference(segment)
    if draw(st.booleans()):
        return Reference(segment, message, draw(st.integers(message, 10**9 - 1)))
    line = draw(st.none() | numbers)
    if line is None or draw(st.booleans()):
        return Reference(segment, message, line=line, around=line is not None)
    last = None if line is None else draw(st.none() | st.integers(line, 10**9 - 1))
    return Reference(segment, message, line=line, last_line=last)


@given(references())
def test_a_printed_reference_parses_to_itself(reference):
    """A printed reference, with or without brackets, parses to the same place."""
    assert parse_reference(str(reference)) == parse_reference(f" [{reference}] ") == reference


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("S2.14", Reference(2, 14)),
        ("`s2.14`", Reference(2, 14)),
        ('"s2.14:900-940".', Reference(2, 14, line=900, last_line=940)),
        ("s2.14-s2.20", Reference(2, 14, 20)),
        ("s2 outline", Reference(2)),
        ("message [s2.14]", Reference(2, 14)),
        *((text, None) for text in ("", "x", "s", "1", "s1 s2", "s1..2", "s-1", "s1.2.3")),
        # Backwards, or through two segments: a part of it is not what was meant.
        *((text, None) for text in ("s1.9-5", "s1.9-s1.5", "s1.9:30-20", "s1.3-s2.5")),
    ],
)
def test_references_are_read_in_other_spellings(written, meant):
    """Quotes, capitals and a repeated segment are accepted; invalid text is not guessed."""
    assert parse_reference(written) == meant


# ---------------------------------------------------------------- outlines


def test_an_outline_has_the_users_words_and_ranges_of_work():
    """An outline has the user's words, and work as ranges with tools, files and failures."""
    work = [
        {"role": "user", "content": "Mend the cart's total."},
        *step("a", "def total(): ...", path="src/cart.py"),
        *step("b", "Error: no such file: src/basket.py", path="src/basket.py"),
        {"role": "assistant", "content": "The total is summed before the discount."},
        {"role": "user", "content": "Now the invoice."},
        *step("c", "ok", path="src/invoice.py"),
    ]
    lines = outline_rows(work, references_in_order(3, work))
    assert [line.split(" ")[0] for line in lines] == ["s3.1", "s3.2-6", "s3.7", "s3.8-9"]
    assert lines[0] == "s3.1 user: Mend the cart's total."
    for words in (
        "read_file ×2",
        "cart.py, basket.py",
        'read_file -> "Error: no such file: src/basket',
    ):
        assert words in lines[1]
    many = [message for n in range(40) for message in step(f"c{n}", "ok", path=f"src/p{n}.py")]
    assert len(outline_rows(many, references_in_order(1, many))) == 5


def test_a_row_quotes_what_other_messages_do_not_have():
    """Lines that several messages have are left out of a row, and rows that repeat are one."""
    talk = []
    for n, found in enumerate(["the Marigold sank", "cargo: tea", "", "crew saved", "", ""]):
        talk += [
            {"role": "user", "content": "Next speaker WebSurfer"},
            {"role": "assistant", "content": f"Page {n} was opened.\n% Total % Received\n{found}"},
        ]
    rows = outline_rows(talk, references_in_order(1, talk))
    assert rows[0] == "s1.1,s1.3,s1.5 user: Next speaker WebSurfer ×6"
    assert rows[1:3] == ["s1.2 assistant: the Marigold sank", "s1.4 assistant: cargo: tea"]
    assert join_in_pairs(rows)[0] == "s1.1-2 user: Next speaker WebSurfer ×6"


# ---------------------------------------------------------------- passages


def found(query: str, text: str) -> list[str]:
    """Return the passages' texts, best first."""
    lines, wanted = split_lines(text), query_terms(query)
    weighed = weigh_terms(wanted, [terms_by_line(lines, wanted)])
    return [
        "\n".join(lines[each.first - 1 : each.last]) for each in find_passages(lines, weighed, 3)
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
def test_the_match_is_shown_with_the_lines_round_it(query):
    """A path, a part of an identifier or a phrase finds line 900 of 1,200 with its context."""
    assert "E  assert 41 == 42" in found(query, LOG)[0]
    assert len(found(query, LOG)[0].split("\n")) <= 8


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("max_retries", "max_retries = 7", "the max of retries is 7"),
        ("connection refused", "connection refused", "refused; the connection was closed"),
        ("parseConfig", "parseConfig(path)", "parse the config"),
        ("10.4.2", "version 10.4.2", "version 10.4.1 and 2"),
        ("part-1", "part-1", "part-10"),  # a number is found whole
        ("denyRule", "the denyRule", "const denyRuleOfTests = 1"),
        ("retryPolicy", "the retry_policy of the client", "a policy"),  # half remembered
    ],
)
def test_the_exact_comes_before_its_words(query, better, worse):
    """An exact identifier or phrase ranks above its separate words."""
    gap = "\n" * 20
    assert better in found(query, f"{better}{gap}{worse}")[0].split("\n")
    assert better in found(query, f"{worse}{gap}{better}")[0].split("\n")


def test_a_passage_has_most_of_the_query_together():
    """Lines that share the query's words come before one with its heaviest word."""
    near = "def fetch_branch():\n    # gives up\n    timeout = 2 * minute"
    text = "\n".join(["fetch_branch()", *"." * 20, near, *"." * 20, "fetch_branch() again"])
    assert "timeout = 2" in found("fetch_branch timeout minute", text)[0]
    assert "context.WithTimeout" in found("timeout", "a\n" * 9 + "context.WithTimeout(2)")[0]


def test_a_line_of_json_is_read_in_pieces():
    """Of one long JSON line only the matching piece is shown."""
    text = "{" + ", ".join(f'"item{n}": {{"price": {n}.50}}' for n in range(2_000)) + "}"
    [piece] = found("item1234", text)
    assert '"item1234": {"price": 1234.50}' in piece
    assert len(piece) < 1_500


def test_no_line_of_json_ends_between_a_key_and_its_value():
    """Members stay whole, in JSON as in a Python dictionary, behind a prefix and when cut off."""
    items = [{"sku": f"HAT{n}", "sizes": {"head": n, "brim": n + 0.5}} for n in range(60)]
    for text in (json.dumps({"a": items}), repr(items), f"-> f({json.dumps(items)})"[:-40]):
        lines = split_lines(text)
        assert "".join(lines) == text
        whole = [line for line in lines if re.search(r"HAT\d+.*head.*brim\W+\d", line)]
        assert len(whole) >= 58


@given(st.text())
def test_wrapped_lines_lose_nothing(text):
    """Wrapped lines, joined, are the text."""
    assert "".join(split_lines(text)) == text.replace("\n", "")
