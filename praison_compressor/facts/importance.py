"""How likely an identifier is to be needed again: what the greedy choice of excerpts spends on."""

from __future__ import annotations

import math

from .model import Identifier

_KIND = {
    "path": 0.6,
    "file": 0.3,
    "symbol": 0.3,
    "id": 0.3,
    "url": 0.4,
    "uuid": 0.6,
    "hash": 0.3,
    "number": -0.6,
    "date": 0.0,
    "dotted": -0.3,
    "email": 0.2,
}


def importance(item: Identifier, messages: int) -> float:
    """A weight between 0 and 1; only its order and ratios matter."""
    uses = item.calls + item.user + item.assistant + item.results
    score = -5.0 + _KIND.get(item.kind, 0.0)
    score += 2.6 if item.calls else 0.0
    score += 0.5 * math.log1p(item.calls)
    score += 1.0 if item.user else 0.0
    score += 0.8 if item.assistant else 0.0
    score += 0.3 * math.log1p(uses)
    age = (messages - item.last) / max(1, messages)
    score -= 1.0 * age
    return 1.0 / (1.0 + math.exp(-score))
