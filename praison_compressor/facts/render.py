"""The facts as a text: what both the audit and the static summary print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

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
FILES_SHARE = 0.2
"""What became of the files has most room: a summary that lost it is what users complain of, and
`tests/benchmarks/rounds.py` loses 15 of 20 files where it shares .06 with files only read."""
FILES_PAY_TOKENS = 400
"""In less room a list of files costs the words that bind what the next steps need."""
SHARE = 0.03
"""Of each other section, and twice that of the files where room is short."""
LEFT_OVER = 0.05
"""Share of the budget that no further detail is worth: sections that were cut get it."""
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
    parts = [
        _Part(now_section(facts), max(int(budget_tokens * NOW_SHARE), least(budget_tokens)), count)
    ]
    room = budget_tokens - count(parts[0].text)
    parts.append(_Part(user_section(facts, flat), int(room * USER_SHARE), count))
    room -= count(parts[1].text)
    for section, share in _shares(room):
        parts.append(_Part(section(facts), max(int(room * share), least(room)), count))
    text = _joined(parts)
    classifier = Classifier(facts.patterns)
    covered = set(classifier.names(f"{parts[1].text}\n{visible}"))
    half = set(classifier.names(text)) - covered
    room = budget_tokens - count(text) - 4
    bound = details(facts, room, count, covered, half)
    left = room - count(bound)
    if left > LEFT_OVER * budget_tokens:
        for part in parts:
            left -= part.widen(left)
    return squeeze(f"{_joined(parts)}\n{bound}")


class _Part:
    """A section with the room that it was given."""

    def __init__(self, section: Section, room: int, count: Count) -> None:
        self._section, self._room, self._count = section, room, count
        self.text = fitted(section, room, count)

    def widen(self, tokens: int) -> int:
        """Print more of it, in that much more room; the tokens that this takes."""
        before = self._count(self.text)
        self.text = fitted(self._section, self._room + tokens, self._count)
        return max(0, self._count(self.text) - before)


def _joined(parts: list[_Part]) -> str:
    return "\n".join(part.text for part in parts if part.text)


def _shares(room: int) -> Iterator[tuple[Callable[[Facts], Section], float]]:
    yield decisions_section, SHARE
    yield changed_section, FILES_SHARE if room >= FILES_PAY_TOKENS else 2 * SHARE
    yield read_section, SHARE
    yield errors_section, SHARE
    yield commands_section, SHARE


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
