"""The compact facts section: what a summary lacks, most valuable first."""

from __future__ import annotations

from .identifiers import Classifier
from .model import Facts
from .sections import (
    Count,
    commands_section,
    details,
    errors_section,
    files_section,
    fitted,
    squeeze,
    state_section,
    user_section,
)

USER_SHARE = 0.7
SHARES = (
    (state_section, 0.06),
    (files_section, 0.06),
    (errors_section, 0.03),
    (commands_section, 0.03),
)
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
    """The facts within the budget: the user's words, then state, files, errors and details.

    `beside_prose`: a model's text stands above, which a person looks at first.
    """
    if budget_tokens < 20:
        return ""
    flat = " ".join(visible.split())
    said = fitted(user_section(facts, flat), int(budget_tokens * USER_SHARE), count)
    room = budget_tokens - count(said)
    parts = [said]
    for section, share in SHARES:
        least = LEAST_TOKENS if room >= 5 * LEAST_TOKENS and not beside_prose else 0
        parts.append(fitted(section(facts), max(int(room * share), least), count))
    text = "\n".join(part for part in parts if part)
    classifier = Classifier(facts.patterns)
    covered = set(classifier.names(f"{said}\n{visible}"))
    half = set(classifier.names(text)) - covered
    room = budget_tokens - count(text) - 4
    return squeeze(f"{text}\n{details(facts, room, count, covered, half)}")
