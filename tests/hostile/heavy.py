"""Loads that would make a naive compressor crawl, in a process whose bounds a test sets."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import check
from tests.helpers.transcripts import call, session, step

Message = dict[str, Any]


def among(*messages: Message) -> list[Message]:
    """Return a session with these messages in its middle."""
    around = session(9)
    return [*around[:12], *messages, *around[12:]]


def huge(text: str) -> list[Message]:
    """Return a session with five megabytes of a text in one output."""
    return among(*step("call_huge", text * (5_000_000 // len(text)), "bash", command="cat"))


def calls(count: int) -> list[Message]:
    """Return a message with this many parallel calls, results reversed."""
    asked = [call(f"call_{n}", "f") for n in range(count)]
    answers = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in asked[::-1]]
    return among({"role": "assistant", "content": None, "tool_calls": asked}, *answers)


def arguments(depth: int) -> list[Message]:
    """Return a session with deeply nested arguments."""
    messages = session(9)
    messages[14]["tool_calls"][0]["function"]["arguments"] = '{"a":' * depth + "1" + "}" * depth
    return messages


LOADS: dict[str, Callable[[], list[Message]]] = {
    "5 MB without a space": lambda: huge("a"),
    "5 MB of errors": lambda: huge("Traceback: ValueError: no such file /tmp/x_1.py\n"),
    "arguments 50,000 levels deep": lambda: arguments(50_000),
    "5,000 parallel calls": lambda: calls(5_000),
}


def carried(name: str) -> bool:
    """Compress a load and print its name; return whether the view is valid and fits."""
    config = CompressorConfig(model="gpt-4o", context_window=16_000, protect_last_n_tokens=2_000)
    result = ContextCompressor(config).compress_sync(LOADS[name]())
    print(name)
    return check(result.messages) == [] and result.tokens_after < 12_000


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(not all(map(carried, LOADS)))
