"""The numbers of a claim: each has its witness, and its neighbour has none."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.messages import Message
from praison_compressor.summaries.claims import unverified
from praison_compressor.summaries.numbers import listed, order
from tests.helpers.transcripts import step
from tests.summaries.test_writer import brief

LISTING = (
    "   88→def connect(host):\n   89→    pool = Pool(size=25)\n   90→    return pool\n"
    "  140→\n  141→\n  142→def close():\n  143→    pass"
)
TALK: list[Message] = [
    {"role": "user", "content": "Wait 90 seconds for the lock, and see https://ex.org/pull/177."},
    *step("r", LISTING, "read", path="src/pool.py"),
    *step("s", "  73 passed\n  4 skipped in 2.50s", "bash", command="pytest"),
    *step("g", "12 issues:", "bash", command="make lint"),
    *step("j", '{"user": "u_4471", "orders": ["A", "B", "C"], "due": 345.50}'),
    {"role": "assistant", "content": "The badge is 16px wide.\nOne of them is grey."},
    {"role": "assistant", "content": "It sleeps 45 ticks."},
]  # fmt: skip


def doubts(claim: str) -> list[tuple[str, str]]:
    return [(d.kind, d.reason) for d in unverified(claim, brief(TALK), extract(TALK))]


@pytest.mark.parametrize(
    "claim",
    [
        "The lock is waited for {90|75} seconds.",
        "`connect` is on line {88|142} of `pool.py`.",
        "`close` stands in `pool.py:{142|90}`.",
        "The pool's size is {25|89}.",
        "The run of `pytest` skipped some in {2.5|2.8}s.",
        "Lint errors: {12|16} in total.",
        "The user's account ending in {4471|7142} was looked up.",
        "What is due: {$345.50|$354.50}.",
        "The badge is wide: {16|18}px.",
        "A follow-up of pull request {177|117}.",
    ],
)
def test_a_number_has_its_witness_and_another_has_none(claim: str) -> None:
    """Beside a word of its own, as a label, in a name, with a unit."""
    before, _, rest = claim.partition("{")
    both, _, behind = rest.partition("}")
    true, false = (doubts(f"{before}{one}{behind}") for one in both.split("|"))
    assert (true, len(false)) == ([], 1)


def test_the_label_of_a_line_is_no_value() -> None:
    """A listing has every number once: that bears out no retry, no size and no port."""
    reason = "no line has 142 beside \u2018retry\u2019"
    assert doubts("There were 142 retries of the lock.") == [("number", reason)]


@pytest.mark.parametrize(
    "claim", ["Launched 6 Explore agents.", "It took 48 small steps.", "Edit 31 is `close`."]
)
def test_what_a_writer_counts_himself_needs_no_witness(claim: str) -> None:
    """Nor does the number that is part of a name."""
    assert doubts(claim) == []


def test_what_is_no_count_contradicts_none() -> None:
    """ "One of them" says of no number that it is another."""
    assert doubts("2 of them are grey.") == []


def test_the_words_round_a_number_are_those_of_the_line() -> None:
    """Without its label; what is listed behind a number is counted."""
    assert order("src/a.py:12: wait 3.0s at most") == ("wait", "3", "most")
    assert listed("Read 3 files: a.py, b.py and c.py") == ("3", "3")
