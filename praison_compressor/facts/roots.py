"""Long folders that many paths share, written once instead of in every path."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_ABSOLUTE = re.compile(r"(?<![\w./~:])/(?:[\w.@+-]+/){2,}(?=[\w.@+-]+/)")
_RELATIVE = re.compile(r"(?<![\w./~@:-])(?:[\w@+-][\w.@+-]*/){2,}(?=[\w.@+-]+/)")
LEAST_USES = 4


class Roots:
    """At most one absolute and one relative folder that texts of the session keep repeating."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self.absolute = _best(_ABSOLUTE, texts)
        self.relative = _best(_RELATIVE, (self._local(text) for text in texts))
        self._strip = _stripper(self.relative)

    def strip(self, text: str) -> str:
        """The text with the shared folders left out of its paths."""
        text = self._local(text)
        return self._strip.sub("", text) if self._strip else text

    def _local(self, text: str) -> str:
        return text.replace(self.absolute, "") if self.absolute else text

    def note(self) -> str:
        """How to read the shortened paths; empty if none is shortened."""
        shown = [root for root in (self.absolute, self.relative) if root]
        return f"(left out of paths: {' and '.join(shown)})" if shown else ""


def _stripper(root: str) -> re.Pattern[str] | None:
    # Two parts must remain, or nobody could tell which file is meant.
    return re.compile(rf"(?<![\w./~@-]){re.escape(root)}(?=[\w.@+-]+/)") if root else None


def _best(pattern: re.Pattern[str], texts: Iterable[str]) -> str:
    uses: Counter[str] = Counter()
    for text in texts:
        uses.update(pattern.findall(text))
    shared: Counter[str] = Counter()
    for folder, times in uses.items():
        parts = folder.split("/")[:-1]
        for depth in range(2, len(parts) + 1):
            shared["/".join(parts[:depth]) + "/"] += times
    worth = {root: times * len(root) for root, times in shared.items() if times >= LEAST_USES}
    return max(worth, key=lambda root: (worth[root], root)) if worth else ""
