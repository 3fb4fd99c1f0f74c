"""Loads that would make a naive compressor crawl: `python -m tests.hostile.heavy NAME`.

Prints what was made of it: messages, tokens, CPU seconds, peak memory in MB.
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
from tests.helpers.transcripts import session, step

Message = dict[str, Any]
MB = 1_000_000


def huge(text: str, size: int = 10 * MB) -> Callable[[], list[Message]]:
    """A session with one result of that many characters in its middle."""

    def make() -> list[Message]:
        body = text * (size // len(text))
        messages = session(9)
        return [*messages[:12], *step("call_huge", body, "bash", command="cat"), *messages[12:]]

    return make


def huge_by(role: str, text: str) -> Callable[[], list[Message]]:
    """The same as somebody's own words."""

    def make() -> list[Message]:
        messages = session(9)
        said = {"role": role, "content": text * (10 * MB // len(text))}
        return [*messages[:13], said, *messages[13:]]

    return make


def tiny(count: int) -> Callable[[], list[Message]]:
    """So many messages of a few words."""

    def make() -> list[Message]:
        said = [
            {"role": role, "content": f"{words} {n}"}
            for n in range(count // 2)
            for role, words in (("user", "go on"), ("assistant", "yes, done"))
        ]
        last = {"role": "user", "content": "and now?"}
        return [*session(2), {"role": "assistant", "content": "ok"}, *said, last]

    return make


def calls(count: int) -> list[Message]:
    """One assistant message with so many parallel calls, their results in reverse."""
    ids = [f"call_{n}" for n in range(count)]
    asked = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
    ]
    answers = [{"role": "tool", "tool_call_id": id, "content": "ok"} for id in reversed(ids)]
    tail = session(9)[1:]
    return [
        *session(2),
        {"role": "assistant", "content": None, "tool_calls": asked},
        *answers,
        *tail,
    ]


def arguments(depth: int) -> list[Message]:
    """A call whose arguments are nested deeper than any decoder likes."""
    messages = session(9)
    messages[14]["tool_calls"][0]["function"]["arguments"] = '{"a":' * depth + "1" + "}" * depth
    return messages


LOADS: dict[str, Callable[[], list[Message]]] = {
    "10 MB of words": huge("lorem ipsum dolor sit amet 42 "),
    "10 MB without a space": huge("a"),
    "10 MB of spaces": huge(" "),
    "10 MB of newlines": huge("\n"),
    "10 MB of brackets": huge("<[({"),
    "10 MB of paths": huge("/src/app/main_file.py:42 "),
    "10 MB of base64": huge("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0"),
    "10 MB of Chinese": huge("漢字仮名交じり文"),
    "10 MB of errors": huge("Traceback: ValueError: no such file /tmp/x_1.py\n"),
    "10 MB said by the user": huge_by("user", "Please use port 9090. Never touch src/a_b.py. "),
    "10 MB in one sentence by the user": huge_by("user", "word and 4242 then "),
    "10 MB said by the assistant": huge_by("assistant", "I decided so because x_1 = 9090. "),
    "100,000 tiny messages": tiny(100_000),
    "1,000,000 tiny messages": tiny(1_000_000),
    "5,000 parallel calls": lambda: calls(5_000),
    "20,000 parallel calls": lambda: calls(20_000),
    "arguments 50,000 levels deep": lambda: arguments(50_000),
}
QUICK = (
    "10 MB without a space",
    "10 MB of errors",
    "arguments 50,000 levels deep",
    "20,000 parallel calls",
)
"""Those that the tests have time for."""


def main(name: str) -> int:
    logging.disable(logging.CRITICAL)
    messages = LOADS[name]()
    made = time.process_time()
    config = CompressorConfig(model="gpt-4o", context_window=16_000, protect_last_n_tokens=2_000)
    ours = ContextCompressor(config)
    first = ours.compress_sync(messages)
    cpu = time.process_time() - made
    ours.compress_sync(messages)
    again = time.process_time() - made - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000
    numbers = {
        "load": name,
        "messages": len(messages),
        "tokens_before": first.tokens_before,
        "tokens_after": first.tokens_after,
        "valid": check(first.messages) == [],
        "cpu_seconds": round(cpu, 1),
        "cpu_seconds_next_turn": round(again, 2),
        "peak_mb": peak,
    }
    print(json.dumps(numbers))
    return 0 if numbers["valid"] and first.tokens_after < 12_000 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
