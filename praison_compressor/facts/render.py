"""The facts as a text: what both the audit and the static summary print."""

from __future__ import annotations

import re
from collections.abc import Callable

from .details import details
from .identifiers import Classifier
from .lines import Count, Section, fitted
from .model import Facts
from .sections import (
    changed_section,
    commands_section,
    decisions_section,
    errors_section,
    now_section,
    read_section,
    user_section,
)

USER_SHARE = 0.7
NOW_SHARE = 0.06
SHARES: tuple[tuple[Callable[[Facts], Section], float], ...] = (
    (decisions_section, 0.03),
    (changed_section, 0.2),
    (read_section, 0.03),
    (errors_section, 0.03),
    (commands_section, 0.03),
)
"""What became of the files has most room: a summary that lost it is what users complain of, and
`tests/benchmarks/rounds.py` loses 15 of 20 files where it shares .06 with files only read."""
LEAST_TOKENS = 40
"""A section that a person looks for first gets a line or two even in a small summary."""


def render(
    facts: Facts,
    *,
    budget_tokens: int,
    count: Count,
    visible: str = "",
    beside_prose: bool = False,
) -> str:
    """The facts within the budget: how things stand, the user's words, the trail, details.

    `beside_prose`: a model's text stands above, which a person looks at first.
    """
    if budget_tokens < 20:
        return ""

    def least(room: int) -> int:
        return LEAST_TOKENS if room >= 5 * LEAST_TOKENS and not beside_prose else 0

    flat = " ".join(visible.split())
    now = fitted(
        now_section(facts), max(int(budget_tokens * NOW_SHARE), least(budget_tokens)), count
    )
    room = budget_tokens - count(now)
    said = fitted(user_section(facts, flat), int(room * USER_SHARE), count)
    room -= count(said)
    parts = [now, said]
    for section, share in SHARES:
        parts.append(fitted(section(facts), max(int(room * share), least(room)), count))
    text = "\n".join(part for part in parts if part)
    classifier = Classifier(facts.patterns)
    covered = set(classifier.names(f"{said}\n{visible}"))
    half = set(classifier.names(text)) - covered
    room = budget_tokens - count(text) - 4
    return squeeze(f"{text}\n{details(facts, room, count, covered, half)}")


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
