"""Which items leave a voice conversation's window, and the memory that stands for them.

The messages of all items that left are one transcript for `ContextCompressor`: it decides what of
them is quoted and what is summarized, and archives them. Its view is the memory's text.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ...compressor.context_compressor import ContextCompressor
from ...compressor.result import CompressResult
from ...config import CompressorConfig
from ...errors import BudgetTooSmall, ConfigError
from ...ledger.segments import Segment
from ...messages import Message
from ...summaries.prompts import rendering
from ...view.frame import escape, frame, unframe
from .items import EMPTY_SPEECH, Item, Items

__all__ = [
    "Batch",
    "Marks",
    "Memory",
    "choose",
    "memory_options",
]


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
        for unit in ("items", "tokens"):
            low_name, high_name = f"max_history_{unit}", f"trigger_{unit}"
            low, high = getattr(self, low_name), getattr(self, high_name)
            if (low is None) != (high is None):
                raise ConfigError(f"{low_name} and {high_name} belong together: give both")
            for name, value in ((low_name, low), (high_name, high)):
                if value is not None and (type(value) is not int or value < 1):
                    raise ConfigError(f"{name}={value!r}: expected a positive whole number")
            if low is not None and high <= low:
                raise ConfigError(f"{high_name}={high}: expected more than {low_name}={low}")
        if self.trigger_items is not None and self.trigger_tokens is not None:
            raise ConfigError("trigger_items and trigger_tokens: give one of the two pairs")

    @property
    def on(self) -> bool:
        """Whether anything is ever folded."""
        return self.high > 0

    @property
    def in_tokens(self) -> bool:
        """Whether the marks are tokens."""
        return self.trigger_tokens is not None

    @property
    def low(self) -> int:
        """The low mark, in items or in tokens."""
        return self.max_history_items or self.max_history_tokens or 0

    @property
    def high(self) -> int:
        """The high mark; 0 where none is given."""
        return self.trigger_items or self.trigger_tokens or 0

    @property
    def patience(self) -> int:
        """Items after which a missing transcript or tool output is no longer waited for."""
        return 2 * self.trigger_items if self.trigger_items is not None else PATIENCE


# -------------------------------------------------------------- choosing


@dataclass(frozen=True)
class Batch:
    """Items to be folded, as they were when that was decided."""

    items: tuple[Item, ...]
    revisions: tuple[int, ...]

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
    window = items.live()
    while window and window[0].role == "system":
        window.pop(0)
    sizes = {item: size(item) if marks.in_tokens else 1 for item in window}
    left = sum(sizes.values())
    if not marks.on or left < marks.high:
        return None
    overdue = items.sequence - marks.patience
    old: list[Item] = []
    for item in window:
        if left <= marks.low:
            break
        left -= sizes[item]
        if item.settled or item.sequence < overdue:
            old.append(item)
    chosen = _whole_pairs(old, window, overdue)
    # A new memory makes the server read all anew: half of what lies between the marks is worth it.
    worth = max(1, (marks.high - marks.low) // 2)
    if sum(sizes[item] for item in chosen) < worth or not any(map(_says_something, chosen)):
        return None
    return Batch(tuple(chosen), tuple(item.revision for item in chosen))


def _whole_pairs(old: Sequence[Item], window: Sequence[Item], overdue: int) -> list[Item]:
    """Those of the old items that split no call from its output."""
    calls = {item.call_id: item for item in window if item.type == "function_call"}
    outputs = {item.call_id: item for item in window if item.type == "function_call_output"}

    def free(item: Item) -> bool:
        if item.type == "function_call":
            output = outputs.get(item.call_id)
            # An answer that has been owed for so long will not come.
            return item.sequence < overdue if output is None else output in old
        if item.type == "function_call_output":
            call = calls.get(item.call_id)
            return call is None or call in old
        return True

    return [item for item in old if free(item)]


def _says_something(item: Item) -> bool:
    return bool(item.call_id) or (item.text != EMPTY_SPEECH and bool(re.search(r"\w", item.text)))


# -------------------------------------------------------------- memory


REALTIME_WINDOW = 32_000
"""Tokens of OpenAI's realtime models, which no table lists."""


MEMORY_SHARE = 8
"""One part in so many of the window is the memory's: each response reads it again."""


