"""Briefs, and the writer that makes texts of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from praison_compressor import CompressorConfig, TokenCounter
from praison_compressor.messages import Message
from praison_compressor.summaries.protocol import Brief, SegmentText, as_summarizer
from praison_compressor.summaries.writer import SummaryWriter

TOKENS = TokenCounter("gpt-4o")


def brief(messages: Sequence[Message], room: int = 2_000, **changes: Any) -> Brief:
    """Return a brief whose messages are shown as they are."""
    segment = tuple(messages)
    values = {"messages": segment, "model_messages": segment, "text_tokens": room}
    return Brief(**{**values, "quote_tokens": 200, "prose_tokens": 200, **changes})


def writer(summarizer: Any = None, **options: Any) -> SummaryWriter:
    """Return a writer; without a summarizer it has no model."""
    config = CompressorConfig(summary_max_retries=0, **options)
    model = None if summarizer is None else as_summarizer(summarizer)
    return SummaryWriter(config, model, TOKENS, lambda event: None)


def write(summarizer: Any, given: Brief) -> SegmentText:
    """Return what a writer of its own makes of a brief."""
    return asyncio.run(writer(summarizer).write(given, model=None, session_id="s"))
