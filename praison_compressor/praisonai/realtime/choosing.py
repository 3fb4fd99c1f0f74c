"""Pure: the two marks between which a voice conversation is kept, which items to fold, in which
order to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import ConfigError
from .items import Item, Items

__all__ = [
    "Batch",
    "Marks",
    "choose",
    "deletions",
]


# -------------------------------------------------------------- marks


PATIENCE = 64
"""Items after which an answer is no longer waited for, where the marks are tokens."""


@dataclass(frozen=True)
class Marks:
    """At the high mark the oldest items are folded, down to the low one. Off unless given.

    Raises:
        ConfigError: half a pair, both pairs, or a high mark that is not above the low one.
    """

    max_history_items: int | None = None
    """Items of the live window that stay verbatim after a fold."""

    trigger_items: int | None = None
    """Fold when the window has this many items."""

    max_history_tokens: int | None = None
    """The same in tokens, audio included."""

    trigger_tokens: int | None = None
    """Fold when the window has this many tokens, as the server bills them."""

    def __post_init__(self) -> None:
        items = (self.max_history_items, self.trigger_items)
        tokens = (self.max_history_tokens, self.trigger_tokens)
        _check("max_history_items", "trigger_items", *items)
        _check("max_history_tokens", "trigger_tokens", *tokens)
        if self.trigger_items is not None and self.trigger_tokens is not None:
            raise ConfigError("trigger_items and trigger_tokens: give one of the two pairs")

    @property
    def on(self) -> bool:
        """Whether anything is ever folded."""
        return self.trigger_items is not None or self.trigger_tokens is not None

    @property
    def in_tokens(self) -> bool:
        """Whether the marks are tokens."""
        return self.trigger_tokens is not None

    @property
    def patience(self) -> int:
        """Items after which a missing transcript or tool output is no longer waited for."""
        return 2 * self.trigger_items if self.trigger_items is not None else PATIENCE

    def surplus(self, sizes: Sequence[int]) -> int:
        """How many of the oldest items are to go; 0 below the high mark."""
        if self.trigger_items is not None and self.max_history_items is not None:
            return len(sizes) - self.max_history_items if len(sizes) >= self.trigger_items else 0
        if self.trigger_tokens is not None and self.max_history_tokens is not None:
            return _surplus(sizes, self.max_history_tokens, self.trigger_tokens)
        return 0

    def worth(self, sizes: Sequence[int]) -> bool:
        """Whether so many items repay a call of the model: half of what lies between the marks."""
        if self.trigger_items is not None and self.max_history_items is not None:
            return len(sizes) >= max(1, (self.trigger_items - self.max_history_items) // 2)
        if self.trigger_tokens is not None and self.max_history_tokens is not None:
            return sum(sizes) >= max(1, (self.trigger_tokens - self.max_history_tokens) // 2)
        return False


def _surplus(sizes: Sequence[int], low: int, high: int) -> int:
    left = sum(sizes)
    if left < high:
        return 0
    count = 0
    while left > low:
        left -= sizes[count]
        count += 1
    return count


def _check(low_name: str, high_name: str, low: int | None, high: int | None) -> None:
    if low is None and high is None:
        return
    if low is None or high is None:
        given = low_name if high is None else high_name
        raise ConfigError(f"{given} alone: {low_name} and {high_name} belong together")
    for name, value in ((low_name, low), (high_name, high)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name}={value!r}: expected a positive whole number")
    if high <= low:
        raise ConfigError(f"{high_name}={high}: expected more than {low_name}={low}")


# -------------------------------------------------------------- choosing


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
