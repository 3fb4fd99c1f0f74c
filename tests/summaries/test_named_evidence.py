"""An answer that names files of a long segment is accepted by these names, as by all its words."""

from __future__ import annotations

from collections import Counter

import pytest

from praison_compressor.summaries.validation import EVIDENCE, evidence, least_evidence, words_of

SOURCE = "\n".join(
    f'[calls read] {{"path": "src/part-{n}/f{n}.py"}} lorem ipsum {n} dolor' for n in range(3_000)
)


@pytest.mark.parametrize(
    "text",
    [
        "src/part-900/f900.py and src/part-901/f901.py were read.",
        "src/part-9/f9.py and other/file.py; v1.2, part-90, f900.py",
        "Please provide the transcript that I should summarize.",
        "",
    ],
)
def test_names_alone_are_never_more_evidence_than_all_words(text: str) -> None:
    """The evidence of names is a lower bound of the evidence."""
    words, counts = {*words_of(text)}, Counter(words_of(SOURCE))
    assert least_evidence(words, SOURCE) <= evidence(words, counts, counts.total())


def test_names_from_the_middle_of_a_long_segment_are_evidence() -> None:
    """Two files that a segment names anywhere are enough to accept a text about them."""
    words = {*words_of("src/part-1500/f1500.py and src/part-1501/f1501.py were mended")}
    assert least_evidence(words, SOURCE) >= EVIDENCE


def test_a_part_of_a_longer_name_is_no_evidence() -> None:
    """A name counts only where no other sign of a word stands beside it."""
    words = {*words_of("part-1500/f1500 part-150/f150")}
    assert least_evidence(words, SOURCE) < 0
