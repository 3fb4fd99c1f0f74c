"""The user's words, each message in order, and what else stands in the user's role."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .rendering import TITLES, Line, Section

FIRST, STATES, ASKS, GOES_ON, MACHINE = range(5)
_GO_ON_CHARS = 24
_WORD = re.compile(r"\w+")
_ASKS = ("?", "？", "؟", "?)", '?"')
MACHINE_CHARS = 300
LEAST_REPEATED = 24
"""Shorter texts are quoted although they stand in the view anyway."""


@dataclass(frozen=True)
class Said:
    """One text of the user's, or of another speaker in the user's role."""

    at: int
    text: str
    how: str = ""
    """Where the protocol put it, if not in a message of the user's own."""
    by_user: bool = True


def section(said: Sequence[Said], visible: str) -> Section:
    """Return the section of the user's words; texts that `visible` holds are left out."""
    shown = [one for one in said if not _is_visible(one.text, visible)]
    ranks = _ranks(shown)
    lines = [
        Line(one.at, rank, one.text.strip(), f"{one.how}: " if one.how else "")
        for one, rank in zip(shown, ranks, strict=True)
    ]
    return Section(TITLES["user"], lines, 0.45, least=40, noun="messages of the user")


def _is_visible(text: str, visible: str) -> bool:
    words = text.strip()
    return len(words) >= LEAST_REPEATED and words in visible


def _ranks(said: Sequence[Said]) -> list[tuple[int, ...]]:
    """Return a rank each: the first and the newest, then statements with rare words."""
    spoken = Counter(word for one in said for word in set(_words(one.text)))
    newest = max((n for n, one in enumerate(said) if one.by_user), default=-1)
    repeated = {one.text: n for n, one in enumerate(said)}
    ranks: list[tuple[int, ...]] = []
    for n, one in enumerate(said):
        kind = _kind(one)
        if kind != MACHINE and (n in (0, newest) or one.how):
            kind = FIRST
        elif repeated[one.text] != n:
            kind = max(kind, GOES_ON)
        ranks.append((kind, -_rarity(one.text, spoken), -n))
    return ranks


def _kind(one: Said) -> int:
    text = one.text.strip()
    if not one.by_user:
        return MACHINE
    if len(text) < _GO_ON_CHARS and not any(map(str.isdigit, text)):
        return GOES_ON
    return ASKS if text.endswith(_ASKS) else STATES


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:600].lower())


def _rarity(text: str, spoken: Counter[str]) -> int:
    """Return how many of the words hardly another message has, in tenths of its words."""
    words = set(_words(text))
    rare = sum(1 for word in words if spoken[word] <= RARE)
    return 10 * rare // max(8, len(words))


RARE = 2
