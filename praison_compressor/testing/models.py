"""The models behind the provider: who answers, and what a request costs, its prompt cache too."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..tokens.counter import TokenCounter
from .replies import Answer, Answerer, Asked, Failure, Reply

Match: TypeAlias = str | Callable[[Asked], bool]
Answers: TypeAlias = Answerer | Sequence[Answer | str]

SMALLEST_HIT = 1_024
"""Tokens; OpenAI and Anthropic cache nothing shorter."""


def answerer(answers: Answers) -> Answerer:
    """Return what answers; a list in its order, then with a 500 that says so."""
    if callable(answers):
        return answers
    left = iter(answers)
    return lambda asked: next(left, Failure(500, f"no answer left for request {asked.number}"))


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
        self.default = answerer(default)
        self.routes: list[tuple[Match, Answerer]] = []
        self._new_counter = counter
        self._seen: set[bytes] = set()
        self._counters: dict[str, TokenCounter] = {}

    def counter(self, model: str) -> TokenCounter:
        """Return the model's counter, one for the provider's lifetime: it caches."""
        if model not in self._counters:
            self._counters[model] = self._new_counter(model)
        return self._counters[model]

    def cached(self, asked: Asked) -> int:
        """Return how many tokens begin an earlier request too, and remember this one."""
        prefixes = _prefixes(asked)
        shared = next((i for i, p in enumerate(prefixes) if p not in self._seen), len(prefixes))
        self._seen.update(prefixes)
        if not shared:
            return 0
        counter = self.counter(asked.model)
        tokens = counter.tools(asked.tools) + counter.messages(asked.messages[:shared])
        return tokens if tokens >= SMALLEST_HIT else 0

    async def answer(self, asked: Asked) -> Answer:
        """Return what the model says."""
        answer = self._answerer_of(asked)(asked)
        if inspect.isawaitable(answer):
            answer = await answer
        return Reply(answer) if isinstance(answer, str) else answer

    def completion(self, asked: Asked, reply: Reply) -> int:
        """Return the tokens of a reply."""
        said = [reply.thinking or "", reply.text or "", reply.refusal or ""]
        said += [call.name + call.encoded() for call in reply.calls]
        return sum(map(self.counter(asked.model).text, said))

    def _answerer_of(self, asked: Asked) -> Answerer:
        for match, found in reversed(self.routes):
            if match(asked) if callable(match) else match == asked.model:
                return found
        return self.default


def _prefixes(asked: Asked) -> list[bytes]:
    choice = asked.body.get("tool_choice")
    # Anthropic's cache serves no messages under another choice of tools than "auto".
    forced = choice if isinstance(choice, dict) and choice.get("type") != "auto" else None
    running = hashlib.sha256(json.dumps([asked.model, asked.tools, forced]).encode())
    digests = []
    for message in asked.messages:
        # A model is shown neither the order of a message's keys nor one without a value.
        told = {key: value for key, value in sorted(message.items()) if value is not None}
        running.update(json.dumps(told).encode())
        digests.append(running.digest())
    return digests
