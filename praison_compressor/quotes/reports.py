"""What the agent said to the user at the ends of turns."""

from __future__ import annotations

from collections.abc import Sequence

from .rendering import TITLES, Line, Section

LEAST_REPEATED = 40


def section(found: Sequence[tuple[int, str]], visible: str) -> Section:
    """Return the reports, newest first in rank; long ones by their beginning and end."""
    lines = [
        Line(at, (-at,), text.strip())
        for at, text in found
        if len(text.strip()) < LEAST_REPEATED or text.strip() not in visible
    ]
    return Section(TITLES["reports"], lines, 0.2, least=60, noun="reports")
