"""Texts like those of transcripts."""

from __future__ import annotations

import random


def prose(words: int, seed: int = 1) -> str:
    """Return lines of words, code, numbers, paths and Chinese."""
    chance = random.Random(seed)
    kinds = (
        lambda: "".join(chance.choices("abcdefghijklmnop", k=chance.randint(1, 9))),
        lambda: chance.choice(["don't", "I'll", "x = {'a': 1}", "//", "src/app.py:42", "e.g.,"]),
        lambda: str(chance.randint(0, 10**6)),
        lambda: chance.choice(["你好，世界。", "naïve", "Ωmega", "—", "😀"]),
        lambda: chance.choice(["\n", "\n\n    ", ".\n", "}\n/", "\t", "  "]),
    )
    return " ".join(chance.choices(kinds, weights=(12, 3, 2, 1, 2))[0]() for _ in range(words))
