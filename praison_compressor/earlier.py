"""A session's transcript as it was in an earlier epoch: what a fork of that epoch begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .ledger import Outline
from .messages import Message

__all__ = ["ARCHIVE_ONLY", "earlier_outline"]

ARCHIVE_ONLY = (
    "session %s: its store has only what was compressed, not the system prompt and the newest "
    "messages; go on from the application's own copy, where it has one"
)
"""Logged where a transcript is asked for that was never recorded."""


def earlier_outline(
    outline: Outline, inherited: int, length: int, originals: Callable[[int], Sequence[Message]]
) -> Outline | None:
    """The first `length` messages of an outline, in which only `inherited` segments stand.

    The runs of later segments stand as their `originals`. None where the length was not recorded
    (0), and where the transcript was edited since: it is shorter now, or a segment that stands
    holds what came later.
    """
    if not length:
        return None
    found: list[Message | int] = []
    room = length
    for item in outline:
        run = originals(item) if isinstance(item, int) else (item,)
        if isinstance(item, int) and item < inherited:
            found.append(item)
        else:
            found += run[: max(0, room)]
        room -= len(run)
        if room <= 0:
            break
    is_whole = room == 0 or (room < 0 and not isinstance(found[-1], int))
    return tuple(found) if is_whole else None
