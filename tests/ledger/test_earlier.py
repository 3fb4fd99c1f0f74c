"""A transcript as it was in an earlier epoch, out of the outline of a later one."""

from __future__ import annotations

import pytest

from praison_compressor.ledger.segments import earlier_outline

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
