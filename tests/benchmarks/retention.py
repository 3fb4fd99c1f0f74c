"""Our compressor as a method of the retention benchmark: real sessions, no model as a judge.

With BENCH and CORPUS the folders of the benchmark and of the recorded sessions, from BENCH:

    PYTHONPATH=HERE python run.py CORPUS/visible.jsonl --tools-only --errors --by-source \
        --only static --module tests.benchmarks.retention:static
    PYTHONPATH=HERE python recorded.py --with-summary tests.benchmarks.retention:with_summary
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from praison_compressor import BudgetTooSmall, CompressorConfig, ContextCompressor, TokenCounter
from praison_compressor.messages import text_of, tool_calls_of
from praison_compressor.messages.digests import MessageCache

Message = dict[str, Any]

IMAGES = ("image_url", "image", "input_image")


class BenchCounter(TokenCounter):
    """Counts as the benchmark does: 4 a message, 8 a call, 1000 an image, cl100k_base texts."""

    def __init__(self) -> None:
        super().__init__("gpt-4", cache=MessageCache())

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        return sum(map(self.message, messages))

    def count(self, message: Message) -> int:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        images = sum(isinstance(p, dict) and p.get("type") in IMAGES for p in parts)
        calls = tool_calls_of(message)
        named = sum(8 + self.text(call.name) + self.text(call.arguments) for call in calls)
        return 4 + 1000 * images + self.text(text_of(message)) + named


# `head_tokens=0`: the benchmark's floor has the task, not the first step after it.
CONFIG = CompressorConfig(head_tokens=0, tool_policies={"*": "summarize"})
TOKENS = BenchCounter()


def static(
    messages: list[Message], budget: int, config: CompressorConfig = CONFIG
) -> list[Message]:
    """A view of at most `budget` tokens without a model."""
    ours = ContextCompressor(config, tokens=TOKENS)
    try:
        return ours.compress_sync(messages, target_tokens=budget).messages
    except BudgetTooSmall:  # a newest user message that no summary may replace: it is shortened
        return ours.best_view(messages, target_tokens=budget)


def with_summary(
    messages: list[Message], summary: str, budget: int, config: CompressorConfig = CONFIG
) -> list[Message]:
    """The same with a recorded summary as the model's answer; the audit repairs it."""

    async def recorded(request: list[Message]) -> str:
        return summary

    ours = ContextCompressor(config, tokens=TOKENS, summarizer=recorded)
    asked = TOKENS.text(summary)
    result = ours.compress_sync(
        messages, target_tokens=budget, protect_last_n_tokens=0, summary_target_tokens=asked
    )
    return result.messages
