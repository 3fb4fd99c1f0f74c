"""Bill a conversation's requests, beside what the host alone would have sent.

Only what a provider reports is billed, at the prices of litellm's table. Each process begins a bill
of its own.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace

from ..ledger.segments import Usage
from ..tokens.models import prices_of
from .journal import KeptSteps


@dataclass(frozen=True)
class RequestUsage:
    """The usage that a provider reports for requests, in tokens."""

    input: int = 0
    """All of the prompt: the cached and the written part too."""
    cached: int = 0
    """Read from the provider's cache."""
    written: int = 0
    """Written to the provider's cache for minutes."""
    written_1h: int = 0
    """Written to the provider's cache for an hour."""
    output: int = 0

    def merged(self, other: RequestUsage) -> RequestUsage:
        """Return the larger number of each kind: a stream reports in parts."""
        return RequestUsage(*map(max, astuple(self), astuple(other)))

    def __add__(self, other: RequestUsage) -> RequestUsage:
        return RequestUsage(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: RequestUsage) -> RequestUsage:
        return RequestUsage(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def cost(self, model: str | None) -> float | None:
        """Return US dollars by litellm's table; None for a model without a price."""
        prices = prices_of(model)
        plain = prices.input
        if plain is None:
            return None
        cached, written, written_1h, output = (plain if p is None else p for p in prices[1:])
        rest = self.input - self.cached - self.written - self.written_1h
        cost = rest * plain + self.cached * cached + self.output * output
        return cost + self.written * written + self.written_1h * written_1h


@dataclass(frozen=True)
class Bill:
    """What a conversation's requests cost, their summaries, and the host's requests without us."""

    requests: int = 0
    usage: RequestUsage = field(default_factory=RequestUsage)
    cost: float | None = 0.0
    """US dollars of `usage`; None where a model has no listed price."""
    summaries: Usage = field(default_factory=Usage)
    without: RequestUsage = field(default_factory=RequestUsage)
    """What the same requests would have used as the host made them, by our count."""
    without_cost: float | None = 0.0
    kept: KeptSteps = field(default_factory=KeptSteps)
    """Steps of earlier turns that the requests carried, summed over all requests."""

    @property
    def total(self) -> float | None:
        """Return US dollars with the summaries; None where a price is unknown."""
        return _sum(self.cost, self.summaries.cost or 0.0)

    def paid(
        self, usage: RequestUsage, without: RequestUsage, model: str | None, *, is_new: bool = True
    ) -> Bill:
        """Return the bill with a request, or with a later report of a stream."""
        return replace(
            self,
            requests=self.requests + is_new,
            usage=self.usage + usage,
            cost=_sum(self.cost, usage.cost(model)),
            without=self.without + without,
            without_cost=_sum(self.without_cost, without.cost(model)),
        )

    def summarized(self, usage: Usage) -> Bill:
        """Return the bill with the usage of summaries."""
        return replace(self, summaries=self.summaries + usage)

    def carried(self, kept: KeptSteps) -> Bill:
        """Return the bill with the kept steps of a request."""
        both = KeptSteps(self.kept.steps + kept.steps, self.kept.tokens + kept.tokens)
        return replace(self, kept=both)

    def __str__(self) -> str:
        lines = [
            f"Paid since the process began: {_count(self.requests, 'request')}, "
            f"{_words(self.usage)}{_dollars(self.cost)}"
        ]
        if self.kept.steps:
            lines.append(f"In these requests: {self.kept}")
        if self.summaries.prompt_tokens:
            written = short(self.summaries.completion_tokens)
            read = short(self.summaries.prompt_tokens)
            lines.append(
                f"Summaries: {read} input, {written} output{_dollars(self.summaries.cost)}"
            )
        lines.append(f"As the host alone: {_words(self.without)}{_dollars(self.without_cost)}")
        return "\n".join(lines)


def _words(usage: RequestUsage) -> str:
    parts = [f"{short(usage.cached)} cached"] if usage.cached else []
    written = usage.written + usage.written_1h
    parts += [f"{short(written)} written to the cache"] if written else []
    inner = f" ({', '.join(parts)})" if parts else ""
    return f"{short(usage.input)} input{inner}, {short(usage.output)} output"


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _dollars(cost: float | None) -> str:
    return "" if cost is None else f", ${cost:.4f}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def short(tokens: int) -> str:
    """Return tokens in few letters: `980`, `9.1k`, `157k`."""
    if tokens < 1_000:  # below 0 too
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens / 1_000:.0f}k"
