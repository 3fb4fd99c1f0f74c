"""What the provider is asked, what it may answer and what it remembers, in no wire format; models
that are ready to answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
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


# -------------------------------------------------------------- ready-made models


@dataclass
class Worker:
    """An agent's model: makes `calls` tool calls in each user turn, then answers.

    It reads how far it is from the newest tool result alone, so it finishes its turn whatever
    became of the older messages. Without tools in the request it answers at once.
    """

    calls: int | Callable[[Asked], int] = 0
    """Rounds of tool calls in a turn."""

    _: KW_ONLY
    parallel: int = 1
    """Calls in a round."""

    tool: str | None = None
    """None takes them in turn."""

    arguments: Callable[[str, int], Mapping[str, Any]] | None = None
    """For a tool and the number of the call in its turn; None fills the tool's schema."""

    answer: str | Callable[[Asked], str] = "Done."

    def __call__(self, asked: Asked) -> Reply:
        done = _round_of(asked)
        rounds = self.calls if isinstance(self.calls, int) else self.calls(asked)
        if not asked.tools or done >= rounds:
            text = self.answer if isinstance(self.answer, str) else self.answer(asked)
            return Reply(text)
        return Reply(calls=tuple(self._call(asked, done, k) for k in range(self.parallel)))

    def _call(self, asked: Asked, done: int, k: int) -> Call:
        tools = [tool["function"] for tool in asked.tools]
        chosen = [tool for tool in tools if self.tool in (None, tool["name"])]
        nth = done * self.parallel + k
        tool = chosen[nth % len(chosen)]
        given = self.arguments(tool["name"], nth) if self.arguments else _filled(tool, nth)
        return Call(tool["name"], given, id=f"call_{asked.number:06d}_{done + 1}_{k}")


@dataclass
class Summarizer:
    """A summarizer's model: repeats the planted facts that it was shown.

    `facts` is a regular expression; each distinct match in the request comes back on a line of its
    own.
    """

    facts: str | re.Pattern[str] | None = None
    _: KW_ONLY
    text: str = "The earlier work went on as planned."
    delay_seconds: float = 0.0

    def __call__(self, asked: Asked) -> Answer:
        return Reply(self.summary(asked), delay_seconds=self.delay_seconds)

    def summary(self, asked: Asked) -> str:
        """Return the text, and the distinct facts in a request, in order."""
        shown = re.finditer(self.facts, asked.text) if self.facts is not None else ()
        return "\n".join(dict.fromkeys([self.text, *(match.group(0) for match in shown)]))


def _round_of(asked: Asked) -> int:
    """Return how many rounds of tool calls this turn had: the newest result's id says it."""
    for message in reversed(asked.messages):
        if message.get("role") in ("system", "developer"):
            continue
        if message.get("role") != "tool":
            return 0
        ours = re.fullmatch(r"call_\d+_(\d+)_\d+", message["tool_call_id"])
        return int(ours[1]) if ours else 1
    return 0


def _filled(tool: JSON, nth: int) -> JSON:
    """Return arguments that fit a tool's schema: each required parameter, numbered."""
    schema = tool.get("parameters") or {}
    required: Iterable[str] = schema.get("required") or schema.get("properties") or ()
    properties = schema.get("properties") or {}
    values = {"integer": nth, "number": nth, "boolean": True, "array": [], "object": {}}
    types = {name: str((properties.get(name) or {}).get("type")) for name in required}
    return {name: values.get(kind, f"{name}-{nth}") for name, kind in types.items()}
