"""What the provider remembers of each request."""

from __future__ import annotations

from dataclasses import dataclass, field

from .replies import JSON, Answer, readable

__all__ = ["Recorded"]


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
