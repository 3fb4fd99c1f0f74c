"""A file that an agent read in pieces is quoted and read across the pieces."""

import re

import pytest

from tests.helpers.talks import holding
from tests.helpers.transcripts import step


def test_a_quote_goes_on_in_another_listing():
    """Where a quoted listing ends, its next lines in another result of the file follow."""
    parts = {1: "a.py", 30: "b.py", 41: "a.py"}
    texts = {
        at: "\n".join(f"{n}→row {n * 7919} {'-' * 30}" for n in range(at, at + 40)) for at in parts
    }
    steps = [step(f"c{at}", texts[at], path=path, offset=at) for at, path in parts.items()]
    search, _ = holding([message for each in steps for message in each])
    answer = search(f"{39 * 7919} a.py")
    head = re.compile(
        r"\n\[s1\.6:1-(\d+)\] \(numbered 41-(\d+), goes on at s1\.6:(\d+)-40\)\n(.*)\n"
    )
    quoted, numbered, rest, line = head.search(answer).groups()
    assert int(numbered) == 40 + int(quoted)
    assert int(rest) == int(quoted) + 1
    assert line.startswith(f"row {41 * 7919} ")
    assert "[s1.2:" not in search(f"{75 * 7919} a.py")


def test_a_block_is_quoted_across_two_listings():
    """A function that one listing cuts is quoted to its end, and not beyond."""
    code = ["func settle() {", *(f"    check({n})" for n in range(12)), "}", "", "func other() {"]
    lines = [f"{n}\t{line}" for n, line in enumerate(code, 1)]
    pieces = [lines[:8], lines[8:]]
    messages = [m for n, p in enumerate(pieces) for m in step(f"c{n}", "\n".join(p), path="a.go")]
    search, _ = holding(messages)
    end = "\n".join(f"    check({n})" for n in range(7, 12)) + "\n}\n("
    assert f"[s1.4:1-6] (numbered 9-14, goes on at s1.4:7-8)\n{end}" in search("check(3)")


@pytest.mark.parametrize("reference", ["s1.2", "s1.2:15-20"])
def test_a_listing_that_is_read_to_its_end_names_where_it_goes_on(reference):
    """A read of a listing's last lines names the result that has the lines after these."""
    pieces = [
        "\n".join(
            f"{n}\t{'let total' if n % 20 else 'def f'} = {n}" for n in range(first, first + 20)
        )
        for first in (101, 121)
    ]
    _, read = holding([m for n, p in enumerate(pieces) for m in step(f"c{n}", p, path="a.py")])
    assert "\n(goes on at s1.4:1-20)\n" in read(reference)
    assert "goes on" not in read("s1.2:1-5")
    assert "goes on" not in read("s1.4")
