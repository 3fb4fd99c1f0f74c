"""`Bill`: the cost of a session's requests, with and without compression.

Pure: the usage is what providers report, the prices are litellm's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from ..ledger.segments import Usage
from ..messages.display import format_dollars, pluralize
from ..tokens.models import prices_of


@dataclass(frozen=True)
class RequestUsage:
    """Tokens of requests, as the provider reports them."""

    prompt_tokens: int = 0
    """Tokens of the whole prompt, with the cached and the written part."""
    cache_read_tokens: int = 0
    """Tokens read from the provider's cache."""
    cache_write_tokens: int = 0
    """Tokens written to the provider's cache for minutes."""
    cache_write_1h_tokens: int = 0
    """Tokens written to the provider's cache for an hour."""
    completion_tokens: int = 0
    """Tokens of the answers."""

    def merge(self, other: RequestUsage) -> RequestUsage:
        """Return the larger of each number; a stream reports in parts."""
        return RequestUsage(*map(max, astuple(self), astuple(other)))

    def __add__(self, other: RequestUsage) -> RequestUsage:
        return RequestUsage(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: RequestUsage) -> RequestUsage:
        return RequestUsage(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def cost(self, model: str | None) -> float | None:
        """Return US dollars by litellm's table; None without a price."""
        prices = prices_of(model)
        plain = prices.input
        if plain is None:
            return None
        cached, written, written_1h, output = (plain if p is None else p for p in prices[1:])
        rest = self.prompt_tokens - _cache_tokens(self)
        cost = rest * plain + self.cache_read_tokens * cached + self.completion_tokens * output
        return cost + self.cache_write_tokens * written + self.cache_write_1h_tokens * written_1h


def _cache_tokens(usage: RequestUsage) -> int:
    written = usage.cache_write_tokens + usage.cache_write_1h_tokens
    return usage.cache_read_tokens + written


@dataclass(frozen=True)
class Bill:
    """A session's cost, and the cost of the same requests without compression."""

    requests: int = 0
    """Requests whose usage was recorded."""
    usage: RequestUsage = field(default_factory=RequestUsage)
    """Tokens of these requests, as the provider reports them."""
    cost: float | None = 0.0
    """US dollars of `usage`; None if a model has no listed price."""
    summaries: Usage = field(default_factory=Usage)
    """Tokens and US dollars of the auxiliary model."""
    without: RequestUsage = field(default_factory=RequestUsage)
    """Tokens of the same requests without compression, by our count."""
    without_cost: float | None = 0.0
    """US dollars of `without`; None if a model has no listed price."""
    kept_steps: int = 0
    """Tool steps of earlier turns that the host had dropped, summed over the requests."""
    kept_tokens: int = 0
    """Tokens of `kept_steps`."""

    @property
    def total(self) -> float | None:
        """US dollars with the summaries; None if a price is unknown."""
        return None if self.cost is None else self.cost + (self.summaries.cost or 0.0)

    @classmethod
    def of(
        cls, usage: RequestUsage, without: RequestUsage, model: str | None, *, is_new: bool = True
    ) -> Bill:
        """Return the bill of a request, or of its stream's later report."""
        cost, without_cost = usage.cost(model), without.cost(model)
        return cls(int(is_new), usage, cost, without=without, without_cost=without_cost)

    def __add__(self, other: Bill) -> Bill:
        return Bill(*map(_add_known, vars(self).values(), vars(other).values()))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Bill:
        """Return the bill of a dictionary that `asdict` made."""
        used = {name: RequestUsage(**values[name]) for name in ("usage", "without")}
        return cls(**{**values, **used, "summaries": Usage(**values["summaries"])})

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the lines of paid usage, summaries, and usage without compression."""
        paid = f"{_usage_text(self.usage)}{_dollars(self.cost)}"
        lines = [f"Paid: {pluralize(self.requests, 'request')}, {paid}"]
        if self.kept_steps:
            kept = f"{pluralize(self.kept_steps, 'step')}, {self.kept_tokens:,} tokens"
            lines.append(f"In these requests: kept from earlier turns: {kept}")
        usage = self.summaries
        if usage.prompt_tokens:
            read, written = map(short_count, (usage.prompt_tokens, usage.completion_tokens))
            lines.append(f"Summaries: {read} input, {written} output{_dollars(usage.cost)}")
        alone = f"{_usage_text(self.without)}{_dollars(self.without_cost)}"
        return [*lines, f"Without praison_compressor: {alone}"]


def _usage_text(usage: RequestUsage) -> str:
    parts = []
    if usage.cache_read_tokens:
        parts.append(f"{short_count(usage.cache_read_tokens)} cached")
    if written := usage.cache_write_tokens + usage.cache_write_1h_tokens:
        parts.append(f"{short_count(written)} written to the cache")
    inner = f" ({', '.join(parts)})" if parts else ""
    read, answered = map(short_count, (usage.prompt_tokens, usage.completion_tokens))
    return f"{read} input{inner}, {answered} output"


def _add_known(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


def _dollars(cost: float | None) -> str:
    return "" if cost is None else f", {format_dollars(cost)}"


def short_count(tokens: int) -> str:
    """Return tokens in few letters: `980`, `9.1k`, `157k`."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens / 1_000:.0f}k"


# -------------------------------------------------------------- what a provider reports


def field_of(holder: Any, name: str) -> Any:
    """Return a field of a dictionary or an object, or None."""
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


_REPORT_FIELDS = {
    # A response or a stream's event.
    *("choices", "content", "output", "response", "type", "usage", "_hidden_params"),
    # A usage.
    *("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"),
}
"""Each answer and each usage has at least one of these fields."""


def is_report(answer: Any) -> bool:
    """Return whether a value is an answer, a usage, or None."""
    answer = _last_part(answer)
    if answer is None or isinstance(answer, dict):
        return answer is None or not _REPORT_FIELDS.isdisjoint(answer)
    return any(hasattr(answer, name) for name in _REPORT_FIELDS)


def _last_part(answer: Any) -> Any:
    if isinstance(answer, tuple):  # text, calls, response
        return answer[-1] if answer else None
    return answer


def read_usage(answer: Any) -> RequestUsage | None:
    """Return the usage in an answer or a stream's piece, or None."""
    answer = _last_part(answer)
    # A Responses event holds the response. If the request did not ask for usage, litellm keeps the
    # usage of Anthropic's answer in `_hidden_params`.
    for holder in (answer, field_of(answer, "response"), field_of(answer, "_hidden_params")):
        usage = _parse_usage(field_of(holder, "usage"))
        if usage.prompt_tokens:
            return usage
    return None


def read_whole_usage(answer: Any) -> RequestUsage | None:
    """Return the usage with the cached part in `prompt_tokens`, or None.

    `answer` may be the usage itself.
    """
    usage = read_usage(answer) or read_usage({"usage": answer})
    raw = field_of(answer, "usage") or answer
    if not usage or any(field_of(raw, n) for n in ("prompt_tokens", "input_tokens_details")):
        return usage
    # Anthropic's own API counts `input_tokens` without the cached and the written part.
    return replace(usage, prompt_tokens=usage.prompt_tokens + _cache_tokens(usage))


def _parse_usage(usage: Any) -> RequestUsage:
    chat, items = field_of(usage, "prompt_tokens_details"), field_of(usage, "input_tokens_details")
    split = field_of(chat, "cache_creation_token_details") or field_of(usage, "cache_creation")
    hour = _first_positive((split, "ephemeral_1h_input_tokens"))
    written = _first_positive(
        (usage, "cache_creation_input_tokens"),
        (chat, "cache_creation_tokens"),
        (chat, "cache_write_tokens"),
    )
    return RequestUsage(
        prompt_tokens=_first_positive((usage, "prompt_tokens"), (usage, "input_tokens")),
        cache_read_tokens=_first_positive(
            (chat, "cached_tokens"),
            (items, "cached_tokens"),
            (usage, "cache_read_input_tokens"),
            (usage, "prompt_cache_hit_tokens"),
        ),
        cache_write_tokens=max(0, written - hour),
        cache_write_1h_tokens=hour,
        completion_tokens=_first_positive((usage, "completion_tokens"), (usage, "output_tokens")),
    )


def _first_positive(*fields: tuple[Any, str]) -> int:  # (holder, name)
    values = (field_of(holder, name) for holder, name in fields)
    return next((v for v in values if isinstance(v, int) and v > 0), 0)
