"""A segment's outline says in a line for each stretch what was asked, done, and came of it."""

from __future__ import annotations

from typing import Any

from praison_compressor.ledger.outlines import in_order, outline
from tests.helpers.transcripts import step


def work() -> list[dict[str, Any]]:
    """Two requests with work after each."""
    return [
        {"role": "user", "content": "Mend the cart's total."},
        *step("a", "def total(): ...", path="src/cart.py"),
        *step("b", "Error: no such file: src/basket.py", path="src/basket.py"),
        {"role": "assistant", "content": "The total is summed before the discount."},
        {"role": "user", "content": "Now the invoice."},
        *step("c", "ok", path="src/invoice.py"),
    ]


def test_each_line_leads_to_what_it_tells_of() -> None:
    """User's words alone, the work after them as a range."""
    lines = outline(work(), in_order(3, work()))
    assert [line.split(" ")[0] for line in lines] == ["s3.1", "s3.2-6", "s3.7", "s3.8-9"]
    assert lines[0] == "s3.1 user: Mend the cart's total."


def test_a_stretch_of_work_names_tools_files_and_how_it_ended() -> None:
    """A failure is told before the last words."""
    told = outline(work(), in_order(3, work()))[1]
    assert "read_file ×2" in told
    assert "cart.py, basket.py" in told
    assert "failed: Error: no such file: src/basket.py" in told


def test_long_work_is_told_in_stretches() -> None:
    """Forty steps without a word from the user are not one line."""
    many = [message for n in range(40) for message in step(f"c{n}", "ok", path=f"src/p{n}.py")]
    assert len(outline(many, in_order(1, many))) == 5
