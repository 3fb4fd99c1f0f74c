"""References to archived text, outlines, and passages that match a query."""

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praison_compressor.messages import Message
from praison_compressor.recall.layout import split_lines
from praison_compressor.recall.references import Reference, parse_reference
from tests.helpers.talks import count, holding
from tests.helpers.transcripts import said, step, user

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
    """A reference is read in other spellings, and an invalid one is not guessed."""
    assert parse_reference(written) == meant


@pytest.mark.parametrize(
    ("count", "first", "rest"), [(3, "s2.14:5-7", "s2.14:8-9"), (5, "s2.14:5-9", "")]
)
def test_lines_are_split_after_a_number_of_them(count, first, rest):
    """The lines after the first `count` have a reference of their own, if there are any."""
    split = Reference(2, 14, line=5, last_line=9).split(count)
    assert split == (parse_reference(first), parse_reference(rest))


# ---------------------------------------------------------------- outlines


def outline_of(messages: list[Message]) -> list[str]:
    """Return the rows of the outline of a segment with these messages."""
    return holding(messages)[1]("s1", tokens=800).splitlines()[1:-1]


def test_an_outline_has_the_users_words_and_ranges_of_work():
    """An outline has the user's words, and work as ranges with tools, files and failures."""
    work = [
        user("Mend the cart's total."),
        *step("a", "def total(): ...", path="src/cart.py"),
        *step("b", "Error: no such file: src/basket.py", path="src/basket.py"),
        said("The total is summed before the discount."),
        user("Now the invoice."),
        *step("c", "ok", path="src/invoice.py"),
    ]
    lines = outline_of(work)
    assert [line.split(" ")[0] for line in lines] == ["s1.1", "s1.2-6", "s1.7", "s1.8-9"]
    assert lines[0] == "s1.1 user: Mend the cart's total."
    for words in (
        "read_file ×2",
        "cart.py, basket.py",
        'read_file -> "Error: no such file: src/basket',
    ):
        assert words in lines[1]
    many = [message for n in range(40) for message in step(f"c{n}", "ok", path=f"src/p{n}.py")]
    assert len(outline_of(many)) == 5


def speakers(found: Sequence[str]) -> list[Message]:
    """Return turns that differ in their last lines alone."""
    opens = "was opened.\n% Total % Received\n"
    talk = (
        (user("Next speaker WebSurfer"), f"Page {n} {opens}{text}") for n, text in enumerate(found)
    )
    return [message for asked, answer in talk for message in (asked, said(answer))]


def test_a_row_quotes_what_other_messages_do_not_have():
    """Lines that several messages have are left out of a row, and rows that repeat are one."""
    found = ("the Marigold sank", "cargo: tea", "", "crew saved", "", "")
    rows = outline_of(speakers(found))
    assert rows[0] == "s1.1,s1.3,s1.5 user: Next speaker WebSurfer ×6"
    assert rows[1:3] == ["s1.2 assistant: the Marigold sank", "s1.4 assistant: cargo: tea"]
    many = outline_of(speakers([f"cargo {n * 7919}: {f'tea{n} ' * 9}" for n in range(60)]))
    assert many[0] == "s1.1-2 user: Next speaker WebSurfer ×60"


# ---------------------------------------------------------------- passages


def passages(query: str, *texts: str) -> list[str]:
    """Return the lines that a small answer about a query quotes of one long message."""
    gap = "\n".join(f"{n}: nothing to see" for n in range(600))
    _, read = holding([user(f"\n{gap}\n".join(("", *texts, "")))])
    return read("s1.1", about=query, tokens=80).splitlines()


FAILURE = "FAIL tests/test_cart.py::test_total\nE  assert 41 == 42\nsrc/cart.py:118: AssertionError"


@pytest.mark.parametrize("query", ["src/cart.py:118", "test_total", "assert 41 == 42", "cart.py"])
def test_the_match_is_shown_with_the_lines_round_it(query):
    """A path, a part of an identifier or a phrase finds its line of 1,200 with its context."""
    found = passages(query, FAILURE)
    assert "E  assert 41 == 42" in found
    assert len(found) <= 13


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("max_retries", "max_retries = 7", "the max of retries is 7"),
        ("connection refused", "connection refused", "refused; the connection was closed"),
        ("parseConfig", "parseConfig(path)", "parse the config"),
        ("10.4.2", "version 10.4.2", "version 10.4.1 and 2"),
        ("part-1", "part-1", "part-10"),  # a number is found whole
        ("denyRule", "the denyRule", "const denyRuleOfTests = 1"),
        # Half remembered, and within another name.
        ("retryPolicy client", "the retry_policy of the client", "a policy of a client"),
        ("timeout seconds", "context.WithTimeout(2)  # seconds", "seconds"),
        # Lines that share the query's words come before one with its heaviest word.
        ("fetch_branch timeout minute", "    timeout = 2 * minute", "fetch_branch() again"),
    ],
)
def test_the_exact_comes_before_its_words(query, better, worse):
    """An exact identifier or phrase, or most of the query together, is quoted first."""
    before = "def fetch_branch():\n    # gives up\n" * query.startswith("fetch")
    for texts in ((before + better, worse), (worse, before + better)):
        found = passages(query, *texts)
        assert (better in found, worse in found) == (True, False)


def test_a_word_is_found_in_a_script_without_spaces():
    """A word between letters of a script without spaces is quoted with its line."""
    for query in ("文件", "pytest"):
        assert "先读取文件pytest然后失败" in passages(query, "先读取文件pytest然后失败")


def test_a_line_of_json_is_read_in_pieces():
    """Of one long JSON line only the matching piece is shown."""
    text = "{" + ", ".join(f'"item{n}": {{"price": {n}.50}}' for n in range(2_000)) + "}"
    _, read = holding([user(text)])
    found = read("s1.1", about="item1234")
    assert '"item1234": {"price": 1234.50}' in found
    assert count(found) < 400


def test_no_line_of_json_ends_between_a_key_and_its_value():
    """Members stay whole, in JSON as in a Python dictionary, after a prefix and when cut off."""
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
