"""What the provider is asked, what it may answer and what it remembers, in no wire format."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..messages import text_of
from ..messages.display import in_words

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
    """In a chat completion `reasoning_content`."""

    refusal: str | None = None
    finish: str | None = None
    """The chat API's word (`stop`, `length`, `tool_calls`, `content_filter`); None: derived."""

    delay_seconds: float = 0.0

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


@dataclass(frozen=True)
class Broken:
    """A reply that does not arrive: the connection is reset, or stalls after the head; its bytes
    are no UTF-8, or a proxy's page stands in its place.
    """

    how: Literal["reset", "stall", "invalid_utf8", "not_json"]
    reply: Reply = field(default_factory=lambda: Reply("This reply never arrives."))


Answer: TypeAlias = Reply | Failure | Broken


@dataclass
class Asked:
    """One request, in the chat API's shape whatever its protocol."""

    number: int
    """1 for the first request to this provider."""

    model: str = ""
    messages: list[JSON] = field(default_factory=list)
    tools: list[JSON] = field(default_factory=list)
    stream: bool = False
    max_tokens: int | None = None
    body: JSON = field(default_factory=dict)
    """The request as it came, in its own protocol."""

    @property
    def text(self) -> str:
        """Return all that the model is shown: contents, tool names and their arguments."""
        return "\n".join(map(in_words, self.messages))

    @property
    def last_user(self) -> str:
        """Return the newest user message's text, or an empty string."""
        users = [message for message in self.messages if message.get("role") == "user"]
        return text_of(users[-1]) if users else ""


Answerer: TypeAlias = Callable[[Asked], "Answer | str | Awaitable[Answer | str]"]


@dataclass
class Recorded(Asked):
    """One request, and what became of it; of one refused unread there is only the body."""

    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    ended_at: float | None = None
    """Seconds since the provider was made; None while the answer is being made."""

    protocol: str = "chat"
    window: int = 0
    """Of its model, in tokens."""

    status: int | None = None
    """None while the answer is being made, and when none was sent (reset, cancelled)."""

    error: str | None = None
    """The error's message; of a refusal, a planned failure or a mistake in a role."""

    prompt_tokens: int = 0
    """Messages and tools; 0 where the request was refused before it could be counted."""

    completion_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of whole messages that begin an earlier request too: what a prompt cache would hit."""

    answer: Answer | None = None
    """What the model answered; None where the checks refused the request."""

    cancelled: bool = False
    """The client hung up, or the provider stopped, before the answer was whole."""

    @property
    def refused(self) -> bool:
        """Tell whether the checks refused it; planned failures of a role do not count."""
        return self.status is not None and self.status >= 400 and self.answer is None

    @property
    def over_window(self) -> bool:
        """Tell whether it had more tokens than its model takes."""
        return self.prompt_tokens > self.window
