"""The models behind the provider: who answers, with which window and prompt cache, and what each
request costs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..tokens.counter import TokenCounter
from .replies import Answer, Answerer, Asked, Reply, Script, Usage, answer_of

__all__ = [
    "Answers",
    "Match",
    "Models",
]

Match: TypeAlias = str | Callable[[Asked], bool]
Answers: TypeAlias = Answerer | Sequence[Answer | str]

SMALLEST_HIT = 1_024
"""Tokens; OpenAI and Anthropic cache nothing shorter."""

MOST_PREFIXES = 100_000
"""Prefixes to remember of earlier requests: model, tools, then message after message."""


class Models:
    """Routes requests to answers, and counts with each model's own tokenizer."""

    def __init__(
        self,
        default: Answers,
        *,
        window: int,
        windows: Mapping[str, int],
        counter: Callable[[str], TokenCounter],
    ) -> None:
        self.window = window
        self.windows = dict(windows)
        self._default = _answerer(default)
        self._routes: list[tuple[Match, Answerer]] = []
        self._new_counter = counter
        self._seen: set[bytes] = set()
        self._counters: dict[str, TokenCounter] = {}

    def route(self, match: Match | None, answers: Answers) -> None:
        """Send what matches to its own answers; None replaces the answers of all the rest."""
        if match is None:
            self._default = _answerer(answers)
        else:
            self._routes.append((match, _answerer(answers)))

    def window_of(self, model: str) -> int:
        """Return the model's window in tokens."""
        return self.windows.get(model, self.window)

    def counter(self, model: str) -> TokenCounter:
        """Return the model's counter, one for the provider's lifetime: it caches."""
        if model not in self._counters:
            self._counters[model] = self._new_counter(model)
        return self._counters[model]

    def cached(self, asked: Asked) -> int:
        """Return how many tokens begin an earlier request too, and remember this one."""
        prefixes = _prefixes(asked)
        shared = next((i for i, p in enumerate(prefixes) if p not in self._seen), len(prefixes))
        if len(self._seen) > MOST_PREFIXES:
            self._seen.clear()
        self._seen.update(prefixes)
        if not shared:
            return 0
        counter = self.counter(asked.model)
        tokens = counter.tools(asked.tools) + counter.messages(asked.messages[:shared])
        return tokens if tokens >= SMALLEST_HIT else 0

    async def answer(self, asked: Asked) -> Answer:
        """Return what the model says, cut at the request's token cap."""
        answer = await answer_of(self._answerer_of(asked), asked)
        if isinstance(answer, Reply) and answer.capped:
            return self._cut(answer, asked)
        return answer

    def usage(self, asked: Asked, reply: Reply, prompt: int, cached: int) -> Usage:
        """Return what the exchange costs in tokens."""
        count = self.counter(asked.model).text
        reasoning = count(reply.thinking or "")
        spoken = count((reply.text or "") + (reply.refusal or ""))
        called = sum(count(call.name + call.encoded()) for call in reply.calls)
        return Usage(prompt, reasoning + spoken + called, cached, reasoning)

    def _answerer_of(self, asked: Asked) -> Answerer:
        for match, answerer in reversed(self._routes):
            if match(asked) if callable(match) else match == asked.model:
                return answerer
        return self._default

    def _cut(self, reply: Reply, asked: Asked) -> Reply:
        text, cap = reply.text, asked.max_tokens
        if not (text and cap):
            return reply
        count = self.counter(asked.model).text
        while (tokens := count(text)) > cap:
            text = text[: min(len(text) - 1, len(text) * cap // tokens)]
        return reply if text == reply.text else replace(reply, text=text, finish="length")


def _answerer(answers: Answers) -> Answerer:
    return answers if callable(answers) else Script(answers)


def _prefixes(asked: Asked) -> list[bytes]:
    running = hashlib.sha256(json.dumps([asked.model, asked.tools]).encode())
    digests = []
    chosen = _choice(asked)
    for message in asked.messages:
        if chosen and message.get("role") != "system":
            running.update(chosen)
            chosen = b""
        # A model is shown neither the order of a message's keys nor one without a value.
        told = {key: value for key, value in sorted(message.items()) if value is not None}
        running.update(json.dumps(told).encode())
        digests.append(running.digest())
    return digests


def _choice(asked: Asked) -> bytes:
    """What a choice of tools adds behind the system prompt: for Anthropic a request with another
    one than "auto" shares no messages with one without.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-use-with-prompt-caching
    """
    choice = asked.body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else None
    return json.dumps(choice).encode() if kind in ("any", "tool", "none") else b""
