"""A family of epochs as lines: what goes on stays in its column, what was forked moves in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..ledger import Epoch

__all__ = ["Line", "lines"]


@dataclass(frozen=True)
class Line:
    """One epoch: how far it is moved in, and how it came about."""

    depth: int
    how: str
    """ "began", "compressed" or "fork"."""
    epoch: Epoch


def lines(epochs: Iterable[Epoch]) -> Iterator[Line]:
    """The epochs in their order, each after its parent."""
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        before = last.get(epoch.session_id)
        is_fork = before is None and epoch.parent_id in depth
        above = depth.get(before or epoch.parent_id or "", 0)
        depth[epoch.id] = above + is_fork
        last[epoch.session_id] = epoch.id
        yield Line(
            depth[epoch.id], "compressed" if before else "fork" if is_fork else "began", epoch
        )
