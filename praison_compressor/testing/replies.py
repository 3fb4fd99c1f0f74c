"""What the provider is asked, what it may answer and what it remembers: plain values that know no
wire format.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Answer",
    "Answerer",
    "Asked",
    "Broken",
    "Call",
    "Failure",
    "Recorded",
    "Reply",
    "Script",
    "Usage",
    "readable",
]


JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call that the model makes."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A mapping is sent as JSON; a string is sent as it is, so that bad JSON can be tried."""

    id: str | None = None
    """Left out, the provider gives one that is unique in its lifetime."""

    def encoded(self) -> str:
        """Return the arguments as the wire carries them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """A whole answer of the model."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    thinking: str | None = None
    """Chat: `reasoning_content`; responses: reasoning item; Anthropic: signed thinking block."""

    refusal: str | None = None
    finish: str | None = None
    """The chat API's word (`stop`, `length`, `tool_calls`, `content_filter`); None: derived."""

    delay_seconds: float = 0.0
    capped: bool = True
    """Cut at the request's token cap, as real providers do; False plays one that ignores it."""

    @property
    def finish_reason(self) -> str:
        """Return what ended the reply, in the chat API's words."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Failure:
    """An error that the provider answers instead of a reply."""

    status: int
    message: str
    type: str = "server_error"
    code: str | None = None
    param: str | None = None
    retry_after_seconds: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0

    def all_headers(self) -> dict[str, str]:
        """Return the headers, `retry-after` among them."""
        retry = self.retry_after_seconds
        return {**self.headers, **({} if retry is None else {"retry-after": f"{retry:g}"})}


@dataclass(frozen=True)
class Broken:
    """A reply that does not arrive whole, although its status says 200."""

    how: Literal["reset", "stall", "invalid_utf8", "not_json"]
    reply: Reply = field(default_factory=lambda: Reply("This reply never arrives whole."))
    after: int = 1
    """Streamed events that still arrive; a reply in one piece arrives half or not at all."""


Answer: TypeAlias = Reply | Failure | Broken


@dataclass(frozen=True)
class Usage:
    """The tokens of one exchange, as the reply reports them."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Asked:
    """One request, after it passed the checks, in the chat API's shape whatever its protocol."""

    model: str
    messages: list[JSON]
    tools: list[JSON]
    stream: bool
    max_tokens: int | None
    body: JSON
    """The request as it came, in its own protocol."""

    number: int = 0
    """1 for the first request to this provider."""

    @property
    def text(self) -> str:
        """Return all that the model is shown: contents, tool names and their arguments."""
        return "\n".join(readable(message) for message in self.messages)

    @property
    def last_user(self) -> str:
        """Return the newest user message's text, or an empty string."""
        users = [m for m in self.messages if m.get("role") == "user"]
        return _content_text(users[-1].get("content")) if users else ""


Answerer: TypeAlias = Callable[[Asked], "Answer | str | Awaitable[Answer | str]"]


class Script:
    """Answers from a list, in order; a request too many is answered with a 500 that says so."""

    def __init__(self, answers: Iterable[Answer | str]) -> None:
        self._left = list(answers)

    @property
    def left(self) -> int:
        """Return how many answers were not asked for yet."""
        return len(self._left)

    def __call__(self, asked: Asked) -> Answer | str:
        if not self._left:
            return Failure(500, f"the script has no answer left for request {asked.number}")
        return self._left.pop(0)


async def answer_of(answerer: Answerer, asked: Asked) -> Answer:
    """Ask, await what needs awaiting, and take a bare string as a reply."""
    answer = answerer(asked)
    if asyncio.iscoroutine(answer) or isinstance(answer, Awaitable):
        answer = await answer
    return Reply(answer) if isinstance(answer, str) else answer


def readable(message: Mapping[str, Any]) -> str:
    """Return the text of a chat message, its tool calls and their arguments included."""
    calls = [call.get("function") or call for call in message.get("tool_calls") or ()]
    if message.get("function_call"):
        calls.append(message["function_call"])
    spelled = [f"{call.get('name')} {call.get('arguments')}" for call in calls]
    return "\n".join([_content_text(message.get("content")), *spelled]).strip()


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or part.get("refusal") or "" for part in content or ())


@dataclass
class Recorded:
    """One request as it arrived, and what became of it."""

    number: int
    """1 for the first request to this provider."""

    path: str
    headers: dict[str, str]
    at: float
    """Seconds since the provider started."""

    protocol: str = ""
    """`chat`, `responses` or `anthropic`."""

    model: str = ""
    body: JSON = field(default_factory=dict)
    """The request as it came, in its own protocol."""

    messages: list[JSON] = field(default_factory=list)
    """In the chat API's shape, whatever the protocol; as they came where the request was refused
    before it could be read."""

    tools: list[JSON] = field(default_factory=list)
    stream: bool = False
    status: int | None = None
    """None while the answer is being made, and when none was sent (reset, cancelled)."""

    error: str | None = None
    """The error's message; of a refusal, a planned failure or a mistake in a role."""

    code: str | None = None
    prompt_tokens: int = 0
    """Messages and tools; 0 where the request was refused before it could be counted."""

    completion_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of whole messages that begin an earlier request too: what a prompt cache would hit."""

    window: int = 0
    """Of its model, in tokens."""

    answer: Answer | None = None
    """What the model answered; None where the checks refused the request."""

    cancelled: bool = False
    """The client hung up, or the provider stopped, before the answer was whole."""

    ended_at: float | None = None

    @property
    def refused(self) -> bool:
        """Tell whether the checks refused it; planned failures of a role do not count."""
        return self.status is not None and self.status >= 400 and self.answer is None

    @property
    def over_window(self) -> bool:
        """Tell whether it had more tokens than its model takes."""
        return self.prompt_tokens > self.window

    @property
    def text(self) -> str:
        """Return all that the model was shown."""
        return "\n".join(readable(message) for message in self.messages)
