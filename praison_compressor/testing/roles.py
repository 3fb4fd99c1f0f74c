"""Ready-made models: an agent's that calls tools, a summarizer that keeps, fails or lies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from .replies import JSON, Answer, Asked, Broken, Call, Failure, Reply

__all__ = [
    "Behaviour",
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


Behaviour: TypeAlias = Literal[
    "faithful",
    "lie",
    "empty",
    "whitespace",
    "refusal",
    "refusal_field",
    "echo_prompt",
    "cut_off",
    "verbose",
    "tool_call",
    "reasoning_tags",
    "unclosed_reasoning",
    "thinking_only",
    "unauthorized",
    "rate_limited",
    "rate_limited_bare",
    "quota",
    "server_error",
    "overloaded",
    "context",
    "reset",
    "reset_mid_stream",
    "stall",
    "invalid_utf8",
    "not_json",
]


class Summarizer:
    """A summarizer's model: repeats the planted facts that it was shown, or misbehaves.

    `facts` is a regular expression; each distinct match in the request comes back on a line of its
    own. `behaviours` are taken one per request, in order; the last one stays.
    """

    def __init__(
        self,
        facts: str | re.Pattern[str] | None = None,
        *behaviours: Behaviour,
        text: str = "The earlier work went on as planned.",
        delay_seconds: float = 0.0,
    ) -> None:
        unknown = [name for name in behaviours if name not in get_args(Behaviour)]
        if unknown:
            raise ValueError(f"no such behaviour: {', '.join(unknown)}")
        self._facts = re.compile(facts) if isinstance(facts, str) else facts
        self._behaviours = list(behaviours) or ["faithful"]
        self._text = text
        self._delay = delay_seconds

    def __call__(self, asked: Asked) -> Answer:
        name = self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]
        faithful = "\n".join([self._text, *self.shown(asked)])
        return _BEHAVIOURS[name](faithful, asked, self._delay)

    def shown(self, asked: Asked) -> list[str]:
        """Return the distinct facts in a request, in order."""
        if self._facts is None:
            return []
        return list(dict.fromkeys(m.group(0) for m in self._facts.finditer(asked.text)))


# -- what a misbehaving summarizer does ------------------------------------------------------------
_Behave: TypeAlias = Callable[[str, Asked, float], Answer]


def _says(make: Callable[[str], str], **options: Any) -> _Behave:
    return lambda text, asked, delay: Reply(make(text), delay_seconds=delay, **options)


def _fails(status: int, message: str, type: str, **options: Any) -> _Behave:
    return lambda text, asked, delay: Failure(status, message, type, delay_seconds=delay, **options)


def _breaks(how: Literal["reset", "stall", "invalid_utf8", "not_json"], after: int) -> _Behave:
    return lambda text, asked, delay: Broken(how, Reply(text, delay_seconds=delay), after)


def _cut_off(text: str, asked: Asked, delay: float) -> Reply:
    half = text[: max(1, len(text) // 2)]
    return Reply(half, finish="length", delay_seconds=delay)


def _verbose(text: str, asked: Asked, delay: float) -> Reply:
    words = 10 * (asked.max_tokens or 1_500)
    return Reply(text + " and so on" * (words // 3), capped=False, delay_seconds=delay)


def _echo_prompt(text: str, asked: Asked, delay: float) -> Reply:
    return Reply(asked.text, capped=False, delay_seconds=delay)


def _tool_call(text: str, asked: Asked, delay: float) -> Reply:
    return Reply(calls=(Call("read_file", {"path": "notes.md"}),), delay_seconds=delay)


def _context(text: str, asked: Asked, delay: float) -> Failure:
    return Failure(
        400,
        "This model's maximum context length is 4096 tokens. However, your messages resulted in "
        "5000 tokens. Please reduce the length of the messages.",
        "invalid_request_error",
        "context_length_exceeded",
        "messages",
        delay_seconds=delay,
    )


_LIE = "The pull request was merged, all tests pass and nothing is left to do."

_REFUSAL = "I'm sorry, but I can't assist with that request."

_BEHAVIOURS: dict[str, _Behave] = {
    "faithful": _says(lambda text: text),
    "lie": _says(lambda text: _LIE),
    "empty": _says(lambda text: ""),
    "whitespace": _says(lambda text: " \n\t\n "),
    "refusal": _says(lambda text: _REFUSAL),
    "refusal_field": lambda text, asked, delay: Reply(refusal=_REFUSAL, delay_seconds=delay),
    "echo_prompt": _echo_prompt,
    "cut_off": _cut_off,
    "verbose": _verbose,
    "tool_call": _tool_call,
    "reasoning_tags": _says(lambda text: f"<think>\nLet me see what matters.\n</think>\n{text}"),
    "unclosed_reasoning": _says(lambda text: f"<think>\nLet me see what matters. {text}"),
    "thinking_only": _says(lambda text: "", thinking="I thought of everything and said nothing."),
    "unauthorized": _fails(
        401, "Incorrect API key provided.", "authentication_error", code="invalid_api_key"
    ),
    "rate_limited": _fails(
        429,
        "Rate limit reached. Please try again in 20ms.",
        "tokens",
        code="rate_limit_exceeded",
        retry_after_seconds=0.02,
    ),
    "rate_limited_bare": _fails(429, "Rate limit reached.", "tokens", code="rate_limit_exceeded"),
    "quota": _fails(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        code="insufficient_quota",
    ),
    "server_error": _fails(500, "The server had an error while processing.", "server_error"),
    "overloaded": _fails(503, "The engine is currently overloaded.", "server_error"),
    "context": _context,
    "reset": _breaks("reset", 0),
    "reset_mid_stream": _breaks("reset", 2),
    "stall": _breaks("stall", 1),
    "invalid_utf8": _breaks("invalid_utf8", 1),
    "not_json": _breaks("not_json", 0),
}


# -- where an agent's turn stands ------------------------------------------------------------------
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
