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

USER_SHARE = 0.6
SHARES = ((state_section, 0.10), (files_section, 0.12), (errors_section, 0.05), (commands_section, 0.05))


def render(facts: Facts, *, budget_tokens: int, count: Count, visible: str = "") -> str:
    """The facts within the budget: the user's words, then state, files, errors and details."""
    if budget_tokens < 20:
        return ""
    flat = " ".join(visible.split())
    parts = [fitted(user_section(facts, flat), int(budget_tokens * USER_SHARE), count)]
    for section, share in SHARES:
        parts.append(fitted(section(facts), int(budget_tokens * share), count))
    text = "\n".join(part for part in parts if part)
    covered = {key for key, _, _, _ in Classifier().keys(visible)}
    room = budget_tokens - count(text) - 4
    return squeeze(f"{text}\n{details(facts, room, count, covered)}")
