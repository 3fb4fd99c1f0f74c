"""A summarizer's model that misbehaves."""

from collections.abc import Callable
from typing import Any, Literal

from praison_compressor.testing import Asked, Broken, Failure, Reply, SummaryModel

REFUSAL = "I'm sorry, but I can't assist with that request."
CONTEXT = (
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 "
    "tokens. Please reduce the length of the messages."
)


def _fails(status: int, message: str, type: str, code: str | None = None, **more: Any) -> Any:
    return lambda text, asked: Failure(status, message, type, code, **more)


def _breaks(how: Literal["reset", "stall", "invalid_utf8", "not_json"]) -> Any:
    return lambda text, asked: Broken(how, Reply(text))


BEHAVIOURS: dict[str, Callable[[str, Asked], Any]] = {
    "empty": lambda text, asked: Reply(""),
    "refusal": lambda text, asked: Reply(REFUSAL),
    "refusal_field": lambda text, asked: Reply(refusal=REFUSAL),
    "cut_off": lambda text, asked: Reply(text[: max(1, len(text) // 2)], finish="length"),
    "unauthorized": _fails(401, "Incorrect API key.", "authentication_error", "invalid_api_key"),
    "rate_limited": _fails(
        429,
        "Rate limit reached. Please try again in 20ms.",
        "tokens",
        "rate_limit_exceeded",
        retry_after_seconds=0.02,
    ),
    "quota": _fails(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
    ),
    "server_error": _fails(500, "The server had an error while processing.", "server_error"),
    "overloaded": _fails(503, "The engine is currently overloaded.", "server_error"),
    "context": _fails(
        400, CONTEXT, "invalid_request_error", "context_length_exceeded", param="messages"
    ),
    "reset": _breaks("reset"),
    "stall": _breaks("stall"),
    "invalid_utf8": _breaks("invalid_utf8"),
    "not_json": _breaks("not_json"),
}


class Misbehaving(SummaryModel):
    """Answers each request by one behaviour."""

    def __init__(self, behaviour: str, **options: Any) -> None:
        super().__init__(**options)
        self._behave = BEHAVIOURS[behaviour]

    def __call__(self, asked: Asked) -> Any:
        return self._behave(self.summary(asked), asked)
