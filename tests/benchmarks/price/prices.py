"""Prices of providers' prompt caches, the pauses of users, and what a session's requests cost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from praison_compressor import TokenCounter
from praison_compressor.messages import Message, read_transcript
from praison_compressor.tokens.models import prices_of
from tests.helpers.compressing import requests_of

COUNTER = TokenCounter("gpt-4o")
TOOL_SECONDS = 5.0
LEAST_CACHED = 1_024  # tokens of a prefix from which on providers cache it

# -------------------------------------------------------------- prices and pauses


@dataclass(frozen=True)
class Provider:
    """A model's prices in dollars a token, and the life of its prompt cache."""

    name: str
    model: str
    seconds: float
    read: float
    write: float
    fresh: float
    output: float

    @classmethod
    def of(cls, name: str, model: str, seconds: float) -> Provider:
        """Return the provider with litellm's prices for the model."""
        listed = prices_of(model)
        read, fresh, output = (each or 0.0 for each in (listed.cached, listed.input, listed.output))
        return cls(name, model, seconds, read, listed.written or fresh, fresh, output)

    def request(self, tokens: int, cached: int) -> float:
        """Return the dollars of a request whose first `cached` tokens the cache may hold."""
        cached = cached if cached >= LEAST_CACHED else 0
        return cached * self.read + (tokens - cached) * self.write


@cache
def providers() -> tuple[Provider, ...]:
    """Return three ways to price a cache: dear writes, free writes, a life of hours."""
    return (
        Provider.of("Anthropic", "claude-sonnet-4-5", 300),
        Provider.of("OpenAI", "gpt-5", 600),
        Provider.of("DeepSeek", "deepseek/deepseek-chat", 7_200),
    )


PACES: Mapping[str, Callable[[random.Random], float]] = {
    "5 s": lambda _: 5.0,
    "1 min": lambda _: 60.0,
    "10 min": lambda _: 600.0,
    "lognormal": lambda chance: 120.0 * chance.lognormvariate(0, 1.5),
}
"""Seconds that a user takes for the next message."""

# -------------------------------------------------------------- a replay


Key = int | str
"""A message of the session by its place, one that a method wrote by its text."""


@dataclass
class Run:
    """What one way of compressing sent over a session."""

    requests: list[list[Key]] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    """Tokens read and written by the summarizer, a call each."""
    represented: set[Key] = field(default_factory=set)
    """Messages that a summarizer read, or that can be read again."""


class Session:
    """A recorded session, its requests, and the tokens of whatever is sent of it."""

    def __init__(self, name: str, messages: list[Message]) -> None:
        self.name, self.messages = name, messages
        self.requests = requests_of(messages)
        self._places = {id(message): n for n, message in enumerate(messages)}
        self._sizes: dict[Key, int] = {n: COUNTER.message(m) for n, m in enumerate(messages)}
        self.steps = [step.start for step in read_transcript(messages).steps]

    def keys(self, view: Sequence[Message]) -> list[Key]:
        """Return a view as keys."""
        return [self._key(message) for message in view]

    def _key(self, message: Message) -> Key:
        place = self._places.get(id(message))
        if place is not None:
            return place
        key = json.dumps(message, default=str, sort_keys=True)
        if key not in self._sizes:
            self._sizes[key] = COUNTER.message(message)
        return key

    def size(self, keys: Sequence[Key]) -> int:
        """Return the tokens of a view."""
        return sum(map(self._sizes.__getitem__, keys))

    def pauses(self, pace: str) -> list[float]:
        """Return the seconds before each request."""
        chance = random.Random(f"{self.name} {pace}")
        return [
            PACES[pace](chance) if request[-1]["role"] == "user" else TOOL_SECONDS
            for request in self.requests
        ]

    def lost(self, run: Run) -> int:
        """Return the tokens that a run's last request has lost: in no view, text or archive."""
        last = run.requests[-1]
        gone = set(range(len(self.requests[-1]))) - set(last) - run.represented
        written = self.size([key for key in last if isinstance(key, str)])
        return max(0, self.size(list(gone)) - written)

    def tail(self, end: int, room: int) -> int:
        """Return the start of the longest run of whole steps before `end` within `room` tokens."""
        fits = (s for s in self.steps if s < end and self.size(range(s, end)) <= room)
        return next(fits, max(s for s in self.steps if s < end))

    def head(self) -> int:
        """Return the end of the system messages and the first message of the user."""
        return 1 + next(n for n, m in enumerate(self.messages) if m["role"] == "user")


def dollars(session: Session, run: Run, pauses: Sequence[float], at: Provider) -> float:
    """Return what a run costs at a provider."""
    total = sum(tokens * at.fresh + words * at.output for tokens, words in run.asked)
    before: list[Key] = []
    for request, pause in zip(run.requests, pauses, strict=True):
        cached = session.size(common(before, request)) if pause <= at.seconds else 0
        total += at.request(session.size(request), cached)
        before = request
    return total


def common(a: Sequence[Key], b: Sequence[Key]) -> Sequence[Key]:
    """Return the keys with which both requests begin."""
    pairs = enumerate(zip(a, b, strict=False))
    return a[: next((n for n, (x, y) in pairs if x != y), min(len(a), len(b)))]
