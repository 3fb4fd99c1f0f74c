"""What a wire protocol has to offer, and what all of them share: rules, refusals, pieces of a
stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from .replies import JSON, Asked, Call, Failure, Reply, Usage

__all__ = [
    "Refusal",
    "Rules",
    "WireProtocol",
    "call_id",
    "openai_error",
    "parse_body",
    "pieces",
    "sse",
]


@dataclass(frozen=True)
class Rules:
    """How strict the provider is where real ones differ; the defaults are OpenAI's."""

    alternate: bool = False
    """Refuse two user or two assistant messages in a row, as many chat templates do."""

    system_first: bool = False
    """Refuse a system message anywhere but first, as many chat templates do."""

    extra_message_keys: frozenset[str] = frozenset()
    """Further keys of messages to accept, such as DeepSeek's `reasoning_content`."""


class Refusal(Exception):
    """The request is refused: what the error body will say."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        type: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status
        self.type = type


class WireProtocol(Protocol):
    """One protocol: functions between JSON bodies and our values, no HTTP."""

    name: str
    path: str
    """Where it is served, without `/v1`."""

    def check(self, body: JSON, rules: Rules) -> None:
        """Raise Refusal for what the API refuses."""

    def asked(self, body: JSON) -> Asked:
        """Read a request that passed the checks, into the chat API's shape."""
        ...

    def overflow(self, window: int, messages: int, tools: int, completion: int) -> Refusal:
        """Return the refusal of a request that does not fit the window."""
        ...

    def error(self, why: Refusal | Failure) -> JSON:
        """Return an error body."""
        ...

    def whole(self, reply: Reply, asked: Asked, usage: Usage) -> JSON:
        """Return the body of a reply that is not streamed."""
        ...

    def frames(self, reply: Reply, asked: Asked, usage: Usage) -> Iterator[bytes]:
        """Yield the server-sent events of a streamed reply."""
        ...


def parse_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a request, or refuse what is no valid JSON on a real wire."""
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
        # Half a surrogate pair survives Python's parser; no real API takes it.
        json.dumps(body, ensure_ascii=False).encode("utf-8")
        if not isinstance(body, dict):
            raise ValueError("expected an object")
    except (ValueError, RecursionError) as error:
        raise Refusal(
            f"We could not parse the JSON body of your request. ({error})", code="invalid_json"
        ) from error
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def openai_error(why: Refusal | Failure) -> JSON:
    """Return OpenAI's error body."""
    fields = {"message": why.message, "type": why.type, "param": why.param, "code": why.code}
    return {"error": fields}


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
