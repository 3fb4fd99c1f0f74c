"""How likely an identifier is to be needed again: what the choice of excerpts spends on.

A logistic model on what can be counted without knowing the future. Its weights were fitted over
230 cuts of 60 recorded agent sessions (label: the agent later used the identifier in a call before
anything showed it again), strongly regularised and checked by leaving whole sessions out; rounded,
since the second digit was noise. Two choices are by hand: the user's own identifiers weigh nothing
here (the user's words are kept in their own section), and `SHARPNESS` undoes the shrinking of the
regularisation.
"""

from __future__ import annotations

import math

from .model import Facts, Identifier

SHARPNESS = 2.0
_BASE = -2.2
_KIND = {
    "uuid": 1.5,
    "id": 0.9,
    "hash": 0.35,
    "symbol": 0.3,
    "path": 0.25,
    "date": 0.1,
    "number": -0.2,
    "folder": -0.2,
    "url": -0.25,
    "dotted": -0.35,
    "file": -0.7,
    "email": -0.5,
}
_NAMED = 1.1
_NAMED_AGAIN = 0.85
_ONLY_SHOWN = -0.3
_SAID = 0.15
_CROWD = -0.12
_SPREAD = 0.1
_FOUNDATION = 0.55
_LENGTH = 0.2


def importance(item: Identifier, messages: int) -> float:
    """The odds, as a weight between 0 and 1, that the identifier is needed again."""
    score = _BASE + _KIND.get(item.kind, 0.0)
    if item.named:
        score += _NAMED + _NAMED_AGAIN * math.log1p(item.named)
    if item.assistant:
        score += _SAID
    if not (item.named or item.bodies or item.assistant or item.user):
        score += _ONLY_SHOWN
    score += _CROWD * math.log(max(1, item.crowd))
    score += _SPREAD * math.log1p(item.spread)
    # What was there from the beginning is what the session is about.
    score += _FOUNDATION * (messages - item.first) / max(1, messages)
    score += _LENGTH * math.log(max(1, len(item.text)))
    return 1.0 / (1.0 + math.exp(-SHARPNESS * score))


def worth(facts: Facts) -> dict[str, float]:
    """The weight of each identifier; one of the domain's own is worth all there is."""
    return {
        item.text: 1.0 if item.kind in facts.patterns else importance(item, facts.messages)
        for item in facts.identifiers
    }
