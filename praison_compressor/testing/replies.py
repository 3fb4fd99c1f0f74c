"""Define requests, replies and ready-made models, free of any wire format."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

from ..messages import is_system, text_of
from ..messages.display import message_as_text

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A mapping is sent as JSON, a string unchanged."""

    id: str | None = None
    """None: a new id."""

    def arguments_text(self) -> str:
        """Return the arguments as sent."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """An answer of the model."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    thinking: str | None = None
    """`reasoning_content` of a chat completion."""

    refusal: str | None = None
    finish: str | None = None
    """`stop`, `length`, `tool_calls` or `content_filter`; None: the reply decides."""

    delay_seconds: float = 0.0

    @property
    def finish_reason(self) -> str:
        """The finish reason in the chat API's words."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Failure:
    """An error instead of a reply."""

    status: int
    message: str
    type: str = "server_error"
    code: str | None = None
    param: str | None = None
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Broken:
    """A broken reply: reset, stalled, no UTF-8, or a proxy's page."""

    how: Literal["reset", "stall", "invalid_utf8", "not_json"]
    reply: Reply = field(default_factory=lambda: Reply("This reply never arrives."))


Answer: TypeAlias = Reply | Failure | Broken


@dataclass
class Asked:
    """A request of any protocol, in the chat API's shape."""

    number: int
    """Number of the request, counted from 1."""

    model: str = ""
    messages: list[JSON] = field(default_factory=list)
    tools: list[JSON] = field(default_factory=list)
    stream: bool = False
    max_tokens: int | None = None
    body: JSON = field(default_factory=dict)
    """The request in its own protocol."""

    @property
    def text(self) -> str:
        """Contents, tool names and arguments of all messages."""
        return "\n".join(map(message_as_text, self.messages))

    @property
    def last_user(self) -> str:
        """The text of the newest user message, or ""."""
        users = [message for message in self.messages if message.get("role") == "user"]
        return text_of(users[-1]) if users else ""


Answerer: TypeAlias = Callable[["Recorded"], "Answer | str | Awaitable[Answer | str]"]


@dataclass
class Recorded(Asked):
    """A request and its outcome."""

    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    ended_at: float | None = None
    """Seconds since the provider's start; None: not answered yet."""

    window: int = 0
    """The model's window, in tokens."""

    status: int | None = None
    """HTTP status; None: no answer was sent."""

    error: str | None = None
    """Message of a refusal, of a planned failure, or of a fault in a test's model."""

    prompt_tokens: int = 0
    """Tokens of messages and tools; 0: refused before the count."""

    completion_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of the prefix that an earlier request had."""

    answer: Answer | None = None
    """The model's answer; None: refused."""

    @property
    def refused(self) -> bool:
        """Whether the checks refused the request."""
        return self.status is not None and self.status >= 400 and self.answer is None

    @property
    def over_window(self) -> bool:
        """Whether the request exceeded the model's window."""
        return self.prompt_tokens > self.window


# -------------------------------------------------------------- ready-made models


@dataclass
class Worker:
    """An agent's model: `calls` rounds of calls a turn, then an answer.

    Without tools in the request the model answers at once.
    """

    calls: int | Callable[[Asked], int] = 0

    _: KW_ONLY
    parallel: int = 1

    tool: str | None = None
    """Tool to call; None: all tools in turn."""

    arguments: Callable[[str, int], Mapping[str, Any]] | None = None
    """(tool, number of the call in its turn) -> arguments; None: the arguments follow the
    schema."""

    answer: str | Callable[[Asked], str] = "Done."

    def __call__(self, asked: Asked) -> Reply:
        """Return the next round of calls, or the answer."""
        done = _rounds_done(asked)
        rounds = self.calls if isinstance(self.calls, int) else self.calls(asked)
        if not asked.tools or done >= rounds:
            text = self.answer if isinstance(self.answer, str) else self.answer(asked)
            return Reply(text)
        return Reply(calls=tuple(self._call(asked, done, index) for index in range(self.parallel)))

    def _call(self, asked: Asked, done: int, index: int) -> Call:
        tools = [tool["function"] for tool in asked.tools]
        candidates = [tool for tool in tools if self.tool in (None, tool["name"])]
        nth = done * self.parallel + index
        tool = candidates[nth % len(candidates)]
        arguments = (
            self.arguments(tool["name"], nth) if self.arguments else _schema_arguments(tool, nth)
        )
        return Call(tool["name"], arguments, id=f"call_{asked.number:06d}_{done + 1}_{index}")


@dataclass
class SummaryModel:
    """Answer as a summarizer, with the planted facts of the request."""

    facts: str | re.Pattern[str] | None = None
    """A regular expression of the facts."""
    _: KW_ONLY
    text: str = "The earlier work went on as planned."
    delay_seconds: float = 0.0

    def __call__(self, asked: Asked) -> Answer:
        """Return the summary as a reply."""
        return Reply(self.summary(asked), delay_seconds=self.delay_seconds)

    def summary(self, asked: Asked) -> str:
        """Return the text and the request's different facts."""
        facts = re.finditer(self.facts, asked.text) if self.facts is not None else ()
        return "\n".join(dict.fromkeys([self.text, *(match.group(0) for match in facts)]))


def _rounds_done(asked: Asked) -> int:
    """Return the rounds of the running turn, by the newest result's id."""
    newest: JSON = next((m for m in reversed(asked.messages) if not is_system(m)), {})
    if newest.get("role") != "tool":
        return 0
    ours = re.fullmatch(r"call_\d+_(\d+)_\d+", newest["tool_call_id"])
    return int(ours[1]) if ours else 1


def _schema_arguments(tool: JSON, nth: int) -> JSON:
    schema = tool.get("parameters") or {}
    required: Iterable[str] = schema.get("required") or schema.get("properties") or ()
    properties = schema.get("properties") or {}
    values = {"integer": nth, "number": nth, "boolean": True, "array": [], "object": {}}
    types = {name: str((properties.get(name) or {}).get("type")) for name in required}
    return {name: values.get(kind, f"{name}-{nth}") for name, kind in types.items()}
