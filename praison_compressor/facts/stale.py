"""What the user took back: older words with such a value are not told as if it held."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

from .model import Facts


class Spoken(Protocol):
    """A text with the position of its message."""

    @property
    def index(self) -> int: ...

    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=Spoken)


class Stale:
    """The values that no longer hold, and since when."""

    def __init__(self, facts: Facts) -> None:
        self._since: dict[str, int] = {}
        for said in facts.user:
            for value in said.old_values if said.superseded_at is not None else ():
                self._since[value] = max(self._since.get(value, 0), said.superseded_at or 0)
        words = "|".join(map(re.escape, sorted(self._since, key=len, reverse=True)))
        self._any = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None

    def holds(self, text: str, index: int) -> bool:
        """Whether words of that message name a value that was replaced after them."""
        if self._any is None:
            return False
        return any(index < self._since[found.group()] for found in self._any.finditer(text))

    def without(self, items: Iterable[S]) -> list[S]:
        """Those of the items that hold no replaced value."""
        return [item for item in items if not self.holds(item.text, item.index)]
