"""Loads that would make a naive compressor crawl: `python -m tests.hostile.heavy NAME ...`.

Prints what was made of each: messages, tokens, CPU seconds, peak memory in MB.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import check
from tests.helpers.transcripts import call, session, step

Message = dict[str, Any]
MB = 1_000_000


def among(*messages: Message) -> list[Message]:
    """Return a session with these messages in its middle."""
    around = session(9)
    return [*around[:12], *messages, *around[12:]]


def huge(text: str, role: str = "tool") -> list[Message]:
    """Return a session with ten megabytes of a text in one message."""
    body = text * (10 * MB // len(text))
    said = [{"role": role, "content": body}]
    return among(*(step("call_huge", body, "bash", command="cat") if role == "tool" else said))


def tiny(count: int) -> list[Message]:
    """Return this many messages of a few words."""
    said = [
        {"role": role, "content": f"{words} {n}"}
        for n in range(count // 2)
        for role, words in (("assistant", "yes, done"), ("user", "go on"))
    ]
    return [*session(2), *said]


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
    "10 MB without a space": lambda: huge("a"),
    "10 MB of errors": lambda: huge("Traceback: ValueError: no such file /tmp/x_1.py\n"),
    "10 MB said by the user": lambda: huge(
        "Please use port 9090. Never touch src/a_b.py. ", "user"
    ),
    "10 MB in one sentence": lambda: huge("word and 4242 then ", "user"),
    "100,000 tiny messages": lambda: tiny(100_000),
    "1,000,000 tiny messages": lambda: tiny(1_000_000),
    "10,000 parallel calls": lambda: calls(10_000),
    "20,000 parallel calls": lambda: calls(20_000),
    "arguments 50,000 levels deep": lambda: arguments(50_000),
}
QUICK = (
    *("10 MB without a space", "10 MB of errors"),
    *("arguments 50,000 levels deep", "10,000 parallel calls"),
)
"""Those that the tests have time for."""


def carried(name: str) -> bool:
    """Compress a load and print the numbers; return whether the view is valid and fits."""
    messages = LOADS[name]()
    made = time.process_time()
    config = CompressorConfig(model="gpt-4o", context_window=16_000, protect_last_n_tokens=2_000)
    result = ContextCompressor(config).compress_sync(messages)
    numbers = {
        "load": name,
        "messages": len(messages),
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "valid": check(result.messages) == [],
        "cpu_seconds": round(time.process_time() - made, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000,
    }
    print(json.dumps(numbers))
    return bool(numbers["valid"]) and result.tokens_after < 12_000


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(not all(map(carried, sys.argv[1:])))