def memory_options(config: CompressorConfig, model: str) -> CompressorConfig:
    """The compressor's options for a memory: its share of the window, and no tail of its own."""
    window = config.context_window or REALTIME_WINDOW
    return replace(
        config,
        model=config.model or model,
        context_window=max(1, window // MEMORY_SHARE),
        output_reserve=0,
        token_floor=0,
        protect_last_n_tokens=0,
        background=False,
        recall=False,
    )


@dataclass(frozen=True)
class Draft:
    """A memory that is written and archived, and not in use yet."""

    before: list[Message]
    transcript: list[Message]
    view: CompressResult | None


class Memory:
    """What left the window of one voice conversation, and the text that stands for it."""

    def __init__(self, compressor: ContextCompressor, session_id: str) -> None:
        self._compressor = compressor
        self._session_id = session_id
        self._is_read = False
        # Never edited in place: a draft knows by identity what it was made from.
        self._transcript: list[Message] = []
        self.segments: tuple[Segment, ...] = ()
        """The summaries in use, oldest first."""
        self.text = ""
        """What the conversation is told, in one frame; "" while nothing was folded."""
        self.outdated = False
        """Whether the text or the store has what is not, or no longer, to be remembered."""

    async def open(self) -> None:
        """Read what another process remembered of the session.

        Raises:
            LedgerError: the store cannot be read.
        """
        if not self._is_read:
            found = await asyncio.to_thread(self._stored)
            view = await asyncio.to_thread(self._best, found) if found else None
            self.adopt(Draft(self._transcript, found, view))
            self._is_read = True

    async def draft(self, messages: Sequence[Message] = ()) -> Draft:
        """The memory with these messages in it too, archived; it is used once it is adopted.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        before = self._transcript
        transcript = [*before, *messages]
        self.outdated = True  # until it is adopted: the store may have more than is remembered
        view = await self._view(transcript) if transcript else None
        await asyncio.to_thread(self._record, transcript)
        return Draft(before, transcript, view)

    def adopt(self, draft: Draft) -> bool:
        """Use the draft, unless something was forgotten since; whether it is used."""
        if draft.before is not self._transcript:
            return False
        self._transcript, self.outdated = draft.transcript, False
        self.segments = () if draft.view is None else draft.view.segments
        self.text = "" if draft.view is None else _told(draft.view, len(draft.transcript))
        return True

    def replace(self, item_id: str, message: Message | None) -> bool:
        """Put another message in an item's place, or none; whether the memory had the item."""
        now = [] if message is None else [message]
        found: list[Message] = []
        for old in self._transcript:
            found += now if old["id"] == item_id else [old]
        if found == self._transcript:
            return False
        self._transcript, self.outdated = found, True
        return True

    def dismiss(self) -> None:
        """Someone deleted the memory itself: go on without what was remembered."""
        self._transcript, self.text, self.segments, self.outdated = [], "", (), True

    async def _view(self, transcript: list[Message]) -> CompressResult:
        try:
            return await self._compressor.compress(transcript, session_id=self._session_id)
        except BudgetTooSmall:  # one message is larger than the whole memory may be
            return await asyncio.to_thread(self._best, transcript)

    def _best(self, transcript: list[Message]) -> CompressResult:
        return self._compressor.best(transcript, session_id=self._session_id)

    def _stored(self) -> list[Message]:
        store, namespace = self._compressor.store, self._compressor.config.namespace
        return store.transcript(store.open(namespace, self._session_id))

    def _record(self, transcript: list[Message]) -> None:
        """Archive what is quoted too, also before the first summary: it leaves the server."""
        if not self._compressor.save(transcript, session_id=self._session_id):
            store, namespace = self._compressor.store, self._compressor.config.namespace
            store.commit(store.open(namespace, self._session_id), (), tuple(transcript))


def _told(view: CompressResult, count: int) -> str:
    """The view as one text: the summaries, and what stands verbatim beside them."""
    method = "model" if any(s.method == "model" for s in view.segments) else "static"
    opening, *_, closing = frame("", count=count, method=method).split("\n")
    rendered = [segment.rendered for segment in view.segments]
    parts: list[str] = []
    for is_summary, group in groupby(view.messages, rendered.__contains__):
        found = list(group)
        # Summaries were escaped when they were written.
        parts += map(unframe, found) if is_summary else [escape("\n".join(rendering(found)))]
    words = "\n\n".join(parts)
    return f"{opening}\n{words}\n{closing}"
