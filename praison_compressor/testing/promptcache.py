"""A prompt cache as providers keep one: whole leading messages that they have seen before."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict

from .models import Counter
from .replies import Asked

__all__ = ["PromptCache"]

SMALLEST_HIT = 1_024
"""Tokens; OpenAI and Anthropic cache nothing shorter."""

LARGEST = 100_000
"""Prefixes to remember, so that long sessions do not grow without bound."""


class PromptCache:
    """Knows the prefixes of earlier requests: model, tools, then message after message."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def hit(self, asked: Asked, counter: Counter) -> int:
        """Return how many tokens begin an earlier request too, and remember this one."""
        digests = _prefixes(asked)
        known = next((i for i, digest in enumerate(digests) if digest not in self._seen), None)
        shared = len(digests) if known is None else known
        for digest in digests:
            self._seen[digest] = None
            self._seen.move_to_end(digest)
        while len(self._seen) > LARGEST:
            self._seen.popitem(last=False)
        if not shared:
            return 0
        tokens = counter.tools(asked.tools) + counter.messages(asked.messages[:shared])
        return tokens if tokens >= SMALLEST_HIT else 0


def _prefixes(asked: Asked) -> list[bytes]:
    running = hashlib.sha256(json.dumps([asked.model, asked.tools]).encode())
    digests = []
    chosen = _choice(asked)
    for message in asked.messages:
        if chosen and message.get("role") != "system":
            running.update(chosen)
            chosen = b""
        # A model is shown neither the order of a message's keys nor one without a value.
        told = {key: value for key, value in sorted(message.items()) if value is not None}
        running.update(json.dumps(told).encode())
        digests.append(running.digest())
    return digests


def _choice(asked: Asked) -> bytes:
    """What a choice of tools adds behind the system prompt: for Anthropic a request with another
    one than "auto" shares no messages with one without.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-use-with-prompt-caching
    """
    choice = asked.body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else None
    return json.dumps(choice).encode() if kind in ("any", "tool", "none") else b""
