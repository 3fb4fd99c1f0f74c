"""Which items leave a voice conversation's window, and the memory that stands for them.

The messages of all items that left are one transcript for `ContextCompressor`: it decides what of
them is quoted and what is summarized, and archives them. Its view is the memory's text.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
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


@dataclass(frozen=True)
class Marks:
    """At the high mark the oldest items are folded, down to the low one. Off unless given.

    Raises:
        ConfigError: one without the other, or a high mark that is not above the low one.
    """

    max_history_items: int = 0
    """Items of the live window that stay verbatim after a fold."""

    trigger_items: int = 0
    """Fold when the window has this many items."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int or value < 1 <= max(
                self.max_history_items, self.trigger_items
            ):
                raise ConfigError(f"{name}={value!r}: give both marks, as positive whole numbers")
        if self.on and self.trigger_items <= self.max_history_items:
            least = self.max_history_items + 1
            raise ConfigError(f"trigger_items={self.trigger_items}: expected {least} or more")

    @property
    def on(self) -> bool:
        """Whether anything is ever folded."""
        return self.trigger_items > 0

    @property
    def step(self) -> int:
        """Items that repay a new memory, which the server reads anew: half of a whole fold."""
        return max(1, (self.trigger_items - self.max_history_items) // 2)


# -------------------------------------------------------------- choosing


def choose(items: Items, marks: Marks) -> list[Item]:
    """The oldest items above the low mark, once the high mark is reached and it is worth it.

    What is not final stays where it is: speech without a transcript, a call without its output,
    a call whose output is still in the window; but no longer than for two windows' items. Leading
    system messages are the application's.
    """
    window = items.live()
    while window and window[0].role == "system":
        window.pop(0)
    if not marks.on or len(window) < marks.trigger_items:
        return []
    overdue = items.sequence - 2 * marks.trigger_items
    old = [i for i in window[: -marks.max_history_items] if i.settled or i.sequence < overdue]

    def is_whole(item: Item) -> bool:
        pair = [other for other in window if other.call_id and other.call_id == item.call_id]
        is_owed = item.type == "function_call" and len(pair) < 2 and item.sequence >= overdue
        return not is_owed and all(other in old for other in pair)

    chosen = [item for item in old if is_whole(item)]
    is_worth = len(chosen) >= marks.step and any(map(_says_something, chosen))
    return chosen if is_worth else []


def _says_something(item: Item) -> bool:
    return bool(item.call_id) or (item.text != EMPTY_SPEECH and bool(re.search(r"\w", item.text)))


# -------------------------------------------------------------- memory


REALTIME_WINDOW = 32_000
"""Tokens of OpenAI's realtime models, which no table lists."""


MEMORY_SHARE = 20
"""One part in so many of the window is the memory's, which each response reads again: a script of
200 turns reads 615,000 tokens with a sixteenth, 575,000 with a twentieth, and all planted facts are
known; with a 48th half of them are lost (`python -m tests.benchmarks.realtime`)."""


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


class Memory:
    """What left the window of one voice conversation, and the text that stands for it."""

    def __init__(self, compressor: ContextCompressor, session_id: str) -> None:
        self._compressor = compressor
        self._session_id = session_id
        self._is_read = False
        # Never edited in place: by its identity is known what a text was made from.
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
            self._use(found, await asyncio.to_thread(self._best, found) if found else None)
            self._is_read = True

    async def fold(self, messages: Sequence[Message] = ()) -> bool:
        """Archive and remember these messages too; False if something was forgotten meanwhile.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        before = self._transcript
        transcript = [*before, *messages]
        self.outdated = True  # until it is used: the store may have more than is remembered
        view = await self._view(transcript) if transcript else None
        await asyncio.to_thread(self._record, transcript)
        if before is not self._transcript:
            return False
        self._use(transcript, view)
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

    def _use(self, transcript: list[Message], view: CompressResult | None) -> None:
        self._transcript, self.outdated = transcript, False
        self.segments = () if view is None else view.segments
        self.text = "" if view is None else _told(view, len(transcript))

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
