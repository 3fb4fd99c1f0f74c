"""A small window and a summarizer that counts its calls."""

import asyncio
import threading
import time
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor, Store, SummaryReply, Usage
from praison_compressor.messages import Message, text_of
from praison_compressor.testing import LocalProvider

SMALL = CompressorConfig(model="gpt-4o", context_window=6_000, protect_last_n_tokens=1_000)


class Model:
    """A user's summarizer that counts its calls and keeps its requests."""

    def __init__(self, answer: str = "## Done\nThe modules so far are in order.") -> None:
        self.answer = answer
        self.requests: list[str] = []
        self.shown: list[str] = []

    async def __call__(self, messages: list[Message]) -> str:
        self.requests.append("\n".join(map(text_of, messages)))
        self.shown.append(self.requests[-1].partition("<transcript>")[2])
        await asyncio.sleep(0)
        return self.answer


PAID = Usage(prompt_tokens=1_000, completion_tokens=100, cost=0.5)


async def paid(messages: list[Message]) -> SummaryReply:
    """Summarize at a price."""
    return SummaryReply("## Done\nThe modules so far are in order.", PAID, "aux", "stop")


class Gate:
    """A summarizer that answers once it is opened, and records its cancellation."""

    def __init__(self) -> None:
        self.asked, self.open, self.cancelled = (threading.Event() for _ in range(3))
        self.requests: list[str] = []

    async def __call__(self, messages: list[Message]) -> str:
        self.requests.append("\n".join(map(text_of, messages)))
        self.asked.set()
        try:
            while not self.open.is_set():
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "## Done\nThe modules so far are in order."


class Clock:
    """A clock that is set; it starts now, for the store writes the real time."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def compressor(
    summarizer: Any = None,
    on_event: Any = None,
    store: Store | None = None,
    before_compression: Any = None,
    **options: Any,
) -> ContextCompressor:
    """Return a compressor with a small window."""
    config = CompressorConfig(**{**vars(SMALL), **options})
    parts = {"on_event": on_event, "store": store, "before_compression": before_compression}
    return ContextCompressor(config, summarizer=summarizer, **parts)


def at(provider: LocalProvider, **options: Any) -> ContextCompressor:
    """Return a compressor whose summaries a model at this provider writes."""
    given = {
        "context_window": 30_000,
        "auxiliary_model": "openai/gpt-4o-mini",
        "auxiliary_api_base": provider.base_url,
        "redact_secrets": False,
        "tool_policies": {"*": "summarize"},
        "summary_max_retries": 0,
    }
    return compressor(**{**given, **options})


def requests_of(messages: list[Message]) -> list[list[Message]]:
    """Return the transcript's requests, one for each answer."""
    return [
        messages[:end]
        for end in range(1, len(messages) + 1)
        if messages[end - 1]["role"] in ("user", "tool")
    ]
