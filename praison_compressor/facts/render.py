"""The facts as a text: what both the audit and the static summary print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from .details import details
from .identifiers import Classifier
from .lines import Count, Section, fitted
from .model import CommandFact, Facts
from .sections import (
    changed_section,
    commands_section,
    decisions_section,
    errors_section,
    looked_section,
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
LEAST_TOKENS = 40
"""A section that a person looks for first gets a line or two even in a small summary."""

READ_WHOLE_TOKENS = 2_000
"""A summary of so many is read whole by a person, and uses its room. In a larger one, and beside a
model's text, room that is left is left: it would be sent with every later request."""

LEFT_SHARE = 0.02
"""Of the whole, that is worth another look at the sections once the details are chosen."""

SLACK_SHARE = 0.002
"""Of the whole, that stays empty: others count a long text in pieces, and some tokens more."""

Make = Callable[[str], Section]
"""A section, given what is told above it: nothing is told twice."""
Part = tuple[Make, str]
"""And as much of it as fits."""


def render(
    facts: Facts,
    *,
    budget_tokens: int,
    count: Count,
    visible: str = "",
    beside_prose: bool = False,
    failing: Sequence[CommandFact] | None = None,
    words_of: int = 0,
) -> str:
    """The facts within the budget: how things stand, the user's words, the trail, details.

    `beside_prose`: a model's text stands above, which a person looks at first; `failing` are the
    commands of which it does not say that they still fail. `words_of`, where it is more than the
    budget, is what the whole may take where the user's words fill it.
    """
    if max(words_of, budget_tokens) < 20:
        return ""

    def least(room: int) -> int:
        return LEAST_TOKENS if room >= 5 * LEAST_TOKENS and not beside_prose else 0

    flat = " ".join(visible.split())
    standing, words = now_section(facts, failing), user_section(facts, flat)
    enough = LEAST_TOKENS if failing else least(budget_tokens)
    now = fitted(standing, max(int(budget_tokens * NOW_SHARE), enough), count)
    room = max(0, budget_tokens - count(now))
    share = int(room * USER_SHARE)
    said = fitted(words, share + max(0, words_of - max(0, budget_tokens)), count)
    extra = max(0, count(said) - share)
    room -= count(said) - extra
    parts: list[Part] = [(lambda told: standing, now), (lambda told: words, said)]
    for make, part in _shares(facts, room):
        most = max(int(room * part), least(room))
        parts.append((make, fitted(make(_joined(parts)), most, count)))
    text = _joined(parts)
    classifier = Classifier(facts.patterns)
    covered = set(classifier.names(f"{said}\n{visible}"))
    half = set(classifier.names(text)) - covered
    room = budget_tokens + extra - count(text) - 4
    bound = details(facts, room, count, covered, half)
    room -= count(bound)
    small = budget_tokens <= READ_WHOLE_TOKENS and not beside_prose
    if small and room >= max(LEAST_TOKENS, LEFT_SHARE * budget_tokens):
        room -= max(1, int(SLACK_SHARE * budget_tokens))
        looked: Part = (lambda told: looked_section(facts), "")
        text = _joined(_widened([*parts, looked], room, count))
    return squeeze(f"{text}\n{bound}")


def _shares(facts: Facts, room: int) -> Iterator[tuple[Make, float]]:
    yield lambda told: decisions_section(facts, told), SHARE
    yield (
        lambda told: changed_section(facts),
        FILES_SHARE if room >= FILES_PAY_TOKENS else 2 * SHARE,
    )
    yield lambda told: read_section(facts), SHARE
    yield lambda told: errors_section(facts, told), SHARE
    yield lambda told: commands_section(facts, told), SHARE


def _joined(parts: Iterable[Part]) -> str:
    return "\n".join(text for _, text in parts if text)


def _widened(parts: Iterable[Part], room: int, count: Count) -> list[Part]:
    """The sections with what room the details have left: all of it is told where it fits."""
    out: list[Part] = []
    for make, text in parts:
        wider = fitted(make(_joined(out)), count(text) + room, count)
        room -= count(wider) - count(text)
        out.append((make, wider))
    return out


def squeeze(text: str) -> str:
    """Blank lines and trailing spaces removed: they cost tokens and say nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
