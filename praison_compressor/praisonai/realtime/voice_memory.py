"""Which items leave a voice conversation's window, and the memory that replaces them.

The messages of all these items are one transcript for `ContextCompressor`, which archives and
summarizes them. Its view is the memory's text.
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
    """Numbers of items between which the window is kept; 0: never folded."""

    max_history_items: int = 0
    """Newest items that stay verbatim after a fold."""

    trigger_items: int = 0
    """Items of the window at which a fold begins."""

    def __post_init__(self) -> None:
        """Check the marks.

        Raises:
            ConfigError: one mark is missing, or the high one is not above the low one.
        """
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
        """Return whether anything is ever folded."""
        return self.trigger_items > 0

    @property
    def step(self) -> int:
        """Fewest items worth a new memory: half a fold."""
        return max(1, (self.trigger_items - self.max_history_items) // 2)


# -------------------------------------------------------------- choosing


def choose(items: Items, marks: Marks) -> list[Item]:
    """Return the oldest items above the low mark, if worth it.

    For up to two windows' items these stay: speech without a transcript, a call without its output,
    a call whose output stays. Leading system messages always stay.
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
"""The memory gets 1 / MEMORY_SHARE of the window, and each response reads it again. In a script of
200 turns a sixteenth costs 615,000 tokens, a twentieth 575,000, both with all planted facts; with a
48th half of them are lost."""


def memory_options(config: CompressorConfig, model: str) -> CompressorConfig:
    """Return the options for a memory: a small window without tail."""
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


class VoiceMemory:
    """A voice conversation's folded items and the text that replaces them."""

    def __init__(self, compressor: ContextCompressor, session_id: str) -> None:
        self._compressor = compressor
        self._session_id = session_id
        self._is_read = False
        # Never edited in place: its identity proves that a text was made from it.
        self._transcript: list[Message] = []
        self.segments: tuple[Segment, ...] = ()
        """The view's summaries, oldest first."""
        self.text = ""
        """The memory item's text, in one frame; "" before the first fold."""
        self.outdated = False
        """Whether text or store differ from the transcript."""

    async def open(self) -> None:
        """Read the session as another process left it.

        Raises:
            LedgerError: the store cannot be read.
        """
        if not self._is_read:
            found = await asyncio.to_thread(self._stored)
            self._use(found, await asyncio.to_thread(self._best, found) if found else None)
            self._is_read = True

    async def fold(self, messages: Sequence[Message] = ()) -> bool:
        """Archive and summarize more messages; False if the transcript changed meanwhile.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        before = self._transcript
        transcript = [*before, *messages]
        self.outdated = True  # until the end: the store may have more than the text
        view = await self._view(transcript) if transcript else None
        await asyncio.to_thread(self._record, transcript)
        if before is not self._transcript:
            return False
        self._use(transcript, view)
        return True

    def replace(self, item_id: str, message: Message | None) -> bool:
        """Replace or remove an item's message; return whether the memory had it."""
        now = [] if message is None else [message]
        found: list[Message] = []
        for old in self._transcript:
            found += now if old["id"] == item_id else [old]
        if found == self._transcript:
            return False
        self._transcript, self.outdated = found, True
        return True

    def dismiss(self) -> None:
        """Forget everything: the memory item itself was deleted."""
        self._transcript, self.text, self.segments, self.outdated = [], "", (), True

    def _use(self, transcript: list[Message], view: CompressResult | None) -> None:
        self._transcript, self.outdated = transcript, False
        self.segments = () if view is None else view.segments
        self.text = "" if view is None else _text_of(view, len(transcript))

    async def _view(self, transcript: list[Message]) -> CompressResult:
        try:
            return await self._compressor.compress(transcript, session_id=self._session_id)
        except BudgetTooSmall:  # one message is larger than the memory's window
            return await asyncio.to_thread(self._best, transcript)

    def _best(self, transcript: list[Message]) -> CompressResult:
        return self._compressor.best(transcript, session_id=self._session_id)

    def _stored(self) -> list[Message]:
        store, namespace = self._compressor.store, self._compressor.config.namespace
        return store.transcript(store.open(namespace, self._session_id))

    def _record(self, transcript: list[Message]) -> None:
        """Archive messages that no summary covers too: they leave the server."""
        if not self._compressor.save(transcript, session_id=self._session_id):
            store, namespace = self._compressor.store, self._compressor.config.namespace
            store.commit(store.open(namespace, self._session_id), (), tuple(transcript))


def _text_of(view: CompressResult, count: int) -> str:
    """Return the view as one text: summaries, and verbatim messages beside them."""
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
