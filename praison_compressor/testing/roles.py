"""Ready-made models: an agent's that calls tools, a summarizer's that keeps facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from .replies import JSON, Answer, Asked, Call, Reply


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
