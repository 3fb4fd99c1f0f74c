"""Pure: which items to fold, what a fold was prepared from, and in which order to delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .items import Item, Items
from .marks import Marks

__all__ = ["Batch", "choose", "deletions"]


@dataclass(frozen=True)
class Batch:
    """Items to be folded, as they were when that was decided."""

    items: tuple[Item, ...]
    revisions: tuple[int, ...]
    sizes: tuple[int, ...]

    def changed(self, items: Items) -> list[Item]:
        """Those that were deleted, withdrawn or truncated since."""
        return [
            item
            for item, revision in zip(self.items, self.revisions, strict=True)
            if items.get(item.id) is not item or item.withdrawn or item.revision != revision
        ]


def choose(items: Items, marks: Marks, size: Callable[[Item], int]) -> Batch | None:
    """The oldest items above the low mark, once the high mark is reached and it is worth it.

    What is not final stays where it is: speech without a transcript, a call without its output,
    a call whose output is still in the window. Leading system messages are the application's.
    """
    window = _after_system(items.live())
    sizes = [size(item) for item in window] if marks.in_tokens else [1] * len(window)
    surplus = marks.surplus(sizes)
    if not surplus:
        return None
    overdue = items.sequence - marks.patience
    old = [item for item in window[:surplus] if item.settled or item.sequence < overdue]
    chosen = _whole_pairs(old, window, overdue)
    picked = [(item, n) for item, n in zip(window, sizes, strict=True) if item in chosen]
    if not marks.worth([n for _, n in picked]):
        return None
    return Batch(
        tuple(item for item, _ in picked),
        tuple(item.revision for item, _ in picked),
        tuple(n for _, n in picked),
    )


def _after_system(window: list[Item]) -> list[Item]:
    start = 0
    while start < len(window) and window[start].role == "system":
        start += 1
    return window[start:]


def _whole_pairs(old: Sequence[Item], window: Sequence[Item], overdue: int) -> list[Item]:
    """Those of the old items that split no call from its output."""
    inside = {id(item) for item in old}
    calls = {item.call_id: item for item in window if item.type == "function_call"}
    outputs = {item.call_id: item for item in window if item.type == "function_call_output"}

    def free(item: Item) -> bool:
        if item.type == "function_call":
            output = outputs.get(item.call_id)
            # An answer that has been owed for so long will not come.
            return item.sequence < overdue if output is None else id(output) in inside
        if item.type == "function_call_output":
            call = calls.get(item.call_id)
            return call is None or id(call) in inside
        return True

    return [item for item in old if free(item)]


def deletions(folded: Sequence[Item]) -> list[list[str]]:
    """The ids to delete, oldest first; those in one list at once, an output before its call."""
    outputs = {item.call_id: item for item in folded if item.type == "function_call_output"}
    calls = {item.call_id for item in folded if item.type == "function_call"}
    found = []
    for item in folded:
        if item.type == "function_call" and item.call_id in outputs:
            found.append([outputs[item.call_id].id, item.id])
        elif item.type != "function_call_output" or item.call_id not in calls:
            found.append([item.id])
    return found
