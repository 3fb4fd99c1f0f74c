"""Ready-made models: an agent's that calls tools, a summarizer's that keeps facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .replies import JSON, Answer, Asked, Call, Reply

__all__ = [
    "Summarizer",
    "Worker",
    "echo",
]


def echo(asked: Asked) -> Reply:
    """Answer with the newest user message."""
    return Reply(asked.last_user)


class Worker:
    """An agent's model: makes `calls` tool calls in each user turn, then answers.

    It reads how far it is from the newest tool result alone, so it finishes its turn whatever
    became of the older messages. Without tools in the request it answers at once.
    """

    def __init__(
        self,
        calls: int | Callable[[Asked], int] = 0,
        *,
        parallel: int = 1,
        tool: str | None = None,
        arguments: Callable[[str, int], Mapping[str, Any]] | None = None,
        answer: str | Callable[[Asked], str] = "Done.",
        thinking: str | None = None,
    ) -> None:
        """`calls`: rounds of tool calls in a turn, `parallel` calls each; `tool`: None takes them
        in turn; `arguments(tool, n)`: of the n-th call of the turn, None fills the tool's schema.
        """
        self._rounds = calls
        self._parallel = parallel
        self._tool = tool
        self._arguments = arguments
        self._answer = answer
        self._thinking = thinking

    def __call__(self, asked: Asked) -> Reply:
        done = _round_of(asked)
        rounds = self._rounds if isinstance(self._rounds, int) else self._rounds(asked)
        if not asked.tools or done >= rounds:
            text = self._answer if isinstance(self._answer, str) else self._answer(asked)
            return Reply(text, thinking=self._thinking)
        calls = tuple(self._call(asked, done, k) for k in range(self._parallel))
        return Reply(calls=calls, thinking=self._thinking)

    def _call(self, asked: Asked, done: int, k: int) -> Call:
        tools = [tool["function"] for tool in asked.tools]
        chosen = [tool for tool in tools if self._tool in (None, tool["name"])]
        nth = done * self._parallel + k
        tool = chosen[nth % len(chosen)]
        given = self._arguments(tool["name"], nth) if self._arguments else _filled(tool, nth)
        return Call(tool["name"], given, id=f"call_{asked.number:06d}_{done + 1}_{k}")


class Summarizer:
    """A summarizer's model: repeats the planted facts that it was shown.

    `facts` is a regular expression; each distinct match in the request comes back on a line of its
    own.
    """

    def __init__(
        self,
        facts: str | re.Pattern[str] | None = None,
        *,
        text: str = "The earlier work went on as planned.",
        delay_seconds: float = 0.0,
    ) -> None:
        self._facts = facts
        self._text = text
        self._delay = delay_seconds

    def __call__(self, asked: Asked) -> Answer:
        return Reply(self.summary(asked), delay_seconds=self._delay)

    def summary(self, asked: Asked) -> str:
        """Return the text, and the distinct facts in a request, in order."""
        shown = re.finditer(self._facts, asked.text) if self._facts is not None else ()
        return "\n".join(dict.fromkeys([self._text, *(match.group(0) for match in shown)]))


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
    return {name: _value(name, properties.get(name) or {}, nth) for name in required}


def _value(name: str, schema: JSON, nth: int) -> Any:
    if schema.get("enum"):
        return schema["enum"][nth % len(schema["enum"])]
    values = {"integer": nth, "number": float(nth), "boolean": True, "array": [], "object": {}}
    return values.get(schema.get("type", "string"), f"{name}-{nth}")
