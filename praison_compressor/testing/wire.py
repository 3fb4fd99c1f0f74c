"""What the protocols share on the wire, and what the server asks of each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from .replies import JSON, Asked, Call, Reply, Usage
from .strict import Refusal, Rules

__all__ = ["Dialect", "call_id", "openai_error", "pieces", "sse"]


class Dialect(Protocol):
    """One protocol: pure functions between JSON bodies and our values, no HTTP."""

    name: str

    def check(self, body: JSON, rules: Rules) -> None:
        """Raise Refusal for what the API refuses."""

    def asked(self, body: JSON) -> Asked:
        """Read a request that passed the checks, into the chat API's shape."""
        ...

    def overflow(self, window: int, messages: int, tools: int, completion: int) -> Refusal:
        """Return the refusal of a request that does not fit the window."""
        ...

    def error(self, refusal: Refusal) -> JSON:
        """Return an error body."""
        ...

    def whole(self, reply: Reply, asked: Asked, usage: Usage) -> JSON:
        """Return the body of a reply that is not streamed."""
        ...

    def frames(self, reply: Reply, asked: Asked, usage: Usage) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        ...


def openai_error(refusal: Refusal) -> JSON:
    """Return OpenAI's error body."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def sse(payload: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    """Cut a text as a stream would: a few letters at a time, at most about 64 pieces."""
    size = max(12, -(-len(text) // 64))
    return (text[start : start + size] for start in range(0, len(text), size))


def call_id(call: Call, asked: Asked, index: int) -> str:
    """Return the call's own id, or one that no other request to this provider gets."""
    return call.id or f"call_{asked.number:06d}_{index}"
