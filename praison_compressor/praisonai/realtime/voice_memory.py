"""Archive and summarize a voice conversation's folded items as one transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from ...compressor.context_compressor import ContextCompressor
from ...compressor.result import CompressResult
from ...config import CompressorConfig
from ...errors import BudgetTooSmall
from ...ledger.segments import Segment
from ...messages import Message
from ...summaries.prompts import render_messages
from ...view.frame import escape, frame_summary, unframe

REALTIME_WINDOW = 32_000
"""The window of OpenAI's realtime models, in tokens; no table lists these models."""

MEMORY_DIVISOR = 20
"""The memory gets 1 / MEMORY_DIVISOR of the window. With 16, 200 turns cost 615,000 tokens; with 20
they cost 575,000. Both values keep every planted fact; 48 keeps half of the facts."""


def memory_options(config: CompressorConfig, model: str) -> CompressorConfig:
    """Return the options for a memory: a small window without a tail."""
    window = config.context_window or REALTIME_WINDOW
    return replace(
        config,
        model=config.model or model,
        context_window=max(1, window // MEMORY_DIVISOR),
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
        # Replace the list, never edit it: `fold` detects a change by identity.
        self._transcript: list[Message] = []
        self.segments: tuple[Segment, ...] = ()
        self.text = ""
        """The memory item's text; "" before the first fold."""
        self.outdated = False
        """Whether text or store differ from the folded items."""

    async def open(self) -> None:
        """Read the stored session and the tokenizer's vocabulary, once.

        Raises:
            LedgerError: the store cannot be read.
        """
        if not self._is_read:
            await asyncio.to_thread(self._compressor.tokens.text, "")
            stored = await asyncio.to_thread(self._read_store)
            self._use(stored, await asyncio.to_thread(self._best, stored) if stored else None)
            self._is_read = True

    async def fold(self, messages: Sequence[Message] = ()) -> bool:
        """Archive and summarize more messages; False if the transcript changed meanwhile.

        Raises:
            LedgerError: the store cannot be read or written.
        """
        before = self._transcript
        transcript = [*before, *messages]
        # Outdated is True until the end: after a failure the store may have more than the text.
        self.outdated = True
        view = await self._view(transcript) if transcript else None
        await asyncio.to_thread(self._record, transcript)
        if before is not self._transcript:
            return False
        self._use(transcript, view)
        return True

    def replace(self, item_id: str, message: Message | None) -> bool:
        """Replace or remove an item's message; return whether the memory had it."""
        replacement = [] if message is None else [message]
        transcript: list[Message] = []
        for old in self._transcript:
            transcript += replacement if old["id"] == item_id else [old]
        if transcript == self._transcript:
            return False
        self._transcript = transcript
        self.outdated = True
        return True

    def dismiss(self) -> None:
        """Forget everything, as when the memory item is deleted."""
        self._use([], None)
        self.outdated = True

    def _use(self, transcript: list[Message], view: CompressResult | None) -> None:
        self._transcript = transcript
        self.outdated = False
        self.segments = () if view is None else view.segments
        self.text = "" if view is None else _memory_text(view, len(transcript))

    async def _view(self, transcript: list[Message]) -> CompressResult:
        try:
            return await self._compressor.compress(transcript, session_id=self._session_id)
        except BudgetTooSmall:  # one message exceeds the memory's window
            return await asyncio.to_thread(self._best, transcript)

    def _best(self, transcript: list[Message]) -> CompressResult:
        return self._compressor.fallback_view(transcript, session_id=self._session_id)

    def _read_store(self) -> list[Message]:
        store, namespace = self._compressor.store, self._compressor.config.namespace
        return store.transcript(store.open(namespace, self._session_id))

    def _record(self, transcript: list[Message]) -> None:
        # Record all messages, even messages without a summary: the server deletes them.
        if not self._compressor.save(transcript, session_id=self._session_id):
            store, namespace = self._compressor.store, self._compressor.config.namespace
            store.commit(store.open(namespace, self._session_id), (), tuple(transcript))


def _memory_text(view: CompressResult, count: int) -> str:
    method = "model" if any(s.method == "model" for s in view.segments) else "static"
    opening, *_, closing = frame_summary("", count=count, method=method).split("\n")
    rendered = [segment.rendered for segment in view.segments]
    parts: list[str] = []
    for is_summary, group in groupby(view.messages, rendered.__contains__):
        messages = list(group)
        parts += (
            map(unframe, messages) if is_summary else [escape("\n".join(render_messages(messages)))]
        )
    return "\n".join([opening, "\n\n".join(parts), closing])
